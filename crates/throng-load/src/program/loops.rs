//! Loops, and when their turns begin.

use std::time::Duration;

use throng_base::time::nanos;

use crate::schedule::PacedTurns;

/// A loop of a class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Loop {
    /// Index of the loop's counter among the user's [`LOOPS_MAX`](super::LOOPS_MAX): its depth,
    /// from 0.
    pub slot: u8,
    /// Index of the first op of its body.
    pub body: u32,
    /// Index of the op after its `LoopEnd`.
    pub after: u32,
    /// Rule by which turns begin.
    pub turns: Turns,
}

/// Rule by which the turns of a loop begin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Turns {
    /// Turns by the clock: turn `k` is due at `pace.due(k)` after the loop began.
    Every {
        /// Due moments of the turns.
        pace: PacedTurns,
        /// Number of turns; `u64::MAX` for an endless loop.
        turns: u64,
    },
    /// This many turns, each after the end of the last one.
    Times(u64),
    /// Turns without a pause, until the loop has taken this long.
    For {
        /// Time after which no turn begins.
        span_ns: u64,
    },
    /// Turns without a pause, as long as a condition holds.
    While {
        /// Index of the [`Program::condition`](super::Program::condition).
        condition: u32,
    },
}

impl Loop {
    /// Returns the moment at which turn `turn` begins, in nanoseconds from the beginning of the
    /// loop, or `None` if there is no such turn. `passed_ns` is the age of the loop; an unpaced
    /// turn begins now.
    ///
    /// If the result is below `passed_ns` the turn is late, and its latencies count from its due
    /// moment.
    pub fn turn_begin_ns(&self, turn: u64, passed_ns: u64) -> Option<u64> {
        match self.turns {
            Turns::Every { pace, turns } => (turn < turns).then(|| nanos(pace.due(turn))),
            Turns::Times(times) => (turn < times).then_some(passed_ns),
            Turns::For { span_ns } => (turn == 0 || passed_ns < span_ns).then_some(passed_ns),
            // Its user knows whether it holds.
            Turns::While { .. } => Some(passed_ns),
        }
    }

    /// Returns the loop as one user has it: its turns deviate in their own way.
    pub fn of_user(self, seed: u64, user: u64) -> Self {
        match self.turns {
            Turns::Every { pace, turns } => {
                Self { turns: Turns::Every { pace: pace.of_user(seed, user), turns }, ..self }
            }
            _ => self,
        }
    }

    /// Returns the number of turns that have come due after `passed`, including one that is due at
    /// this very moment. Turns of an unpaced loop are never due.
    pub fn turns_due(&self, passed: Duration) -> u64 {
        match self.turns {
            Turns::Every { pace, turns } => pace.turns_due(passed).min(turns),
            Turns::Times(_) | Turns::For { .. } | Turns::While { .. } => 0,
        }
    }

    /// Reports whether the loop runs until its user is stopped.
    pub fn is_endless(&self) -> bool {
        matches!(self.turns, Turns::Every { turns: u64::MAX, .. })
    }

    /// Reports whether the op at `pc` is in the loop's body or is its `LoopEnd`.
    pub fn contains(&self, pc: u32) -> bool {
        (self.body..self.after).contains(&pc)
    }
}
