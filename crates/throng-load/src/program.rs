//! A scenario compiled for the hot path: one flat list of small ops, with everything parsed.
//!
//! A user is a place in this list and a few counters. Payloads, patterns and loops stand in side
//! tables that all users of a core share; no op allocates.

mod channel_request;
mod compile;
mod dialogue;
mod handshake;
mod matcher;
mod message;

pub use crate::scenario::{
    Broadcast, CloseAction, LOOPS_MAX, OnError, Probe, Protocol, Template, TemplateVars,
};
pub use channel_request::{ChannelRequest, ChannelRequestKind, TopicTemplate};
pub use dialogue::NextAnswer;
pub use handshake::Handshake;
pub use matcher::{MatchProgress, Matcher};
pub use message::{IncomingMessage, MessagePattern};

use std::time::Duration;

use throng_base::Prng;

use crate::schedule::PacedTurns;
use dialogue::Dialogue;

/// All classes of a scenario, compiled.
#[derive(Clone, Debug)]
pub struct Program {
    ops: Vec<Op>,
    templates: Vec<Template>,
    matchers: Vec<Matcher>,
    loops: Vec<Loop>,
    protocol: Protocol,
    handshakes: Vec<Handshake>,
    patterns: Vec<MessagePattern>,
    topics: Vec<TopicTemplate>,
    requests: Vec<ChannelRequest>,
    probe: Option<Probe>,
    classes: Vec<ProgramClass>,
    weight_total: u64,
    /// Prime to `weight_total`, so that multiples of it visit every place once.
    stride: u64,
    dialogue: Dialogue,
}

/// A class of users and where its ops begin.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgramClass {
    /// As in the scenario.
    pub name: String,
    /// The place of its first op.
    pub entry: u32,
    /// What becomes of a user to whom an error happened.
    pub on_error: OnError,
    /// The classes before this one and this one together weigh this much.
    weight_end: u64,
}

/// One thing that a user does. Spans are nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Op {
    /// Open the connection.
    Connect {
        /// After this long without success it is an error.
        timeout_ns: u64,
        /// The index of its [`Program::handshake`]; 0 and of no meaning over plain TCP.
        handshake: u32,
    },
    /// Render [`Program::template`] and send it.
    Send {
        /// Its index.
        template: u32,
        /// As what.
        frame: Frame,
    },
    /// Send random bytes.
    SendRandom {
        /// How many.
        bytes: u32,
    },
    /// Feed what arrives to [`Program::matcher`] until it has matched.
    ExpectBytes {
        /// Its index.
        matcher: u32,
        /// After this long without a match it is an error.
        timeout_ns: u64,
    },
    /// Wait for a whole message that is as [`Program::pattern`] says.
    ExpectMessage {
        /// Its index.
        pattern: u32,
        /// After this long without it it is an error.
        timeout_ns: u64,
    },
    /// Join, push or leave as [`Program::ask`] says.
    Request {
        /// Its index.
        request: u32,
    },
    /// Think; [`jittered`] says how long this time.
    Wait {
        /// The middle.
        span_ns: u64,
        /// The share by which it varies either way, 0 to 1.
        jitter: f32,
    },
    /// Begin [`Program::looping`]: its counter is set to turn 0, which is due now.
    LoopBegin {
        /// Its index.
        index: u32,
    },
    /// The turn has ended: go back to the body for the next one, or on.
    LoopEnd {
        /// The index of its loop.
        index: u32,
    },
    /// Keep the connection until the run ends.
    Stay,
    /// Close the connection.
    Close {
        /// How.
        how: CloseAction,
    },
    /// The user has ended. A connection that is still open is closed.
    End,
}

/// What a user may wait for, as latencies tell it apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LatencyKind {
    /// A connection.
    Connect,
    /// The answer to a message.
    Message,
    /// The answer to a join.
    Join,
    /// The answer to a push.
    Push,
}

/// What becomes of the bytes of a `send`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame {
    /// They are a part of the stream.
    Raw,
    /// They are a text message.
    Text,
    /// They are a binary message.
    Binary,
}

/// A loop of some class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Loop {
    /// Which of the user's [`LOOPS_MAX`] counters is this loop's: its depth, from 0.
    pub slot: u8,
    /// The place of the first op of its body.
    pub body: u32,
    /// The place behind its `LoopEnd`.
    pub after: u32,
    /// When turns begin and when there are no more.
    pub turns: Turns,
}

