//! The figures that are compared: their names, which way is better, and what each side has.

use std::collections::BTreeMap;

use throng_measure::{LatencyTotal, Operation};

use super::bootstrap::{Uncertainty, jackknife, latency_spreads, spreads, union};
use super::estimate::{Estimate, Precision};
use super::sample::{GroupWork, IntervalGroup, LatencyCells};
use super::side::CompareRun;
use crate::Summary;
use crate::threshold::{Measurand, Statistic, ThresholdError};

/// A figure that every comparison shows, if it was measured.
pub(super) struct Figure {
    /// The name that a threshold or a `--regression` begins with.
    pub(super) name: &'static str,
    pub(super) label: &'static str,
    /// Which way is better, if it is known.
    pub(super) better: Better,
}

/// Which way is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Better {
    Less,
    More,
}

const fn less(name: &'static str, label: &'static str) -> Figure {
    Figure { name, label, better: Better::Less }
}

const fn more(name: &'static str, label: &'static str) -> Figure {
    Figure { name, label, better: Better::More }
}

/// The figures, in the order of a table.
pub(super) const FIGURES: &[Figure] = &[
    less("connect.mean", "connect mean"),
    less("connect.p50", "connect p50"),
    less("connect.p90", "connect p90"),
    less("connect.p99", "connect p99"),
    less("connect.p999", "connect p99.9"),
    less("connect.max", "connect max"),
    less("join.p50", "join p50"),
    less("join.p90", "join p90"),
    less("join.p99", "join p99"),
    less("join.p999", "join p99.9"),
    less("join.max", "join max"),
    less("push.p50", "push p50"),
    less("push.p90", "push p90"),
    less("push.p99", "push p99"),
    less("push.p999", "push p99.9"),
    less("push.max", "push max"),
    less("http.mean", "http mean"),
    less("http.p50", "http p50"),
    less("http.p90", "http p90"),
    less("http.p99", "http p99"),
    less("http.p999", "http p99.9"),
    less("http.max", "http max"),
    less("message.mean", "message mean"),
    less("message.p50", "message p50"),
    less("message.p90", "message p90"),
    less("message.p99", "message p99"),
    less("message.p999", "message p99.9"),
    less("message.max", "message max"),
    less("broadcast.p50", "broadcast p50"),
    less("broadcast.p90", "broadcast p90"),
    less("broadcast.p99", "broadcast p99"),
    less("broadcast.p999", "broadcast p99.9"),
    less("broadcast.max", "broadcast max"),
    more("connect.rate_mean", "connects, mean"),
    more("connect.rate_most", "connects, best"),
    more("join.rate_mean", "joins, mean"),
    more("join.rate_most", "joins, best"),
    more("push.rate_mean", "pushes, mean"),
    more("push.rate_most", "pushes, best"),
    more("http.rate_mean", "HTTP requests, mean"),
    more("http.rate_most", "HTTP requests, best"),
    more("message.rate_mean", "messages, mean"),
    more("message.rate_most", "messages, best"),
    more("message.received_rate_most", "received, best"),
    less("errors", "errors"),
    less("errors.share", "errors of attempts"),
    less("broadcast.missing", "broadcasts missing"),
    more("users.connected_most", "users connected"),
    more("users.joined_most", "channels joined"),
    less("generator.cpu_us_per_connect", "generator CPU/connect"),
    less("generator.cpu_us_per_message", "generator CPU/message"),
    less("server.cpu_us_per_connection", "server CPU/connect"),
    less("server.cpu_us_per_message", "server CPU/message"),
    less("machine.cpu_us_per_connect", "machine CPU/connect"),
    less("machine.cpu_us_per_message", "machine CPU/message"),
    less("generator.rss_bytes_per_user", "generator memory/user"),
    less("server.rss_bytes_per_connection", "server memory/conn."),
    less("generator.lag.p99", "generator lag p99"),
    less("generator.lag.max", "generator lag max"),
];

/// A figure, ready to be read from any run.
#[derive(Clone, Debug)]
pub(super) struct FigureReader {
    pub(super) name: String,
    pub(super) quantity: Measurand,
}

