//! A comparison: every figure of every side, what changed, and why that may mean nothing.

use serde::Serialize;
use throng_measure::Grade;

use super::bootstrap::{DRAWS, SEED};
use super::estimate::{CONFIDENCE, Difference, Estimate, compare};
use super::figure::{Better, FIGURES, FigureReader, SideReader, step_figures};
use super::mismatch::{Mismatch, mismatches};
use super::percent::{digits, factor, percent};
use super::regression::{Regression, RegressionResult};
use super::side::{CompareRun, ComparisonSide, side_name};

/// The schema of [`Comparison`] in JSON.
pub const SCHEMA: &str = "throng.comparison/1";

/// The comparison of a baseline with other sides. A side is one run or several repeats.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// The schema of this object, [`SCHEMA`].
    pub schema: &'static str,
    /// The sides; the first is the baseline.
    pub sides: Vec<ComparisonSide>,
    /// What else differs between the runs, or is wrong with one of them. The gravest come first.
    pub mismatches: Vec<Mismatch>,
    /// For each side after the first, what changed, in sentences; the most important first.
    pub conclusions: Vec<Conclusion>,
    /// The origin of the intervals.
    pub method: IntervalMethod,
    /// The figures that were measured on any side.
    pub figures: Vec<FigureRow>,
    /// The results of `--regression`, for each side after the first.
    pub regressions: Vec<RegressionResult>,
}

/// What changed on a side.
#[derive(Clone, Debug, Serialize)]
pub struct Conclusion {
    /// The side.
    pub side: String,
    /// The changes that an interval shows, or one sentence that there is none.
    pub sentences: Vec<String>,
    /// The changes of this kind that are no sentence.
    pub more: usize,
}

/// The origin of the intervals.
#[derive(Clone, Debug, Serialize)]
pub struct IntervalMethod {
    /// `repeats` or `intervals`.
    pub name: &'static str,
    /// The confidence of each interval.
    pub confidence: f64,
    /// The times that a bootstrap draws; 0 with repeats.
    pub draws: usize,
    /// The seed of the draws.
    pub seed: u64,
    /// What the intervals mean, in sentences.
    pub note: String,
}

/// A figure of all sides.
#[derive(Clone, Debug, Serialize)]
pub struct FigureRow {
    /// Its name, as thresholds have it.
    pub name: String,
    /// Its name on screens.
    pub label: String,
    /// The unit of its values: `us`, `count`, `per_second`, `share` or `bytes`.
    pub unit: &'static str,
    /// `less` or `more`: which way is better.
    pub better: &'static str,
    /// The value of each side; `null` for what was not measured.
    pub values: Vec<Option<f64>>,
    /// The values as text.
    pub shown: Vec<String>,
    /// The change of each side after the first.
    pub changes: Vec<FigureChange>,
}

/// The change of a figure against the baseline.
#[derive(Clone, Debug, Serialize)]
pub struct FigureChange {
    /// The side.
    pub side: String,
    /// Its value minus that of the baseline.
    pub difference: Option<f64>,
    /// Its value divided by that of the baseline.
    pub ratio: Option<f64>,
    /// The interval of the difference.
    pub difference_interval: Option<(f64, f64)>,
    /// The interval of the ratio.
    pub ratio_interval: Option<(f64, f64)>,
    /// Whether the interval leaves out that nothing changed; `null` without an interval.
    pub excludes_zero: Option<bool>,
    /// `worse` or `better` if the interval leaves out that nothing changed.
    pub direction: Option<&'static str>,
    /// The change as text: `+23 %`.
    pub shown: String,
    /// The interval as text: `+12 to +35 %`.
    pub interval_shown: String,
}

impl Comparison {
    /// Compares sides; each has at least one run, and the first is the baseline.
    pub fn of(sides: &[Vec<CompareRun>], regressions: &[Regression]) -> Self {
        let from_repeats = sides.iter().all(|runs| runs.len() >= 2);
        let names: Vec<String> = (0..sides.len()).map(side_name).collect();
        let mut readers: Vec<_> =
            sides.iter().map(|runs| SideReader::new(runs, from_repeats)).collect();
        let known: Vec<ComparisonSide> =
            names.iter().zip(sides).map(|(name, runs)| ComparisonSide::of(name, runs)).collect();
        let mut figures = Vec::new();
        let summaries = sides.iter().flatten().map(|run| &run.summary);
        let lacks_percentiles = summaries.clone().any(|run| !run.latency_stats.is_empty());
        let steps = step_figures(summaries);
        let all = FIGURES.iter().map(|figure| (figure.name, figure.label, figure.better));
        let steps = steps.iter().map(|(name, label)| (name.as_str(), label.as_str(), Better::Less));
        for (name, label, better) in all.chain(steps) {
            let Ok(reader) = FigureReader::named(name, 0) else { continue };
            let estimates: Vec<Estimate> =
                readers.iter_mut().map(|side| side.estimate(&reader)).collect();
            // A mean says less than percentiles, where all runs have these.
            let is_left_out = name.ends_with(".mean") && !lacks_percentiles;
            if !is_left_out && is_worth_a_row(name, &estimates) {
                figures.push(FigureRow::of(label, better, &reader, &estimates));
            }
        }
        let mut results = Vec::new();
        for regression in regressions {
            let estimates: Vec<Estimate> =
                readers.iter_mut().map(|side| side.estimate(regression.reader())).collect();
            for (name, after) in names.iter().zip(&estimates).skip(1) {
                results.push(regression.judge(name, &estimates[0], after));
            }
        }
        let others = names.iter().enumerate().skip(1);
        let conclusions = others.map(|(at, name)| conclusion(name, at - 1, &figures)).collect();
        Self {
            schema: SCHEMA,
            mismatches: mismatches(&known, sides),
            method: IntervalMethod::of(sides, from_repeats, &figures),
            sides: known,
            conclusions,
            figures,
            regressions: results,
        }
    }

