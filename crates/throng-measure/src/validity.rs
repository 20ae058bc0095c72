//! The grade of a run: did it measure the target, or the generator itself?
//!
//! | rule | degraded | invalid |
//! |---|---|---|
//! | generator lag, p99 over the run | above 10 ms | above 100 ms |
//! | that lag in the smallest p99, timed arrivals | above 10 ms and 10 % | above 100 ms and 50 % |
//! | p50 or p99 of a latency uncertain by late reads | above 10 % and 1 ms | |
//! | answers that may belong to another user or request | above 1 % | above 5 % |
//! | answers without a latency, since they may be late ones | above 1 % | above 50 % |
//! | times that the server sent what no HTTP request asked for, of all answers | above 1 % | |
//! | lag of at least half of a shown or judged latency, at the same percentile | above 10 ms | |
//! | arrivals that were due and did not start | above 1 % | above 5 % |
//! | turns of `every` that the generator kept from starting | above 1 % | above 5 % |
//! | lines of the run file lost or torn, or its end missing | any | |
//! | ports, fds, epoll watches or memory of the generator exhausted | any | |
//! | probes that were due, had subscribers, and were not sent | above 1 % | above 5 % |
//! | probe deliveries that neither arrived nor were given up when the run ended | | any |
//! | share of the generator's measured ceiling, in the busiest second | above 80 % | |
//! | users waited at a barrier that never opened, or for a signal never given | any | |
//! | machines of the run lost, by their part of the load | any | above 50 % |
//! | imported from the log of another tool, which says nothing of its lag | always | |
//! | no generator interval in the file | | always |
//!
//! A late generator sends late and reads late. Where the kernel reports when an answer arrived,
//! reading late makes no latency larger. Sending late does, because a latency counts from the
//! intended moment: with a latency of 400 ms and a lag of 15 ms, at least 385 ms are the target's.
//! So the lag counts as a part of the smallest latency in the report.
//!
//! A late generator reads an answer together with what arrived after it. The kernel then reports
//! the arrival of the last byte, an upper bound. The difference of the two latencies at the same
//! percentile shows how much later the generator read, and so how uncertain the bound is. It counts
//! where more than one answer in a hundred has no exact arrival.
//!
//! An arrival depends on no answer, so the generator causes every missing arrival. A turn of
//! `every` also waits for the answer to the turn before it, so a slow target delays turns: that is
//! a finding about the target and not about the generator. A missing turn counts against the
//! generator only as far as the backlog of turns grew in intervals in which the generator itself
//! was late (lag p99 above [`LAG_DEGRADED_US`]).
//!
//! A lag at p99.9 dominates a latency's p99.9 when it is at least half of it; the same holds for
//! the maximum. Then that number measures the generator more than the target. The p99.9 of a
//! latency with fewer than [`TAIL_VALUES_MIN`] values rests on a few values or on one, as its
//! maximum does: these count only if a threshold judges them.
//!
//! Users that waited for what never happened did not take the steps behind it: the load was not the
//! one that the scenario describes, however fast the target answered.
//!
//! The ceiling is the rate that the generator reached just before the run against a peer that does
//! nothing. Near the ceiling, a number may be the generator's own limit even if nothing was late: a
//! closed model has no lag.

use std::fmt;

use serde::{Deserialize, Serialize};
use throng_base::units::{brief_micros, plural};

use crate::LatencySummary;

/// Generator lag (p99) above which a run is degraded, in microseconds.
pub const LAG_DEGRADED_US: u64 = 10_000;
/// Generator lag (p99) above which a run is invalid, in microseconds.
pub const LAG_INVALID_US: u64 = 100_000;
/// Share of arrivals or turns missing above which a run is degraded.
pub const SHORTFALL_DEGRADED: f64 = 0.01;
/// Share of arrivals or turns missing above which a run is invalid.
pub const SHORTFALL_INVALID: f64 = 0.05;

