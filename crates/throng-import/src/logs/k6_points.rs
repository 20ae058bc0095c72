//! k6: the lines of `k6 run --out json=FILE`, each a point of a metric with its moment.
//!
//! Points have all values, so that the run file has exact histograms, in intervals of a second.
//! `docs/importing/logs.md` has a table of all metrics.

mod interval;
mod line;
mod metric;

use throng_measure::runfile::RunEnd;

use super::counted_lines::{CountedLines, approximated};
use super::known_latency::is_longer_than_histogram;
use super::log_importer::LogImporter;
use super::run_draft::{RunDraft, header, mistake_of_length};
use super::utc::UtcTime;
use crate::source::{Source, Span};
use crate::translator::Translator;
use interval::K6Run;
use line::{Point, PointLine};
use metric::{MetricUse, Metrics};

pub(crate) const K6_POINTS: LogImporter =
    LogImporter { tool: "k6", reads: "points of k6 (--out json)", recognises, read };

fn recognises(source: &Source<'_>) -> bool {
    let first = source.text.lines().map(str::trim).find(|line| !line.is_empty());
    first.is_some_and(|line| {
        let is_object = line.starts_with('{') && line.contains("\"metric\"");
        is_object && TYPES.iter().any(|kind| line.contains(kind))
    })
}

fn read(translator: &mut Translator<'_>) -> Option<Vec<u8>> {
    let mut points = Points::parse(translator)?;
    let (first, _) = points.times?;
    points.all.sort_by_key(|point| point.at);
    let mut header = header(&translator.source, "k6", FORMAT, Some(first));
    header.target = points.target.take().unwrap_or_default();
    header.users_planned = points.users_planned;
    let mut draft = RunDraft::new(&header, PHASE);
    let mut run = K6Run::new(points.metrics.names());
    let mut rest = &points.all[..];
    while let Some(next) = rest.first() {
        // A second without points is a part of the interval that ends with the next ones.
        let second = (next.at.0 - first.0) / SECOND_US;
        let end = first.0 + (second + 1) * SECOND_US;
        let here = rest.partition_point(|point| point.at.0 < end);
        let (these, later) = rest.split_at(here);
        these.iter().for_each(|point| run.add(point));
        let last_us = these.last().map_or(end, |point| point.at.0);
        let until_us = if later.is_empty() { last_us + 1_000 } else { end };
        let at_ms = u64::try_from((until_us - first.0) / 1_000).unwrap_or(0);
        draft.add(at_ms, run.interval(PHASE));
        rest = later;
    }
    let is_cut = points.is_cut;
    points.lines.report(translator);
    draft.finish((!is_cut).then(RunEnd::default))
}

/// All points of a file.
#[derive(Debug, Default)]
struct Points {
    all: Vec<Point>,
    metrics: Metrics,
    lines: CountedLines,
    /// The scheme and the host of all addresses that were asked for, if it is one.
    target: Option<String>,
    has_targets: bool,
    /// The most users that were set up.
    users_planned: u64,
    /// The first and the last moment of `all`.
    times: Option<(UtcTime, UtcTime)>,
    /// Whether the last line ends in the middle.
    is_cut: bool,
}

impl Points {
    fn parse(translator: &mut Translator<'_>) -> Option<Self> {
        let mut points = Self::default();
        let text = translator.source.text;
        let mut begin = 0;
        for whole in text.split_inclusive('\n') {
            let line = whole.trim();
            let span = begin..begin + whole.trim_end().len();
            begin += whole.len();
            if line.is_empty() {
                continue;
            }
            match PointLine::parse(line) {
                Ok(line) => points.add(translator, &span, &line),
                Err(_) if !whole.ends_with('\n') && !points.all.is_empty() => {
                    points.is_cut = true;
                    let why = "the log ends in the middle of this line, which is left out";
                    translator.suspicious(&span, "cut line", why);
                }
                Err(problem) => {
                    let label = format!("expected a line of `k6 run --out json`: {problem}");
                    translator.mistake(&span, "this is no line of k6", label);
                }
            }
            if translator.mistakes.len() >= MISTAKES_MAX {
                break;
            }
        }
        if points.all.is_empty() && translator.mistakes.is_empty() {
            let label = "expected lines with `\"type\":\"Point\"`";
            translator.mistake(&(0..0), "this log has no points", label);
        }
        translator.mistakes.is_empty().then_some(points)
    }

    fn add(&mut self, translator: &mut Translator<'_>, span: &Span, line: &PointLine<'_>) {
        let name = line.metric.as_ref();
        if line.is_declaration() {
            self.metrics.declare(name, line.data.kind.as_deref(), line.data.contains.as_deref());
            return;
        }
        let (at, value) = match line.moment_and_value() {
            Ok(known) => known,
            Err((title, label)) => {
                return translator.mistake(span, title, label);
            }
        };
        let tags = line.data.tags.clone().unwrap_or_default();
        let (metric, fate) = self.metrics.of(name, &tags);
        self.lines.add(name, span, || fate);
        if let Some(url) = &tags.url {
            self.see_target(url);
        }
        if name == "vus_max" {
            self.users_planned = self.users_planned.max(value.max(0.0) as u64);
        }
        if metric == MetricUse::Unused {
            return;
        }
        if value < 0.0 {
            let label = "expected a count, or a time in milliseconds, not less than zero";
            return translator.mistake(span, format!("`{name}` is {value}"), label);
        }
        if let MetricUse::Step(step) = metric
            && is_longer_than_histogram(value)
            && self.metrics.keep_statistics(step)
        {
            self.lines.add(&format!("{name} above two minutes"), span, || {
                approximated(
                    "a histogram ends at two minutes: of this metric, the run file has counts, \
                     means and extremes, and no percentiles",
                )
            });
        }
        let (first, last) = self.times.unwrap_or((at, at));
        let (first, last) = (first.min(at), last.max(at));
        let ms = (last.0 - first.0).cast_unsigned() / 1_000;
        if let Some((title, label)) = mistake_of_length(ms) {
            return translator.mistake(span, title, label);
        }
        self.times = Some((first, last));
        self.all.push(Point { at, metric, value });
    }

    fn see_target(&mut self, url: &str) {
        let end = url.find("://").map(|at| at + 3);
        let end = end.map(|at| url[at..].find(['/', '?', '#']).map_or(url.len(), |end| at + end));
        let Some(origin) = end.map(|end| &url[..end]) else { return };
        match &self.target {
            None if !self.has_targets => self.target = Some(origin.to_owned()),
            Some(target) if target != origin => self.target = None,
            _ => {}
        }
        self.has_targets = true;
    }
}

/// What begins a line.
const TYPES: [&str; 4] =
    ["\"type\":\"Metric\"", "\"type\":\"Point\"", "\"type\": \"Metric\"", "\"type\": \"Point\""];
/// The kind of log.
const FORMAT: &str = "k6 --out json";
/// What the run file calls the load.
const PHASE: &str = "load of k6";
const SECOND_US: i64 = 1_000_000;
/// Mistakes after which the rest of a log is not read.
const MISTAKES_MAX: usize = 3;
