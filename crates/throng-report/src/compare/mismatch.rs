//! What makes runs hard to compare: their plans and machines differ, or one of them is in doubt.

use std::collections::BTreeMap;

use serde::Serialize;
use throng_base::units::{brief_count, brief_micros};
use throng_measure::Grade;

use super::percent::digits;
use super::side::{CompareRun, ComparisonSide, RunOfSide};
use crate::render::imported_note;

/// A reason why the numbers of runs may not be comparable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mismatch {
    /// Its subject: `validity`, `scenario`, `target`, `machine`, …
    pub about: &'static str,
    /// A sentence without a final full stop.
    pub text: String,
}

/// A run with its name.
type NamedRun<'a> = (&'a RunOfSide, &'a CompareRun);

/// Returns all reasons, the gravest first.
pub(super) fn mismatches(known: &[ComparisonSide], sides: &[Vec<CompareRun>]) -> Vec<Mismatch> {
    let names = known.iter().flat_map(|side| &side.runs);
    let runs: Vec<NamedRun<'_>> = names.zip(sides.iter().flatten()).collect();
    let mut found = Mismatches(Vec::new());
    for grade in [Grade::Invalid, Grade::Degraded] {
        found.doubtful(&runs, grade);
    }
    for (name, run) in &runs {
        let name = &name.name;
        let summary = &run.summary;
        if let Some(why) = &summary.run.incomplete {
            found.add("end", format!("{name} is incomplete: {why}"));
        }
        if summary.paused_s > 0.0 {
            found.add("pause", format!("{name} was paused for {} s", digits(summary.paused_s)));
        }
        // Pauses are said above.
        let is_pause = |command: &&String| ["pause", "resume"].contains(&command.as_str());
        let steered: Vec<_> = run.steered.iter().filter(|it| !is_pause(it)).collect();
        if !steered.is_empty() {
            let shown: Vec<_> =
                steered.iter().take(COMMANDS_SHOWN_MAX).map(|it| it.as_str()).collect();
            let more = if steered.len() > shown.len() { ", …" } else { "" };
            found.add(
                "steering",
                format!("{name} was steered while it ran: {}{more}", shown.join(", ")),
            );
        }
        if let Some(warning) = run.warnings.first().filter(|_| summary.run.incomplete.is_none()) {
            found.add("file", format!("the file of {name} is damaged: {warning}"));
        }
    }
    found.percentiles(&runs);
    // The log of another tool names neither its scenario nor its machine.
    let own: Vec<_> =
        runs.iter().filter(|(_, run)| run.header.imported.is_none()).copied().collect();
    found.scenario(&own);
    found.values(&runs, "target", "the targets differ", |run| run.header.target.clone());
    found.machine(&own);
    found.values(&own, "version", "the versions of throng differ", |run| {
        run.header.throng_version.clone()
    });
    found.values(&own, "seed", "the seeds differ", |run| seed(&run.header.command));
    found.values(&runs, "users", "the users differ", |run| match run.header.users_planned {
        0 if run.header.imported.is_some() => String::new(),
        users => brief_count(users as f64),
    });
    let seconds = |s: f64| format!("{} s", digits(s));
    found.lengths(&runs, "duration", "the lengths differ by more than a tenth", seconds, |run| {
        Some(run.summary.duration_s)
    });
    // The best second is found more exactly in shorter intervals.
    let brief = |s: f64| brief_micros((s * 1e6) as u64);
    found.lengths(&runs, "interval", "the lengths of the intervals differ", brief, |run| {
        run.sample.interval_s()
    });
    found.0
}

/// The reasons so far.
struct Mismatches(Vec<Mismatch>);

impl Mismatches {
    fn add(&mut self, about: &'static str, text: String) {
        self.0.push(Mismatch { about, text });
    }

