//! The text below the charts: errors, events and the verdict; and the boxes above everything.

use std::cmp::Reverse;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, BorderType, Clear, Paragraph, Widget, Wrap};
use throng_base::units::{brief_count, brief_micros};
use throng_measure::Grade;

use super::controls::KEYS;
use super::model::TerminalModel;
use super::style::FAINT;
use crate::clip::cut;

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

/// Returns the lines that [`draw_machines`] needs for all machines of a fleet; 0 without one.
pub(crate) fn machine_lines(model: &TerminalModel) -> u16 {
    let machines = model.load().map_or(0, |load| load.machines.len());
    if machines == 0 { 0 } else { machines.saturating_add(1).try_into().unwrap_or(u16::MAX) }
}

/// Draws the machines of a fleet: the lost ones, then those with the largest lag.
pub(crate) fn draw_machines(model: &TerminalModel, area: Rect, buffer: &mut Buffer) {
    let Some(load) = model.load().filter(|load| !load.machines.is_empty()) else { return };
    let mut machines: Vec<_> = load.machines.iter().collect();
    machines.sort_by_key(|machine| (!machine.lost, Reverse(machine.lag_us_p99)));
    let shown = usize::from(area.height.saturating_sub(1));
    let hidden = machines.len().saturating_sub(shown);
    let title = match hidden {
        0 => "machines".to_owned(),
        hidden => format!("machines (+{hidden})"),
    };
    let head = format!("{title:<18}");
    let columns = ["users", "connected", "p99", "lag p99", "busy core"];
    let columns = columns.map(|column| format!("{column:>12}")).concat();
    let mut lines = vec![Line::from(vec![Span::from(head).bold(), Span::styled(columns, FAINT)])];
    lines.extend(machines.into_iter().take(shown).map(|machine| {
        let us = |us: Option<u64>| us.map_or_else(|| "-".to_owned(), brief_micros);
        let latency = machine.message_us_p99.or(machine.connect_us_p99);
        let busiest = machine.busiest_core_permille.map(|it| format!("{} %", (it + 5) / 10));
        let cells = [
            brief_count(machine.users_active as f64),
            brief_count(machine.connected as f64),
            us(latency),
            us(machine.lag_us_p99),
            busiest.unwrap_or_else(|| "-".to_owned()),
        ];
        let name = format!("{:<18}", cut(&machine.name, 17));
        if machine.lost {
            return Line::from(Span::from(format!("{name}lost")).fg(Color::Red));
        }
        Line::from(name + &cells.map(|cell| format!("{cell:>12}")).concat())
    }));
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
    // After a space, so that a number does not look cut. A full line loses its last word for that.
    let line = area.bottom() - 1;
    let mut place = (last + 2).min(area.right().saturating_sub(1));
    if place <= last {
        let is_space = |column: &u16| buffer[(*column, line)].symbol() == " ";
        place = (area.left()..last).rev().find(is_space).map_or(last, |space| space + 1);
        (place..=last).for_each(|column| _ = buffer[(column, line)].set_char(' '));
    }
    buffer[(place, line)].set_char('…');
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
