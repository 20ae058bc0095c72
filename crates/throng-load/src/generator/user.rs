//! One virtual user.

use throng_base::{Instant, Prng};

use super::channels::Channels;
use super::inbox::Inbox;
use super::receipts::Receipts;
use super::timing::CLOCK_ERROR_MAX;
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
    /// While it connects, the moment at which it began to.
    pub(super) message_from: Instant,
    pub(super) outermost_loop: LoopCounter,
    /// The counters of loops within that one, which almost no user has.
    pub(super) inner_loops: Option<Box<[LoopCounter; LOOPS_MAX - 1]>>,
    /// The channels that it has joined, or is about to.
    pub(super) channels: Channels,
    /// The probes that it has got, while it hears them.
    pub(super) receipts: Receipts,
    /// What arrived before any step waited for it, and what answers are late. Almost no user has one.
    pub(super) inbox: Option<Box<Inbox>>,
    /// The op that it is at.
    pub(super) pc: u32,
    /// How many messages with a `${counter}` it has sent.
    pub(super) counter: u32,
    /// How far the present answer matches; of Phoenix Channels, the ref of the question whose
    /// answer it waits for. 0 for nothing.
    pub(super) awaited: u32,
    /// How many refs it has given out on this connection: the last one.
    pub(super) refs: u32,
    /// The ref of the heartbeat that was not answered yet; 0 for none.
    pub(super) heartbeat: u32,
    pub(super) class: u16,
    /// The index of the handshake of its connection.
    pub(super) handshake: u16,
    /// Messages since `message_from` that no answer has come for.
    pub(super) unanswered: u16,
    pub(super) doing: UserState,
    pub(super) iteration: IterationOutcome,
    pub(super) flags: UserFlags,
    pub(super) standing: ConnStatus,
    /// It hears probes, and they are counted on.
    pub(super) hears_probe: bool,
    /// How often the present connect was tried again with another port.
    pub(super) port_tries: u8,
}

/// Truths about a user, in one byte: there are millions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct UserFlags(u8);

impl UserFlags {
    const ANSWERING: u8 = 1;
    const HEARS_ALIKE: u8 = 2;

    /// Answers to its messages have begun to come: the next message begins a new count.
    pub(super) const fn is_answering(self) -> bool {
        self.0 & Self::ANSWERING != 0
    }

    pub(super) const fn set_answering(&mut self, is_answering: bool) {
        self.set(Self::ANSWERING, is_answering);
    }

    /// Messages that its `expect` takes come unasked on this connection, too.
    pub(super) const fn hears_alike(self) -> bool {
        self.0 & Self::HEARS_ALIKE != 0
    }

    pub(super) const fn set_hears_alike(&mut self, hears_alike: bool) {
        self.set(Self::HEARS_ALIKE, hears_alike);
    }

    const fn set(&mut self, flag: u8, is_set: bool) {
        self.0 = if is_set { self.0 | flag } else { self.0 & !flag };
    }
}

/// How far a user is in one of its loops.
///
/// In 20 bytes, at the cost of their alignment: a `u64` for the turns, and still no larger user.
#[derive(Clone, Copy, Debug, Default)]
#[repr(Rust, packed(4))]
pub(super) struct LoopCounter {
    pub(super) begun: Instant,
    /// The turn that goes on, or that it waits for; the first is 0.
    pub(super) turn: u64,
    /// Turns of `every` that are counted as intended, from `turn` on: 0 while the user waits for
    /// the moment at which `turn` is due, 1 once it has begun, more when later ones came due before
    /// it began. A user that is further behind than this can say has fewer counted until its loop
    /// ends.
    pub(super) ahead: u32,
}

impl LoopCounter {
    /// A loop that begins at `begun`, with turn 0.
    pub(super) fn new(begun: Instant) -> Self {
        Self { begun, turn: 0, ahead: 0 }
    }

    /// Returns how many turns are counted as intended.
    pub(super) fn counted(self) -> u64 {
        self.turn.saturating_add(self.ahead.into())
    }

    /// Counts turns as intended, `due` of them in all, and returns how many are new.
    pub(super) fn count(&mut self, due: u64) -> u64 {
        let (turn, before) = (self.turn, self.counted());
        let ahead = due.max(before) - turn;
        self.ahead = u32::try_from(ahead).unwrap_or(u32::MAX);
        self.counted() - before
    }

