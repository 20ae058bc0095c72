//! MZBench: what `mzbench data` prints, a moment, a metric and its value in each line.
//!
//! Counters are totals since the run began. Of a histogram there are datapoints, each of the
//! values between two moments, and no number of values. The worker chooses names and units: those
//! of the tcp_worker are known. `docs/importing/logs.md` has a table of all metrics.

mod metric;
mod run;

use std::collections::BTreeMap;

use throng_report::runfile::RunEnd;

use super::counted_lines::CountedLines;
use super::log_importer::LogImporter;
use super::run_draft::{RunDraft, header, mistake_of_length};
use super::utc::UtcTime;
use crate::source::{Source, Span};
use crate::translator::Translator;
use run::MzbenchRun;

pub(crate) const MZBENCH_DATA: LogImporter =
    LogImporter { tool: "MZBench", reads: "the output of mzbench data", recognises, read };

fn recognises(source: &Source<'_>) -> bool {
    let first = source.text.lines().find(|line| !line.trim().is_empty());
    first.is_some_and(|line| parse(line).is_some())
}

fn read(translator: &mut Translator<'_>) -> Option<Vec<u8>> {
    let data = MzbenchData::parse(translator)?;
    let (began_s, span_s) = data.beginning()?;
    let began = UtcTime::of_seconds(began_s)?;
    let header = header(&translator.source, MZBENCH_DATA.tool, "mzbench data", Some(began));
    let mut draft = RunDraft::new(&header, PHASE);
    let (mut run, mut lines) = (MzbenchRun::new(data.has_tcp_worker()), CountedLines::default());
    for (moment, values) in &data.moments {
        run.add(translator, &mut lines, values);
        draft.add(moment.saturating_sub(began_s) * 1_000, run.interval(PHASE));
    }
    let first = data.moments.values().flatten().next().map_or(0..0, |value| value.span.clone());
    let how = format!(
        "the data do not say when the run began: taken as {span_s} s before the first moment; \
         moments are whole seconds"
    );
    translator.approximated(&first, "moments", how);
    lines.report(translator);
    let is_over = run.is_over();
    if is_over == Some(false) {
        let why = "workers had not ended: MZBench was stopped, or the run was going on";
        translator.suspicious(&first, "end", why);
    }
    let end = RunEnd::default();
    translator.mistakes.is_empty().then(|| draft.finish((is_over != Some(false)).then_some(end)))?
}

/// The value of a metric at a moment.
#[derive(Debug)]
struct MetricValue<'a> {
    span: Span,
    metric: &'a str,
    value: f64,
}

/// All values, by their moments in seconds since 1970.
#[derive(Debug, Default)]
struct MzbenchData<'a> {
    moments: BTreeMap<u64, Vec<MetricValue<'a>>>,
}

impl<'a> MzbenchData<'a> {
    fn parse(translator: &mut Translator<'a>) -> Option<Self> {
        let mut data = Self::default();
        let mut begin = 0;
        for whole in translator.source.text.split_inclusive('\n') {
            let line = whole.trim_end();
            let span = begin..begin + line.len();
            begin += whole.len();
            match parse(line) {
                Some((moment, metric, value)) => {
                    data.moments.entry(moment).or_default().push(MetricValue {
                        span,
                        metric,
                        value,
                    });
                }
                None if line.is_empty() => {}
                None if !whole.ends_with('\n') => {
                    let why = "the data end in the middle of this line, which is left out";
                    translator.suspicious(&span, "cut line", why);
                }
                None => {
                    let label = "expected `SECONDS METRIC VALUE` with tabs between them";
                    translator.mistake(&span, "this line of data cannot be read", label);
                    break;
                }
            }
        }
        let moments = || data.moments.keys();
        if let (Some(first), Some(last)) = (moments().next(), moments().next_back())
            && let Some((title, label)) = mistake_of_length((last - first).saturating_mul(1_000))
        {
            let span = data.moments[last].first().map_or(0..0, |value| value.span.clone());
            translator.mistake(&span, title, label);
        }
        if data.moments.is_empty() && translator.mistakes.is_empty() {
            let label = "expected `SECONDS METRIC VALUE` in each line";
            translator.mistake(&(0..0), "these data have no values", label);
        }
        translator.mistakes.is_empty().then_some(data)
    }

    /// Returns the second in which the run is taken to begin, and the length of the first interval:
    /// that of the second one, or MZBench's usual one.
    fn beginning(&self) -> Option<(u64, u64)> {
        let mut moments = self.moments.keys();
        let first = moments.next()?;
        let span = moments.next().map_or(SPAN_S, |second| second - first).min(*first);
        Some((first - span, span))
    }

    /// Reports whether the data are those of the tcp_worker, whose units are known.
    fn has_tcp_worker(&self) -> bool {
        self.moments.values().flatten().any(|value| value.metric == metric::ANSWERED)
    }
}

/// Returns the moment, the metric and the value of a line.
fn parse(line: &str) -> Option<(u64, &str, f64)> {
    let cells: Vec<_> = line.trim_end().split('\t').collect();
    let [moment, metric, value] = cells[..] else { return None };
    let is_name = !metric.is_empty() && !metric.contains(' ');
    let moment = moment.parse().ok().filter(|seconds| UtcTime::of_seconds(*seconds).is_some())?;
    let value = value.parse::<f64>().ok().filter(|value| value.is_finite())?;
    is_name.then_some((moment, metric, value))
}

/// The time between two moments of MZBench, in seconds.
const SPAN_S: u64 = 10;
/// What the run file calls the load.
const PHASE: &str = "load of MZBench";