    fn doubtful(&mut self, runs: &[NamedRun<'_>], grade: Grade) {
        for (name, run) in runs.iter().filter(|(name, _)| name.grade == grade) {
            let is_only_imported =
                run.header.imported.is_some() && run.summary.validity.reasons.len() == 1;
            let word = match grade {
                Grade::Degraded if is_only_imported => {
                    self.add(
                        "validity",
                        format!("{} is {}", name.name, run.summary.validity.reasons[0]),
                    );
                    continue;
                }
                Grade::Invalid => "invalid",
                _ => "degraded",
            };
            let reason = run.summary.validity.reasons.first();
            let because = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
            self.add("validity", format!("{} is {word}{because}", name.name));
        }
    }

    /// Adds a sentence if a value is not the same in all runs.
    fn values(
        &mut self,
        runs: &[NamedRun<'_>],
        about: &'static str,
        what: &str,
        value: impl Fn(&CompareRun) -> String,
    ) {
        let groups = grouped(runs, |run| value(run));
        if groups.len() > 1 {
            let groups = groups.iter().map(|(value, names)| {
                let value = if value.is_empty() { "unknown" } else { value.as_str() };
                format!("{} {}", names.join(", "), cut(value, VALUE_CHARS_MAX))
            });
            let groups: Vec<_> = groups.take(GROUPS_SHOWN_MAX).collect();
            self.add(about, format!("{what}: {}", groups.join("; ")));
        }
    }

    /// Adds a sentence if the lengths in seconds differ by more than a tenth.
    fn lengths(
        &mut self,
        runs: &[NamedRun<'_>],
        about: &'static str,
        what: &str,
        show: fn(f64) -> String,
        length: impl Fn(&CompareRun) -> Option<f64>,
    ) {
        let known = || runs.iter().filter_map(|(_, run)| length(run));
        if known().fold(0.0, f64::max) > 1.1 * known().fold(f64::INFINITY, f64::min) {
            self.values(runs, about, what, |run| length(run).map_or_else(String::new, show));
        }
    }

    /// Adds a sentence for each imported run of which not all percentiles are known.
    fn percentiles(&mut self, runs: &[NamedRun<'_>]) {
        for (name, run) in runs {
            if let Some(note) = imported_note(&run.summary) {
                let note = note.trim_end_matches('.');
                self.add("percentiles", format!("the latencies of {}: {note}", name.name));
            }
        }
    }

    fn scenario(&mut self, runs: &[NamedRun<'_>]) {
        let source = |run: &CompareRun| run.header.scenario.source.clone();
        let groups = grouped(runs, source);
        let [(first, _), others @ ..] = &groups[..] else { return };
        for (other, names) in others {
            let (mut before, mut after) = (first.lines(), other.lines());
            let mut number = 0;
            let line = loop {
                number += 1;
                match (before.next(), after.next()) {
                    (None, None) => break String::new(),
                    (a, b) if a == b => {}
                    (a, b) => {
                        let shown = |line: Option<&str>| match line {
                            Some(line) => format!("`{}`", cut(line.trim(), VALUE_CHARS_MAX)),
                            None => "nothing".to_owned(),
                        };
                        let [a, b] = [a, b].map(shown);
                        break format!(", first in line {number}: {a} against {b}");
                    }
                }
            };
            let names = names.join(", ");
            let is = if names.contains(',') { "are" } else { "is" };
            self.add("scenario", format!("the scenario of {names} {is} another text{line}"));
        }
    }

    /// Adds a sentence for the facts of the machines that are not the same.
    fn machine(&mut self, runs: &[NamedRun<'_>]) {
        let Some((_, first)) = runs.first() else { return };
        let unknown = "unknown".to_owned();
        for (name, run) in &runs[1..] {
            let (before, after) = (&first.header.machine, &run.header.machine);
            let mut facts: Vec<&String> = before.keys().chain(after.keys()).collect();
            facts.sort();
            facts.dedup();
            let value = |of: &BTreeMap<String, String>, fact: &str| {
                cut(of.get(fact).unwrap_or(&unknown), VALUE_CHARS_MAX)
            };
            let others = facts.into_iter().filter(|fact| !is_same(before, after, fact));
            let others: Vec<String> = others
                .map(|fact| {
                    format!("{fact} {} against {}", value(before, fact), value(after, fact))
                })
                .collect();
            if others.is_empty() {
                continue;
            }
            let more = others.len().saturating_sub(GROUPS_SHOWN_MAX);
            let shown = others[..others.len() - more].join("; ");
            let more = if more > 0 { format!("; and {more} more") } else { String::new() };
            self.add("machine", format!("the machine of {} differs: {shown}{more}", name.name));
        }
    }
}

/// Reports whether a fact of two machines is the same. The memory of a machine may differ by a
/// little from boot to boot.
fn is_same(
    before: &BTreeMap<String, String>,
    after: &BTreeMap<String, String>,
    fact: &str,
) -> bool {
    let (one, other) = (before.get(fact), after.get(fact));
    let number = |value: Option<&String>| value.and_then(|value| value.parse::<f64>().ok());
    match (fact, number(one), number(other)) {
        ("memory_bytes", Some(one), Some(other)) => (one - other).abs() <= 0.01 * one.max(other),
        _ => one == other,
    }
}

/// Groups runs by a value, in the order of their first ones.
fn grouped(
    runs: &[NamedRun<'_>],
    value: impl Fn(&CompareRun) -> String,
) -> Vec<(String, Vec<String>)> {
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    for (name, run) in runs {
        let value = value(run);
        match groups.iter_mut().find(|group| group.0 == value) {
            Some(group) => group.1.push(name.name.clone()),
            None => groups.push((value, vec![name.name.clone()])),
        }
    }
    groups
}

/// Returns the seed in a command line: 1 without the flag.
fn seed(command: &[String]) -> String {
    let mut arguments = command.iter();
    while let Some(argument) = arguments.next() {
        if argument == "--seed" {
            return arguments.next().cloned().unwrap_or_default();
        }
        if let Some(seed) = argument.strip_prefix("--seed=") {
            return seed.to_owned();
        }
    }
    "1".to_owned()
}

/// Returns the first characters of a text.
fn cut(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The most characters of a value in a sentence.
const VALUE_CHARS_MAX: usize = 60;
/// The most values in a sentence.
const GROUPS_SHOWN_MAX: usize = 5;

/// The most commands of a steered run that a sentence names.
const COMMANDS_SHOWN_MAX: usize = 3;
