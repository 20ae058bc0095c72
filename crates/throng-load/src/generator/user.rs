//! One virtual user.

use throng_base::{Instant, Prng};

use crate::program::LOOPS_MAX;

/// A user: a place in the program, a few small counters and a seed. There are millions.
#[derive(Debug)]
pub struct User {
    /// Its number over all cores.
    pub(super) id: u64,
    pub(super) prng: Prng,
    /// The moment from which the present step's latency counts; while it waits, when the wait is due to end.
    pub(super) intended: Instant,
    /// The moment from which the message counts that has not been answered; [`Instant::FAR`] when there is none.
    pub(super) message_from: Instant,
    pub(super) loops: [LoopCounter; LOOPS_MAX],
    /// What arrived before any step waited for it. Almost nobody has one.
    pub(super) inbox: Option<Box<Inbox>>,
    /// The op that it is at.
    pub(super) pc: u32,
    /// How many messages with a `${counter}` it has sent.
    pub(super) counter: u32,
    /// How far the present answer matches.
    pub(super) matched: u32,
    pub(super) class: u16,
    /// Messages since `message_from` that no answer has come for.
    pub(super) unanswered: u16,
    pub(super) doing: Doing,
    pub(super) iteration: Iteration,
    /// Answers to those messages have begun to come: the next message begins a new count.
    pub(super) answering: bool,
    /// Its connect has succeeded and its connection has not gone.
    pub(super) established: bool,
    pub(super) half_closed: bool,
    /// How often the present connect was tried again with another port.
    pub(super) port_tries: u8,
}

/// One of a user's loops.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LoopCounter {
    pub(super) begun: Instant,
    pub(super) turn: u32,
    /// Turns that were due when last looked; for the count of intended turns.
    pub(super) due: u32,
}

/// Bytes that no step has waited for yet.
#[derive(Debug)]
pub(super) struct Inbox {
    pub(super) bytes: Vec<u8>,
    /// When the last of them came: an answer that waits here was whole by then.
    pub(super) at: Instant,
}

/// How a user's way through its program stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Iteration {
    /// It has not begun, or its end is counted.
    #[default]
    Over,
    /// It goes on, without an error so far.
    Clean,
    /// It goes on in spite of an error.
    Erred,
}

/// What a user is waiting for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doing {
    /// Its connect to be decided.
    Connecting,
    /// An answer.
    Expecting,
    /// A moment.
    Waiting,
    /// The other end, to take what was sent.
    Blocked,
    /// The end of the run.
    Staying,
    /// Others, to have their turn.
    Yielding,
    /// The end of its connection, which it asked for.
    Closing,
    /// The end of a connect that took too long.
    GivingUp,
    /// The end of a connection on which something went wrong.
    Failing,
    /// Its second chance, after an error.
    Resting,
    /// Nothing: it leaves.
    Stopping,
}

impl User {
    pub(super) fn new(id: u64, class: u16, seed: u64, due: Instant) -> Self {
        Self {
            id,
            prng: Prng::derive(seed, id),
            intended: due,
            message_from: Instant::FAR,
            loops: Default::default(),
            inbox: None,
            pc: 0,
            counter: 0,
            matched: 0,
            class,
            unanswered: 0,
            doing: Doing::Yielding,
            iteration: Iteration::Over,
            answering: false,
            established: false,
            half_closed: false,
            port_tries: 0,
        }
    }

    /// Whether it may try its connect again with another port; remembers that it does.
    pub(crate) fn tries_again(&mut self, tries_max: usize) -> bool {
        let may = usize::from(self.port_tries) < tries_max;
        self.port_tries = if may { self.port_tries + 1 } else { 0 };
        may
    }

    /// Its number.
    pub fn id(&self) -> u64 {
        self.id
    }
}

const _: () = assert!(size_of::<User>() <= 136, "a user is small: there are millions");
