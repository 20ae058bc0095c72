//! Markdown: a report for a pull request.

use std::fmt::Write as _;

use throng_measure::finding::listed;
use throng_measure::{ErrorExchange, Evidence, Finding, Grade, Tally};

use super::run_export::RunExport;
use crate::Summary;
use crate::render::{
    MACHINES_NOTE, by_name, costs, escaped, imported_note, known_statistics, latencies, machines,
    markdown_cell as cell, markdown_table as table, measurement, outcome, probes, retries_note,
    statuses, steps,
};

impl RunExport<'_> {
    /// Returns the report as Markdown (GitHub's, which GitLab and others read too).
    pub fn markdown(&self) -> String {
        let mut text = format!("### throng: {} {}\n\n", self.sign(), self.title());
        _ = writeln!(text, "**{}**\n", escaped(&self.headline()));
        text += &self.body();
        if !self.diagnosis.findings.is_empty() {
            _ = writeln!(text, "\n**Findings, the most important first**\n");
            text += &self.findings();
        }
        _ = writeln!(text, "\n{}", self.origin());
        text
    }

    /// Returns the verdict. A run that ended early says so before it.
    pub(super) fn headline(&self) -> String {
        let verdict = &self.diagnosis.verdict;
        match &self.summary.run.incomplete {
            Some(why) => format!("Incomplete: {why}. {verdict}"),
            None => verdict.clone(),
        }
    }

    /// Returns the outcome, the figures, the errors, the thresholds and the warnings.
    pub(super) fn body(&self) -> String {
        let summary = self.summary;
        let mut text = String::new();
        if let Some(measurement) = measurement(summary, usize::MAX, &self.diagnosis.verdict) {
            _ = writeln!(text, "{}\n", escaped(&measurement));
        }
        _ = writeln!(text, "{}", escaped(&outcome(summary, self.judgements)));
        _ = write!(text, "\n{}", table(&latencies(summary)));
        if !summary.steps.is_empty() {
            _ = write!(text, "\n{}", table(&steps(summary)));
        }
        if let Some(known) = known_statistics(summary) {
            _ = write!(text, "\n{}", table(&known));
        }
        if let Some(note) = imported_note(summary) {
            _ = writeln!(text, "\n{}", escaped(&note));
        }
        if summary.run.imported.is_none() {
            _ = write!(text, "\n{}", table(&costs(summary)));
        }
        if let Some(machines) = machines(summary) {
            _ = write!(text, "\n{}\n{}\n", table(&machines), escaped(MACHINES_NOTE));
        }
        if let Some(broadcast) = &summary.broadcast {
            _ = write!(text, "\n{}", table(&probes(broadcast)));
        }
        if let Some(statuses) = statuses(summary) {
            _ = writeln!(text, "\nHTTP answers: {}", escaped(&statuses));
        }
        if let Some(retries) = retries_note(summary) {
            _ = writeln!(text, "\n{}", escaped(&retries));
        }
        text += &tally("Failed connects", &summary.connect.failed);
        text += &tally("Errors", &summary.errors);
        text += &exchanges(summary);
        if !self.judgements.is_empty() {
            text += "\n| threshold | measured | |\n|---|---:|---|\n";
            for judgement in self.judgements {
                let met = if judgement.met { "✅ met" } else { "❌ missed" };
                let (threshold, measured) = (&judgement.threshold, &judgement.measured);
                _ = writeln!(text, "| {} | {} | {met} |", cell(threshold), cell(measured));
            }
        }
        if !self.warnings.is_empty() {
            text += "\n";
            let warnings = self.warnings.iter().map(|warning| escaped(warning));
            warnings.for_each(|warning| _ = writeln!(text, "- ⚠️ {warning}"));
        }
        text
    }

    /// Returns the findings as a numbered list.
    pub(super) fn findings(&self) -> String {
        self.diagnosis.numbered().map(|it| finding(&it)).collect()
    }

    /// Returns a sign that is seen from afar.
    pub(super) fn sign(&self) -> &'static str {
        let is_complete = self.summary.run.incomplete.is_none();
        let is_met = self.judgements.iter().all(|judgement| judgement.met)
            && self.summary.shortcoming().is_none()
            && !self.summary.is_unreached();
        match self.summary.validity.grade {
            Grade::Invalid => "🚫",
            _ if !is_complete => "⚠️",
            _ if !is_met => "❌",
            Grade::Degraded => "⚠️",
            Grade::Valid => "✅",
        }
    }

    /// Returns the scenario and its target.
    pub(super) fn title(&self) -> String {
        let run = &self.summary.run;
        match run.target.as_str() {
            "" => escaped(&run.scenario),
            target => format!("{} against {}", escaped(&run.scenario), escaped(target)),
        }
    }

    /// Returns when and by what the run was made.
    pub(super) fn origin(&self) -> String {
        let run = &self.summary.run;
        let by = match &run.imported {
            Some(imported) => format!("imported from {} by throng", imported.describe()),
            None => "throng".to_owned(),
        };
        let parts = [run.started.clone(), format!("{by} {}", run.throng_version)];
        let parts: Vec<_> = parts.iter().filter(|part| !part.is_empty()).collect();
        parts.into_iter().map(|part| escaped(part)).collect::<Vec<_>>().join(", ")
    }
}

