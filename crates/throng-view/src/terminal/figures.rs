//! The figures of a run: what can be read at a glance.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Style};
use ratatui::text::Span;
use ratatui::widgets::Widget;
use throng_base::units::{brief_count, brief_micros};
use throng_measure::Operation;

use super::cut::top;
use super::model::TerminalModel;
use super::style::FAINT;

/// A figure and its name.
struct Figure {
    name: String,
    value: Option<String>,
    is_alarming: bool,
}

/// Draws the figures in as many lines as there is room for, at the top of `rest`. The terminal has
/// `height` lines.
pub(crate) fn draw_figures(
    model: &TerminalModel,
    rest: &mut Rect,
    height: u16,
    buffer: &mut Buffer,
) {
    let figures = figures(model);
    let rows_most = match height {
        ..5 => 0,
        5..16 => 1,
        _ => 2,
    };
    let mut figures = &figures[..];
    for _ in 0..rows_most {
        let fitting = fitting(figures, rest.width).max(1).min(figures.len());
        if fitting == 0 {
            break;
        }
        let (row, others) = figures.split_at(fitting);
        draw_row(row, top(rest, 2), buffer);
        figures = others;
    }
}

/// Returns how many figures fit beside each other.
fn fitting(figures: &[Figure], width: u16) -> usize {
    let mut used = 0;
    let fits = |figure: &&Figure| {
        used += figure.width();
        used <= width + GAP
    };
    figures.iter().take_while(fits).count()
}

/// Draws figures beside each other, with even gaps.
fn draw_row(row: &[Figure], area: Rect, buffer: &mut Buffer) {
    let used: u16 = row.iter().map(Figure::width).sum();
    let wider = area.width.saturating_sub(used) / row.len().max(1) as u16;
    let mut x = area.x;
    for figure in row {
        let at = Rect { x, width: area.right().saturating_sub(x), height: 1, ..area };
        let value = figure.value.clone().unwrap_or_else(|| "-".to_owned());
        let style = Style::new().bold();
        let style = if figure.is_alarming { style.fg(Color::Red) } else { style };
        Span::styled(figure.name.clone(), FAINT).render(at, buffer);
        if area.height > 1 {
            Span::styled(value, style).render(Rect { y: at.y + 1, ..at }, buffer);
        }
        x += figure.width() + wider.min(GAP_MOST);
    }
}

impl Figure {
    /// Returns its least width with the gap beside it, which its value does not change.
    fn width(&self) -> u16 {
        (self.name.chars().count() as u16).max(VALUE_WIDTH) + GAP
    }
}

/// Returns the figures, the most important first.
fn figures(model: &TerminalModel) -> Vec<Figure> {
    let (load, last) = (model.load(), model.last());
    let rate = |operation: Operation| {
        let row = last.filter(|row| !row.is_leaving)?;
        row.work.per_second(row.work.done[operation]).map(brief_count)
    };
    let operation = model.operation();
    let latency = model.course.all().iter().rev().find_map(|row| row.latency(operation));
    let errors = load.map(|load| load.errors.total() + load.counters.connects_failed);
    let cpus = |us: u64| {
        let span_ms = last?.work.span_ms;
        (span_ms > 0).then(|| format!("{:.2}", us as f64 / 1000.0 / span_ms as f64))
    };
    let lag = load.map(|load| &load.lag).filter(|lag| !lag.is_empty());
    let figure = |name: &str, value: Option<String>| Figure {
        name: name.to_owned(),
        value,
        is_alarming: false,
    };
    let second = match operation {
        Operation::Connect => figure("users", last.map(|row| brief_count(row.users as f64))),
        other => figure(&format!("{}/s", other.short()[1]), rate(other)),
    };
    vec![
        figure("connected", last.map(|row| brief_count(row.connected as f64))),
        figure("connects/s", rate(Operation::Connect)),
        second,
        figure(
            &format!("{} p99", operation.name()),
            latency.map(|latency| brief_micros(latency.p99)),
        ),
        Figure {
            is_alarming: errors.is_some_and(|errors| errors > 0),
            ..figure("errors", errors.map(|errors| brief_count(errors as f64)))
        },
        figure("own CPUs", last.and_then(|row| cpus(row.work.load_cpu_us))),
        figure("srv CPUs", last.and_then(|row| cpus(row.work.server_cpu_us?))),
        figure("lag p99", lag.map(|lag| brief_micros(lag.percentile(99.0)))),
    ]
}

/// The widest value: `999 ms`, `12.3 ms`.
const VALUE_WIDTH: u16 = 7;
/// The least gap between two figures, and what is added to it at most.
const GAP: u16 = 1;
const GAP_MOST: u16 = 8;