impl FigureReader {
    /// Returns the reader of a name that a threshold may begin with. A rate without more is the
    /// mean one: `message.rate`.
    pub(super) fn named(name: &str, from: usize) -> Result<Self, ThresholdError> {
        let span = from..from + name.len();
        let whole = match name.strip_suffix(".rate") {
            Some(operation) => format!("{operation}.rate_mean"),
            None if name.ends_with(".p99.9") => name.replace(".p99.9", ".p999"),
            None => name.to_owned(),
        };
        let quantity = match Measurand::named(&whole, &span) {
            Err(_) if whole != name => Measurand::named(name, &span)?,
            found => found?,
        };
        Ok(Self { name: whole, quantity })
    }

    /// Returns the digits in which its values were recorded.
    pub(super) fn precision(&self) -> Precision {
        if self.quantity.latency().is_some() { Precision::Cells } else { Precision::Exact }
    }
}

impl SideReader<'_> {
    /// Returns the value of a side, with the error of what was measured with repeats.
    fn of_runs(&mut self, reader: &FigureReader) -> Estimate {
        let (runs, quantity) = (self.runs, &reader.quantity);
        let values = runs.iter().filter_map(|run| quantity.measured(&run.summary));
        let values: Vec<f64> = values.collect();
        if let [value] = values[..] {
            return Estimate { value: Some(value), spread: None };
        }
        if values.is_empty() {
            return Estimate::default();
        }
        let is_whole = self.from_repeats && values.len() == runs.len();
        // The values of imported runs may not be known, so that they cannot be merged.
        let is_unmerged =
            |latency: &str| runs.iter().any(|run| run.summary.latency_stats.contains_key(latency));
        let of_latency = quantity.latency();
        let (latency, statistic) = match of_latency {
            Some((latency, Statistic::Percentile(_))) if is_unmerged(&latency) => {
                return Estimate::default();
            }
            Some((latency, Statistic::Mean)) if is_unmerged(&latency) => (String::new(), None),
            Some((latency, statistic)) => (latency, Some(statistic)),
            None => (String::new(), None),
        };
        let Some(statistic) = statistic else {
            let mean = |without: Option<usize>| {
                let kept = values.iter().enumerate().filter(|(at, _)| Some(*at) != without);
                let (n, sum) = kept.fold((0.0, 0.0), |(n, sum), (_, value)| (n + 1.0, sum + value));
                sum / f64::max(n, 1.0)
            };
            let spread = is_whole.then(|| jackknife(values.len(), mean)).flatten();
            return Estimate { value: Some(mean(None)), spread };
        };
        if statistic == Statistic::Max {
            return Estimate { value: values.into_iter().reduce(f64::max), spread: None };
        }
        let unions = self.unions(&latency);
        let judged = |total: &LatencyTotal| statistic.judged(total) as f64;
        let merged = |without: Option<usize>| match without {
            Some(run) => unions.without.get(run).map_or(0.0, judged),
            None => judged(&unions.all),
        };
        let spread = is_whole.then(|| jackknife(runs.len(), merged)).flatten();
        Estimate { value: Some(merged(None)), spread }
    }

    /// Returns the histograms of all runs together, merged once for all statistics of a latency.
    fn unions(&mut self, latency: &str) -> &LatencyUnions {
        let (runs, from_repeats) = (self.runs, self.from_repeats);
        let of = |without: Option<usize>| {
            let kept = runs.iter().enumerate().filter(|(at, _)| Some(*at) != without);
            let totals: Vec<&LatencyTotal> =
                kept.filter_map(|(_, run)| run.summary.latencies.get(latency)).collect();
            LatencyTotal {
                answered: union(totals.iter().map(|total| &total.answered)),
                unanswered: union(totals.iter().map(|total| &total.unanswered)),
            }
        };
        let left_out = if from_repeats { runs.len() } else { 0 };
        self.unions.entry(latency.to_owned()).or_insert_with(|| LatencyUnions {
            all: of(None),
            without: (0..left_out).map(|run| of(Some(run))).collect(),
        })
    }
}

/// The statistics whose spreads are computed together.
const USUAL: [&str; 6] = ["p50", "p90", "p95", "p99", "p999", "mean"];

/// Returns the figures of the steps with a name: what every comparison shows of each.
pub(super) fn step_figures<'a>(
    summaries: impl Iterator<Item = &'a Summary>,
) -> Vec<(String, String)> {
    let mut names: Vec<&str> = Vec::new();
    for step in summaries.flat_map(|summary| &summary.steps) {
        if !names.contains(&step.name.as_str()) {
            names.push(&step.name);
        }
    }
    let figures = |name: &str| {
        let label = match name.char_indices().nth(STEP_LABEL) {
            Some((end, _)) => format!("{}…", &name[..end]),
            None => name.to_owned(),
        };
        let of = move |(figure, shown): (&str, &str)| {
            (format!("step.{}.{figure}", name.to_owned()), format!("{label} {shown}"))
        };
        STEP_FIGURES.map(of)
    };
    names.into_iter().flat_map(figures).collect()
}