/// When the turns of a loop begin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Turns {
    /// Turn `k` is due at `pace.due(k)` after the loop began; there are `turns` of them.
    Every {
        /// When each is due.
        pace: PacedTurns,
        /// `u64::MAX` for a loop that ends with its user.
        turns: u64,
    },
    /// The next turn begins when the last has ended; there are this many.
    Times(u64),
    /// The next turn begins when the last has ended, unless the loop began this long ago.
    For {
        /// The length of the loop.
        span_ns: u64,
    },
}

impl Loop {
    /// When turn `turn` begins, as a distance in nanoseconds from the beginning of the loop, or `None` when there is
    /// no such turn. `passed_ns` is how long ago the loop began; an unpaced turn begins now.
    ///
    /// The result may lie before `passed_ns`: the turn is late, and its latencies count from when it was due.
    pub fn turn_begin_ns(&self, turn: u64, passed_ns: u64) -> Option<u64> {
        match self.turns {
            Turns::Every { pace, turns } => (turn < turns).then(|| nanos(pace.due(turn))),
            Turns::Times(times) => (turn < times).then_some(passed_ns),
            Turns::For { span_ns } => (turn == 0 || passed_ns < span_ns).then_some(passed_ns),
        }
    }

    /// Returns how many turns have come due after `passed`, the one that is due at this very moment
    /// included. The turns of an unpaced loop are never due.
    pub fn turns_due(&self, passed: Duration) -> u64 {
        match self.turns {
            Turns::Every { pace, turns } => pace.turns_due(passed).min(turns),
            Turns::Times(_) | Turns::For { .. } => 0,
        }
    }

    /// Whether it goes on until its user is stopped.
    pub fn is_endless(&self) -> bool {
        matches!(self.turns, Turns::Every { turns: u64::MAX, .. })
    }

    /// Whether the op at `pc` is in its body, or the end of it.
    pub fn contains(&self, pc: u32) -> bool {
        (self.body..self.after).contains(&pc)
    }
}

impl Program {
    /// The op at `pc`.
    pub fn op(&self, pc: u32) -> Op {
        self.ops[pc as usize]
    }

    /// All ops, class after class.
    pub fn ops(&self) -> &[Op] {
        &self.ops
    }

    /// The message of an [`Op::Send`].
    pub fn template(&self, index: u32) -> &Template {
        &self.templates[index as usize]
    }

    /// What an [`Op::Expect`] waits for.
    pub fn matcher(&self, index: u32) -> &Matcher {
        &self.matchers[index as usize]
    }

    /// The loop of an [`Op::LoopBegin`] or [`Op::LoopEnd`].
    pub fn loop_at(&self, index: u32) -> &Loop {
        &self.loops[index as usize]
    }

    /// Returns the places of the loops among which are all that [contain](Loop::contains) `pc`.
    pub fn loops_near(&self, pc: u32) -> std::ops::Range<u32> {
        // They stand in the order of their bodies, each behind the one that it is in.
        let end = self.loops.partition_point(|looping| looping.body <= pc);
        let outermost = self.loops[..end].iter().rposition(|looping| looping.slot == 0);
        outermost.unwrap_or(end) as u32..end as u32
    }

    /// Returns what the op at `pc` asks the server for.
    pub fn latency_kind_at(&self, pc: u32) -> Option<LatencyKind> {
        match self.op(pc) {
            Op::Connect { .. } => Some(LatencyKind::Connect),
            Op::Send { .. }
            | Op::SendRandom { .. }
            | Op::ExpectBytes { .. }
            | Op::ExpectMessage { .. } => Some(LatencyKind::Message),
            Op::Request { request: ask } => match self.request(ask).kind {
                ChannelRequestKind::Join => Some(LatencyKind::Join),
                ChannelRequestKind::Push => Some(LatencyKind::Push),
                ChannelRequestKind::Leave => None,
            },
            Op::Wait { .. }
            | Op::LoopBegin { .. }
            | Op::LoopEnd { .. }
            | Op::Stay
            | Op::Close { .. }
            | Op::End => None,
        }
    }

    /// Returns what a turn of loop `index` asks the server for first.
    pub fn latency_kind_of_turn(&self, index: u32) -> Option<LatencyKind> {
        let looping = self.loop_at(index);
        (looping.body..looping.after).find_map(|pc| self.latency_kind_at(pc))
    }

