//! Questions that never got an answer, while the others were answered at once.

use throng_measure::{ErrorKind, Evidence, LatencySummary, LoadCounters};
use throng_report::Summary;
use throng_report::render::percent;

use super::{
    answers_incomplete, fds_exhausted, network_lost, server_lost, server_stalled, serves_only_some,
};
use crate::counted::part_of;
use crate::first_error::FirstError;
use crate::history::Sample;
use crate::impact::FAILURES_ONE_IN;
use crate::loss_onset::{AskedInInterval, LossOnset};
use crate::run_view::{Growth, RunView};

/// Answers that a server which is otherwise fast did not give.
pub(super) struct LostAnswers {
    /// What users asked.
    pub(super) questions: &'static Questions,
    /// Waits that users gave up.
    growth: Growth,
    /// Questions that never got an answer: those, and what users still waited for at the end, for
    /// much longer than an answer takes.
    pub(super) lost: u64,
    /// Questions that were asked.
    pub(super) asked: u64,
    /// 99 % of the answers took at most this long, from when their question was sent.
    pub(super) p99_us: u64,
    p50_us: u64,
    /// True if nearly all answers were much faster than users gave up.
    is_fast: bool,
    /// Questions and answers of each interval.
    pub(super) intervals: Vec<IntervalAnswers>,
}

/// Questions of a kind, and the numbers about them.
pub(super) struct Questions {
    /// Name of one, and of many.
    pub(super) one: &'static str,
    pub(super) many: &'static str,
    /// The kind of error that the generator counts.
    pub(super) error: ErrorKind,
    totals: fn(&Summary) -> Option<Totals>,
    asked: fn(&LoadCounters) -> u64,
    answered: fn(&LoadCounters) -> u64,
}

/// Questions of a whole run.
struct Totals {
    asked: u64,
    answered: u64,
    /// Questions without an answer at the end.
    waiting: u64,
    latency_us: LatencySummary,
    unanswered_us: LatencySummary,
}

/// Questions and answers of one interval.
#[derive(Clone, Copy, Debug)]
pub(super) struct IntervalAnswers {
    at_ms: u64,
    asked: u64,
    answered: u64,
    seconds: f64,
}

impl LostAnswers {
    /// Returns the lost answers, if they are more than chance, and no stall, no queue, no end of
    /// the server and no wrong answer explains them.
    pub(super) fn of(run: &RunView<'_>) -> Option<Self> {
        Self::all(run).find(|lost| lost.is_fast && !lost.is_of_queue())
    }

    /// Returns the answers that never came because their questions stayed behind in a queue.
    pub(super) fn of_queue(run: &RunView<'_>) -> Option<Self> {
        Self::all(run).find(Self::is_of_queue)
    }

    fn all(run: &RunView<'_>) -> impl Iterator<Item = Self> {
        QUESTIONS.iter().filter_map(|questions| Self::of_kind(run, questions))
    }

    /// Reports whether the server answered a constant number a second, fewer than were asked, and
    /// these after very different waits: the others were behind them in a queue.
    fn is_of_queue(&self) -> bool {
        let is_wide = self.p99_us >= QUEUE_US && self.p99_us >= self.p50_us * QUEUE_TIMES;
        let whole: Vec<_> = self.intervals.iter().filter(|each| each.asked > 0).collect();
        let Some(whole) = whole.get(1..whole.len().saturating_sub(1)) else { return false };
        let rates = || whole.iter().map(|each| each.answered_rate());
        let (least, most) = (rates().fold(f64::MAX, f64::min), rates().fold(0.0, f64::max));
        let behind = whole.iter().filter(|each| each.answered < each.asked).count();
        is_wide
            && whole.len() >= QUEUE_INTERVALS_MIN
            && most <= least * FLAT_TIMES
            && behind * 4 >= whole.len() * 3
    }

    /// Returns the questions and the answers a second, while there were questions.
    pub(super) fn rates(&self) -> (f64, f64) {
        let while_asked = || self.intervals.iter().filter(|each| each.asked > 0);
        let seconds = while_asked().map(|each| each.seconds).sum::<f64>().max(1.0);
        let sum = |of: fn(&IntervalAnswers) -> u64| while_asked().map(of).sum::<u64>() as f64;
        (sum(|each| each.asked) / seconds, sum(|each| each.answered) / seconds)
    }

