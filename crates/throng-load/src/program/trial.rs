//! A program cut to one pass, for a user that is watched (`throng try`).

use std::time::Duration;

use super::{OnError, Op, Program, Turns, nanos};

impl Program {
    /// Cuts the program so that each user comes to its end: loops end after `turns` turns, `stay`
    /// lasts for [`STAY_SPAN`], a wait for other users takes no time, and no user begins again
    /// after an error. Without `waits`, a `wait` takes no time, and turns follow one another.
    pub(crate) fn cut_to_trial(&mut self, turns: u64, waits: bool) {
        for looping in &mut self.loops {
            looping.turns = match looping.turns {
                Turns::Every { pace, turns: all } if waits => {
                    Turns::Every { pace, turns: all.min(turns) }
                }
                Turns::Every { turns: all, .. } => Turns::Times(all.min(turns)),
                Turns::Times(all) => Turns::Times(all.min(turns)),
                Turns::For { .. } => Turns::Times(turns),
                // The user ends it.
                Turns::While { condition } => Turns::While { condition },
            };
        }
        for op in &mut self.ops {
            match op {
                Op::Stay => *op = Op::Wait { span_ns: nanos(STAY_SPAN), jitter: 0.0 },
                // There are no others.
                Op::AwaitCue { .. } => *op = Op::PassCue,
                Op::Wait { span_ns, .. } if !waits => *span_ns = 0,
                Op::Think { .. } if !waits => *op = Op::Wait { span_ns: 0, jitter: 0.0 },
                _ => {}
            }
        }
        for class in &mut self.classes {
            if class.on_error == OnError::Restart {
                class.on_error = OnError::Stop;
            }
        }
    }
}

/// Time that a `stay` lasts in a trial: enough to see what the server sends unasked.
pub const STAY_SPAN: Duration = Duration::from_secs(1);
