//! One input of a user: what the machine sees, where it writes, and the actions that it asks for.

use throng_base::Instant;
use throng_engine::{Arrival, Deadline};
use throng_measure::LoadCounters;
use throng_proto::HeldBudget;

use super::encoder::{Encoder, as_text};
use super::error::ErrorKind;
use super::record::{Record, Sample};
use super::state::{Link, User};
use super::timing::AnswerTiming;
use super::trace::{Payload, TraceEvent};
use crate::cues::CueWaiters;
use crate::program::{IncomingMessage, OnError, Op, Program, Protocol};
use crate::protocols::phoenix::channels::Channel;
use crate::protocols::session::UserSession;
use crate::protocols::ws::handshake::Handshake;
use crate::scenario::{Model, ScenarioLoad};
use crate::schedule::RateClock;

/// Everything that the machine is lent for one input.
pub(crate) struct UserContext<'a> {
    pub(crate) user: &'a mut User,
    pub(crate) now: Instant,
    /// Arrival of the input.
    pub(crate) arrival: Arrival,
    pub(crate) socket: SocketStatus,
    pub(crate) session: &'a mut UserSession,
    /// Output of the connection; the machine appends to it.
    pub(crate) out: &'a mut Vec<u8>,
    pub(crate) rules: Rules<'a>,
    pub(crate) encoder: &'a mut Encoder,
    /// Clocks of the scenario's limits.
    pub(crate) clocks: &'a mut [RateClock],
    /// Users that wait for one another.
    pub(crate) cues: &'a mut CueWaiters,
    /// Budget of the core for what its users hold of what the target sent.
    pub(crate) held: &'a HeldBudget,
    /// The user's index in the core's table, by which these know it.
    pub(crate) index: u32,
    /// True if the user is watched: it gives [`UserAction::Trace`].
    pub(crate) is_traced: bool,
    /// Receives each action in its order.
    pub(crate) actions: &'a mut dyn FnMut(UserAction<'_>),
}

/// What all users of a core share while an input is handled.
#[derive(Clone, Copy)]
pub(crate) struct Rules<'a> {
    pub(crate) program: &'a Program,
    /// Traits of each class.
    pub(crate) classes: &'a [ClassTraits],
    pub(crate) seed: u64,
    /// True while the schedule runs. After it, loops without an end do.
    pub(crate) is_scheduled: bool,
    /// End of the schedule in the open model; [`Instant::FAR`] before.
    pub(crate) schedule_over_at: Instant,
    /// Further source ports that a connect may try.
    pub(crate) port_tries_max: u8,
}

/// Traits of a class that would take a search of its program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClassTraits {
    /// It has an `expect` step. Other classes count everything that arrives as unasked.
    pub(crate) expects: bool,
    /// Its users close by RST. Users that are still connected at the end of the run do so too.
    pub(crate) resets: bool,
    /// It has rules for messages.
    pub(crate) has_rules: bool,
    /// Its load is closed: a user whose program ends begins again.
    pub(crate) begins_again: bool,
}

/// Status of a user's socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SocketStatus {
    /// There is none.
    Absent,
    /// It is being opened or closed.
    Busy,
    /// It is established.
    Open,
    /// It is established, and bytes wait until the server accepts them.
    Blocked,
}