    /// Reports whether a run is invalid: its numbers are not the target's.
    pub fn is_invalid(&self) -> bool {
        let mut runs = self.sides.iter().flat_map(|side| &side.runs);
        runs.any(|run| run.grade == Grade::Invalid)
    }

    /// Reports whether a change is beyond a `--regression`.
    pub fn has_regressed(&self) -> bool {
        self.regressions.iter().any(|result| result.beyond)
    }
}

/// Reports whether a row says anything: a count that is zero everywhere does not, except errors.
fn is_worth_a_row(name: &str, estimates: &[Estimate]) -> bool {
    let is_kept = name == "errors" || name == "users.connected_most";
    estimates.iter().any(|side| side.value.is_some_and(|value| is_kept || value != 0.0))
}

impl IntervalMethod {
    fn of(sides: &[Vec<CompareRun>], from_repeats: bool, figures: &[FigureRow]) -> Self {
        let counts = |count: &dyn Fn(&Vec<CompareRun>) -> u64| {
            let counts: Vec<String> = sides.iter().map(|side| count(side).to_string()).collect();
            counts.join(" and ")
        };
        let changes = figures.iter().flat_map(|row| &row.changes);
        let intervals = changes.filter(|change| change.excludes_zero.is_some()).count();
        let by_chance = (intervals as f64 * (1.0 - CONFIDENCE)).round() as usize;
        let mut note = if intervals == 0 {
            "No 95 % intervals: the runs are too short. Ten intervals of activity are needed in \
             each run, or two runs of each side."
                .to_owned()
        } else if from_repeats {
            let runs = counts(&|side| side.len() as u64);
            format!("95 % intervals from {runs} runs (Student's t): from run to run.")
        } else {
            let n = counts(&|side| side.iter().map(|run| run.sample.intervals()).sum());
            let is_one = sides.iter().all(|side| side.len() == 1);
            let of_one = if is_one { " of one run" } else { "" };
            format!(
                "95 % intervals: bootstrap over {n} intervals{of_one}; says nothing about the \
                 difference between runs. For that, repeat the runs: throng compare a1 a2 a3 --to \
                 b1 b2 b3."
            )
        };
        if by_chance > 0 {
            note += &format!(
                " About {by_chance} of the {intervals} intervals are expected to show a change by \
                 chance alone."
            );
        }
        let (name, draws) = if from_repeats { ("repeats", 0) } else { ("intervals", DRAWS) };
        Self { name, confidence: CONFIDENCE, draws, seed: SEED, note }
    }
}

impl FigureRow {
    fn of(label: &str, better: Better, reader: &FigureReader, sides: &[Estimate]) -> Self {
        let quantity = &reader.quantity;
        let shown =
            |side: &Estimate| side.value.map_or_else(|| "-".to_owned(), |v| quantity.show(v));
        let changes = sides.iter().enumerate().skip(1);
        let change = |(at, side): (usize, &Estimate)| {
            let compared = compare(&sides[0], side, reader.precision());
            FigureChange::of(side_name(at), better, reader, &compared)
        };
        Self {
            name: reader.name.clone(),
            label: label.to_owned(),
            unit: quantity.unit(),
            better: match better {
                Better::Less => "less",
                Better::More => "more",
            },
            values: sides.iter().map(|side| side.value).collect(),
            shown: sides.iter().map(shown).collect(),
            changes: changes.map(change).collect(),
        }
    }

