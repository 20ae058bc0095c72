//! The search for the largest load that still meets an SLO: which value is tried next.
//!
//! The value grows until a run misses the SLO, and then the interval between the largest value that
//! met it and the smallest that missed it is halved. A run close to its limit decides nothing
//! alone: its value is tried again, and the majority counts. So is the first run if it misses the
//! SLO: its server may not be ready yet.
//!
//! The two values that bound the result are tried once more at the end. The value that met the SLO,
//! because a server may not recover from an overload: if it misses the SLO then, twice, the search
//! goes on below it; if that happens to two values, the server has not recovered. The value that
//! missed it, because something else may have been in the way: if it meets the SLO then, twice, the
//! search goes on above it.
//!
//! The next value depends on the earlier runs alone, so a search goes on from a list of them. A run
//! that never reached the server is not one of them.

mod judged_run;
mod record;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use judged_run::JudgedRun;
pub use record::{
    RecordedRun, SEARCH_HEAD_BYTES, SEARCH_VERSION, SearchHeader, SearchRecord, is_search_file,
};

/// What a search keeps to.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SearchRules {
    /// The first value.
    pub first: f64,
    /// The largest value that may be tried.
    pub most: Option<f64>,
    /// The smallest value that may be tried.
    pub least: f64,
    /// Distance, as a share of the result, between it and a value that missed the SLO.
    pub precision: f64,
    /// Values that may be tried.
    pub steps_max: usize,
    /// Runs of one value that may be needed to decide it.
    pub repeats: usize,
    /// A run decides alone if its usage is further from 1 than this.
    pub hysteresis: f64,
    /// Whether values are whole numbers.
    pub is_whole: bool,
}

impl SearchRules {
    /// Reports whether this run decides its value alone.
    pub(crate) fn is_clear(&self, run: &SearchRun) -> bool {
        let distance = run.usage.map_or(f64::INFINITY, |usage| (usage - 1.0).abs());
        run.outcome != SearchOutcome::Invalid && distance > self.hysteresis
    }
}

/// One run of a search.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SearchRun {
    /// The value of the knob.
    pub value: f64,
    /// Whether the SLO was met.
    pub outcome: SearchOutcome,
    /// The measured value as a share of its limit, of the condition that is closest to its limit or
    /// furthest beyond it. `None` if no condition has such a share: then one run decides.
    pub usage: Option<f64>,
}

/// The outcome of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SearchOutcome {
    /// The run met the SLO.
    Met,
    /// The run missed the SLO.
    Missed,
    /// The run measured the generator, or this machine could not hold it.
    Invalid,
}

impl fmt::Display for SearchOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Met => "met",
            Self::Missed => "missed",
            Self::Invalid => "invalid",
        })
    }
}

/// What a search does next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SearchMove {
    /// It runs this value.
    Run(f64),
    /// It has ended.
    End(SearchResult),
}

/// The two values that a search knows the limit to be between.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SearchBracket {
    /// The largest value that met the SLO; `None` if none did.
    pub found: Option<f64>,
    /// The smallest value above it that did not.
    pub bound: Option<f64>,
}

/// The result of a search.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SearchResult {
    /// The largest value that met the SLO; `None` if none did.
    pub found: Option<f64>,
    /// The smallest value above it that did not.
    pub bound: Option<f64>,
    /// Why the search ended.
    pub end: SearchEnd,
}

/// The reason why a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SearchEnd {
    /// The limit is known to the precision that was asked for.
    Found,
    /// The limit is that of the generator or of its machine.
    Generator,
    /// The largest value that may be tried meets the SLO.
    Most,
    /// The smallest value that may be tried misses it.
    Least,
    /// The value that met the SLO missed it after larger ones were tried: the server did not
    /// recover.
    NotRecovered,
    /// All steps were used before the limit was known so exactly.
    Steps,
}

/// A search: its rules and its runs.
#[derive(Debug)]
pub(crate) struct Search {
    rules: SearchRules,
    runs: Vec<SearchRun>,
}

impl Search {
    /// Returns a search that goes on after these runs.
    pub(crate) fn new(rules: SearchRules, runs: Vec<SearchRun>) -> Self {
        Self { rules, runs }
    }