/// Lag as a part of a latency above which a run is degraded, if the kernel timed the arrivals.
pub const LAG_PART_DEGRADED: f64 = 0.1;
/// Lag as a part of a latency above which a run is invalid, if the kernel timed the arrivals.
pub const LAG_PART_INVALID: f64 = 0.5;
/// Difference between the two clocks, in microseconds, above which it may degrade a run.
pub const READ_LATE_US: u64 = 1_000;
/// Share of answers that may belong to another request above which a run is degraded.
pub const DOUBTFUL_DEGRADED: f64 = 0.01;
/// Share of answers that may belong to another request above which a run is invalid.
pub const DOUBTFUL_INVALID: f64 = 0.05;
/// Share of answers without a latency above which a run is degraded.
pub const OUT_OF_STEP_DEGRADED: f64 = 0.01;
/// Share of answers without a latency above which a run is invalid: most latencies are not known.
pub const OUT_OF_STEP_INVALID: f64 = 0.5;

/// Values that both a latency and the lag must have for a p99.9 that is more than a few of them.
pub const TAIL_VALUES_MIN: u64 = 1_000;
/// Share of the generator's ceiling above which a run is degraded.
pub const CEILING_SHARE_DEGRADED: f64 = 0.8;

/// Part of the load on lost machines above which a run is invalid, in percent.
pub const MISSING_INVALID: u64 = 50;

/// The degree to which the numbers of a run can be trusted. Ordered from best to worst.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Grade {
    /// The generator did what the scenario says, at the intended moments.
    #[default]
    Valid,
    /// Something was missing; read the reasons beside the numbers.
    Degraded,
    /// The numbers are not the target's: read the reasons instead.
    Invalid,
}

/// A grade with its reasons, worst first; a valid run has none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Validity {
    /// The worst grade of all rules.
    pub grade: Grade,
    /// One sentence for each rule that applies.
    pub reasons: Vec<String>,
}

/// The facts that the grade depends on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ValidityFacts {
    /// Intervals in which the generator reported.
    pub intervals: u64,
    /// The log of another tool that the run was imported from.
    pub imported_from: Option<String>,
    /// The lag of the generator's steps.
    pub lag_us: LatencySummary,
    /// The time of the largest lag, in milliseconds since the run began.
    pub lag_most_at_ms: Option<u64>,
    /// Whether the kernel timed the arrival of answers: then reading late is no part of a latency.
    pub arrivals_are_known: bool,
    /// The share of answers whose exact arrival the kernel reported; `None` without answers.
    pub by_kernels_clock: Option<f64>,
    /// The latencies in the report.
    pub latencies: Vec<ShownLatency>,
    /// Answers that an `expect` accepted.
    pub answers: u64,
    /// Accepted answers that may belong to another user or request.
    pub answers_doubtful: u64,
    /// Accepted answers that may be late answers to a request that timed out. No latency counts
    /// them.
    pub answers_out_of_step: u64,
    /// The part of the doubtful answers that may be what the server says first.
    pub answers_after_greeting: u64,
    /// Answers to HTTP requests.
    pub http_answers: u64,
    /// Times that bytes arrived which no HTTP request asked for.
    pub http_unasked: u64,
    /// Users or arrivals that should have started.
    pub arrivals_intended: u64,
    /// Users or arrivals that started.
    pub arrivals_achieved: u64,
    /// Turns of `every` that were due.
    pub turns_intended: u64,
    /// Turns that did not begin because the generator was late.
    pub turns_missed: u64,
    /// Lines that the writer could not write or the reader could not read.
    pub lines_lost: u64,
    /// Whether the run file has no last line although the run is over.
    pub end_missing: bool,
    /// Connects that found no free port.
    pub ports_exhausted: u64,
    /// Connects that found no free fd.
    pub fds_exhausted: u64,
    /// Connects that found no free epoll watch.
    pub watches_exhausted: u64,
    /// Connects for which the generator's kernel had no memory.
    pub memory_exhausted: u64,
    /// Probes that were due while they had subscribers.
    pub probes_intended: u64,
    /// Probes that were sent.
    pub probes_sent: u64,
    /// Deliveries missing from the generator's account: they neither arrived nor were given up.
    pub deliveries_unaccounted: u64,
    /// The share of its ceiling that the generator used in the busiest second; `None` if no ceiling
    /// was measured.
    pub ceiling_share: Option<f64>,
    /// Barriers and signals for which users waited in vain, in a sentence each.
    pub cues_unopened: Vec<String>,
    /// Machines of the run that were lost.
    pub machines_missing: Vec<MissingMachine>,
}