    /// Returns how many turns have begun, of a user that is not between two steps.
    pub(super) fn turns_begun(self) -> u64 {
        self.turn + u64::from(self.ahead > 0)
    }

    /// The turn has ended.
    pub(super) fn next_turn(&mut self) {
        self.turn += 1;
        self.ahead = self.ahead.saturating_sub(1);
    }
}

/// How a user's way through its program stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum IterationOutcome {
    /// It has not begun, or its end is counted.
    #[default]
    Over,
    /// It goes on, without an error so far.
    Clean,
    /// It goes on in spite of an error.
    Erred,
}

/// What is counted of a user's connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ConnStatus {
    /// Nothing: there is none, or its connect is not decided.
    #[default]
    None,
    /// A failed connect, although TCP was established.
    Refused,
    /// A connect that has succeeded.
    Connected,
    /// The same, and the user has ended its sending half.
    HalfClosed,
    /// The same, and what ends it.
    BrokenOff,
}

/// What a user is waiting for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UserState {
    /// Its connect to be decided; of a WebSocket, TCP to be established.
    Connecting,
    /// The answer to its upgrade.
    Upgrading,
    /// An answer.
    Expecting,
    /// The answer to its join, push or leave.
    Asking,
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
            outermost_loop: LoopCounter::default(),
            inner_loops: None,
            channels: Channels::default(),
            receipts: Receipts::default(),
            inbox: None,
            pc: 0,
            counter: 0,
            awaited: 0,
            refs: 0,
            heartbeat: 0,
            class,
            handshake: 0,
            unanswered: 0,
            doing: UserState::Yielding,
            iteration: IterationOutcome::Over,
            flags: UserFlags::default(),
            standing: ConnStatus::None,
            hears_probe: false,
            port_tries: 0,
        }
    }

    /// The counter of a loop by its depth.
    pub(super) fn loop_at(&mut self, depth: u8) -> &mut LoopCounter {
        match usize::from(depth).checked_sub(1) {
            None => &mut self.outermost_loop,
            Some(place) => &mut self.inner_loops.get_or_insert_default()[place],
        }
    }

    /// Whether nothing more is counted of it until it begins anew: it was stopped, or rests.
    pub(super) fn is_settled(&self) -> bool {
        self.iteration == IterationOutcome::Over
    }

    /// From when on the wait for the answer counts that it is waiting for.
    pub(super) fn waiting_from(&self) -> Option<Instant> {
        match self.doing {
            UserState::Expecting => Some(self.answer_counts_from()),
            UserState::Asking => Some(self.intended),
            _ => None,
        }
    }

    /// From when on the wait for an answer counts: from the first of the messages that were sent in a row, if there are any.
    pub(super) fn answer_counts_from(&self) -> Instant {
        let of_window = self.inbox.as_ref().and_then(|inbox| inbox.window.front());
        match of_window {
            Some(from) => *from,
            None if self.message_from == Instant::FAR => self.intended,
            None => self.message_from,
        }
    }

    /// Returns whether it waits for the first answer to what it has just sent, and what came at that
    /// moment came before it.
    pub(super) fn asked_after(&self, came_at: Instant) -> bool {
        self.unanswered > 0
            && !self.flags.is_answering()
            && came_at + CLOCK_ERROR_MAX < self.intended
    }

    /// Waits for no answer any more.
    pub(super) fn forget_question(&mut self) {
        self.message_from = Instant::FAR;
        self.unanswered = 0;
    }

    /// Whether it may try its connect again with another port; remembers that it does.
    pub(crate) fn tries_again(&mut self, tries_max: usize) -> bool {
        let may = usize::from(self.port_tries) < tries_max;
        self.port_tries = if may { self.port_tries + 1 } else { 0 };
        may
    }

    /// Whether it can send a probe: it hears probes, and is not on its way out.
    pub(super) fn may_speak(&self) -> bool {
        self.hears_probe && !matches!(self.doing, UserState::Closing | UserState::Stopping)
    }

    /// The next ref of this connection.
    pub(super) fn next_ref(&mut self) -> u32 {
        self.refs = self.refs.wrapping_add(1).max(1);
        self.refs
    }

    /// Four random bytes, to mask a frame with.
    pub(super) fn mask(&mut self) -> [u8; 4] {
        (self.prng.bits() as u32).to_le_bytes()
    }

    /// Its number.
    pub fn id(&self) -> u64 {
        self.id
    }
}

const _: () = assert!(size_of::<User>() <= 128, "a user is small: there are millions");
