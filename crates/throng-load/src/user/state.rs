//! A virtual user: its place in the program, its state, and what it remembers.

use throng_base::{Instant, Prng};

use super::inbox::Inbox;
use super::loop_counter::LoopCounter;
use super::memory::UserMemory;
use super::receipts::Receipts;
use super::timing::CLOCK_ERROR_MAX;
use crate::program::{Program, VariableScope};
use crate::protocols::phoenix::channels::Channels;

/// A virtual user: a place in the program, a few small counters and a seed. There are millions.
#[derive(Debug)]
pub struct User {
    /// Number over all cores.
    pub(crate) id: u64,
    pub(crate) prng: Prng,
    /// Intended moment of the present step, from which its latency counts. During a wait, the
    /// moment at which the wait ends; during a wait for other users, at which it began.
    pub(crate) intended: Instant,
    /// Intended moment of the oldest unanswered message; [`Instant::FAR`] if there is none. During
    /// a connect, the moment at which it began, and in a handshake of TLS, at which TCP was
    /// established; during a request that may be sent again, that at
    /// which it was sent.
    pub(crate) message_from: Instant,
    pub(crate) outermost_loop: LoopCounter,
    /// Inner loops, transactions and stored values. Almost no user has any.
    pub(crate) memory: UserMemory,
    /// Channels that the user has joined or is joining.
    pub(crate) channels: Channels,
    /// Probes that the user has received. The machine does not know them.
    pub(crate) receipts: Receipts,
    /// Data that arrived before a step expected it, and late answers. Almost no user has one.
    pub(crate) inbox: Option<Box<Inbox>>,
    /// Index of the present op. Only [`Self::go_to`] changes it.
    pc: u32,
    /// Messages with a `${counter}` that the user has sent.
    pub(crate) counter: u32,
    /// Last ref that the user has used on this connection.
    pub(crate) refs: u32,
    /// Ref of the unanswered heartbeat; 0 for none.
    pub(crate) heartbeat: u32,
    pub(crate) class: u16,
    /// Index of the connection's handshake.
    pub(crate) handshake: u16,
    /// Unanswered messages since `message_from`.
    pub(crate) unanswered: u16,
    pub(crate) state: UserState,
    pub(crate) flags: UserFlags,
}

/// State of a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UserState {
    /// Its program has not begun.
    New,
    /// It rests after an error, without a connection.
    Resting,
    /// Its program runs; `has_erred` after an error in this iteration.
    Running { wait: UserWait, link: Link, has_erred: bool },
    /// It is stopped, and its iteration is counted. Once `is_leaving`, it closes its connection,
    /// and is removed with it. If `is_deaf`, it ignores the messages of its WebSocket, which is
    /// being closed.
    Stopped { link: Link, is_deaf: bool, is_leaving: bool },
}

/// Event that a running user waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UserWait {
    /// The outcome of its connect, which has tried this many further source ports; on a WebSocket,
    /// of TCP's part of it.
    Connect { tries: u8 },
    /// The answer to its upgrade request.
    Upgrade,
    /// The answer that its `expect` describes. On TCP, `matched` is the state of the matcher.
    Answer { matched: Packed },
    /// The connection that its request has opened. It has tried this many further source ports.
    RequestConnect { tries: u8, is_retry: bool },
    /// The answer to the request of its op, which the op's protocol knows by this number.
    Reply { number: Packed },
    /// The end of a connection that requests have opened, before it goes on: with the next op if
    /// the present one `is_done`.
    RequestClose { is_done: bool },
    /// The answer to a ping of its op, which the server's program does not see.
    Pong,
    /// The end of a `wait`.
    Pause,
    /// Other users: its core knows it by this ticket.
    Cue { ticket: Packed },
    /// The next turn of the loop with this index.
    Turn { index: Packed },
    /// The server, to accept what was sent before.
    SendSpace,
    /// The end of the run.
    RunEnd,
    /// Its next turn after other users have had theirs.
    Yield,
    /// The end of its connection, which its program closed.
    Close,
    /// The end of a connection whose connect failed.
    CloseAfterFailedConnect,
    /// The end of a connection that an error closed.
    CloseAfterError,
}

/// Connection of a user, as far as it is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Link {
    /// Not counted: there is no connection, or its connect has not succeeded.
    #[default]
    Uncounted,
    /// Counted as connected.
    Connected,
    /// Connected by a request, for further ones: between two of them, either end may close it.
    OfRequests,
    /// Connected, and the user has closed its sending half.
    HalfClosed,
    /// Connected, and the error that closes the connection is counted.
    Faulty,
}