    fn of_kind(run: &RunView<'_>, questions: &'static Questions) -> Option<Self> {
        let growth = run.errors(questions.error)?;
        let Totals { asked, answered, waiting, latency_us, unanswered_us } =
            (questions.totals)(run.summary)?;
        let is_few = growth.by() < LOST_MIN || growth.by().saturating_mul(FAILURES_ONE_IN) < asked;
        let waited_us = unanswered_us.p50;
        let is_fast = |us: u64| answered > 0 && us.saturating_mul(FAST_TIMES) < waited_us;
        // A question that waits when the run ends is as old as one that was given up, but for its
        // last moments.
        let lost = asked.saturating_sub(answered).min(growth.by() + waiting).max(growth.by());
        // The rules below read the whole run.
        if is_few || !is_fast(latency_us.p50) {
            return None;
        }
        let first = FirstError::of(run, questions.error);
        let is_explained = (first.is_some_and(|first| first.has_skipped())
            && !were_skipped_beside(run))
            || run.summary.generator.lag_us.p99.saturating_mul(LAG_TIMES) >= waited_us
            || server_lost::ended(run).is_some()
            || server_stalled::explains_waits_of(run, waited_us)
            || network_lost::RULE.find(run).is_some()
            || answers_incomplete::RULE.find(run).is_some()
            || serves_only_some::explains_waits(run)
            || fds_exhausted::RULE.find(run).is_some();
        if is_explained {
            return None;
        }
        let steps = run.steps().filter_map(|step| IntervalAnswers::of(step, questions));
        let intervals = steps.collect();
        let (p50_us, p99_us) = (latency_us.p50, latency_us.p99);
        let is_fast = is_fast(p99_us);
        Some(Self { questions, growth, lost, asked, p99_us, p50_us, is_fast, intervals })
    }

    /// Formats how many of how many questions got no answer: `20 of 1.07k messages (1.87 %)`.
    pub(super) fn show(&self) -> String {
        let Questions { one, many, .. } = self.questions;
        format!("{} ({})", part_of(self.lost, self.asked, one, many), percent(self.share()))
    }

    /// Returns the share of the questions that never got an answer.
    pub(super) fn share(&self) -> f64 {
        self.lost as f64 / self.asked.max(1) as f64
    }

    /// Reports whether the same share was lost all the time, as far as chance allows: neighbouring
    /// intervals together have enough lost answers to tell.
    pub(super) fn are_even(&self) -> bool {
        let (mut groups, mut spread) = (0, 0.0);
        let (mut asked, mut lost) = (0, 0);
        for interval in &self.intervals {
            asked += interval.asked;
            lost += interval.lost();
            let expected = asked as f64 * self.share();
            if expected >= GROUP_MIN {
                groups += 1;
                spread += (lost as f64 - expected).powi(2) / expected;
                (asked, lost) = (0, 0);
            }
        }
        // Of counts at random, the mean of these terms is one.
        groups >= GROUPS_MIN && spread <= SPREAD_MOST * groups as f64
    }

    /// Reports whether the losses differ less from interval to interval than chance makes them.
    pub(super) fn vary_less_than_chance(&self) -> bool {
        let share = self.share();
        let of_interval = |interval: &IntervalAnswers| {
            let by_chance = interval.asked as f64 * share * (1.0 - share);
            let distance = interval.lost() as f64 - interval.asked as f64 * share;
            (by_chance >= 1.0).then(|| distance.powi(2) / by_chance)
        };
        let spreads: Vec<_> = self.intervals.iter().filter_map(of_interval).collect();
        let spread: f64 = spreads.iter().sum();
        spreads.len() >= REGULAR_MIN && spread <= SPREAD_REGULAR * spreads.len() as f64
    }

    /// Returns the moment from which answers are lost, if none were before.
    pub(super) fn onset(&self) -> Option<LossOnset> {
        let asked: Vec<_> = self.intervals.iter().map(IntervalAnswers::asked_in_interval).collect();
        LossOnset::of(&asked)
    }

    pub(super) fn evidence(&self) -> Evidence {
        self.growth.evidence()
    }
}

