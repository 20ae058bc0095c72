//! Questions that never got an answer, while the others were answered at once.

use throng_report::{Evidence, Grade};

use super::{server_lost, server_stalled};
use crate::first_error::FirstError;
use crate::history::Sample;
use crate::impact::FAILURES_ONE_IN;
use crate::run_view::{Growth, RunView};

/// Answers that a server which is otherwise fast did not give.
pub(super) struct LostAnswers {
    /// Waits that users gave up.
    growth: Growth,
    /// Questions that were asked.
    pub(super) asked: u64,
    /// 99 % of the answers that came took at most this long.
    pub(super) p99_us: u64,
    /// Questions and answers of each interval.
    pub(super) intervals: Vec<IntervalAnswers>,
}

/// Questions and answers of one interval.
#[derive(Clone, Copy, Debug)]
pub(super) struct IntervalAnswers {
    asked: u64,
    answered: u64,
    seconds: f64,
}

impl LostAnswers {
    /// Returns the lost answers, if they are more than chance, and no stall, no end of the server
    /// and no wrong answer explains them.
    pub(super) fn of(run: &RunView<'_>) -> Option<Self> {
        let growth = run.errors(KIND)?;
        let message = &run.summary.message;
        let asked = message.sent.max(message.expected);
        let is_few = growth.by() < LOST_MIN || growth.by().saturating_mul(FAILURES_ONE_IN) < asked;
        let waited_us = message.unanswered_us.p50;
        let is_fast =
            message.answered > 0 && message.latency_us.p99.saturating_mul(FAST_TIMES) < waited_us;
        let others = FirstError::of(run, KIND).is_some_and(|first| first.got.starts_with("others"));
        let is_explained = others
            || run.summary.generator.lag_grade != Grade::Valid
            || server_lost::ended(run).is_some()
            || server_stalled::RULE.find(run).is_some();
        if is_few || !is_fast || is_explained {
            return None;
        }
        let intervals = run.steps().filter_map(IntervalAnswers::of).collect();
        Some(Self { growth, asked, p99_us: message.latency_us.p99, intervals })
    }

    /// Returns the number of lost answers.
    pub(super) fn lost(&self) -> u64 {
        self.growth.by()
    }

    pub(super) fn evidence(&self) -> Evidence {
        self.growth.evidence()
    }
}

impl IntervalAnswers {
    fn of((before, now): (&Sample, &Sample)) -> Option<Self> {
        let (before, load) = (before.load()?, now.load()?);
        let grown = load.counters.since(&before.counters);
        let seconds = now.interval.span_ms as f64 / 1000.0;
        Some(Self { asked: grown.messages_sent, answered: grown.messages_answered, seconds })
    }

    /// Returns the share of questions without an answer in the same interval. The answers are fast:
    /// hardly any comes in the next one.
    pub(super) fn lost_share(&self) -> f64 {
        self.asked.saturating_sub(self.answered) as f64 / self.asked.max(1) as f64
    }

    pub(super) fn asked_rate(&self) -> f64 {
        self.asked as f64 / self.seconds
    }

    pub(super) fn answered_rate(&self) -> f64 {
        self.answered as f64 / self.seconds
    }
}

/// The kind of error that the generator counts.
const KIND: &str = "expect_timeout";

/// The fewest lost answers that are a pattern.
const LOST_MIN: u64 = 5;

/// How many times as long as the slowest answers users waited before they gave up.
const FAST_TIMES: u64 = 4;
