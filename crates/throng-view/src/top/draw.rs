//! The view in a terminal.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::Paragraph;
use throng_report::render::escape;

use super::list::TopList;
use super::{TopView, help, lists};
use crate::clip::cut;

pub(super) fn draw(view: &TopView, frame: &mut Frame<'_>) {
    let summary = view.look.as_ref().map(lists::summary).unwrap_or_default();
    let node = view.look.as_ref().and_then(lists::node);
    let heads: Vec<String> = [summary].into_iter().chain(node).collect();
    let rows = Constraint::Length(heads.len() as u16);
    let parts = [rows, Constraint::Min(0), Constraint::Length(1)];
    let [head, body, foot] = Layout::vertical(parts).areas(frame.area());
    let width = usize::from(frame.area().width);
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let heads = heads.iter().map(|line| Line::styled(cut(&escape(line), width), bold));
    frame.render_widget(Paragraph::new(heads.collect::<Vec<_>>()), head);
    frame.render_widget(foot_line(view, width), foot);
    if view.shows_help {
        let lines: Vec<Line<'_>> = help::LINES.iter().map(|line| Line::raw(*line)).collect();
        frame.render_widget(Paragraph::new(lines), body);
        return;
    }
    let Some(look) = &view.look else {
        frame.render_widget(Line::raw("looking into the server …"), body);
        return;
    };
    let lists = lists::all(look, &view.publications_per_s, view.order);
    if width < TWO_COLUMNS_FROM {
        return draw_lists(&lists.each_ref(), body, frame);
    }
    let [cores, topics, slow, busy] = &lists;
    let all = (cores.len() + 2).min(usize::from(body.height) / 3) as u16;
    let [above, below] =
        Layout::vertical([Constraint::Length(all), Constraint::Min(0)]).areas(body);
    draw_lists(&[cores], above, frame);
    let halves = [Constraint::Percentage(40), Constraint::Length(3), Constraint::Min(0)];
    let [left, _, right] = Layout::horizontal(halves).areas(below);
    draw_lists(&[topics], left, frame);
    draw_lists(&[slow, busy], right, frame);
}

fn foot_line(view: &TopView, width: usize) -> Line<'static> {
    if let Some(problem) = &view.problem {
        let text = cut(&escape(problem), width);
        return Line::styled(text, Style::new().fg(Color::Red));
    }
    let frozen = if view.is_frozen { "FROZEN: space goes on   " } else { "" };
    let order = view.order.name();
    let keys = format!("{frozen}q quit   space freeze   s order: {order}   ? help");
    let style = if view.is_frozen {
        Style::new().fg(Color::Yellow)
    } else {
        Style::new().add_modifier(Modifier::DIM)
    };
    Line::styled(cut(&keys, width), style)
}

/// Draws lists below each other. Each has a head; they share the remaining lines.
fn draw_lists(lists: &[&TopList], area: Rect, frame: &mut Frame<'_>) {
    let height = usize::from(area.height);
    let wanted: Vec<usize> = lists.iter().map(|list| list.len()).collect();
    let heads = lists.len();
    let is_roomy = height >= heads + (heads - 1) + ROOMY_LINES * heads;
    let gaps = if is_roomy { heads - 1 } else { 0 };
    let counts = shares(&wanted, height.saturating_sub(heads + gaps));
    let mut lines = Vec::new();
    for (list, count) in lists.iter().zip(counts) {
        if is_roomy && !lines.is_empty() {
            lines.push(Line::raw(""));
        }
        lines.extend(list.lines(usize::from(area.width), count));
    }
    frame.render_widget(Paragraph::new(lines), area);
}

/// Shares `lines` between lists: one each in turn, until all have what they want or none is left.
fn shares(wanted: &[usize], mut lines: usize) -> Vec<usize> {
    let mut shares = vec![0; wanted.len()];
    while lines > 0 {
        let before = lines;
        for (share, wanted) in shares.iter_mut().zip(wanted) {
            if lines > 0 && *share < *wanted {
                *share += 1;
                lines -= 1;
            }
        }
        if lines == before {
            break;
        }
    }
    shares
}

/// The width from which topics stand beside connections.
const TWO_COLUMNS_FROM: usize = 150;
/// Lines of each list from which there is an empty line between two lists.
const ROOMY_LINES: usize = 4;
