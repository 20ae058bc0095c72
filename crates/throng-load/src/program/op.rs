//! The operations of a program, and what each of them means for those around it.

use std::time::Duration;
use throng_measure::Operation;

use super::message_sum::MessageSum;
use super::step_index::StepIndex;

/// One operation of a user. Spans are in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Op {
    /// Opens the connection.
    Connect {
        /// Time-out of the connect.
        timeout_ns: u64,
        /// Index of the handshake in the program; 0 and unused on plain TCP.
        handshake: u32,
    },
    /// Renders and sends a message.
    Send {
        /// Index of the [`Program::template`](super::Program::template).
        template: u32,
        /// Framing of the bytes.
        frame: Frame,
    },
    /// Sends random bytes.
    SendRandom {
        /// Number of bytes.
        bytes: u32,
    },
    /// Waits for bytes of a TCP stream that match.
    ExpectBytes {
        /// Index of the [`Program::bytes_pattern`](super::Program::bytes_pattern).
        pattern: u32,
        /// Time-out of the answer.
        timeout_ns: u64,
    },
    /// Waits for a whole WebSocket message that matches.
    ExpectMessage {
        /// Index of the [`Program::pattern`](super::Program::pattern).
        pattern: u32,
        /// Time-out of the answer.
        timeout_ns: u64,
    },
    /// Does what only its protocol understands, such as a request whose answer is waited for.
    OfProtocol {
        /// Index among the program's ops of protocols.
        index: u32,
    },
    /// Stores a value.
    Set {
        /// Its place among the user's values.
        slot: u16,
        /// Index of the [`Program::template`](super::Program::template) that it renders from.
        template: u32,
    },
    /// Waits for a think time that [`jittered`](super::jittered) varies.
    Wait {
        /// Mean of the think time.
        span_ns: u64,
        /// Share by which it varies either way, 0 to 1.
        jitter: f32,
    },
    /// Waits for a think time that is drawn from a law.
    Think {
        /// Index of the [`Program::think_time`](super::Program::think_time).
        index: u32,
    },
    /// Waits for the turn that a limit gives.
    AwaitTurn {
        /// Index among the [`Program::limits`](super::Program::limits).
        limit: u16,
    },
    /// Waits at a barrier, or for a signal.
    AwaitCue {
        /// Index among the [`Program::cues`](super::Program::cues).
        cue: u16,
        /// Time-out of the wait; `u64::MAX` for none.
        timeout_ns: u64,
    },
    /// Goes on at once where others would be waited for: the user of a trial is alone.
    PassCue,
    /// Gives a signal.
    Signal {
        /// Index among the [`Program::cues`](super::Program::cues).
        cue: u16,
    },
    /// Goes on with the next op where a condition holds, else elsewhere.
    Branch {
        /// Index of the [`Program::condition`](super::Program::condition).
        condition: u32,
        /// Index of the op where it does not hold.
        otherwise: u32,
    },
    /// Goes on with one of several parts.
    Choose {
        /// Index of the [`Program::choice`](super::Program::choice).
        choice: u32,
    },
    /// Goes on at a later op.
    Jump {
        /// Index of the op.
        to: u32,
    },
    /// Begins a loop: sets its counter to turn 0, which is due now.
    LoopBegin {
        /// Index of the loop, see [`Program::loop_at`](super::Program::loop_at).
        index: u32,
    },
    /// Ends a turn: goes back to the body for the next turn, or leaves the loop.
    LoopEnd {
        /// Index of the loop, see [`Program::loop_at`](super::Program::loop_at).
        index: u32,
    },
    /// Begins a transaction, at the intended moment of its first step.
    TransactionBegin {
        /// Index of the [`Program::transaction`](super::Program::transaction).
        index: u32,
    },
    /// Ends a transaction.
    TransactionEnd {
        /// Index of the [`Program::transaction`](super::Program::transaction).
        index: u32,
    },
    /// Keeps the connection until the run ends.
    Stay,
    /// Closes the connection.
    Close {
        /// Way to close it.
        how: CloseAction,
    },
    /// Ends the program. An open connection is closed.
    End,
}

/// What an op means for the ops around it, and for what is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OpFacts {
    /// Its part in the exchange of messages.
    pub(crate) role: OpRole,
    /// Latency that a wait in it belongs to.
    pub(crate) latency: Option<Operation>,
    /// Name of its step, if it has one. The compiler sets it.
    pub(crate) step: Option<StepIndex>,
    /// Upper bound of the bytes of all messages that it sends at once; 0 if it sends none. The
    /// output of a user has room for them.
    pub(crate) bytes_max: usize,
    /// Shortest time that a user spends in it; `None` for the rest of the run.
    pub(crate) time_min: Option<Duration>,
}