/// A `u32` without alignment: it fits beside one-byte fields.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Packed([u8; 4]);

impl Packed {
    pub(crate) const fn new(number: u32) -> Self {
        Self(number.to_ne_bytes())
    }

    pub(crate) const fn get(self) -> u32 {
        u32::from_ne_bytes(self.0)
    }
}

impl std::fmt::Debug for Packed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.get().fmt(f)
    }
}

/// Flags of a user, in two bytes: there are millions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct UserFlags(u16);

impl UserFlags {
    const ANSWERING: u16 = 1;
    const RECEIVES_LOOKALIKES: u16 = 2;
    const FOLLOWED: u16 = 4;
    const SENT: u16 = 8;
    const SENT_AGAIN: u16 = 16;
    const RECEIVED: u16 = 32;
    const RECEIVED_AGAIN: u16 = 64;
    const GREETED: u16 = 128;
    const SERVED: u16 = 256;
    const OPENING: u16 = 512;

    /// Returns true once answers have begun to arrive: the next message starts a new window.
    pub(crate) const fn is_answering(self) -> bool {
        self.0 & Self::ANSWERING != 0
    }

    pub(crate) const fn set_answering(&mut self, is_answering: bool) {
        self.set(Self::ANSWERING, is_answering);
    }

    /// Returns true if messages that match its `expect` also arrive unasked on this connection.
    pub(crate) const fn receives_lookalikes(self) -> bool {
        self.0 & Self::RECEIVES_LOOKALIKES != 0
    }

    pub(crate) const fn set_receives_lookalikes(&mut self, receives_lookalikes: bool) {
        self.set(Self::RECEIVES_LOOKALIKES, receives_lookalikes);
    }

    /// Returns true if its core follows the connection.
    pub(crate) const fn is_followed(self) -> bool {
        self.0 & Self::FOLLOWED != 0
    }

    pub(crate) const fn set_followed(&mut self, is_followed: bool) {
        self.set(Self::FOLLOWED, is_followed);
    }

    /// Returns true if the user has sent something on this connection.
    pub(crate) const fn has_sent(self) -> bool {
        self.0 & Self::SENT != 0
    }

    /// Returns true if the user has sent something on this connection more than once.
    pub(crate) const fn has_sent_again(self) -> bool {
        self.0 & Self::SENT_AGAIN != 0
    }

    /// Notes that the user has sent something.
    pub(crate) const fn note_sent(&mut self) {
        self.set(Self::SENT_AGAIN, self.has_sent());
        self.set(Self::SENT, true);
    }

    /// Returns true if what the server says first has come on this connection, or may be its first
    /// answer.
    pub(crate) const fn is_greeted(self) -> bool {
        self.0 & Self::GREETED != 0
    }

    pub(crate) const fn set_greeted(&mut self) {
        self.set(Self::GREETED, true);
    }

    /// Returns true if data has come once on this connection, and not again.
    pub(crate) const fn has_received_once(self) -> bool {
        self.0 & (Self::RECEIVED | Self::RECEIVED_AGAIN) == Self::RECEIVED
    }

    /// Notes that data has come.
    pub(crate) const fn note_received(&mut self) {
        self.set(Self::RECEIVED_AGAIN, self.0 & Self::RECEIVED != 0);
        self.set(Self::RECEIVED, true);
    }

    /// Returns true if an answer has arrived on this connection, right or wrong.
    pub(crate) const fn is_served(self) -> bool {
        self.0 & Self::SERVED != 0
    }

    pub(crate) const fn set_served(&mut self, is_served: bool) {
        self.set(Self::SERVED, is_served);
    }

    /// Returns true while TCP is established, and the handshake of TLS is not complete.
    pub(crate) const fn is_opening(self) -> bool {
        self.0 & Self::OPENING != 0
    }

    pub(crate) const fn set_opening(&mut self, is_opening: bool) {
        self.set(Self::OPENING, is_opening);
    }

    /// Notes that the user has a new connection, on which nothing was sent and nothing came.
    pub(crate) const fn begin_connection(&mut self) {
        let sent = Self::SENT | Self::SENT_AGAIN;
        let received = Self::RECEIVED | Self::RECEIVED_AGAIN;
        let unasked = Self::RECEIVES_LOOKALIKES | Self::GREETED;
        self.set(sent | received | unasked | Self::OPENING, false);
    }

    const fn set(&mut self, flag: u16, is_set: bool) {
        self.0 = if is_set { self.0 | flag } else { self.0 & !flag };
    }
}

