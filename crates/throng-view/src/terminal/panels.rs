//! The text below the charts: errors, events and the verdict; and the boxes above everything.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, BorderType, Clear, Paragraph, Widget, Wrap};
use throng_base::units::brief_count;
use throng_report::Grade;

use super::controls::KEYS;
use super::model::TerminalModel;
use super::style::FAINT;

/// Draws how many errors of each kind there were, the most frequent first.
pub(crate) fn draw_errors(model: &TerminalModel, area: Rect, buffer: &mut Buffer) {
    let mut kinds: Vec<(String, u64)> = Vec::new();
    if let Some(load) = model.load() {
        let failed = load.connect_failed.0.iter();
        kinds.extend(failed.map(|(kind, n)| (format!("connect {kind}"), *n)));
        kinds.extend(load.errors.0.iter().map(|(kind, n)| (kind.clone(), *n)));
    }
    kinds.sort_by(|one, two| two.1.cmp(&one.1).then_with(|| one.0.cmp(&two.0)));
    let mut lines = vec![heading("errors")];
    if kinds.is_empty() {
        lines.push(Line::from(Span::styled("none", FAINT)));
    }
    lines.extend(kinds.into_iter().map(|(kind, n)| {
        let n = format!("{:>5} ", brief_count(n as f64));
        Line::from(vec![Span::from(n).fg(Color::Red), Span::from(kind)])
    }));
    Paragraph::new(lines).render(area, buffer);
}

/// Draws the last events.
pub(crate) fn draw_events(model: &TerminalModel, area: Rect, buffer: &mut Buffer) {
    let room = usize::from(area.height.saturating_sub(1));
    let first = model.events.len().saturating_sub(room);
    let mut lines = vec![heading("events")];
    if model.events.is_empty() {
        lines.push(Line::from(Span::styled("none", FAINT)));
    }
    lines.extend(model.events.iter().skip(first).map(|text| Line::from(text.as_str())));
    Paragraph::new(lines).render(area, buffer);
}

/// Draws the verdict so far, with its grade.
pub(crate) fn draw_verdict(model: &TerminalModel, area: Rect, buffer: &mut Buffer) {
    let Some(result) = &model.result else {
        let text = Span::styled("The verdict so far comes after a few seconds.", FAINT);
        return text.render(area, buffer);
    };
    let validity = &result.summary.validity;
    let grade = format!("{} so far", validity.grade);
    let mut line = vec![
        Span::from(grade).fg(grade_color(validity.grade)).bold(),
        Span::from("  "),
        Span::from(result.diagnosis.verdict.clone()),
    ];
    if let Some(reason) = validity.reasons.first() {
        line.push(Span::styled(format!("  ({reason})"), FAINT));
    }
    let text = Paragraph::new(Line::from(line)).wrap(Wrap { trim: true });
    let taller = Rect { height: area.height + 1, ..area };
    let mut whole = Buffer::empty(taller);
    (&text).render(taller, &mut whole);
    text.render(area, buffer);
    if last_column(taller, &whole).is_some() {
        mark_more(area, buffer);
    }
}

/// Ends the last line of a text that goes on with an ellipsis.
fn mark_more(area: Rect, buffer: &mut Buffer) {
    let Some(last) = last_column(area, buffer) else { return };
    // After a space, so that a number does not look cut. A full line has no room for that.
    let place = (last + 2).min(area.right().saturating_sub(1));
    buffer[(place, area.bottom() - 1)].set_char('…');
}

/// Returns the last column of the last line that has a character.
fn last_column(area: Rect, buffer: &Buffer) -> Option<u16> {
    let line = area.bottom().checked_sub(1).filter(|_| area.height > 0)?;
    (area.left()..area.right()).rev().find(|column| buffer[(*column, line)].symbol() != " ")
}

/// Draws the help.
pub(crate) fn draw_help(area: Rect, buffer: &mut Buffer) {
    let line = |(key, does): &(&'static str, &'static str)| {
        let key = Span::from(format!(" {key:<7}")).bold();
        Line::from(vec![key, Span::from(*does)])
    };
    let lines: Vec<_> = KEYS.iter().map(line).collect();
    draw_dialog("keys", lines, area, buffer);
}

/// Draws the question whether to stop.
pub(crate) fn draw_confirmation(area: Rect, buffer: &mut Buffer) {
    let lines = vec![
        Line::from(" Ramp down and report now?"),
        Line::from(vec![
            Span::from(" y").bold(),
            Span::from(" stop   "),
            Span::from("n").bold(),
            Span::from(" go on"),
        ]),
    ];
    draw_dialog("stop", lines, area, buffer);
}

/// Draws a box in the middle of `area`.
fn draw_dialog(title: &str, lines: Vec<Line<'_>>, area: Rect, buffer: &mut Buffer) {
    let width = lines.iter().map(Line::width).max().unwrap_or(0) as u16 + 4;
    let (width, height) = (width.min(area.width), (lines.len() as u16 + 2).min(area.height));
    let place = Rect {
        x: area.x + (area.width - width) / 2,
        y: area.y + (area.height - height) / 2,
        width,
        height,
    };
    Clear.render(place, buffer);
    let block = Block::bordered().border_type(BorderType::Rounded).title(format!(" {title} "));
    Paragraph::new(lines).block(block).render(place, buffer);
}

/// Returns the colour of a grade.
pub(crate) fn grade_color(grade: Grade) -> Color {
    match grade {
        Grade::Valid => Color::Green,
        Grade::Degraded => Color::Yellow,
        Grade::Invalid => Color::Red,
    }
}

fn heading(text: &'static str) -> Line<'static> {
    Line::from(Span::from(text).bold())
}
