//! tsung: `tsung.log`, the statistics that tsung 1.x dumps every ten seconds.
//!
//! A dump has counters since the start of the run, and of each duration the number, mean and
//! deviation of the last ten seconds; its extremes are those since the start. No value and no
//! percentile can be known from it. `docs/importing/logs.md` has a table of all lines.

mod line;
mod run;

use std::collections::BTreeMap;

use throng_measure::runfile::{RunEnd, RunEndReason};

use super::counted_lines::CountedLines;
use super::log_importer::LogImporter;
use super::run_draft::{RunDraft, header, mistake_of_length};
use super::utc::UtcTime;
use crate::source::{Source, Span};
use crate::translator::Translator;
use line::{LineMistake, LogLine, Values, parse};
use run::{RequestKind, TsungRun};

pub(crate) const TSUNG_LOG: LogImporter =
    LogImporter { tool: "tsung", reads: "tsung.log of tsung", recognises, read };

fn recognises(source: &Source<'_>) -> bool {
    source.text.lines().take(LINES_SEEN).any(|line| line.starts_with(line::DUMP))
}

fn read(translator: &mut Translator<'_>) -> Option<Vec<u8>> {
    let log = TsungLog::parse(translator)?;
    let span_ms = log.first_span_ms();
    let first = log.dumps.first()?;
    let began = first.at.before(span_ms);
    let header = header(&translator.source, "tsung", "tsung.log", Some(began));
    let mut draft = RunDraft::new(&header, PHASE);
    let (mut run, mut lines) = (TsungRun::new(log.request_kind()), CountedLines::default());
    report_dumps(translator, &log);
    let mut dumps = log.dumps.iter().peekable();
    while let Some(dump) = dumps.next() {
        for (span, line) in &dump.lines {
            run.add(translator, &mut lines, span, line);
        }
        // The last dump may be of the same second as the one before.
        if dumps.peek().is_some_and(|next| next.at == dump.at) {
            continue;
        }
        let is_last = dumps.peek().is_none() && log.is_ended;
        let at_ms = u64::try_from((dump.at.0 - began.0) / 1_000).unwrap_or(0);
        draft.add(at_ms, run.interval(PHASE, is_last));
    }
    lines.report(translator);
    if !translator.mistakes.is_empty() {
        return None;
    }
    let end = RunEnd {
        reason: RunEndReason::Finished,
        detail: run.was_stopped().then(|| "tsung stopped its last users".to_owned()),
        ..RunEnd::default()
    };
    draft.finish(log.is_ended.then_some(end))
}

/// A whole log.
#[derive(Debug, Default)]
struct TsungLog<'a> {
    dumps: Vec<Dump<'a>>,
    /// Whether tsung wrote its last line.
    is_ended: bool,
    /// The last line, if it ends in the middle.
    cut: Option<Span>,
}

/// The statistics of a moment.
#[derive(Debug)]
struct Dump<'a> {
    span: Span,
    at: UtcTime,
    lines: Vec<(Span, (&'a str, Values))>,
}

impl<'a> TsungLog<'a> {
    fn parse(translator: &mut Translator<'a>) -> Option<Self> {
        let mut log = Self::default();
        let text = translator.source.text;
        let mut begin = 0;
        for whole in text.split_inclusive('\n') {
            let line = whole.trim_end();
            let span = begin..begin + line.len();
            begin += whole.len();
            if !whole.ends_with('\n') && !line.starts_with("EndMonitor:{") {
                log.cut = Some(span);
                break;
            }
            if let Err(LineMistake { part, title, label }) = log.add(line, &span) {
                let span = span.start + part.start..span.start + part.end;
                translator.mistake(&span, title, label);
                if translator.mistakes.len() >= MISTAKES_MAX {
                    break;
                }
            }
        }
        if log.dumps.is_empty() && translator.mistakes.is_empty() {
            let label = "expected `# stats: dump at` and the statistics below it";
            translator.mistake(&(0..0), "this log has no statistics", label);
        }
        translator.mistakes.is_empty().then_some(log)
    }

    fn add(&mut self, line: &'a str, span: &Span) -> Result<(), LineMistake> {
        match parse(line)? {
            LogLine::Dump(at) => {
                if self.dumps.last().is_some_and(|before| at < before.at) {
                    return Err(LineMistake::new(
                        0..line.len(),
                        "this dump is older than the one before it",
                        "two logs in one file? Import each by itself",
                    ));
                }
                let began = self.dumps.first().map_or(at, |first| first.at);
                let ms = (at.0 - began.0).cast_unsigned() / 1_000;
                if let Some((title, label)) = mistake_of_length(ms) {
                    return Err(LineMistake::new(0..line.len(), title, label));
                }
                self.dumps.push(Dump { span: span.clone(), at, lines: Vec::new() });
            }
            LogLine::Stats(name, values) => match self.dumps.last_mut() {
                Some(dump) => dump.lines.push((span.clone(), (name, values))),
                None => {
                    return Err(LineMistake::new(
                        0..line.len(),
                        "these statistics are of no dump",
                        "expected `# stats: dump at SECONDS` before them",
                    ));
                }
            },
            LogLine::End => self.is_ended = true,
            LogLine::Nothing => {}
        }
        Ok(())
    }

    /// Returns the length of the first interval: that of the second, which the clock ended and not
    /// the run, or tsung's usual one.
    fn first_span_ms(&self) -> u64 {
        let [first, second, _, ..] = &self.dumps[..] else { return SPAN_MS };
        match (second.at.0 - first.at.0) / 1_000 {
            span_ms @ 1.. => span_ms.cast_unsigned(),
            _ => SPAN_MS,
        }
    }

    /// Returns what `request` counts: tsung counts all protocols together, and of HTTP the
    /// statuses.
    fn request_kind(&self) -> RequestKind {
        let (mut requests, mut statuses) = (0, BTreeMap::new());
        for (_, (name, values)) in self.dumps.iter().flat_map(|dump| &dump.lines) {
            match values {
                Values::Sample(sample) if *name == "request" => requests = sample.total(),
                Values::Pair(_, total) if run::is_status(name) => {
                    statuses.insert(*name, *total as u64);
                }
                _ => {}
            }
        }
        match statuses.values().fold(0_u64, |sum, total| sum.saturating_add(*total)) {
            0 => RequestKind::Message,
            all if all >= requests => RequestKind::Http,
            _ => RequestKind::Both,
        }
    }
}

/// Reports what is known of the times of the dumps.
fn report_dumps(translator: &mut Translator<'_>, log: &TsungLog<'_>) {
    let Some(first) = log.dumps.first() else { return };
    let how = format!(
        "tsung.log does not say when the run began: taken as {} s before the first dump; moments \
         are whole seconds",
        log.first_span_ms() / 1_000
    );
    translator.approximated(&first.span, "dump", how);
    if let Some(cut) = &log.cut {
        let why = "the log ends in the middle of this line, which is left out";
        translator.suspicious(cut, "cut line", why);
    }
    if let Some(last) = log.dumps.last().filter(|_| !log.is_ended) {
        let why = "the log has no `EndMonitor`: tsung was killed or is still running";
        translator.suspicious(&last.span, "end", why);
    }
}

/// The time between two dumps of tsung, in milliseconds.
const SPAN_MS: u64 = 10_000;
/// What the run file calls the load.
const PHASE: &str = "load of tsung";
/// Lines in which a log must begin.
const LINES_SEEN: usize = 20;
/// Mistakes after which the rest of a log is not read.
const MISTAKES_MAX: usize = 3;
