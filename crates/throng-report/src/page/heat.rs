//! Heat maps: how many latencies of which size, over time.

use serde::Serialize;
use throng_measure::Histogram;

use super::packed;
use super::part::HeatPart;

/// A heat map of one operation. When there are too many columns, two become one.
#[derive(Debug)]
pub(super) struct HeatMap {
    intervals_per_column: u64,
    columns: Vec<HeatColumn>,
    pending: u64,
}

/// A heat map, as the JSON of a page has it.
#[derive(Debug, Serialize)]
pub(super) struct PackedHeatMap {
    /// Cells for each doubling of a latency: cell `c` begins at `2^(c / cells_per_octave)` µs.
    cells_per_octave: u32,
    intervals_per_column: u64,
    /// For each column, as [packed] numbers: the milliseconds since the column before, the number
    /// of cells, and of each cell its distance to the one before and its count.
    columns: String,
}

/// The latencies of a column.
#[derive(Debug, Default, Serialize)]
pub(super) struct HeatColumn {
    at_ms: u64,
    /// Pairs of a cell and its count, in order.
    cells: Vec<(u16, u64)>,
}

impl Default for HeatMap {
    fn default() -> Self {
        Self { intervals_per_column: 1, columns: Vec::new(), pending: 0 }
    }
}

impl HeatMap {
    /// Adds the latencies of the interval that ends at `at_ms`.
    pub(super) fn add(&mut self, at_ms: u64, latencies: &Histogram) {
        if self.pending == 0 {
            self.columns.push(HeatColumn::default());
        }
        if let Some(column) = self.columns.last_mut() {
            column.at_ms = at_ms;
            column.merge(&cells(latencies));
        }
        self.pending = (self.pending + 1) % self.intervals_per_column;
        if self.pending == 0 && self.columns.len() >= COLUMNS_MAX {
            self.halve();
        }
    }

    fn halve(&mut self) {
        self.intervals_per_column *= 2;
        let mut columns = std::mem::take(&mut self.columns).into_iter();
        while let Some(mut column) = columns.next() {
            if let Some(next) = columns.next() {
                column.at_ms = next.at_ms;
                column.merge(&next.cells);
            }
            self.columns.push(column);
        }
    }

    pub(super) fn packed(&self) -> PackedHeatMap {
        let mut columns = String::new();
        let mut add = |n: u64| packed::number(&mut columns, i64::try_from(n).unwrap_or(i64::MAX));
        let mut before_ms = 0;
        for column in &self.columns {
            add(column.at_ms.saturating_sub(before_ms));
            before_ms = column.at_ms;
            add(column.cells.len() as u64);
            let mut before = 0;
            for &(cell, count) in &column.cells {
                add(u64::from(cell - before));
                add(count);
                before = cell;
            }
        }
        let Self { intervals_per_column, .. } = *self;
        PackedHeatMap { cells_per_octave: CELLS_PER_OCTAVE, intervals_per_column, columns }
    }

    /// Returns the number of intervals that a column covers.
    pub(super) fn intervals_per_column(&self) -> u64 {
        self.intervals_per_column
    }

    /// Returns the columns that changed after `at_ms`; all, if there was no latency until then.
    pub(super) fn since(&self, at_ms: Option<u64>) -> HeatPart<'_> {
        let is_known = |column: &HeatColumn| at_ms.is_some_and(|at_ms| column.at_ms <= at_ms);
        let changed = self.columns.partition_point(is_known);
        let was_empty = self.columns[..changed].iter().all(|column| column.cells.is_empty());
        let from = if was_empty { 0 } else { changed };
        HeatPart {
            from,
            cells_per_octave: CELLS_PER_OCTAVE,
            intervals_per_column: self.intervals_per_column,
            columns: &self.columns[from..],
        }
    }

    /// Reports whether it has no latency at all.
    pub(super) fn is_empty(&self) -> bool {
        self.columns.iter().all(|column| column.cells.is_empty())
    }
}

impl HeatColumn {
    fn merge(&mut self, added: &[(u16, u64)]) {
        for &(cell, count) in added {
            match self.cells.binary_search_by_key(&cell, |known| known.0) {
                Ok(at) => self.cells[at].1 += count,
                Err(at) => self.cells.insert(at, (cell, count)),
            }
        }
    }
}

/// Returns the cells of a histogram that are not empty, in order, with their counts.
fn cells(latencies: &Histogram) -> Vec<(u16, u64)> {
    let mut cells: Vec<(u16, u64)> = Vec::new();
    for (us, count) in latencies.iter() {
        let cell = ((us.max(1) as f64).log2() * f64::from(CELLS_PER_OCTAVE)) as u16;
        match cells.last_mut() {
            Some(last) if last.0 == cell => last.1 += u64::from(count),
            _ => cells.push((cell, u64::from(count))),
        }
    }
    cells
}

/// Six for each doubling: a cell is 12 % high.
const CELLS_PER_OCTAVE: u32 = 6;
/// The most columns: a screen has hardly more pixels for them.
const COLUMNS_MAX: usize = 1_024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_of_about_the_same_size_share_a_cell() {
        let mut latencies = Histogram::new();
        latencies.record_n(64, 2);
        latencies.record_n(65, 3);
        latencies.record_n(128, 1);
        assert_eq!(cells(&latencies), [(36, 5), (42, 1)]);
    }

    #[test]
    fn two_columns_become_one_when_there_are_too_many() {
        let mut map = HeatMap::default();
        let mut latencies = Histogram::new();
        latencies.record_us(64);
        for second in 1..=COLUMNS_MAX as u64 + 1 {
            map.add(second * 1000, &latencies);
        }
        assert_eq!((map.intervals_per_column, map.columns.len()), (2, COLUMNS_MAX / 2 + 1));
        assert_eq!((map.columns[0].at_ms, &map.columns[0].cells[..]), (2000, &[(36, 2)][..]));
    }

    #[test]
    fn a_packed_map_has_distances() {
        let mut map = HeatMap::default();
        let mut latencies = Histogram::new();
        latencies.record_n(1, 3);
        latencies.record_n(2, 4);
        map.add(5, &latencies);
        map.add(7, &Histogram::new());
        // 5 ms, 2 cells, (0, 3), (6, 4); 2 ms later, none. Each number is twice its value.
        assert_eq!(map.packed().columns, ":406<840");
    }
}