/// A machine of the run that was lost and did not come back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MissingMachine {
    /// The name of its agent.
    pub name: String,
    /// Its part of the load, in percent.
    pub percent: u64,
    /// The time since which it is missing, in milliseconds since the run began.
    pub from_ms: u64,
}

/// A latency that the report shows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ShownLatency {
    /// The latency's name, as in a threshold.
    pub name: &'static str,
    /// The measured values, in microseconds.
    pub us: LatencySummary,
    /// The values of the answered ones until the answers arrived, in microseconds.
    pub arrived_us: LatencySummary,
    /// The values of the answered ones until the generator read the answers, in microseconds.
    pub seen_us: LatencySummary,
    /// The statistics that a threshold compares: `p999`, `max`.
    pub judged: Vec<String>,
}

impl Validity {
    /// Grades a run by the rules in the module's documentation.
    pub fn of(facts: &ValidityFacts) -> Self {
        let mut found: Vec<(Grade, String)> = Vec::new();
        if facts.intervals == 0 {
            found.push((Grade::Invalid, "the generator reported nothing".to_owned()));
        }
        match facts.lag_grade() {
            Some(found_late) => found.push(found_late),
            None => found.extend(facts.owned_tail_reason().map(|reason| (Grade::Degraded, reason))),
        }
        found.extend(facts.read_late_reason().map(|reason| (Grade::Degraded, reason)));
        let missing = facts.arrivals_intended.saturating_sub(facts.arrivals_achieved);
        found.extend(shortfall("arrivals", missing, facts.arrivals_intended));
        found.extend(shortfall("turns of `every`", facts.turns_missed, facts.turns_intended));
        found.extend(facts.doubtful_answers_grade());
        found.extend(facts.out_of_step_answers_grade());
        found.extend(facts.unasked_answers_grade());
        let unsent = facts.probes_intended.saturating_sub(facts.probes_sent);
        found.extend(shortfall("probes", unsent, facts.probes_intended));
        if facts.deliveries_unaccounted > 0 {
            let n = facts.deliveries_unaccounted;
            let what = plural(n, "probe delivery is", "probe deliveries are");
            found.push((Grade::Invalid, format!("{n} {what} unaccounted for")));
        }
        if let Some(share) = facts.ceiling_share.filter(|share| *share > CEILING_SHARE_DEGRADED) {
            let reason = format!(
                "the busiest second used {:.0} % of this generator's capacity; a limit beyond it \
                 may be the generator's own",
                share * 100.0
            );
            found.push((Grade::Degraded, reason));
        }
        let degraded = [
            (facts.lines_lost, "line", "lines", "of the run file could not be written or read"),
            (facts.ports_exhausted, "connect", "connects", "found no free port on the generator"),
            (facts.fds_exhausted, "connect", "connects", "found no free fd in the generator"),
            (
                facts.watches_exhausted,
                "connect",
                "connects",
                "found no free epoll watch in the generator",
            ),
            (
                facts.memory_exhausted,
                "connect",
                "connects",
                "found no memory in the generator's kernel",
            ),
        ];
        for (n, one, many, text) in degraded.into_iter().filter(|(n, ..)| *n > 0) {
            found.push((Grade::Degraded, format!("{n} {} {text}", plural(n, one, many))));
        }
        let percent: u64 = facts.machines_missing.iter().map(|machine| machine.percent).sum();
        let by_share = if percent > MISSING_INVALID { Grade::Invalid } else { Grade::Degraded };
        found.extend(facts.machines_missing.iter().map(|machine| {
            let MissingMachine { name, percent, from_ms } = machine;
            let from = *from_ms as f64 / 1000.0;
            let reason = format!(
                "the agent {name}, {percent} % of the load, is missing from {from:.0} s on"
            );
            (by_share, reason)
        }));
        let in_vain = facts.cues_unopened.iter().cloned();
        found.extend(in_vain.map(|reason| (Grade::Degraded, reason)));
        if let Some(log) = &facts.imported_from {
            let reason = format!("imported from {log}: how late the generator was is not known");
            found.push((Grade::Degraded, reason));
        }
        if facts.end_missing {
            let reason =
                "the run file has no last line: the generator was killed or is still running";
            found.push((Grade::Degraded, reason.to_owned()));
        }
        found.sort_by_key(|(grade, _)| std::cmp::Reverse(*grade));
        Self {
            grade: found.first().map_or(Grade::Valid, |(grade, _)| *grade),
            reasons: found.into_iter().map(|(_, reason)| reason).collect(),
        }
    }
}

