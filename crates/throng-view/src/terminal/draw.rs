//! Draws a run or a lab: pure, and for a terminal of any size.

use std::time::Duration;

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::{Alignment, Rect};
use ratatui::style::{Color, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::Widget;
use throng_base::units::show_duration;

use super::chart::CHART_HEIGHT_MIN;
use super::charts::charts;
use super::controls::CHARTS;
use super::cut::{bottom, top};
use super::figures::draw_figures;
use super::model::{Dialog, TerminalModel};
use super::panels::{
    draw_confirmation, draw_errors, draw_events, draw_help, draw_machines, draw_verdict,
    grade_color, machine_lines,
};
use super::style::FAINT;
use crate::clip::cut;

/// Draws the view.
pub fn draw(frame: &mut Frame<'_>, model: &TerminalModel) {
    let area = frame.area();
    let inner = match area.width {
        60.. => Rect { x: area.x + 1, width: area.width - 2, ..area },
        _ => area,
    };
    let buffer = frame.buffer_mut();
    let mut rest = inner;
    for line in [title(model, inner.width), progress(model, inner.width)] {
        line.render(top(&mut rest, 1), buffer);
    }
    if area.height >= 8 {
        keys().render(bottom(&mut rest, 1), buffer);
    }
    if area.height >= 20 || !model.rows_over.is_empty() && area.height >= 10 {
        lab_rows(model).render(top(&mut rest, 1), buffer);
    }
    draw_figures(model, &mut rest, area.height, buffer);
    match area.height {
        ..10 => {}
        10..20 => draw_verdict(model, bottom(&mut rest, 1), buffer),
        20..30 => draw_verdict(model, bottom(&mut rest, 2), buffer),
        _ => {
            top(&mut rest, 1);
            bottom(&mut rest, 1);
            draw_verdict(model, bottom(&mut rest, 2), buffer);
        }
    }
    let lines = match area.height {
        ..20 => 0,
        20..30 => 3,
        30..50 => 4,
        _ => 9,
    };
    draw_lists(model, bottom(&mut rest, lines), buffer);
    let machines = match area.height {
        ..24 => 0,
        24..40 => 4,
        _ => 10,
    };
    let machines = machines.min(machine_lines(model));
    if machines > 0 {
        draw_machines(model, bottom(&mut rest, machines), buffer);
    }
    if area.height >= 30 {
        bottom(&mut rest, 1);
    }
    draw_charts(model, rest, buffer);
    match model.dialog {
        Some(Dialog::Help) => draw_help(area, buffer),
        Some(Dialog::ConfirmStop) => draw_confirmation(area, buffer),
        None => {}
    }
}

/// Returns the first line: what runs against what, and for how long.
fn title(model: &TerminalModel, width: u16) -> Line<'static> {
    let mut line = vec![Span::from(model.title.clone()).bold()];
    if !model.target().is_empty() {
        line.push(Span::styled(format!(" → {}", model.target()), FAINT));
    }
    let now = seconds(model.now_ms);
    let time = match model.planned_ms {
        Some(planned_ms) => format!("{now} of {}", seconds(planned_ms)),
        None => now,
    };
    at_both_ends(line, vec![Span::from(time)], width)
}

/// Returns the second line: the progress, the phase, and the time left.
fn progress(model: &TerminalModel, width: u16) -> Line<'static> {
    let planned_ms = model.planned_ms.unwrap_or(0).max(1);
    let cells = usize::from(width / 3).min(40);
    let done = (cells as u64 * model.now_ms.min(planned_ms) / planned_ms) as usize;
    let mut line = vec![
        Span::styled("━".repeat(done), Style::new().fg(Color::Cyan)),
        Span::styled("─".repeat(cells - done), FAINT),
        Span::from(" "),
    ];
    let load = model.load();
    if load.is_some_and(|load| load.paused) {
        line.push(Span::from("paused, r resumes").fg(Color::Yellow).bold());
        line.push(Span::from(" · "));
    }
    let phase = load.map_or("starting", |load| &load.phase);
    line.push(Span::from(phase.to_owned()));
    let left = match model.planned_ms.map(|planned_ms| planned_ms.saturating_sub(model.now_ms)) {
        Some(left @ 1..) if !load.is_some_and(|load| load.is_leaving()) => {
            vec![Span::from(format!("{} left", seconds(left.div_ceil(1000) * 1000)))]
        }
        _ => Vec::new(),
    };
    at_both_ends(line, left, width)
}