impl IntervalAnswers {
    fn of((before, now): (&Sample, &Sample), questions: &Questions) -> Option<Self> {
        let (before, load) = (before.load()?, now.load()?);
        let grown = load.counters.since(&before.counters);
        let seconds = now.interval.span_ms as f64 / 1000.0;
        let (asked, answered) = ((questions.asked)(&grown), (questions.answered)(&grown));
        Some(Self { at_ms: now.interval.at_ms, asked, answered, seconds })
    }

    /// Returns the questions without an answer in the same interval. The answers are fast: hardly
    /// any comes in the next one.
    fn lost(&self) -> u64 {
        self.asked.saturating_sub(self.answered)
    }

    fn asked_in_interval(&self) -> AskedInInterval {
        let span_ms = (self.seconds * 1000.0) as u64;
        AskedInInterval { at_ms: self.at_ms, span_ms, asked: self.asked, arrived: self.answered }
    }

    pub(super) fn lost_share(&self) -> f64 {
        self.lost() as f64 / self.asked.max(1) as f64
    }

    /// Returns the questions of these intervals, and those without an answer in the same interval.
    pub(super) fn sum<'i>(all: impl Iterator<Item = &'i Self>) -> (u64, u64) {
        all.fold((0, 0), |(asked, lost), each| (asked + each.asked, lost + each.lost()))
    }

    pub(super) fn asked_rate(&self) -> f64 {
        self.asked as f64 / self.seconds
    }

    pub(super) fn answered_rate(&self) -> f64 {
        self.answered as f64 / self.seconds
    }
}

/// Reports whether waits that were given up skipped only what arrives in each wait: most waits got
/// what they expected, and far more messages arrive than these waits could have had answers.
pub(super) fn were_skipped_beside(run: &RunView<'_>) -> bool {
    let given_up = run.summary.errors.get(ErrorKind::ExpectTimeout);
    let message = &run.summary.message;
    message.answered >= given_up && message.unasked >= given_up.saturating_mul(BESIDE_TIMES)
}

/// How many times as many messages as waits that were given up arrive beside the answers, if those
/// waits skipped what arrives in each.
const BESIDE_TIMES: u64 = 4;

/// The time of the slowest answers, and how many times as long as the median they take, from which
/// they waited in a queue.
const QUEUE_US: u64 = 100_000;
const QUEUE_TIMES: u64 = 5;

/// The fewest intervals, and the largest number of answers a second in times the smallest, that
/// show a queue.
const QUEUE_INTERVALS_MIN: usize = 4;
const FLAT_TIMES: f64 = 1.15;

/// The questions that users ask.
static QUESTIONS: [Questions; 2] = [
    Questions {
        one: "message",
        many: "messages",
        error: ErrorKind::ExpectTimeout,
        totals: |summary| {
            let it = &summary.message;
            Some(Totals {
                asked: it.sent.max(it.expected),
                answered: it.answered,
                waiting: it.waiting,
                // The time before a message was sent is not the server's.
                latency_us: if it.from_send_us.count > 0 { it.from_send_us } else { it.latency_us },
                unanswered_us: it.unanswered_us,
            })
        },
        asked: |load| load.messages_sent,
        answered: |load| load.messages_answered,
    },
    Questions {
        one: "request",
        many: "HTTP requests",
        error: ErrorKind::HttpTimeout,
        totals: |summary| {
            let it = summary.http.as_ref()?;
            Some(Totals {
                asked: it.started,
                answered: it.responses(),
                waiting: it.waiting,
                latency_us: it.latency_us,
                unanswered_us: it.unanswered_us,
            })
        },
        asked: |load| load.http_started,
        answered: LoadCounters::http_answers,
    },
];

/// The fewest lost answers that are a pattern.
const LOST_MIN: u64 = 5;

/// How many times the generator's lag must fit at most into what users waited: more, and the lag
/// explains it.
const LAG_TIMES: u64 = 2;

/// The fewest lost answers of a group of intervals, and the fewest groups, that show whether they
/// are even; and the largest mean of their squared distances, in what chance makes them.
const GROUP_MIN: f64 = 5.0;
const GROUPS_MIN: usize = 4;
const SPREAD_MOST: f64 = 2.5;

/// The largest mean of the squared distances that shows a regularity, and the fewest intervals that
/// do: of counts at random the mean is one, and as small in one of a hundred runs.
const SPREAD_REGULAR: f64 = 0.2;
const REGULAR_MIN: usize = 8;

/// How many times as long as the slowest answers users waited before they gave up.
const FAST_TIMES: u64 = 4;
