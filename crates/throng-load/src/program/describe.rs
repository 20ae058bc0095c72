//! Sentences about ops, for people.

use std::time::Duration;

use throng_base::units::show_duration;

use super::{Op, Program, Turns};
use crate::excerpt::Excerpt;
use crate::protocols::TCP_CONNECTION;

impl Program {
    /// Describes what a user at `pc` expects of the server.
    pub(crate) fn describe_expected(&self, pc: u32, excerpt: Excerpt<'_>) -> String {
        let shown = |part: &[u8]| excerpt.written(part);
        match self.op(pc) {
            Op::ExpectBytes { pattern, .. } => self.bytes_pattern(pattern).matcher.describe(shown),
            Op::ExpectMessage { pattern, .. } => self.pattern(pattern).describe(shown),
            Op::Connect { .. } => self.protocol().handshake.unwrap_or(TCP_CONNECTION).to_owned(),
            Op::AwaitCue { cue, .. } => self.cues()[usize::from(cue)].describe(),
            _ => match self.protocol_op(pc) {
                Some(op) => op.describe(&shown),
                None => "an open connection".to_owned(),
            },
        }
    }

    /// Describes what a user at `pc` expects of the server, and the time that the server has.
    pub(crate) fn describe_awaited(&self, pc: u32, excerpt: Excerpt<'_>) -> String {
        self.describe_expected(pc, excerpt) + &self.describe_timeout(pc)
    }

    /// Returns the time-out of the op at `pc` in words after a sentence: ` within 5s`.
    pub(crate) fn describe_timeout(&self, pc: u32) -> String {
        let timeout = match self.op(pc) {
            Op::ExpectBytes { timeout_ns, .. }
            | Op::ExpectMessage { timeout_ns, .. }
            | Op::Connect { timeout_ns, .. } => Duration::from_nanos(timeout_ns),
            Op::AwaitCue { timeout_ns, .. } if timeout_ns < u64::MAX => {
                Duration::from_nanos(timeout_ns)
            }
            _ => match self.protocol_op(pc).and_then(|op| op.timeout()) {
                Some(timeout) => timeout,
                None => return String::new(),
            },
        };
        format!(" within {}", show_duration(timeout))
    }

    /// Describes what the op at `pc` does, in a few words after the name of its step; empty if the
    /// name says it.
    pub(crate) fn describe_op(&self, pc: u32, excerpt: Excerpt<'_>) -> String {
        match self.op(pc) {
            Op::Connect { .. } => self.describe_timeout(pc).trim_start().to_owned(),
            Op::ExpectBytes { .. } => self.describe_awaited(pc, excerpt),
            Op::ExpectMessage { pattern, .. } => {
                let others = match self.pattern(pattern).skips_others() {
                    true => ", other messages may come before it",
                    false => "",
                };
                self.describe_awaited(pc, excerpt) + others
            }
            Op::AwaitCue { .. } => self.describe_awaited(pc, excerpt),
            Op::PassCue => "goes on at once: a user of a trial is alone".to_owned(),
            Op::Signal { cue } => self.cues()[usize::from(cue)].name.clone(),
            Op::SendRandom { bytes } => format!("{bytes} random bytes"),
            Op::OfProtocol { .. } => match self.describe_timeout(pc).as_str() {
                "" => String::new(),
                within => self.describe_expected(pc, excerpt) + within,
            },
            Op::LoopBegin { index } => match self.loop_at(index).turns {
                Turns::Every { turns: u64::MAX, .. } => "without an end".to_owned(),
                Turns::Every { turns, .. } | Turns::Times(turns) => match turns {
                    1 => "one turn".to_owned(),
                    turns => format!("{turns} turns"),
                },
                Turns::For { span_ns } => {
                    format!("for {}", show_duration(Duration::from_nanos(span_ns)))
                }
                Turns::While { condition } => {
                    format!("while {}", excerpt.word(&self.condition(condition).to_string()))
                }
            },
            Op::Branch { condition, .. } => excerpt.word(&self.condition(condition).to_string()),
            Op::AwaitTurn { limit } => {
                format!("its turn by the limit `{}`", self.limits()[usize::from(limit)])
            }
            Op::Send { .. }
            | Op::Set { .. }
            | Op::Choose { .. }
            | Op::Jump { .. }
            | Op::Think { .. }
            | Op::TransactionBegin { .. }
            | Op::TransactionEnd { .. }
            | Op::Wait { .. }
            | Op::LoopEnd { .. }
            | Op::Stay
            | Op::Close { .. }
            | Op::End => String::new(),
        }
    }
}