fn finding(finding: &Finding) -> String {
    let mut text = format!("1. **\\[{}\\]** {}\n", finding.side, escaped(&finding.text));
    if !finding.machines.is_empty() && !finding.says_machines() {
        _ = writeln!(text, "   - at {}", escaped(&listed(&finding.machines)));
    }
    for Evidence { counter, from, to, at_ms } in &finding.evidence {
        let [from, to] = [from, to].map(|value| (value * 1000.0).round() / 1000.0);
        let before = if from == to { String::new() } else { format!("{from} → ") };
        let at_s = *at_ms as f64 / 1000.0;
        _ = writeln!(text, "   - {}: {before}{to} at {at_s:.1} s", escaped(counter));
    }
    match &finding.follows_from {
        Some(cause) => _ = writeln!(text, "   - follows from {}", escaped(cause)),
        None if finding.remedy.is_empty() => {}
        None => _ = writeln!(text, "   - do: {}", escaped(&finding.remedy)),
    }
    text
}

fn tally(title: &str, tally: &Tally) -> String {
    match tally.total() {
        0 => String::new(),
        _ => format!("\n{title}: {}\n", escaped(&by_name(tally))),
    }
}

/// Returns one exchange for each kind of error.
fn exchanges(summary: &Summary) -> String {
    if summary.exchanges.is_empty() {
        return String::new();
    }
    let mut text = "\n| first error of each kind | where | expected | received |\n".to_owned();
    text += "|---|---|---|---|\n";
    for shown in &summary.exchanges {
        let ErrorExchange { kind, expected, got, .. } = &shown.exchange;
        let place = shown.exchange.place();
        let cells = [&format!("{kind} {}", shown.when()), &place, expected, got].map(|it| cell(it));
        _ = writeln!(text, "| {} |", cells.join(" | "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_measure::Side;

    #[test]
    fn machines_are_listed_once_and_the_first_few_only() {
        let shown = |text: &str, machines: &[&str]| {
            let machines = machines.iter().map(|&name| name.to_owned()).collect();
            finding(&Finding { machines, ..Finding::new("x", Side::Client, text) })
        };
        let many = ["a1", "a2", "a3", "a4", "a5"];
        let told = shown("No fd was left.", &many);
        assert!(told.contains("   - at a1, a2, a3 and 2 more\n"), "{told}");
        let told = shown("2 of 4 machines (a1 and a4) were slow. So it was.", &["a1", "a4"]);
        assert!(!told.contains("- at"), "{told}");
    }
}
