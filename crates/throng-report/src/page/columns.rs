//! Columns of numbers, one value a row, in bounded memory.

use std::collections::BTreeMap;

use super::model::SeriesKind;

/// The series of a page. A run of any length fits: when there are too many rows, two become one.
#[derive(Debug)]
pub(super) struct Columns {
    /// The end of each row.
    at_ms: Vec<i64>,
    columns: BTreeMap<String, Column>,
    intervals_per_row: u64,
    /// Intervals in the row that is being filled.
    pending: u64,
}

#[derive(Debug)]
struct Column {
    kind: SeriesKind,
    /// The value of each row; shorter than the rows if the last ones are unknown.
    values: Vec<Option<i64>>,
    /// The value of the row that is being filled.
    pending: Option<i64>,
}

impl Default for Columns {
    fn default() -> Self {
        Self { at_ms: Vec::new(), columns: BTreeMap::new(), intervals_per_row: 1, pending: 0 }
    }
}

impl Columns {
    /// Sets the value of a series in the present interval.
    pub(super) fn set(&mut self, id: &str, kind: SeriesKind, value: i64) {
        if let Some(column) = self.columns.get_mut(id) {
            column.pending = merge(kind, column.pending, Some(value));
        } else {
            let column = Column { kind, values: Vec::new(), pending: Some(value) };
            self.columns.insert(id.to_owned(), column);
        }
    }

    /// Ends the present interval.
    pub(super) fn end_row(&mut self, at_ms: u64) {
        self.pending += 1;
        if self.pending < self.intervals_per_row {
            return;
        }
        self.pending = 0;
        let rows = self.at_ms.len();
        self.at_ms.push(i64::try_from(at_ms).unwrap_or(i64::MAX));
        for column in self.columns.values_mut() {
            if let Some(value) = column.pending.take() {
                column.values.resize(rows, None);
                column.values.push(Some(value));
            }
        }
        if self.at_ms.len() >= ROWS_MAX {
            self.halve();
        }
    }

    /// Merges every two rows.
    fn halve(&mut self) {
        self.intervals_per_row *= 2;
        self.at_ms = self.at_ms.chunks(2).filter_map(|pair| pair.last().copied()).collect();
        for Column { kind, values, .. } in self.columns.values_mut() {
            let merged = values.chunks(2).map(|pair| {
                pair.iter().copied().reduce(|one, two| merge(*kind, one, two)).flatten()
            });
            *values = merged.collect();
        }
    }

    pub(super) fn intervals_per_row(&self) -> u64 {
        self.intervals_per_row
    }

    pub(super) fn kinds(&self) -> BTreeMap<String, SeriesKind> {
        self.columns.iter().map(|(id, column)| (id.clone(), column.kind)).collect()
    }

    /// Returns all columns, `at_ms` among them, each value as the difference to the last known one:
    /// that packs well.
    pub(super) fn differences(&self) -> BTreeMap<&str, Vec<Option<i64>>> {
        let known = self.columns.iter().filter(|(_, column)| !column.values.is_empty());
        let mut columns: BTreeMap<_, _> = known
            .map(|(id, column)| (id.as_str(), differences(column.values.iter().copied())))
            .collect();
        columns.insert("at_ms", differences(self.at_ms.iter().copied().map(Some)));
        columns
    }
}

fn differences(values: impl Iterator<Item = Option<i64>>) -> Vec<Option<i64>> {
    let mut last = 0;
    values
        .map(|value| value.map(|value| value.wrapping_sub(std::mem::replace(&mut last, value))))
        .collect()
}

fn merge(kind: SeriesKind, one: Option<i64>, two: Option<i64>) -> Option<i64> {
    let (Some(a), Some(b)) = (one, two) else { return one.or(two) };
    Some(match kind {
        SeriesKind::Growth => a.saturating_add(b),
        SeriesKind::Gauge => b,
        SeriesKind::Most => a.max(b),
    })
}

/// The most rows: nine hours of one a second. Fewer than half of it are never shown.
const ROWS_MAX: usize = 32_768;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_run_is_kept_in_coarser_rows() {
        let mut columns = Columns::default();
        for second in 1..=ROWS_MAX as u64 {
            columns.set("growth", SeriesKind::Growth, 3);
            columns.set("gauge", SeriesKind::Gauge, second as i64);
            columns.set("most", SeriesKind::Most, -(second as i64));
            columns.end_row(second * 1000);
        }
        assert_eq!((columns.intervals_per_row, columns.at_ms.len()), (2, ROWS_MAX / 2));
        let first = |id: &str| columns.columns[id].values[0];
        assert_eq!(columns.at_ms[0], 2000);
        assert_eq!((first("growth"), first("gauge"), first("most")), (Some(6), Some(2), Some(-1)));
    }

    #[test]
    fn a_row_of_two_intervals_waits_for_both() {
        let mut columns = Columns { intervals_per_row: 2, ..Columns::default() };
        columns.set("growth", SeriesKind::Growth, 1);
        columns.end_row(1000);
        assert_eq!(columns.at_ms.len(), 0);
        columns.set("growth", SeriesKind::Growth, 4);
        columns.end_row(2000);
        assert_eq!(columns.columns["growth"].values, [Some(5)]);
    }
}