/// The figures of a step, each with its name on screens.
const STEP_FIGURES: [(&str, &str); 5] =
    [("mean", "mean"), ("p50", "p50"), ("p95", "p95"), ("p99", "p99"), ("errors", "errors")];
/// The characters of a step's name that a row has room for.
const STEP_LABEL: usize = 13;

/// What a side can say: its runs, and the spreads of latencies that were computed already.
pub(super) struct SideReader<'a> {
    runs: &'a [CompareRun],
    /// Whether the error of a value is that from run to run.
    from_repeats: bool,
    latencies: BTreeMap<String, [Option<Uncertainty>; USUAL.len()]>,
    unions: BTreeMap<String, LatencyUnions>,
}

/// The histograms of a latency of all runs of a side, and of all but each one.
#[derive(Debug)]
struct LatencyUnions {
    all: LatencyTotal,
    /// Empty if the error is not that from run to run.
    without: Vec<LatencyTotal>,
}

impl<'a> SideReader<'a> {
    pub(super) fn new(runs: &'a [CompareRun], from_repeats: bool) -> Self {
        Self { runs, from_repeats, latencies: BTreeMap::new(), unions: BTreeMap::new() }
    }

    /// Returns the value of a figure with its error, if there is one.
    pub(super) fn estimate(&mut self, reader: &FigureReader) -> Estimate {
        let estimate = self.of_runs(reader);
        if self.from_repeats || estimate.value.is_none() {
            return estimate;
        }
        Estimate { spread: self.spread_of_intervals(reader), ..estimate }
    }