/// Action that a user asks for. The bytes that it sends are in the output already.
#[derive(Clone, Debug)]
pub(crate) enum UserAction<'a> {
    /// Open a connection, whose arrivals the kernel stamps with `measures_arrivals`.
    Connect { measures_arrivals: bool },
    /// Close the connection in order, after the output.
    Close,
    /// Close it by RST.
    Reset,
    /// Close it as the answer to the server's FIN.
    CloseFinished,
    /// Shut down the sending half, after the output.
    HalfClose,
    /// Deliver [`Input::Deadline`](super::machine::Input::Deadline) at this moment.
    WaitUntil(Deadline),
    /// Remove the user from the table.
    Remove,
    /// Add to the counters.
    Count(fn(&mut LoadCounters)),
    /// Record an event of the op at this place.
    Record(u32, Record<'a>),
    /// Show an event of the op at this place. Only of a user that is watched.
    Trace(u32, TraceEvent<'a>),
}

/// Next move of a user after a step, or after an input that it waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StepOutcome {
    /// Run the next op.
    Next,
    /// Run the present op, again or for the first time.
    Again,
    /// Run the op at this place.
    Go(u32),
    /// Run the next op after the caller has handed the output to the kernel.
    Flush,
    /// Wait in the present op.
    Wait,
    /// Wait before the op at this place.
    WaitAt(u32),
}

impl Rules<'_> {
    /// Reports whether a user of this class whose program ends begins again.
    pub(crate) fn begins_again(&self, class: u16) -> bool {
        self.classes[usize::from(class)].begins_again
    }
}

impl ClassTraits {
    /// Returns the traits of all classes.
    pub(crate) fn of(program: &Program, load: &ScenarioLoad) -> Vec<Self> {
        let classes = 0..program.classes().len();
        let traits = classes.map(|class| Self {
            expects: program.expects(class),
            resets: program.resets(class),
            has_rules: !program.rules_of(class).is_empty(),
            begins_again: Model::of(load.of_class(class)) == Model::Closed,
        });
        traits.collect()
    }
}

impl SocketStatus {
    pub(crate) fn is_open(self) -> bool {
        matches!(self, Self::Open | Self::Blocked)
    }
}

impl<'a> UserContext<'a> {
    pub(crate) fn act(&mut self, action: UserAction<'_>) {
        (self.actions)(action);
    }

    pub(crate) fn count(&mut self, count: fn(&mut LoadCounters)) {
        self.act(UserAction::Count(count));
    }

    pub(crate) fn record(&mut self, record: Record<'_>) {
        if record.is_of_answer() {
            self.note_served();
        }
        self.act(UserAction::Record(self.user.step_pc(), record));
    }

    /// Counts the connection as served, with its first answer.
    fn note_served(&mut self) {
        let is_counted = self.user.link() != Link::Uncounted;
        if is_counted && !self.user.flags.is_served() {
            self.user.flags.set_served(true);
            self.count(|c| c.served += 1);
        }
    }

    /// Records what was expected and what arrived.
    pub(crate) fn sample(&mut self, sample: Sample<'_>) {
        let scope = self.user.scope_of_answer(self.rules.program, self.rules.seed);
        let record = Record::Sample(sample, scope);
        (self.actions)(UserAction::Record(self.user.step_pc(), record));
    }

    /// Shows an event, if the user is watched.
    pub(crate) fn trace(&mut self, event: TraceEvent<'_>) {
        if self.is_traced {
            self.act(UserAction::Trace(self.user.step_pc(), event));
        }
    }

    /// Shows the op that begins, if the user is watched.
    pub(super) fn trace_op(&mut self) {
        self.trace_op_at(self.user.pc());
    }

    /// Shows that the op at `pc` begins, if the user is watched.
    pub(super) fn trace_op_at(&mut self, pc: u32) {
        if self.is_traced {
            let scope = self.user.scope_of_answer(self.rules.program, self.rules.seed);
            (self.actions)(UserAction::Trace(pc, TraceEvent::OpBegun(scope)));
        }
    }

