//! Builds a page from the intervals of a run.

use std::collections::BTreeMap;

use serde_json::Value;
use throng_measure::runfile::RunHeader;
use throng_measure::{Histogram, Interval};

use super::columns::Columns;
use super::heat::HeatMap;
use super::model::{Page, PageEvent, PagePhase, SCHEMA};
use super::part::{PageCursor, PagePart};
use super::series::{Growths, operations};

/// Builds a page from the intervals of a run.
#[derive(Debug, Default)]
pub struct PageBuilder {
    counters: Growths,
    columns: Columns,
    heat: BTreeMap<&'static str, HeatMap>,
    totals: BTreeMap<&'static str, Histogram>,
    phases: Vec<PagePhase>,
    events: Vec<PageEvent>,
    events_left_out: u64,
}

impl PageBuilder {
    /// Starts a page without rows.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the next interval.
    pub fn add(&mut self, interval: &Interval) {
        let Self { counters, columns, .. } = self;
        columns.begin(interval.at_ms);
        counters.read(interval, |id, kind, value| columns.set(id, kind, value));
        if let Some(load) = &interval.load {
            for (operation, latencies) in operations(load) {
                self.heat.entry(operation).or_default().add(interval.at_ms, latencies);
                self.totals.entry(operation).or_default().merge(latencies);
            }
            let is_same = |last: &PagePhase| last.name == load.phase && last.paused == load.paused;
            if !self.phases.last().is_some_and(is_same) && self.phases.len() < PHASES_MAX {
                let from_ms = interval.at_ms - interval.span_ms.min(interval.at_ms);
                self.phases.push(PagePhase {
                    from_ms,
                    name: load.phase.clone(),
                    paused: load.paused,
                });
            }
        }
        for event in &interval.events {
            if self.events.len() < EVENTS_MAX {
                let text = event.kind.to_string();
                self.events.push(PageEvent { at_ms: event.at_ms, text });
            } else {
                self.events_left_out += 1;
            }
        }
    }

    /// Returns the page so far. `summary` is what `--json` writes.
    pub fn page<'a>(
        &'a self,
        header: &'a RunHeader,
        summary: &'a Value,
        warnings: &'a [String],
    ) -> Page<'a> {
        Page {
            schema: SCHEMA,
            header,
            summary,
            warnings,
            intervals_per_row: self.columns.intervals_per_row(),
            columns: self.columns.packed(),
            heat: self
                .heat
                .iter()
                .filter(|(_, map)| !map.is_empty())
                .map(|(operation, map)| (*operation, map.packed()))
                .collect(),
            curves: self.curves(),
            phases: &self.phases,
            events: &self.events,
            events_left_out: self.events_left_out,
        }
    }

    /// Returns the percentile curve of each operation that has latencies.
    pub fn curves(&self) -> BTreeMap<&'static str, Vec<(f64, u64)>> {
        let known = self.totals.iter().filter(|(_, total)| !total.is_empty());
        known.map(|(operation, total)| (*operation, curve(total))).collect()
    }

    /// Returns the place of a reader that has the whole page so far.
    pub fn cursor(&self) -> PageCursor {
        let last = self.columns.since(self.columns.rows().saturating_sub(1)).0.last();
        PageCursor {
            intervals: self.columns.intervals(),
            at_ms: last.map_or(0, |at_ms| at_ms.cast_unsigned()),
            per_row: self.columns.intervals_per_row(),
            per_column: self.heat.values().map(HeatMap::intervals_per_column).max().unwrap_or(1),
            events: self.events.len() as u64,
        }
    }

    /// Returns what the page has more than at `place`. `None` means that the page must be read
    /// anew: its rows were merged, or the place is in another page.
    pub fn since(&self, place: PageCursor) -> Option<PagePart<'_>> {
        let cursor = self.cursor();
        let is_of_this_page = place.per_row == cursor.per_row
            && place.per_column == cursor.per_column
            && place.intervals <= cursor.intervals
            && place.at_ms <= cursor.at_ms
            && place.events <= cursor.events;
        if !is_of_this_page {
            return None;
        }
        let from = usize::try_from(place.intervals / cursor.per_row).ok()?;
        let (at_ms, columns) = self.columns.since(from);
        let heat = self.heat.iter().filter(|(_, map)| !map.is_empty());
        let known_ms = (place.intervals > 0).then_some(place.at_ms);
        Some(PagePart {
            cursor,
            from,
            at_ms,
            columns,
            heat: heat.map(|(operation, map)| (*operation, map.since(known_ms))).collect(),
            phases: &self.phases,
            events: self.events.get(usize::try_from(place.events).ok()?..)?,
            events_left_out: self.events_left_out,
        })
    }
}