    fn groups(&self) -> impl Iterator<Item = &'a IntervalGroup> {
        self.runs.iter().flat_map(|run| run.sample.groups())
    }

    fn spread_of_intervals(&mut self, reader: &FigureReader) -> Option<Uncertainty> {
        if let Some((latency, statistic)) = reader.quantity.latency() {
            return self.latency_spread(&latency, statistic);
        }
        let is_answered = self.groups().any(|group| group.work.ok[Operation::Message] > 0);
        let plain = move |work: &GroupWork| {
            if is_answered { work.ok[Operation::Message] } else { work.sent }
        };
        let is_foreign = self.runs.iter().all(|run| run.summary.server.is_none());
        let all = move |work: &GroupWork| {
            let done = Operation::requests().map(|operation| match operation {
                Operation::Message => plain(work),
                // The costs of joins are not those of messages.
                Operation::Join => 0,
                other => work.ok[other],
            });
            done.fold(0, u64::saturating_add)
        };
        let mean = reader.name.strip_suffix(".rate_mean").and_then(Operation::named);
        if let Some(operation) = mean {
            return match operation {
                Operation::Message => self.rate(plain),
                other => self.rate(|work| work.ok[other]),
            };
        }
        match reader.name.as_str() {
            // Its value is the mean of the runs, and this their sum.
            "errors" => self.spread(|_| true, |work| (work.errors, 0)).map(|of_sum| {
                let error = of_sum.error / self.runs.len().max(1) as f64;
                Uncertainty { error, ..of_sum }
            }),
            "errors.share" => self.spread(|_| true, |work| (work.errors, work.attempts)),
            "generator.cpu_us_per_connect" => {
                self.cost(|w| w.ok[Operation::Connect], |w| w.generator_cpu_us)
            }
            "generator.cpu_us_per_message" => self.cost(all, |work| work.generator_cpu_us),
            "machine.cpu_us_per_connect" => {
                self.cost(|w| w.ok[Operation::Connect], |w| w.machine_cpu_us)
            }
            "machine.cpu_us_per_message" => self.cost(all, |work| work.machine_cpu_us),
            "server.cpu_us_per_connection" if is_foreign => {
                self.cost(|w| w.ok[Operation::Connect], |w| w.foreign_cpu_us)
            }
            "server.cpu_us_per_message" if is_foreign => self.cost(all, |w| w.foreign_cpu_us),
            "server.cpu_us_per_connection" => self.cost(|w| w.accepted, |w| w.server_cpu_us),
            "server.cpu_us_per_message" => self.cost(|w| w.server_received, |w| w.server_cpu_us),
            _ => None,
        }
    }

    /// Returns the spread of a latency's statistic. The usual ones are computed together, once.
    fn latency_spread(&mut self, latency: &str, statistic: Statistic) -> Option<Uncertainty> {
        if statistic == Statistic::Max {
            return None;
        }
        let usual = USUAL.iter().position(|name| *name == statistic.name());
        if let Some((known, at)) = self.latencies.get(latency).zip(usual) {
            return known[at];
        }
        let cells = self.runs.iter().flat_map(|run| run.sample.latency(latency));
        let cells: Vec<&LatencyCells> = cells.filter(|cells| !cells.is_empty()).collect();
        let Some(at) = usual else { return latency_spreads(&cells, [statistic])[0] };
        let statistics = USUAL.map(|name| Statistic::named(name).unwrap_or(Statistic::Mean));
        let spreads = latency_spreads(&cells, statistics);
        self.latencies.insert(latency.to_owned(), spreads);
        spreads[at]
    }

    /// Returns the spread of a mean rate: over the groups with any activity, without the first and
    /// the last, which the run and not the clock begins and ends.
    fn rate(&self, n: impl Fn(&GroupWork) -> u64) -> Option<Uncertainty> {
        let mut during = Vec::new();
        for run in self.runs {
            let groups = run.sample.groups();
            let is_active = |group: &IntervalGroup| n(&group.work) > 0;
            let Some(first) = groups.iter().position(is_active) else { continue };
            let last = groups.iter().rposition(is_active).unwrap_or(first);
            during.extend(groups.get(first + 1..last).unwrap_or_default());
        }
        let micros = |count: u64| count.saturating_mul(1_000_000);
        spread_of_ratio(&during, |work| (micros(n(work)), work.grown_us))
    }

    /// Returns the spread of a cost, over the groups in which much was done.
    fn cost(
        &self,
        n: impl Fn(&GroupWork) -> u64,
        cpu_us: impl Fn(&GroupWork) -> u64,
    ) -> Option<Uncertainty> {
        let rate = |work: &GroupWork| n(work) as f64 / work.grown_us.max(1) as f64;
        let is_known = |work: &GroupWork| n(work) > 0 && cpu_us(work) > 0;
        let known = self.groups().filter(|group| is_known(&group.work));
        let most = known.map(|group| rate(&group.work)).fold(0.0, f64::max);
        self.spread(
            |work| is_known(work) && rate(work) >= most / 10.0,
            |work| (cpu_us(work), n(work)),
        )
    }

    fn spread(
        &self,
        counts: impl Fn(&GroupWork) -> bool,
        ratio: impl Fn(&GroupWork) -> (u64, u64),
    ) -> Option<Uncertainty> {
        let groups: Vec<_> = self.groups().filter(|group| counts(&group.work)).collect();
        spread_of_ratio(&groups, ratio)
    }
}

/// Returns the spread of one sum divided by another; of the first alone if the other is always 0.
fn spread_of_ratio(
    groups: &[&IntervalGroup],
    ratio: impl Fn(&GroupWork) -> (u64, u64),
) -> Option<Uncertainty> {
    let parts: Vec<(f64, f64)> = groups
        .iter()
        .map(|group| ratio(&group.work))
        .map(|(above, below)| (above as f64, below as f64))
        .collect();
    let is_sum = parts.iter().all(|part| part.1 == 0.0);
    let [spread] = spreads(parts.len(), |times| {
        let (mut above, mut below) = (0.0, 0.0);
        for (part, times) in parts.iter().zip(times) {
            above += part.0 * f64::from(*times);
            below += part.1 * f64::from(*times);
        }
        [if is_sum { Some(above) } else { (below > 0.0).then(|| above / below) }]
    });
    spread
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_has_the_name_of_a_threshold() {
        for figure in FIGURES {
            assert_eq!(FigureReader::named(figure.name, 0).unwrap().name, figure.name);
            assert!(figure.label.chars().count() <= 21, "{}", figure.label);
        }
    }

    #[test]
    fn a_rate_without_more_is_the_mean_one() {
        assert_eq!(FigureReader::named("message.rate", 0).unwrap().name, "message.rate_mean");
        assert_eq!(FigureReader::named("connect.p99.9", 0).unwrap().name, "connect.p999");
        let error = FigureReader::named("conect.rate", 3).unwrap_err();
        assert_eq!(
            (error.span, error.problem.as_str()),
            (3..14, "unknown measurement `conect.rate`")
        );
    }
}
