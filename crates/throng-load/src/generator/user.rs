//! A virtual user.

use throng_base::{Instant, Prng};

use super::channels::Channels;
use super::inbox::Inbox;
use super::receipts::Receipts;
use super::timing::CLOCK_ERROR_MAX;
use crate::program::LOOPS_MAX;

/// A virtual user: a position in the program, a few small counters and a seed. There are millions.
#[derive(Debug)]
pub struct User {
    /// Number over all cores.
    pub(super) id: u64,
    pub(super) prng: Prng,
    /// Intended moment of the present step, from which its latency counts. During a wait, the
    /// moment at which the wait ends.
    pub(super) intended: Instant,
    /// Intended moment of the oldest unanswered message; [`Instant::FAR`] if there is none. During
    /// a connect, the moment at which it began.
    pub(super) message_from: Instant,
    pub(super) outermost_loop: LoopCounter,
    /// Counters of the inner loops. Almost no user has any.
    pub(super) inner_loops: Option<Box<[LoopCounter; LOOPS_MAX - 1]>>,
    /// Channels that the user has joined or is joining.
    pub(super) channels: Channels,
    /// Probes that the user has received, while it receives probes.
    pub(super) receipts: Receipts,
    /// Data that arrived before a step expected it, and late answers. Almost no user has one.
    pub(super) inbox: Option<Box<Inbox>>,
    /// Index of the present op.
    pub(super) pc: u32,
    /// Messages with a `${counter}` that the user has sent.
    pub(super) counter: u32,
    /// On TCP, the matcher's state of the present answer. In Phoenix Channels, the ref of the
    /// request whose reply is awaited; 0 for none.
    pub(super) awaited: u32,
    /// Last ref that the user has used on this connection.
    pub(super) refs: u32,
    /// Ref of the unanswered heartbeat; 0 for none.
    pub(super) heartbeat: u32,
    pub(super) class: u16,
    /// Index of the connection's handshake.
    pub(super) handshake: u16,
    /// Unanswered messages since `message_from`.
    pub(super) unanswered: u16,
    pub(super) state: UserState,
    pub(super) iteration: IterationOutcome,
    pub(super) flags: UserFlags,
    pub(super) conn_status: ConnStatus,
    /// True while the user receives probes; deliveries to it are expected.
    pub(super) receives_probe: bool,
    /// Further source ports that the present connect has tried.
    pub(super) port_tries: u8,
}

/// Flags of a user, in one byte: there are millions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct UserFlags(u8);

impl UserFlags {
    const ANSWERING: u8 = 1;
    const RECEIVES_LOOKALIKES: u8 = 2;

    /// Returns true once answers have begun to arrive: the next message starts a new window.
    pub(super) const fn is_answering(self) -> bool {
        self.0 & Self::ANSWERING != 0
    }

    pub(super) const fn set_answering(&mut self, is_answering: bool) {
        self.set(Self::ANSWERING, is_answering);
    }

    /// Returns true if messages that match its `expect` also arrive unasked on this connection.
    pub(super) const fn receives_lookalikes(self) -> bool {
        self.0 & Self::RECEIVES_LOOKALIKES != 0
    }

    pub(super) const fn set_receives_lookalikes(&mut self, receives_lookalikes: bool) {
        self.set(Self::RECEIVES_LOOKALIKES, receives_lookalikes);
    }

    const fn set(&mut self, flag: u8, is_set: bool) {
        self.0 = if is_set { self.0 | flag } else { self.0 & !flag };
    }
}

/// Progress of a user in one of its loops.
///
/// Packed into 20 bytes at the cost of alignment: `turn` is a `u64`, and the user is no larger.
#[derive(Clone, Copy, Debug, Default)]
#[repr(Rust, packed(4))]
pub(super) struct LoopCounter {
    pub(super) begun: Instant,
    /// The present turn, or the one that the user waits for; the first is 0.
    pub(super) turn: u64,
    /// Turns of `every` that are counted as intended, from `turn` on: 0 while the user waits for
    /// `turn` to come due, 1 once it has begun, more if later turns came due before it began. If
    /// the user is further behind than a `u32` can hold, the rest is counted when its loop ends.
    pub(super) ahead: u32,
}

impl LoopCounter {
    /// Creates the counter of a loop that begins at `begun` with turn 0.
    pub(super) fn new(begun: Instant) -> Self {
        Self { begun, turn: 0, ahead: 0 }
    }

    /// Returns the number of turns that are counted as intended.
    pub(super) fn counted(self) -> u64 {
        self.turn.saturating_add(self.ahead.into())
    }

    /// Raises the number of turns counted as intended to `due`. Returns how many are new.
    pub(super) fn count(&mut self, due: u64) -> u64 {
        let (turn, before) = (self.turn, self.counted());
        let ahead = due.max(before) - turn;
        self.ahead = u32::try_from(ahead).unwrap_or(u32::MAX);
        self.counted() - before
    }