impl ValidityFacts {
    /// Returns the grade that the generator's lag alone gives, with the reason; `None` if it is
    /// valid.
    pub fn lag_grade(&self) -> Option<(Grade, String)> {
        let lag_us = self.lag_us.p99;
        let grade = above(lag_us, LAG_DEGRADED_US, LAG_INVALID_US)?;
        let late = format!("the generator was late by {} (p99)", brief_micros(lag_us));
        let smallest = self.latencies.iter().min_by_key(|latency| latency.us.p99);
        let Some(ShownLatency { name, us, .. }) = smallest.filter(|_| self.arrivals_are_known)
        else {
            return Some((grade, late));
        };
        let part = lag_us as f64 / us.p99.max(1) as f64;
        let by_part = above(part, LAG_PART_DEGRADED, LAG_PART_INVALID)?;
        let percent = (part * 100.0).min(100.0);
        let part = format!("up to {percent:.0} % of the p99 of {name} may be its lateness");
        Some((grade.min(by_part), format!("{late}: {part}")))
    }

    /// Returns the reason if late reads leave the arrival of answers uncertain.
    fn read_late_reason(&self) -> Option<String> {
        let share = self.by_kernels_clock.filter(|_| !self.arrivals_are_known)?;
        let uncertain = self.latencies.iter().filter_map(|latency| {
            let ShownLatency { name, arrived_us: us, seen_us, .. } = latency;
            let pairs = [("p50", us.p50, seen_us.p50), ("p99", us.p99, seen_us.p99)];
            let most = pairs.into_iter().max_by_key(|(_, us, seen)| seen.saturating_sub(*us))?;
            let late = most.2.saturating_sub(most.1);
            let is_large = late > READ_LATE_US && late as f64 > most.1 as f64 * LAG_PART_DEGRADED;
            is_large.then_some((late, *name, most.0))
        });
        let (late, name, statistic) = uncertain.max()?;
        Some(format!(
            "the generator read answers late, and the kernel timed the arrival of only {:.0} % of \
             them: the {statistic} of {name} may be too large by about {}",
            share * 100.0,
            brief_micros(late)
        ))
    }

    /// Returns the grade for answers that cannot be told from other messages, with the reason;
    /// `None` if it is valid.
    fn doubtful_answers_grade(&self) -> Option<(Grade, String)> {
        let share = self.answers_doubtful as f64 / self.answers.max(1) as f64;
        let grade = above(share, DOUBTFUL_DEGRADED, DOUBTFUL_INVALID)?;
        let (doubtful, answers, percent) = (self.answers_doubtful, self.answers, share * 100.0);
        if self.answers_after_greeting * 2 > doubtful {
            return Some((
                grade,
                format!(
                    "{doubtful} of {answers} answers ({percent:.1} %) may be no answers, but what \
                     the server says first: after the first answer of their connection came \
                     another. If the server speaks first, wait for that with `receive` between \
                     `connect` and `send`"
                ),
            ));
        }
        Some((
            grade,
            format!(
                "{doubtful} of {answers} answers ({percent:.1} %) may belong to another request: \
                 messages that match `expect` also arrived unrequested. Expect text that \
                 no other message on the connection contains, or measure deliveries with `probe`"
            ),
        ))
    }