impl User {
    /// Creates user `id`, whose program is due to begin at `due`.
    pub(crate) fn new(id: u64, class: u16, seed: u64, due: Instant) -> Self {
        Self {
            id,
            prng: Prng::derive(seed, id),
            intended: due,
            message_from: Instant::FAR,
            outermost_loop: LoopCounter::default(),
            memory: UserMemory::default(),
            channels: Channels::default(),
            receipts: Receipts::default(),
            inbox: None,
            pc: 0,
            counter: 0,
            refs: 0,
            heartbeat: 0,
            class,
            handshake: 0,
            unanswered: 0,
            state: UserState::New,
            flags: UserFlags::default(),
        }
    }

    /// Returns the user's number over all cores.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Returns the index of the present op.
    pub(crate) fn pc(&self) -> u32 {
        self.pc
    }

    /// Returns the index of the op that the user is in: during a `wait`, or before a turn of a
    /// loop, the op before the present one.
    pub(crate) fn step_pc(&self) -> u32 {
        match self.state {
            UserState::Running { wait: UserWait::Pause | UserWait::Turn { .. }, .. } => {
                self.pc.saturating_sub(1)
            }
            _ => self.pc,
        }
    }

    /// Moves the user to the op at `pc`.
    pub(crate) fn go_to(&mut self, pc: u32) {
        self.pc = pc;
    }

    /// Returns what the user waits for; `None` if its program does not run.
    pub(crate) fn wait(&self) -> Option<UserWait> {
        match self.state {
            UserState::Running { wait, .. } => Some(wait),
            _ => None,
        }
    }

    /// Sets what the user waits for, while its program runs.
    pub(crate) fn set_wait(&mut self, new: UserWait) {
        if let UserState::Running { wait, .. } = &mut self.state {
            *wait = new;
        }
    }

    /// Returns the user's connection, as far as it is counted.
    pub(crate) fn link(&self) -> Link {
        match self.state {
            UserState::Running { link, .. } | UserState::Stopped { link, .. } => link,
            UserState::New | UserState::Resting => Link::Uncounted,
        }
    }

    /// Replaces the link. Returns the one before.
    pub(crate) fn set_link(&mut self, new: Link) -> Link {
        match &mut self.state {
            UserState::Running { link, .. } | UserState::Stopped { link, .. } => {
                std::mem::replace(link, new)
            }
            UserState::New | UserState::Resting => Link::Uncounted,
        }
    }

    /// Notes an error in the present iteration.
    pub(crate) fn set_erred(&mut self) {
        if let UserState::Running { has_erred, .. } = &mut self.state {
            *has_erred = true;
        }
    }

    /// Reports whether the user is stopped and closes its connection.
    pub(crate) fn is_leaving(&self) -> bool {
        matches!(self.state, UserState::Stopped { is_leaving: true, .. })
    }

    /// Reports whether the user ignores what arrives on its WebSocket, which is being closed.
    pub(crate) fn is_deaf(&self) -> bool {
        match self.state {
            UserState::Running { wait, .. } => {
                matches!(wait, UserWait::CloseAfterFailedConnect | UserWait::CloseAfterError)
            }
            UserState::Stopped { is_deaf, is_leaving, .. } => is_deaf || is_leaving,
            UserState::New | UserState::Resting => false,
        }
    }

    /// Reports whether the user is stopped or closes its connection.
    pub(crate) fn is_closing_or_stopped(&self) -> bool {
        !self.is_running()
            || self.is_deaf()
            || matches!(self.wait(), Some(UserWait::Close | UserWait::RequestClose { .. }))
    }

    /// Reports whether an iteration of the user's program is in progress.
    pub(crate) fn is_running(&self) -> bool {
        matches!(self.state, UserState::Running { .. })
    }

    /// Reports whether the user needs its connection: it has not closed it, and no error has.
    /// Between two requests, either end may close it.
    pub(crate) fn needs_connection(&self) -> bool {
        let UserState::Running { wait, link, .. } = self.state else { return false };
        match link {
            Link::Connected => wait != UserWait::Close,
            Link::OfRequests => matches!(wait, UserWait::Reply { .. }),
            Link::Uncounted | Link::HalfClosed | Link::Faulty => false,
        }
    }

    /// Reports whether the user has a counted connection that its `connect` opened.
    pub(crate) fn is_connected(&self) -> bool {
        !matches!(self.link(), Link::Uncounted | Link::OfRequests)
    }

    /// Reports whether the user may send more on its connection: it neither closes nor leaves.
    pub(crate) fn may_send(&self) -> bool {
        self.wait() != Some(UserWait::Close) && !self.is_leaving()
    }

