//! The messages that a user sends, as far as the program tells them before a run.

use std::time::Duration;

use super::loops::Turns;

/// Messages that a user sends in ops that follow one another. Where the program has a choice, this
/// is an upper bound.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct MessageSum {
    /// Messages of a pass, outside of paced loops.
    pub(crate) once: f64,
    /// Messages of a pass in paced loops that end.
    pub(crate) paced: f64,
    /// Highest rate in one of these loops, per second.
    pub(crate) paced_per_s: f64,
    /// Rate of a loop that runs as long as its user, per second.
    pub(crate) endless_per_s: f64,
    /// True if the user sends as fast as the server answers.
    pub(crate) is_unbounded: bool,
}

impl MessageSum {
    /// The sum of no ops.
    pub(crate) const NONE: Self =
        Self { once: 0.0, paced: 0.0, paced_per_s: 0.0, endless_per_s: 0.0, is_unbounded: false };
    /// One message.
    pub(crate) const ONE: Self = Self { once: 1.0, ..Self::NONE };

    /// Returns the sum of these ops and those of `next`.
    pub(crate) fn then(self, next: Self) -> Self {
        Self { once: self.once + next.once, paced: self.paced + next.paced, ..self.or(next) }
    }

    /// Returns the bounds of these ops or those of `other`.
    pub(crate) fn or(self, other: Self) -> Self {
        Self {
            once: self.once.max(other.once),
            paced: self.paced.max(other.paced),
            paced_per_s: self.paced_per_s.max(other.paced_per_s),
            endless_per_s: self.endless_per_s.max(other.endless_per_s),
            is_unbounded: self.is_unbounded || other.is_unbounded,
        }
    }

    /// Returns the sum of a loop with these ops as its body, whose turn takes at least `turn_min`.
    pub(crate) fn repeated(self, turns: &Turns, turn_min: Option<Duration>) -> Self {
        let turn = self.once + self.paced;
        // A turn that waits has a rate, whatever the server does.
        let free_per_s =
            turn_min.filter(|turn| !turn.is_zero()).map(|min| turn / min.as_secs_f64());
        let paced = |messages: f64, per_s: f64| Self {
            once: 0.0,
            paced: messages,
            paced_per_s: per_s.max(self.paced_per_s),
            ..self
        };
        let endless =
            |per_s: f64| Self { endless_per_s: per_s.max(self.endless_per_s), ..paced(0.0, 0.0) };
        match *turns {
            _ if turn == 0.0 => self,
            Turns::Every { pace, turns: u64::MAX } => endless(turn * pace.peak_per_s()),
            Turns::Every { pace, turns } => paced(turn * turns as f64, turn * pace.peak_per_s()),
            Turns::Times(times) => {
                let times = times as f64;
                Self { once: self.once * times, paced: self.paced * times, ..self }
            }
            Turns::For { .. } | Turns::While { .. } if free_per_s.is_none() => {
                Self { is_unbounded: true, ..self }
            }
            Turns::For { span_ns } => {
                let per_s = free_per_s.unwrap_or_default();
                paced(per_s * Duration::from_nanos(span_ns).as_secs_f64(), per_s)
            }
            Turns::While { .. } => endless(free_per_s.unwrap_or_default()),
        }
    }
}
