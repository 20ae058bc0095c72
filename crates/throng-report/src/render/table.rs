//! Aligned columns of plain text.

use std::fmt;

use super::escape::escape;

/// The alignment of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Left, for words.
    Left,
    /// Right, for numbers.
    Right,
}

/// A table; `Display` writes it with two spaces between columns and no space at the ends of lines.
#[derive(Clone, Debug, Default)]
pub struct Table {
    align: Vec<Align>,
    rows: Vec<Vec<String>>,
    ruled: bool,
}

impl Table {
    /// Returns a table without a head: the first column aligned left, all others right.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a table with an underlined first row.
    pub fn with_head<S: Into<String>>(head: impl IntoIterator<Item = S>) -> Self {
        let mut table = Self { ruled: true, ..Self::default() };
        table.row(head);
        table
    }

    /// Sets the alignment of the columns, from the first.
    #[must_use]
    pub fn aligned(mut self, align: &[Align]) -> Self {
        self.align = align.to_vec();
        self
    }

    /// Adds a row; it may be shorter than other rows. A cell is one line, and no command to a
    /// terminal, whatever is in it.
    pub fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// Leaves out columns with these heads, one after another, until no line is wider than `width`.
    #[must_use]
    pub fn fitted(mut self, width: usize, left_out_first: &[&str]) -> Self {
        for head in left_out_first {
            let widths = self.widths();
            let line = widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1);
            if line <= width {
                break;
            }
            let column = self.rows.first().and_then(|row| row.iter().position(|cell| cell == head));
            let Some(column) = column else { continue };
            for row in self.rows.iter_mut().filter(|row| column < row.len()) {
                row.remove(column);
            }
        }
        self
    }

    /// Returns the alignment of a column: without another, the first is left and all others right.
    pub(crate) fn alignment(&self, column: usize) -> Align {
        let default = if column == 0 { Align::Left } else { Align::Right };
        self.align.get(column).copied().unwrap_or(default)
    }

    /// Reports whether the table has no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns the cells, row by row; the first row may be a head.
    pub(crate) fn rows(&self) -> &[Vec<String>] {
        &self.rows
    }

    fn widths(&self) -> Vec<usize> {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell: &String| escape(cell).chars().count()).max().unwrap_or(0)
        };
        (0..columns).map(width).collect()
    }

    fn line(&self, row: &[String], widths: &[usize]) -> String {
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(widths).enumerate() {
            let cell = escape(cell);
            let gap = if column == 0 { "" } else { "  " };
            line += &match self.alignment(column) {
                Align::Left => format!("{gap}{cell:<width$}"),
                Align::Right => format!("{gap}{cell:>width$}"),
            };
        }
        line.truncate(line.trim_end().len());
        line
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths = self.widths();
        for (i, row) in self.rows.iter().enumerate() {
            writeln!(f, "{}", self.line(row, &widths))?;
            if i == 0 && self.ruled {
                let rule: Vec<_> = widths.iter().map(|width| "-".repeat(*width)).collect();
                writeln!(f, "{}", rule.join("  "))?;
            }
        }
        Ok(())
    }
}

/// Returns `value` as text, or `-` for a value that was not measured.
pub fn or_dash<T>(value: Option<T>, show: impl Fn(T) -> String) -> String {
    value.map_or_else(|| "-".to_owned(), show)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::with_head(["", "rate", "p99"]);
        table.row(["connects", "9.00k/s", "85 µs"]);
        table.row(["x", "1/s"]);
        assert_eq!(
            table.to_string(),
            "             rate    p99\n\
             --------  -------  -----\n\
             connects  9.00k/s  85 µs\n\
             x             1/s\n"
        );
    }

    #[test]
    fn a_cell_is_one_line_whatever_is_in_it() {
        let mut table = Table::new();
        table.row(["a\nb\u{1b}", "1"]);
        assert_eq!(table.to_string(), "a\\nb\\u{1b}  1\n");
    }

    #[test]
    fn columns_are_left_out_only_where_the_width_requires_it() {
        let mut table = Table::with_head(["", "p90", "p99", "max"]);
        table.row(["x", "10", "20", "30"]);
        let heads = |width| table.clone().fitted(width, &["max", "none", "p90"]).rows[0].join(" ");
        assert_eq!(heads(16), " p90 p99 max", "{table}");
        assert_eq!(heads(15), " p90 p99");
        assert_eq!(heads(10), " p99");
        assert_eq!(heads(1), " p99", "the others are never left out");
    }

    #[test]
    fn a_column_can_be_aligned_to_the_left() {
        let mut table = Table::new().aligned(&[Align::Right, Align::Left]);
        table.row(["1", "a"]);
        table.row(["10", "long"]);
        assert_eq!(table.to_string(), " 1  a\n10  long\n");
    }
}