    /// Reports whether the user waits for what the server sends next, or has asked for it: the
    /// moment of its arrival ends a latency.
    pub(crate) fn awaits_answer(&self) -> bool {
        use UserWait::{Answer, Connect, Reply, RequestConnect, Upgrade};
        self.unanswered > 0
            || matches!(
                self.wait(),
                Some(
                    Connect { .. } | Upgrade | Answer { .. } | RequestConnect { .. } | Reply { .. }
                )
            )
    }

    /// Returns the moment from which the present wait for an answer counts.
    pub(crate) fn waiting_from(&self, program: &Program) -> Option<Instant> {
        match self.wait()? {
            UserWait::Answer { .. } if program.is_receive(self.pc) => None,
            UserWait::Answer { .. } => Some(self.answer_counts_from()),
            UserWait::Reply { .. } | UserWait::RequestConnect { .. } => Some(self.intended),
            _ => None,
        }
    }

    /// Returns the moment from which the wait for an answer counts: the intended moment of the
    /// oldest unanswered message, if there is one.
    pub(crate) fn answer_counts_from(&self) -> Instant {
        let of_window = self.inbox.as_ref().and_then(|inbox| inbox.window.front());
        match of_window {
            Some(from) => *from,
            None if self.message_from == Instant::FAR => self.intended,
            None => self.message_from,
        }
    }

    /// Returns the moment until which a `wait` or the wait for a turn of a loop lasts.
    pub(crate) fn paused_until(&self) -> Option<Instant> {
        matches!(self.wait()?, UserWait::Pause | UserWait::Turn { .. }).then_some(self.intended)
    }

    /// Reports whether the user waits for the first answer to messages that it sent after
    /// `arrived_at`. What arrived at `arrived_at` is then not the answer.
    pub(crate) fn has_asked_after(&self, arrived_at: Instant) -> bool {
        let asked_at = self.inbox.as_ref().and_then(|inbox| inbox.asked_at);
        self.unanswered > 0
            && !self.flags.is_answering()
            && arrived_at + CLOCK_ERROR_MAX < asked_at.unwrap_or(self.intended)
    }

    /// Forgets the unanswered messages.
    pub(crate) fn clear_unanswered(&mut self) {
        self.message_from = Instant::FAR;
        self.unanswered = 0;
        if let Some(inbox) = &mut self.inbox {
            inbox.asked_at = None;
            self.inbox.take_if(|inbox| inbox.is_empty());
        }
    }

    /// Returns the counter of the loop at `depth`.
    pub(crate) fn loop_counter(&mut self, depth: u8) -> &mut LoopCounter {
        match usize::from(depth).checked_sub(1) {
            None => &mut self.outermost_loop,
            Some(index) => self.memory.inner_loop(index),
        }
    }

    /// Returns the intended moment of the transaction at `depth`; [`Instant::FAR`] if it has ended.
    pub(crate) fn transaction_begun(&mut self, depth: u8) -> &mut Instant {
        self.memory.transaction_begun(usize::from(depth))
    }

    /// Returns the next ref of this connection.
    pub(crate) fn next_ref(&mut self) -> u32 {
        self.refs = self.refs.wrapping_add(1).max(1);
        self.refs
    }

    /// Returns four random bytes to mask a frame with.
    pub(crate) fn mask(&mut self) -> [u8; 4] {
        (self.prng.bits() as u32).to_le_bytes()
    }

    /// Returns the values from which variables are computed.
    pub(crate) fn scope<'a>(&'a self, program: &'a Program) -> VariableScope<'a> {
        VariableScope {
            user_id: self.id,
            counter: self.counter.into(),
            prng: self.prng,
            stored: self.memory.stored(),
            tables: program.tables(),
            probe: &[],
            seed: 0,
            fault: None,
        }
    }

    /// Returns the values from which the variables of an expected answer are computed: its counter
    /// is that of the last message. `seed` is that of the run.
    pub(crate) fn scope_of_answer<'a>(
        &'a self,
        program: &'a Program,
        seed: u64,
    ) -> VariableScope<'a> {
        let counter = u64::from(self.counter).saturating_sub(1);
        VariableScope { counter, seed, ..self.scope(program) }
    }

    /// Calls `render` with the values of variables, and keeps what it changes.
    pub(crate) fn render<R>(
        &mut self,
        program: &Program,
        render: impl FnOnce(&mut VariableScope<'_>) -> R,
    ) -> R {
        let mut scope = self.scope(program);
        let result = render(&mut scope);
        (self.counter, self.prng) = (scope.counter as u32, scope.prng);
        result
    }
}

const _: () = assert!(size_of::<User>() <= 128, "a user is small: there are millions");