    /// Returns what to do next.
    pub(crate) fn next(&self) -> SearchMove {
        if let [first] = self.runs[..]
            && first.outcome == SearchOutcome::Missed
            && self.rules.repeats > 1
        {
            return SearchMove::Run(first.value);
        }
        let values = self.values();
        let lost = values.iter().filter(|value| self.was_lost(**value)).count();
        if lost >= LOST_MAX {
            return self.end(SearchEnd::NotRecovered);
        }
        if let Some(value) = values.iter().find(|value| self.decision(**value).is_none()) {
            return SearchMove::Run(*value);
        }
        let met = self.largest_met();
        if lost > 0
            && let Some(met) = met
            && !self.is_confirmed(met)
        {
            return SearchMove::Run(met);
        }
        let bound = self.bound(met);
        let next = match (met, bound) {
            (None, None) => Ok(self.rules.first),
            (None, Some((bound, _))) => self.below(bound),
            (Some(met), None) => self.above(met),
            (Some(met), Some((bound, outcome))) => self.between(met, bound, outcome),
        };
        let end = match next {
            Ok(value) if values.len() < self.rules.steps_max => return SearchMove::Run(value),
            Ok(_) => SearchEnd::Steps,
            Err(end) => end,
        };
        let met = met.filter(|met| !self.is_confirmed(*met));
        let missed = bound.filter(|(_, outcome)| *outcome == SearchOutcome::Missed);
        let missed = missed.map(|(bound, _)| bound).filter(|bound| !self.is_bound(*bound));
        match met.or(missed) {
            Some(value) => SearchMove::Run(value),
            None => self.end(end),
        }
    }

    /// Reports whether the result holds after the overloads, too.
    fn is_confirmed(&self, met: f64) -> bool {
        let last = self.runs.iter().rposition(|run| run.value == met);
        match self.later_runs(met).last() {
            Some(run) if self.is_clear_miss(run) => false,
            Some(_) if !self.was_regained(met) => true,
            _ => self.last_overload() < last,
        }
    }

    /// Returns the place of the last run that was the first of its value to miss the SLO. A further
    /// miss of the same value is no new overload.
    fn last_overload(&self) -> Option<usize> {
        let missed =
            |run: &SearchRun, value| run.value == value && run.outcome == SearchOutcome::Missed;
        let first = |value| self.runs.iter().position(|run| missed(run, value));
        self.values().into_iter().filter_map(first).max()
    }

    /// Reports whether this value, which was decided not to meet the SLO, needs no further run.
    fn is_bound(&self, value: f64) -> bool {
        let runs = || self.runs.iter().filter(|run| run.value == value);
        let missed = runs().filter(|run| run.outcome == SearchOutcome::Missed).count();
        missed >= 2 || runs().count() >= self.rules.repeats + BOUND_RUNS_MAX
    }

    /// Reports whether this value missed the SLO at first, and met it twice after runs of others.
    fn was_regained(&self, value: f64) -> bool {
        let is_met = |run: &&SearchRun| run.outcome == SearchOutcome::Met;
        self.first_decision(value) != Some(SearchOutcome::Met)
            && self.later_runs(value).filter(is_met).count() >= 2
    }

    /// Reports whether this value met the SLO at first, and missed it twice after larger values.
    fn was_lost(&self, value: f64) -> bool {
        self.later_runs(value).filter(|run| self.is_clear_miss(run)).count() >= 2
    }

    fn is_clear_miss(&self, run: &SearchRun) -> bool {
        run.outcome == SearchOutcome::Missed && self.rules.is_clear(run)
    }

    /// Returns what is known before the search has ended.
    fn bracket(&self) -> SearchBracket {
        let found = self.largest_met();
        SearchBracket { found, bound: self.bound(found).map(|(bound, _)| bound) }
    }

    fn end(&self, end: SearchEnd) -> SearchMove {
        let found = match end {
            SearchEnd::NotRecovered => {
                self.values().into_iter().filter(|value| self.was_lost(*value)).reduce(f64::max)
            }
            _ => self.largest_met(),
        };
        let bound = self.bound(found).map(|(bound, _)| bound);
        SearchMove::End(SearchResult { found, bound, end })
    }