    /// Returns the number of turns that have begun. The user must not be between two steps.
    pub(super) fn turns_begun(self) -> u64 {
        self.turn + u64::from(self.ahead > 0)
    }

    /// Advances to the next turn.
    pub(super) fn next_turn(&mut self) {
        self.turn += 1;
        self.ahead = self.ahead.saturating_sub(1);
    }
}

/// State of a user's present iteration of its program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum IterationOutcome {
    /// Not begun, or its end is counted.
    #[default]
    Over,
    /// In progress, without an error so far.
    Clean,
    /// In progress, after an error.
    Erred,
}

/// Counting status of a user's connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ConnStatus {
    /// Not counted: there is no connection, or its connect is undecided.
    #[default]
    None,
    /// Counted as a failed connect, although TCP was established.
    ConnectFailed,
    /// Counted as a successful connect.
    Connected,
    /// Connected, and the user has closed its sending half.
    HalfClosed,
    /// Connected, and the error that closes the connection is counted.
    ErrorCounted,
}

/// Event that a user waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UserState {
    /// The outcome of its connect; on a WebSocket, of TCP's part of it.
    Connecting,
    /// The answer to its upgrade request.
    Upgrading,
    /// The answer that its `expect` describes.
    Expecting,
    /// The reply to its join, push or leave.
    AwaitingReply,
    /// A moment: the end of a wait, or the next turn of a loop.
    Waiting,
    /// The server, to accept what was sent before.
    Blocked,
    /// The end of the run.
    Staying,
    /// Its next turn after other users have had theirs.
    Yielding,
    /// The end of its connection, which its program closed.
    Closing,
    /// The end of a connection whose connect failed.
    ClosingFailedConnect,
    /// The end of a connection that an error closed.
    ClosingAfterError,
    /// The end of its rest after an error.
    Resting,
    /// Nothing: it is stopped and leaves.
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
            state: UserState::Yielding,
            iteration: IterationOutcome::Over,
            flags: UserFlags::default(),
            conn_status: ConnStatus::None,
            receives_probe: false,
            port_tries: 0,
        }
    }

    /// Returns the counter of the loop at `depth`.
    pub(super) fn loop_counter(&mut self, depth: u8) -> &mut LoopCounter {
        match usize::from(depth).checked_sub(1) {
            None => &mut self.outermost_loop,
            Some(index) => &mut self.inner_loops.get_or_insert_default()[index],
        }
    }

    /// Reports whether the user has no iteration in progress: it is stopped, rests, or has not
    /// begun. Nothing is counted for it.
    pub(super) fn is_between_iterations(&self) -> bool {
        self.iteration == IterationOutcome::Over
    }

    /// Returns the moment from which the present wait for an answer counts.
    pub(super) fn waiting_from(&self) -> Option<Instant> {
        match self.state {
            UserState::Expecting => Some(self.answer_counts_from()),
            UserState::AwaitingReply => Some(self.intended),
            _ => None,
        }
    }

    /// Returns the moment from which the wait for an answer counts: the intended moment of the
    /// oldest unanswered message, if there is one.
    pub(super) fn answer_counts_from(&self) -> Instant {
        let of_window = self.inbox.as_ref().and_then(|inbox| inbox.window.front());
        match of_window {
            Some(from) => *from,
            None if self.message_from == Instant::FAR => self.intended,
            None => self.message_from,
        }
    }

    /// Reports whether the user waits for the first answer to messages that it sent after
    /// `arrived_at`. What arrived at `arrived_at` is then not the answer.
    pub(super) fn has_asked_after(&self, arrived_at: Instant) -> bool {
        self.unanswered > 0
            && !self.flags.is_answering()
            && arrived_at + CLOCK_ERROR_MAX < self.intended
    }

    /// Forgets the unanswered messages.
    pub(super) fn clear_unanswered(&mut self) {
        self.message_from = Instant::FAR;
        self.unanswered = 0;
    }

    /// Counts another try of the present connect. Returns false once `tries_max` is reached.
    pub(crate) fn count_port_try(&mut self, tries_max: usize) -> bool {
        let may = usize::from(self.port_tries) < tries_max;
        self.port_tries = if may { self.port_tries + 1 } else { 0 };
        may
    }

    /// Reports whether the user can send a probe: it receives probes and is not leaving.
    pub(super) fn can_send_probe(&self) -> bool {
        self.receives_probe && !matches!(self.state, UserState::Closing | UserState::Stopping)
    }

    /// Returns the next ref of this connection.
    pub(super) fn next_ref(&mut self) -> u32 {
        self.refs = self.refs.wrapping_add(1).max(1);
        self.refs
    }

    /// Returns four random bytes to mask a frame with.
    pub(super) fn mask(&mut self) -> [u8; 4] {
        (self.prng.bits() as u32).to_le_bytes()
    }

    /// Returns the user's number over all cores.
    pub fn id(&self) -> u64 {
        self.id
    }
}

const _: () = assert!(size_of::<User>() <= 128, "a user is small: there are millions");