/// Returns the points of a percentile curve: even steps up to the median, and from there ten steps
/// for each further nine, as far as there are values that show it.
fn curve(total: &Histogram) -> Vec<(f64, u64)> {
    let nines = (total.count() as f64).log10();
    let tail = (1..).map(|step| f64::from(step) / 10.0).take_while(|nine| *nine <= nines);
    let tail = tail.map(|nine| 100.0 * (1.0 - 10f64.powf(-nine))).filter(|percent| *percent > 50.0);
    let percents = (0..=25).map(|step| f64::from(step) * 2.0).chain(tail).chain([100.0]);
    percents.map(|percent| (percent, total.percentile(percent))).collect()
}

/// The most events that a page keeps. Each is drawn as a mark and a row of a table.
const EVENTS_MAX: usize = 2_000;

/// The most phases that a page keeps. A scenario has a few, and each pause adds two.
const PHASES_MAX: usize = 2_000;

#[cfg(test)]
mod tests {
    use super::super::packed;
    use super::*;
    use throng_measure::{LoadInterval, MachineInterval, Operation, ServerSnapshot};

    fn interval(second: u64, connects: u64, us: u64) -> Interval {
        let mut load = LoadInterval { phase: "ramp".to_owned(), ..LoadInterval::default() };
        load.counters.connects_ok = connects;
        load.counters.connected = connects;
        load.times[Operation::Connect].record_n(us, 10);
        Interval { at_ms: second * 1000, span_ms: 1000, load: Some(load), ..Interval::default() }
    }

    fn built(intervals: &[Interval]) -> (PageBuilder, Value) {
        let mut builder = PageBuilder::new();
        intervals.iter().for_each(|interval| builder.add(interval));
        let header = RunHeader::default();
        let page = builder.page(&header, &Value::Null, &[]);
        let page = serde_json::to_value(page).unwrap();
        (builder, page)
    }

    #[test]
    fn a_counter_becomes_its_growth_and_a_gauge_stays() {
        let (_, page) = built(&[interval(0, 5, 90), interval(1, 25, 90), interval(2, 26, 90)]);
        let text = |values: &[Option<i64>]| packed::series(values.iter().copied());
        let columns = &page["columns"];
        assert_eq!(columns["load.connects_ok"], text(&[None, Some(20), Some(1)]));
        assert_eq!(columns["load.connected"], text(&[Some(5), Some(25), Some(26)]));
        assert_eq!(columns["at_ms"], text(&[Some(0), Some(1000), Some(2000)]));
    }

    #[test]
    fn an_unknown_value_is_null_and_not_zero() {
        let nothing = Interval { at_ms: 2000, span_ms: 1000, ..Interval::default() };
        let (_, page) = built(&[interval(1, 5, 90), nothing, interval(3, 9, 90)]);
        let text = |values: [Option<i64>; 3]| packed::series(values);
        assert_eq!(page["columns"]["load.connected"], text([Some(5), None, Some(9)]));
        assert_eq!(page["columns"]["load.connects_ok"], text([None, None, Some(4)]));
    }

    #[test]
    fn each_core_has_a_series_of_its_own() {
        let mut later = interval(2, 9, 90);
        later.load.as_mut().unwrap().cpu_us_per_core = vec![40, 70];
        let mut first = interval(1, 5, 90);
        first.load.as_mut().unwrap().cpu_us_per_core = vec![30, 50];
        let mailbox_per_core = vec![3, 7];
        first.server = Some(ServerSnapshot { mailbox_per_core, ..ServerSnapshot::default() });
        let (_, page) = built(&[first, later]);
        let text = |values: [Option<i64>; 2]| packed::series(values);
        let columns = &page["columns"];
        assert_eq!(columns["load.cpu_us_per_core.000"], text([None, Some(10)]));
        assert_eq!(columns["load.cpu_us_per_core.001"], text([None, Some(20)]));
        assert_eq!(columns["server.mailbox_per_core"], packed::series([Some(7)]));
    }