    /// Returns the values that were tried, in the order of their first runs.
    fn values(&self) -> Vec<f64> {
        let mut values: Vec<f64> = Vec::new();
        for run in &self.runs {
            if !values.contains(&run.value) {
                values.push(run.value);
            }
        }
        values
    }

    /// Returns the runs of this value that decide it: the first ones, without a run of another
    /// value between them.
    fn runs_of(&self, value: f64) -> impl Iterator<Item = &SearchRun> {
        let of_value = move |run: &&SearchRun| run.value == value;
        self.runs.iter().skip_while(move |run| !of_value(run)).take_while(of_value)
    }

    /// Returns the runs of this value after runs of others.
    fn later_runs(&self, value: f64) -> impl Iterator<Item = &SearchRun> {
        let deciding = self.runs_of(value).count();
        self.runs.iter().filter(move |run| run.value == value).skip(deciding)
    }

    /// Returns what the runs of this value decide; `None` if it must be tried again.
    fn decision(&self, value: f64) -> Option<SearchOutcome> {
        if self.was_lost(value) {
            return Some(SearchOutcome::Missed);
        }
        if self.was_regained(value) {
            return Some(SearchOutcome::Met);
        }
        self.first_decision(value)
    }

    /// Returns what the first runs of this value decide.
    fn first_decision(&self, value: f64) -> Option<SearchOutcome> {
        let runs: Vec<_> = self.runs_of(value).collect();
        let count = |outcome| runs.iter().filter(|run| run.outcome == outcome).count();
        if let [only] = runs[..] {
            return (self.rules.is_clear(only) || self.rules.repeats <= 1).then_some(only.outcome);
        }
        let majority = [SearchOutcome::Met, SearchOutcome::Missed, SearchOutcome::Invalid]
            .into_iter()
            .find(|outcome| count(*outcome) * 2 > runs.len());
        let may_repeat = runs.len() < self.rules.repeats;
        majority.or((!may_repeat).then_some(SearchOutcome::Missed))
    }

    fn largest_met(&self) -> Option<f64> {
        let is_met = |value: &f64| self.decision(*value) == Some(SearchOutcome::Met);
        let met = self.values().into_iter().filter(is_met);
        let lowest_missed = self.bound(None).map_or(f64::INFINITY, |(bound, _)| bound);
        // A value above one that missed the SLO had luck.
        met.filter(|value| *value < lowest_missed).max_by(f64::total_cmp)
    }

    /// Returns the smallest value above `met` that did not meet the SLO, and its outcome.
    fn bound(&self, met: Option<f64>) -> Option<(f64, SearchOutcome)> {
        self.values()
            .into_iter()
            .filter(|value| met.is_none_or(|met| *value > met))
            .filter_map(|value| Some((value, self.decision(value)?)))
            .filter(|(_, outcome)| *outcome != SearchOutcome::Met)
            .min_by(|one, other| one.0.total_cmp(&other.0))
    }

    /// Returns a smaller value than `bound`.
    fn below(&self, bound: f64) -> Result<f64, SearchEnd> {
        let is_met = |run: &SearchRun| run.value == bound && run.outcome == SearchOutcome::Met;
        let is_near = self.runs.iter().any(is_met);
        let smaller = |factor: f64| self.rounded((bound / factor).max(self.rules.least));
        let near = is_near.then(|| smaller(NEAR_FACTOR)).filter(|near| *near < bound);
        let next = near.unwrap_or_else(|| smaller(SHRINK_FACTOR));
        if next < bound { Ok(next) } else { Err(SearchEnd::Least) }
    }

    /// Returns a larger value than `met`.
    fn above(&self, met: f64) -> Result<f64, SearchEnd> {
        let usage = self.runs_of(met).filter_map(|run| run.usage).fold(0.0, f64::max);
        let factor = if usage > 0.0 && usage < FAR { FAR_FACTOR } else { GROWTH_FACTOR };
        let most = self.rules.most.unwrap_or(f64::INFINITY);
        let next = self.rounded(met * factor).min(most);
        if next > met { Ok(next) } else { Err(SearchEnd::Most) }
    }

