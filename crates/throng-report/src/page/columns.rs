//! Columns of numbers, one value a row, in bounded memory.

use std::collections::BTreeMap;

use super::model::SeriesKind;
use super::packed;

/// The series of a page. A run of any length fits: when there are too many rows, two become one.
#[derive(Debug)]
pub(super) struct Columns {
    /// The end of each row.
    at_ms: Vec<i64>,
    columns: BTreeMap<String, Column>,
    intervals_per_row: u64,
    /// Intervals in the last row.
    in_last_row: u64,
}

#[derive(Debug)]
struct Column {
    kind: SeriesKind,
    /// The value of each row; shorter than the rows if the last ones are unknown.
    values: Vec<Option<i64>>,
}

impl Default for Columns {
    fn default() -> Self {
        Self { at_ms: Vec::new(), columns: BTreeMap::new(), intervals_per_row: 1, in_last_row: 1 }
    }
}

impl Columns {
    /// Begins the interval that ends at `at_ms`: in the last row if that has room, else in a new
    /// one.
    pub(super) fn begin(&mut self, at_ms: u64) {
        let at_ms = i64::try_from(at_ms).unwrap_or(i64::MAX);
        if self.in_last_row == self.intervals_per_row && self.at_ms.len() >= ROWS_MAX {
            self.halve();
        }
        match self.at_ms.last_mut() {
            Some(last) if self.in_last_row < self.intervals_per_row => {
                *last = at_ms;
                self.in_last_row += 1;
            }
            _ => {
                self.at_ms.push(at_ms);
                self.in_last_row = 1;
            }
        }
    }

    /// Adds the value of a series in the present interval.
    pub(super) fn set(&mut self, id: &str, kind: SeriesKind, value: i64) {
        if !self.columns.contains_key(id) {
            self.columns.insert(id.to_owned(), Column { kind, values: Vec::new() });
        }
        if let Some(Column { values, .. }) = self.columns.get_mut(id)
            && let Some(row) = self.at_ms.len().checked_sub(1)
        {
            values.resize(row + 1, None);
            values[row] = merge(kind, values[row], Some(value));
        }
    }

    /// Merges every two rows.
    fn halve(&mut self) {
        self.intervals_per_row *= 2;
        self.in_last_row = self.intervals_per_row;
        self.at_ms = self.at_ms.chunks(2).filter_map(|pair| pair.last().copied()).collect();
        for Column { kind, values, .. } in self.columns.values_mut() {
            let merged = values.chunks(2).map(|pair| {
                pair.iter().copied().reduce(|one, two| merge(*kind, one, two)).flatten()
            });
            *values = merged.collect();
        }
    }

    pub(super) fn rows(&self) -> usize {
        self.at_ms.len()
    }

    pub(super) fn intervals_per_row(&self) -> u64 {
        self.intervals_per_row
    }

    /// Returns the number of intervals so far.
    pub(super) fn intervals(&self) -> u64 {
        match self.at_ms.len() as u64 {
            0 => 0,
            rows => (rows - 1) * self.intervals_per_row + self.in_last_row,
        }
    }

    /// Returns the ends of the rows from `row` on, and the values of each series that has any.
    pub(super) fn since(&self, row: usize) -> (&[i64], BTreeMap<&str, &[Option<i64>]>) {
        let has_any = |column: &Column| column.values.len() > row;
        let columns = self.columns.iter().filter(|(_, column)| has_any(column));
        let columns = columns.map(|(id, column)| (id.as_str(), &column.values[row..]));
        (self.at_ms.get(row..).unwrap_or(&[]), columns.collect())
    }

    /// Returns all columns, `at_ms` among them, as [packed] text.
    pub(super) fn packed(&self) -> BTreeMap<&str, String> {
        let values = |column: &Column| packed::series(column.values.iter().copied());
        let columns = self.columns.iter().map(|(id, column)| (id.as_str(), values(column)));
        let mut columns: BTreeMap<_, _> = columns.collect();
        columns.insert("at_ms", packed::series(self.at_ms.iter().copied().map(Some)));
        columns
    }
}

fn merge(kind: SeriesKind, one: Option<i64>, two: Option<i64>) -> Option<i64> {
    let (Some(a), Some(b)) = (one, two) else { return one.or(two) };
    Some(match kind {
        SeriesKind::Growth => a.saturating_add(b),
        SeriesKind::Gauge => b,
        SeriesKind::Most => a.max(b),
    })
}

/// The most rows: nine hours of one a second. An even number, so that two rows become one.
const ROWS_MAX: usize = 32_768;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_run_is_kept_in_coarser_rows_up_to_its_last_interval() {
        let mut columns = Columns::default();
        let seconds = ROWS_MAX as u64 + 1;
        for second in 1..=seconds {
            columns.begin(second * 1000);
            columns.set("growth", SeriesKind::Growth, 3);
            columns.set("gauge", SeriesKind::Gauge, second as i64);
            columns.set("most", SeriesKind::Most, -(second as i64));
        }
        assert_eq!((columns.intervals_per_row, columns.at_ms.len()), (2, ROWS_MAX / 2 + 1));
        let value = |id: &str, row: usize| columns.columns[id].values[row].unwrap();
        let row = |row| (columns.at_ms[row], value("growth", row), value("gauge", row));
        assert_eq!((row(0), value("most", 0)), ((2000, 6, 2), -1));
        let last = seconds as i64;
        assert_eq!(row(ROWS_MAX / 2), (last * 1000, 3, last), "half of a row");
        columns.begin(last as u64 * 1000 + 1000);
        columns.set("growth", SeriesKind::Growth, 4);
        assert_eq!(columns.columns["growth"].values[ROWS_MAX / 2], Some(7));
    }
}