    #[test]
    fn each_machine_of_a_fleet_has_its_lag_while_it_is_not_lost() {
        let machine = |lag, lost| MachineInterval {
            name: "a".to_owned(),
            lag_us_p99: Some(lag),
            lost,
            ..MachineInterval::default()
        };
        let with = |second, lag, lost| {
            let mut interval = interval(second, 0, 90);
            interval.load.as_mut().unwrap().machines = vec![machine(lag, lost)];
            interval
        };
        let (_, page) = built(&[with(1, 70, false), with(2, 70, true), with(3, 90, false)]);
        let lag = packed::series([Some(70), None, Some(90)]);
        assert_eq!(page["columns"]["machines.a.lag_us_p99"], lag);
    }

    #[test]
    fn a_reader_with_all_parts_has_the_whole_page() {
        let mut builder = PageBuilder::new();
        let mut place = builder.cursor();
        assert_eq!(place.to_string(), "0.0.1.1.0");
        let mut rows = Vec::new();
        let mut cells = 0;
        for second in 0..7 {
            builder.add(&interval(second, 3 * second, 90));
            if second % 3 == 0 {
                let part = serde_json::to_value(builder.since(place).unwrap()).unwrap();
                place = part["cursor"].as_str().unwrap().parse().unwrap();
                assert_eq!(
                    (place, part["from"].as_u64()),
                    (builder.cursor(), Some(rows.len() as u64))
                );
                rows.extend(part["columns"]["load.connected"].as_array().unwrap().clone());
                cells += part["heat"]["connect"]["columns"].as_array().unwrap().len();
            }
        }
        let rows: Vec<_> = rows.iter().map(|row| row.as_u64().unwrap()).collect();
        assert_eq!((&rows[..], cells), (&[0, 3, 6, 9, 12, 15, 18][..], 7));
        let none = builder.since(place).unwrap();
        assert!(none.at_ms.is_empty() && none.columns.is_empty() && none.events.is_empty());
    }

    #[test]
    fn a_place_in_another_page_has_no_part() {
        let (builder, _) = built(&[interval(0, 5, 90), interval(1, 25, 90)]);
        for place in ["3.0.1.1.0", "1.0.2.1.0", "1.0.1.2.0", "1.0.1.1.1", "1.5000.1.1.0"] {
            assert!(builder.since(place.parse().unwrap()).is_none(), "{place}");
        }
        for wrong in ["", "1", "1.2.3.4", "1.2.3.4.5.6", "1.2.3.4.x", "-1.0.1.1.0"] {
            assert_eq!(wrong.parse::<PageCursor>(), Err(()), "{wrong}");
        }
    }

    #[test]
    fn a_phase_begins_with_the_interval_in_which_it_shows() {
        let mut later = interval(3, 0, 90);
        later.load.as_mut().unwrap().phase = "hold".to_owned();
        let (builder, _) = built(&[interval(1, 0, 90), interval(2, 0, 90), later]);
        let phases: Vec<_> =
            builder.phases.iter().map(|phase| (phase.from_ms, &*phase.name)).collect();
        assert_eq!(phases, [(0, "ramp"), (2000, "hold")]);
    }

    #[test]
    fn a_percentile_curve_goes_as_far_as_there_are_values() {
        let mut total = Histogram::new();
        (1..=1000).for_each(|us| total.record_us(us));
        let points = curve(&total);
        assert_eq!(points.first(), Some(&(0.0, 1)));
        assert_eq!(points.last(), Some(&(100.0, total.max())));
        let last_but_one = points[points.len() - 2];
        assert!((last_but_one.0 - 99.9).abs() < 1e-9, "{last_but_one:?}");
        assert!(points.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1));
    }
}