    /// Shows what the encoder has written, which the user sends in a message of its own.
    fn trace_encoded(&mut self, message: for<'t> fn(&'t [u8]) -> IncomingMessage<'t>) {
        if self.is_traced {
            let sent = TraceEvent::Sent(Payload::Message(message(&self.encoder.text)));
            (self.actions)(UserAction::Trace(self.user.step_pc(), sent));
        }
    }

    /// Shows the bytes of the output from `begin` on.
    pub(crate) fn trace_output(&mut self, begin: usize, payload: fn(&[u8]) -> Payload<'_>) {
        if self.is_traced {
            let sent = TraceEvent::Sent(payload(&self.out[begin..]));
            (self.actions)(UserAction::Trace(self.user.step_pc(), sent));
        }
    }

    pub(crate) fn count_error(&mut self, kind: ErrorKind) {
        self.record(Record::Error(kind));
    }

    pub(crate) fn wait_until(&mut self, deadline: Deadline) {
        self.act(UserAction::WaitUntil(deadline));
    }

    /// Removes the user, and forgets what it holds.
    pub(crate) fn remove(&mut self) {
        self.user.inbox = None;
        self.user.memory.clear_stored();
        self.act(UserAction::Remove);
    }

    /// Returns the timing of the present input.
    pub(crate) fn timing(&self) -> AnswerTiming {
        AnswerTiming { seen_at: self.now, arrival: self.arrival }
    }

    /// Returns the user's present op.
    pub(crate) fn op(&self) -> Op {
        self.rules.program.op(self.user.pc())
    }

    /// Reports whether a condition holds for the user.
    pub(crate) fn holds(&mut self, condition: u32) -> bool {
        let program = self.rules.program;
        let scratch = &mut self.encoder.comparison;
        self.user.render(program, |scope| program.condition(condition).holds(scope, scratch))
    }

    /// Returns the protocol of the scenario.
    pub(crate) fn protocol(&self) -> Protocol {
        self.rules.program.protocol()
    }

    /// Reports whether bytes wait until the server accepts them.
    pub(crate) fn is_blocked(&self) -> bool {
        self.socket == SocketStatus::Blocked
    }

    pub(crate) fn class(&self) -> ClassTraits {
        self.rules.classes[usize::from(self.user.class)]
    }

    pub(crate) fn on_error(&self) -> OnError {
        self.rules.program.classes()[usize::from(self.user.class)].on_error
    }

    /// Returns the handshake of the user's connection.
    pub(crate) fn handshake(&self) -> &'a Handshake {
        self.rules.program.handshake(self.user.handshake.into())
    }

    /// Appends the encoded text to the output as a text message.
    pub(crate) fn write_text(&mut self) {
        self.trace_encoded(|text| IncomingMessage::Text(as_text(text)));
        let mask = self.user.mask();
        self.encoder.write_text(self.session, mask, self.out);
    }

    /// Appends the encoded text to the output as a binary message.
    pub(crate) fn write_binary(&mut self) {
        self.trace_encoded(|bytes| IncomingMessage::Binary(bytes));
        let mask = self.user.mask();
        self.encoder.write_binary(self.session, mask, self.out);
    }

    /// Removes a channel from the user.
    pub(crate) fn remove_channel(&mut self, join_ref: u32) -> Option<Channel> {
        let channel = self.user.channels.remove(join_ref)?;
        if channel.joined {
            self.record(Record::ChannelsLost(1));
        }
        Some(channel)
    }

    /// Closes the connection. On a WebSocket, sends a close frame first. A request that has opened
    /// it and that the server has not accepted as a whole is cut off (RFC 9112 section 9.6).
    pub(crate) fn close(&mut self) {
        self.send_close_frame();
        let is_cut = self.is_blocked() && self.user.link() == Link::OfRequests;
        self.act(if is_cut { UserAction::Reset } else { UserAction::Close });
    }

    /// Sends a close frame on an open WebSocket. Returns true if the server's answer must be waited
    /// for.
    pub(crate) fn send_close_frame(&mut self) -> bool {
        let mask = self.user.mask();
        match self.session.client() {
            Some(client) if client.is_open() => {
                client.close(NORMAL_CLOSURE, "", mask, self.out);
                self.trace(TraceEvent::Sent(Payload::CloseFrame));
                true
            }
            _ => false,
        }
    }
}

/// Close code of a normal closure (RFC 6455 section 7.4.1).
const NORMAL_CLOSURE: u16 = 1000;