    /// Returns the grade for answers without a latency, with the reason; `None` if it is valid.
    /// They falsify no latency, but those of the others stand for all.
    fn out_of_step_answers_grade(&self) -> Option<(Grade, String)> {
        let (late, answers) = (self.answers_out_of_step, self.answers);
        let share = late as f64 / answers.max(1) as f64;
        let grade = above(share, OUT_OF_STEP_DEGRADED, OUT_OF_STEP_INVALID)?;
        let reason = format!(
            "{late} of {answers} answers ({:.1} %) have no latency: they arrived after a time-out, \
             so each may be the late answer to the request before. Raise the time-out of `expect`, \
             or expect text that only the own answer contains",
            share * 100.0
        );
        Some((grade, reason))
    }

    /// Returns the grade for HTTP answers that no request asked for, with the reason; `None` if it
    /// is valid. Each of them ends its connection, so only the answers around it are in doubt.
    fn unasked_answers_grade(&self) -> Option<(Grade, String)> {
        let (unasked, answers) = (self.http_unasked, self.http_answers.max(self.http_unasked));
        let share = unasked as f64 / answers.max(1) as f64;
        let percent = share * 100.0;
        (share > DOUBTFUL_DEGRADED).then(|| {
            let times = plural(unasked, "time", "times");
            let reason = format!(
                "{unasked} {times} in {answers} HTTP answers ({percent:.1} %) the server sent \
                 what no request asked for: the answers before it may belong to other requests, \
                 and their latencies mean nothing. See the exchange of http_unasked"
            );
            (Grade::Degraded, reason)
        })
    }

    /// Returns the reason if the slowest values are the generator's own although it was hardly ever
    /// late.
    fn owned_tail_reason(&self) -> Option<String> {
        let has_tail = |latency: &&ShownLatency| {
            self.lag_us.count.min(latency.us.count) >= TAIL_VALUES_MIN
                && is_owned(latency.us.p999, self.lag_us.p999)
        };
        let owned: Vec<_> = self.latencies.iter().filter(has_tail).map(|of| of.name).collect();
        if !owned.is_empty() {
            return Some(self.lateness(&format!("p99.9 and above ({}) are", owned.join(", "))));
        }
        let judged = self.latencies.iter().find_map(|latency| {
            let ShownLatency { name, us, judged, .. } = latency;
            let stats = [("p999", us.p999, self.lag_us.p999), ("max", us.max, self.lag_us.max)];
            let owned = |(stat, us, lag_us): &(&str, u64, u64)| {
                judged.iter().any(|judged| judged == stat) && is_owned(*us, *lag_us)
            };
            stats.iter().find(|stat| owned(stat)).map(|(stat, ..)| format!("{name}.{stat}"))
        })?;
        Some(self.lateness(&format!("{judged}, which a threshold judges, is")))
    }

    fn lateness(&self, what: &str) -> String {
        let at = self.lag_most_at_ms.map(|ms| format!(" at {:.0} s", ms as f64 / 1000.0));
        let late = brief_micros(self.lag_us.max);
        format!("{what} the generator's own: it was late by {late}{}", at.unwrap_or_default())
    }
}

/// Reports whether a latency and the lag at the same percentile are both too large and so close
/// that more of the latency is lag than not. A lag that is far larger belongs to another step: a
/// latency contains all of its own lag.
pub fn is_owned(us: u64, lag_us: u64) -> bool {
    us.min(lag_us) > LAG_DEGRADED_US && lag_us >= us / 2 && us >= lag_us / 2
}

impl fmt::Display for Grade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Valid => "valid",
            Self::Degraded => "degraded",
            Self::Invalid => "invalid",
        })
    }
}

fn above<T: PartialOrd>(value: T, degraded: T, invalid: T) -> Option<Grade> {
    if value > invalid {
        Some(Grade::Invalid)
    } else {
        (value > degraded).then_some(Grade::Degraded)
    }
}

fn shortfall(what: &str, missing: u64, intended: u64) -> Option<(Grade, String)> {
    let share = missing as f64 / intended.max(1) as f64;
    let grade = above(share, SHORTFALL_DEGRADED, SHORTFALL_INVALID)?;
    let percent = share * 100.0;
    Some((
        grade,
        format!("the generator did not start {missing} of {intended} {what} ({percent:.1} %)"),
    ))
}

#[cfg(test)]
mod tests;