    /// What is spoken on every connection.
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// How an [`Op::Connect`] asks for its WebSocket.
    pub fn handshake(&self, index: u32) -> &Handshake {
        &self.handshakes[index as usize]
    }

    /// How often a user says that it is there, where users do: the shortest of all.
    pub fn heartbeat(&self) -> Option<Duration> {
        self.handshakes.iter().filter_map(|handshake| handshake.heartbeat).min()
    }

    /// What an [`Op::Await`] waits for.
    pub fn pattern(&self, index: u32) -> &MessagePattern {
        &self.patterns[index as usize]
    }

    /// What an [`Op::Ask`] asks.
    pub fn request(&self, index: u32) -> &ChannelRequest {
        &self.requests[index as usize]
    }

    /// What an [`Ask`] is about.
    pub fn topic(&self, index: u16) -> &TopicTemplate {
        &self.topics[usize::from(index)]
    }

    /// What is sent to everybody now and then.
    pub fn probe(&self) -> Option<&Probe> {
        self.probe.as_ref()
    }

    /// The classes in the order of the scenario.
    pub fn classes(&self) -> &[ProgramClass] {
        &self.classes
    }

    /// Whether any step of class `class` waits for an answer.
    pub fn expects(&self, class: usize) -> bool {
        self.ops_of(class).any(|op| matches!(op, Op::ExpectBytes { .. } | Op::ExpectMessage { .. }))
    }

    /// Whether all such steps of class `class` pass over messages that they do not wait for.
    pub fn skips_others(&self, class: usize) -> bool {
        self.ops_of(class).all(|op| match op {
            Op::ExpectMessage { pattern, .. } => self.pattern(*pattern).skips_others(),
            op => !matches!(op, Op::ExpectBytes { .. }),
        })
    }

    /// Whether users of class `class` end their connections by a reset, and never in another way.
    pub fn resets(&self, class: usize) -> bool {
        let mut closes = self.ops_of(class).filter_map(|op| match op {
            Op::Close { how } => Some(*how),
            _ => None,
        });
        closes.next() == Some(CloseAction::Reset) && closes.all(|how| how == CloseAction::Reset)
    }

    fn ops_of(&self, class: usize) -> impl Iterator<Item = &Op> {
        let entry = self.classes[class].entry as usize;
        self.ops[entry..].iter().take_while(|op| **op != Op::End)
    }

    /// The longest message of any class, in bytes.
    pub fn message_bytes_max(&self) -> usize {
        let random = self.ops.iter().map(|op| match op {
            Op::SendRandom { bytes } => *bytes as usize,
            _ => 0,
        });
        let templates = self.templates.iter().map(Template::bytes_max);
        let asks = self.requests.iter().map(|ask| {
            let topic = self.topic(ask.topic).name.bytes_max();
            topic + ask.event.bytes_max() + ask.payload.bytes_max()
        });
        random.chain(templates).chain(asks).max().unwrap_or(0)
    }

    /// The index of the class of user `user`. Of as many users as all weights together, each class has exactly its
    /// weight, and the classes are mixed rather than one after another.
    ///
    /// Each such block of users begins elsewhere in the cycle: a core takes every n-th user, and is to have
    /// its share of every class whatever n and the weights have in common.
    pub fn class_of(&self, user: u64) -> usize {
        let (block, turn) = (user / self.weight_total, user % self.weight_total);
        let begin = Prng::derive(0, block).below(self.weight_total);
        let place = u128::from(turn) * u128::from(self.stride) + u128::from(begin);
        let place = (place % u128::from(self.weight_total)) as u64;
        self.classes.partition_point(|class| class.weight_end <= place)
    }
}

/// A span that varies by the share `jitter` either way, evenly distributed.
pub fn jittered(span_ns: u64, jitter: f32, prng: &mut Prng) -> u64 {
    if jitter == 0.0 {
        return span_ns;
    }
    let factor = 1.0 + f64::from(jitter) * (2.0 * prng.unit() - 1.0);
    (span_ns as f64 * factor) as u64
}

/// Nanoseconds; more than 584 years count as that.
fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

const _: () = assert!(size_of::<Op>() <= 16, "ops are small: a user fetches one per step");

#[cfg(test)]
mod tests;