/// The part of an op in the exchange of messages between a user and the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OpRole {
    /// Changes nothing: neither sends, nor takes an answer, nor touches the connection.
    Neutral,
    /// Sends one message that an `expect` may answer. An op that sends several needs a role of its
    /// own, or each answer is taken for the answer to all.
    Sends {
        /// False if the scenario says that nothing answers it.
        is_answered: bool,
    },
    /// Waits for the answer to what was sent.
    Expects,
    /// Waits for what comes unasked: it answers nothing.
    Receives,
    /// Waits for a pong, which answers no message.
    Pings,
    /// Sends a request and waits for its answer, on a connection that it opens itself if there is
    /// none.
    Asks {
        /// True if a connect replaces the connection.
        is_replaced: bool,
    },
    /// Goes on with one of several ops.
    Branches,
    /// Begins a loop, and with it a section of sends and answers.
    LoopBegins,
    /// Ends the turn of this loop.
    LoopEnds {
        /// Index of the loop.
        index: u32,
    },
    /// Opens the connection, or keeps it to the end: no answer is expected across it.
    Separates,
    /// Closes the connection.
    Closes(CloseAction),
    /// Ends the program.
    Ends,
}

impl OpFacts {
    /// Returns the facts of an op that measures nothing, sends nothing and takes no time.
    pub(crate) const fn of_role(role: OpRole) -> Self {
        Self { role, latency: None, step: None, bytes_max: 0, time_min: Some(Duration::ZERO) }
    }
}

/// What capacity and calibration must know of ops that follow one another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct OpSum {
    /// Shortest time that they take; `None` if they have no end.
    pub(crate) time_min: Option<Duration>,
    /// True if one of them closes the connection.
    pub(crate) closes: bool,
    /// Messages that they send and wait for.
    pub(crate) traffic: Traffic,
    /// Number of the messages that they send.
    pub(crate) messages: MessageSum,
    /// True if one of them opens a connection that a connect replaces.
    pub(crate) replaces: bool,
}

impl OpSum {
    /// The sum of no ops.
    pub(crate) const NONE: Self = Self {
        time_min: Some(Duration::ZERO),
        closes: false,
        traffic: Traffic::Silent,
        messages: MessageSum::NONE,
        replaces: false,
    };

    /// Returns the sum of these ops and those of `next`.
    pub(crate) fn then(self, next: Self) -> Self {
        Self {
            time_min: self.time_min.zip(next.time_min).map(|(a, b)| a.saturating_add(b)),
            closes: self.closes || next.closes,
            traffic: self.traffic.max(next.traffic),
            messages: self.messages.then(next.messages),
            replaces: self.replaces || next.replaces,
        }
    }

    /// Returns the bounds of these ops or those of `other`.
    pub(crate) fn or(self, other: Self) -> Self {
        Self {
            time_min: self.time_min.into_iter().chain(other.time_min).min(),
            closes: self.closes || other.closes,
            traffic: self.traffic.max(other.traffic),
            messages: self.messages.or(other.messages),
            replaces: self.replaces || other.replaces,
        }
    }

    /// Reports whether users with these ops close their connections before the run ends.
    pub(crate) fn ends_before_run(self) -> bool {
        self.closes || self.time_min.is_some()
    }
}

impl From<OpFacts> for OpSum {
    fn from(facts: OpFacts) -> Self {
        let traffic = match facts.role {
            OpRole::Expects | OpRole::Receives | OpRole::Asks { .. } => Traffic::Answered,
            OpRole::Sends { .. } => Traffic::Sent,
            OpRole::Neutral
            | OpRole::Pings
            | OpRole::Branches
            | OpRole::LoopBegins
            | OpRole::LoopEnds { .. }
            | OpRole::Separates
            | OpRole::Closes(_)
            | OpRole::Ends => match facts.latency {
                Some(asked) if Operation::messages().any(|of| of == asked) => Traffic::Answered,
                _ => Traffic::Silent,
            },
        };
        let closes = matches!(facts.role, OpRole::Closes(_));
        let replaces = facts.role == OpRole::Asks { is_replaced: true };
        // What a connect and a join send is a part of the arrival.
        let arrives = matches!(facts.latency, Some(Operation::Connect | Operation::Join));
        let sends = facts.bytes_max > 0 && !arrives;
        let messages = if sends { MessageSum::ONE } else { MessageSum::NONE };
        Self { time_min: facts.time_min, closes, traffic, messages, replaces }
    }
}

/// The messages of a program's users, from the least to the most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Traffic {
    /// No messages.
    #[default]
    Silent,
    /// Messages without an answer, or whose answers no user waits for.
    Sent,
    /// Messages whose answers the users wait for.
    Answered,
}

/// Framing of the bytes of a `send`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame {
    /// Bytes of a TCP stream.
    Raw,
    /// One text message.
    Text,
    /// One binary message.
    Binary,
}

/// Way in which `close` closes a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CloseAction {
    /// Sends a FIN after all data.
    #[default]
    Normal,
    /// Sends a RST at once. Unsent data is lost, and no port stays in TIME-WAIT.
    Reset,
    /// Sends a FIN, and still reads what the server sends.
    Half,
}

const _: () = assert!(size_of::<Op>() <= 16, "ops are small: a user fetches one per step");