    /// Describes the change of side number `at`, for people.
    fn sentence(&self, at: usize) -> String {
        let change = &self.changes[at - 1];
        let grew = change.difference.is_some_and(|difference| difference > 0.0);
        let verb = if grew { "grew" } else { "fell" };
        let (before, after) = (&self.shown[0], &self.shown[at]);
        let name = match self.label.rsplit_once(' ') {
            Some((of, statistic)) if self.unit == "us" && !statistic.contains('/') => {
                format!("{statistic} of {of}")
            }
            _ => self.label.clone(),
        };
        let (Some(ratio), Some((low, high))) = (change.ratio, change.ratio_interval) else {
            let interval = &change.interval_shown;
            return format!("{name} {verb} from {before} to {after} (95 % interval {interval})");
        };
        if let Some(factor) = factor(ratio) {
            let [low, high] = [low, high].map(percent);
            return format!(
                "{name} is {factor} times as large (95 % interval {}), from {before} to {after}",
                interval_of(&low, &high)
            );
        }
        let by = digits((100.0 * (ratio - 1.0)).abs());
        if factor(high).is_some() {
            let [low, high] = [low, high].map(percent);
            return format!(
                "{name} {verb} by {by} % (95 % interval {low} to {high}), from {before} to {after}"
            );
        }
        let sign = if grew { 1.0 } else { -1.0 };
        let mut ends = [low, high].map(|end| sign * 100.0 * (end - 1.0));
        ends.sort_by(f64::total_cmp);
        let [low, high] = ends.map(digits);
        format!(
            "{name} {verb} by {by} % (95 % interval {low} to {high} %), from {before} to {after}"
        )
    }
}

impl FigureChange {
    fn of(side: String, better: Better, reader: &FigureReader, compared: &Difference) -> Self {
        let excludes_zero = compared.excludes_zero();
        let grew = compared.difference.is_some_and(|difference| difference > 0.0);
        let direction = match (excludes_zero, grew == (better == Better::More)) {
            (Some(true), true) => Some("better"),
            (Some(true), false) => Some("worse"),
            _ => None,
        };
        let Difference { difference, ratio, difference_interval, ratio_interval } = *compared;
        let amount = |amount: f64| reader.quantity.show_change(amount);
        let shown = match (ratio, difference) {
            (Some(ratio), _) => percent(ratio),
            (None, Some(difference)) => amount(difference),
            (None, None) => "-".to_owned(),
        };
        let interval_shown = match (ratio_interval, difference_interval) {
            (Some((low, high)), _) => interval_of(&percent(low), &percent(high)),
            (None, Some((low, high))) => format!("{} to {}", amount(low), amount(high)),
            (None, None) => "-".to_owned(),
        };
        Self {
            side,
            difference,
            ratio,
            difference_interval,
            ratio_interval,
            excludes_zero,
            direction,
            shown,
            interval_shown,
        }
    }
}

/// Returns an interval of two changes, `+12 to +35 %`, with their unit once if it is the same.
fn interval_of(low: &str, high: &str) -> String {
    let low = if high.ends_with(" %") { low.trim_end_matches(" %") } else { low };
    format!("{low} to {high}")
}

/// Returns the most important changes of a side: what got worse first, then by size.
fn conclusion(side: &str, at: usize, figures: &[FigureRow]) -> Conclusion {
    let changes = figures.iter().map(|row| (row, &row.changes[at]));
    let mut shown: Vec<_> = changes.filter(|(_, change)| change.direction.is_some()).collect();
    let size = |change: &FigureChange| match change.ratio {
        Some(ratio) if ratio > 0.0 => ratio.ln().abs(),
        _ => f64::INFINITY,
    };
    shown.sort_by(|(_, one), (_, other)| {
        let is_better = |change: &FigureChange| change.direction == Some("better");
        is_better(one).cmp(&is_better(other)).then(size(other).total_cmp(&size(one)))
    });
    let known = figures.iter().filter(|row| row.changes[at].difference.is_some()).count();
    let with_interval =
        figures.iter().filter(|row| row.changes[at].excludes_zero.is_some()).count();
    let more = shown.len().saturating_sub(SENTENCES_MAX);
    let mut sentences: Vec<String> =
        shown.iter().take(SENTENCES_MAX).map(|(row, _)| row.sentence(at + 1)).collect();
    if sentences.is_empty() {
        sentences.push(no_difference(with_interval, known));
    }
    Conclusion { side: side.to_owned(), sentences, more }
}

/// Returns the sentence about a side without changes. Of its `known` figures, `with_interval` can
/// be told from chance.
fn no_difference(with_interval: usize, known: usize) -> String {
    match with_interval {
        0 => "these runs are too short to tell a difference from chance".to_owned(),
        few if 2 * few < known => format!(
            "no difference that these runs can show, but only {few} of {known} figures have \
             values in enough intervals to tell: record more of them, with a longer load or a \
             shorter --interval"
        ),
        _ => "no difference that these runs can show".to_owned(),
    }
}

/// The most sentences about a side.
const SENTENCES_MAX: usize = 5;

#[cfg(test)]
mod tests;