/// Returns the line of a lab: its row, and the rows that are over.
fn lab_rows(model: &TerminalModel) -> Line<'static> {
    let Some(row) = &model.row else { return Line::default() };
    let mut line = vec![
        Span::styled(format!("row {} of {}: ", row.number, row.of), FAINT),
        Span::from(row.name.clone()).bold(),
    ];
    for over in model.rows_over.iter().rev() {
        line.push(Span::styled(format!("  ·  {} ", over.name), FAINT));
        if let Some(grade) = over.grade {
            line.push(Span::from(grade.to_string()).fg(grade_color(grade)));
        }
    }
    Line::from(line)
}

/// Returns the last line.
fn keys() -> Line<'static> {
    let keys = [("p", "pause"), ("r", "resume"), ("+ -", "users"), ("s", "stop"), ("?", "help")];
    let spans = keys.into_iter().flat_map(|(key, does)| {
        [Span::from(key).bold(), Span::styled(format!(" {does}   "), FAINT)]
    });
    Line::from_iter(spans)
}

/// Draws errors and events beside each other.
fn draw_lists(model: &TerminalModel, area: Rect, buffer: &mut Buffer) {
    let errors = if area.width < 60 { 0 } else { (area.width * 2 / 5).min(48) };
    let left = Rect { width: errors.saturating_sub(2), ..area };
    let right = Rect { x: area.x + errors, width: area.width - errors, ..area };
    draw_errors(model, left, buffer);
    draw_events(model, right, buffer);
}

/// Draws as many charts as there is room for: below each other if they are high enough then, else
/// beside each other, else the first.
fn draw_charts(model: &TerminalModel, area: Rect, buffer: &mut Buffer) {
    if area.height < CHART_HEIGHT_MIN {
        return;
    }
    let all = CHARTS as u16;
    let (below, beside) = match (area.width, area.height) {
        (_, height) if height >= all * CHART_HEIGHT_STACKED => (all, 1),
        (72.., _) => (1, all),
        (_, height) => ((height / CHART_HEIGHT_STACKED).clamp(1, all), 1),
    };
    let shown = usize::from(below.max(beside));
    let first = if shown == CHARTS { 0 } else { model.chart_first };
    let mut charts = charts(model);
    charts.rotate_left(first % CHARTS);
    for (chart, n) in charts.into_iter().take(shown).zip(0u16..) {
        let (width, height) = (area.width / beside, area.height / below);
        let (column, line) = (n % beside, n / beside);
        let part = Rect {
            x: area.x + column * width,
            y: area.y + line * height,
            width: width - u16::from(beside > 1),
            height,
        };
        chart.render(part, buffer);
    }
}

/// Returns a line with `right` at its right end, as far as there is room beside `left`.
fn at_both_ends(
    mut left: Vec<Span<'static>>,
    right: Vec<Span<'static>>,
    width: u16,
) -> Line<'static> {
    let taken: usize = right.iter().map(Span::width).sum();
    let room = usize::from(width).saturating_sub(taken + 1);
    let mut used = 0;
    for span in &mut left {
        let width = span.width();
        if used + width > room {
            span.content = cut(&span.content, room.saturating_sub(used)).into();
        }
        used += span.width();
    }
    left.push(Span::from(" ".repeat((room + 1).saturating_sub(used))));
    left.extend(right);
    Line::from(left).alignment(Alignment::Left)
}

/// Returns whole seconds: `1m30s`.
fn seconds(ms: u64) -> String {
    show_duration(Duration::from_secs(ms / 1000))
}

/// The least height of a chart that has others above or below it.
const CHART_HEIGHT_STACKED: u16 = 7;
