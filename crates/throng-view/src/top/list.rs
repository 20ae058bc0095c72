//! A list of a view: columns, of which a narrow terminal shows the most important ones.

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use throng_report::render::{Align, Table, escape};

use crate::clip::{cut, width_of};

/// A list with a head. Its cells are safe for a terminal.
#[derive(Debug)]
pub(super) struct TopList {
    columns: Vec<Column>,
    rows: Vec<Row>,
    /// What the list says without a row.
    empty: &'static str,
    /// What the reader must know about the rows.
    pub(super) note: Option<String>,
}

/// A column of a list.
#[derive(Clone, Copy, Debug)]
pub(super) struct Column {
    pub(super) head: &'static str,
    pub(super) align: Align,
    /// Its importance: a narrow terminal leaves out the columns with the lowest. The column of
    /// names has [`NAME`] and is cut instead.
    pub(super) importance: u8,
}

#[derive(Debug)]
struct Row {
    cells: Vec<String>,
    is_alarming: bool,
}

/// The importance of a column that is never left out.
pub(super) const NAME: u8 = u8::MAX;

impl TopList {
    pub(super) fn new(columns: &[Column], empty: &'static str) -> Self {
        Self { columns: columns.to_vec(), rows: Vec::new(), empty, note: None }
    }

    /// Adds a row; the view draws an alarming one in red.
    pub(super) fn row<const N: usize>(&mut self, cells: [String; N], is_alarming: bool) {
        debug_assert_eq!(N, self.columns.len());
        let cells = cells.iter().map(|cell| escape(cell)).collect();
        self.rows.push(Row { cells, is_alarming });
    }

    /// Returns how many lines the list has at most, besides its head.
    pub(super) fn len(&self) -> usize {
        self.rows.len().max(1) + usize::from(self.note.is_some())
    }

    /// Returns the list with all rows and columns.
    pub(super) fn text(&self) -> String {
        let note = self.note.as_ref().map_or_else(String::new, |note| format!("({note})\n"));
        if self.rows.is_empty() {
            return format!("{}: {}\n{note}", self.columns[0].head, self.empty);
        }
        let align: Vec<Align> = self.columns.iter().map(|column| column.align).collect();
        let heads = self.columns.iter().map(|column| column.head);
        let mut table = Table::with_head(heads).aligned(&align);
        self.rows.iter().for_each(|row| table.row(row.cells.iter().cloned()));
        format!("{table}{note}")
    }

    /// Returns the head and at most `count` further lines, in `width` columns.
    pub(super) fn lines(&self, width: usize, count: usize) -> Vec<Line<'static>> {
        let note = self.note.as_ref().filter(|_| count > 1);
        let count = count - usize::from(note.is_some());
        let hidden = self.rows.len().saturating_sub(count);
        let shown = &self.rows[..self.rows.len() - hidden];
        let columns = self.columns_in(width, shown);
        let heads: Vec<String> = self.columns.iter().map(|column| column.head.to_owned()).collect();
        let head_style = Style::new().add_modifier(Modifier::BOLD).fg(Color::Cyan);
        let mut lines = vec![Line::styled(self.line(&heads, &columns), head_style)];
        for row in shown {
            let style =
                if row.is_alarming { Style::new().fg(Color::Red) } else { Style::default() };
            lines.push(Line::styled(self.line(&row.cells, &columns), style));
        }
        let dim = Style::new().add_modifier(Modifier::DIM);
        if self.rows.is_empty() && count > 0 {
            lines.push(Line::styled(cut(self.empty, width), dim));
        }
        lines.extend(note.map(|note| Line::styled(cut(note, width), dim)));
        lines
    }

    /// Chooses the columns that fit into `width`, each with its width.
    fn columns_in(&self, width: usize, rows: &[Row]) -> Vec<(usize, usize)> {
        let wanted = |at: usize| {
            let cells = rows.iter().map(|row| width_of(&row.cells[at]));
            cells.chain([width_of(self.columns[at].head)]).max().unwrap_or(0)
        };
        let mut columns: Vec<(usize, usize)> =
            (0..self.columns.len()).map(|at| (at, wanted(at))).collect();
        loop {
            let total = total(&columns);
            if total <= width {
                return columns;
            }
            let importance = |at: &usize| self.columns[*at].importance;
            // A name shrinks to its half before a column is left out.
            let room = |(at, wide): &(usize, usize)| match importance(at) {
                NAME => wide.saturating_sub(NAME_LEAST),
                _ => 0,
            };
            let shrinks = columns.iter().position(|column| room(column) > 0);
            if let Some(name) = shrinks {
                columns[name].1 -= room(&columns[name]).min(total - width);
                continue;
            }
            let least = (0..columns.len())
                .filter(|at| importance(&columns[*at].0) != NAME)
                .min_by_key(|at| importance(&columns[*at].0));
            match least {
                Some(least) => _ = columns.remove(least),
                None => return columns,
            }
        }
    }

    fn line(&self, cells: &[String], columns: &[(usize, usize)]) -> String {
        let mut line = String::new();
        for (at, width) in columns {
            let gap = if line.is_empty() { "" } else { GAP };
            let cell = cut(&cells[*at], *width);
            let blank = " ".repeat(width - width_of(&cell).min(*width));
            line += &match self.columns[*at].align {
                Align::Left => format!("{gap}{cell}{blank}"),
                Align::Right => format!("{gap}{blank}{cell}"),
            };
        }
        line
    }
}

fn total(columns: &[(usize, usize)]) -> usize {
    let gaps = columns.len().saturating_sub(1) * GAP.len();
    columns.iter().map(|(_, width)| width).sum::<usize>() + gaps
}

/// The space between two columns.
const GAP: &str = "  ";
/// The width to which a name shrinks before a column is left out.
const NAME_LEAST: usize = 16;