    /// Returns a value in the middle, or the end of the search if the two are close.
    fn between(&self, met: f64, bound: f64, outcome: SearchOutcome) -> Result<f64, SearchEnd> {
        let end = match outcome {
            SearchOutcome::Invalid => SearchEnd::Generator,
            _ => SearchEnd::Found,
        };
        if bound - met <= met * self.rules.precision {
            return Err(end);
        }
        let is_wide = bound > GROWTH_FACTOR * met;
        let middle = if is_wide { (met * bound).sqrt() } else { f64::midpoint(met, bound) };
        let next = self.rounded(middle);
        if met < next && next < bound { Ok(next) } else { Err(end) }
    }

    /// Returns the value with as many digits as the precision needs.
    fn rounded(&self, value: f64) -> f64 {
        let digits = (self.rules.precision / 4.0).max(1e-9).log10().floor();
        let step = 10f64.powf(value.log10().floor() + digits + 1.0);
        let step = if self.rules.is_whole { step.max(1.0) } else { step };
        let rounded = (value / step).round() * step;
        // 0.30000000000000004 is no value for a person.
        let rounded = (rounded * 1e9).round() / 1e9;
        if rounded > 0.0 { rounded } else { value }
    }
}

/// Further runs at the end of a value that bounds the result, if they neither meet nor miss the SLO
/// twice.
const BOUND_RUNS_MAX: usize = 3;

/// Values that met the SLO at first and do no longer, from which on the server has not recovered.
/// One such value had luck at first.
const LOST_MAX: usize = 2;

// The constants below were measured with 2,000 made-up servers of each of three kinds, whose limit
// is 0.1 to 40 times the first value: the usage grows with the load (and 1 % of noise), as the
// latency of a queue does, or is not known. Values that were tried, in the median and at most, and
// the largest of them as a multiple of the limit, in the median:
//
// | growth | far below | far growth | shrink | with the load | as a queue | not known |
// |---|---|---|---|---|---|---|
// | 2 | 0.25 | 4 | 4 | 8, 11, 1.6 | 8, 11, 1.8 | 8, 13, 1.6 |
// | 1.5 | 0.25 | 4 | 4 | 8, 11, 1.4 | 8, 10, 1.7 | 8, 16, 1.3 |
// | 4 | 0.25 | 4 | 4 | 8, 11, 2.4 | 8, 11, 2.4 | 8, 11, 2.4 |
// | 2 | never | - | 4 | 8, 13, 1.6 | 8, 13, 1.6 | 8, 13, 1.6 |
// | 2 | 0.5 | 4 | 4 | 8, 11, 1.6 | 8, 11, 2.2 | 8, 13, 1.6 |
// | 2 | 0.25 | 8 | 4 | 8, 11, 1.6 | 8, 10, 2.4 | 8, 13, 1.6 |
// | 2 | 0.25 | 4 | 2 | 8, 11, 1.6 | 8, 11, 1.8 | 8, 13, 1.6 |
// | 2 | 0.25 | 4 | 8 | 8, 11, 1.6 | 8, 11, 1.8 | 9, 13, 1.6 |
//
// The result is 1.4 to 1.5 % off in the mean with all of them: the precision decides that. Slower
// growth needs more values than the 12 of the command (for 17 % of the servers whose usage is not
// known), and faster growth overloads a server by more, which it may not recover from.

/// Growth from one value to the next while the SLO is met.
const GROWTH_FACTOR: f64 = 2.0;

/// Growth while the measured value is far from its limit: it saves up to two values where the limit
/// is far above the first one.
const FAR_FACTOR: f64 = 4.0;

/// Usage below which a value is far from its limit. A usage that grows with the load does not pass
/// its limit at the next value.
const FAR: f64 = 0.25;

/// The factor from one value to the next while the SLO is missed. 2 and 8 need as many values.
const SHRINK_FACTOR: f64 = 4.0;

/// The same factor where some runs of the value met the SLO: the limit is near.
const NEAR_FACTOR: f64 = 1.1;

#[cfg(test)]
pub(crate) mod tests;
