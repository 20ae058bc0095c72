//! The machine: one input of a user, then op after op until the user has to wait.

use throng_base::Instant;
use throng_engine::{CloseReason, Deadline};

use super::context::{SocketStatus, StepOutcome, UserAction, UserContext};
use super::record::Record;
use super::state::{UserState, UserWait};
use super::{
    cues, ending, held, iteration, limits, loops, on_message, outcomes, requests, transactions,
};
use crate::program::{IncomingMessage, Op};
use crate::protocols::MessageForm;
use crate::protocols::input::{ServerAnswer, ServerFault, UnaskedInput};
use crate::steps::{
    barrier, branch, choose, close, connect, expect, send, set, signal, stay, wait,
};

/// Input of a user.
#[derive(Clone, Debug)]
pub(crate) enum Input<'a> {
    /// Its program begins.
    Begin,
    /// Its program is not to begin: all users leave.
    Cancel,
    /// TCP is established, and the handshake of TLS begins.
    Opening,
    /// The connection is established.
    Opened,
    /// The kernel connected the socket to itself.
    SelfConnected,
    /// Bytes of a stream arrived.
    Bytes(&'a [u8]),
    /// A message of a WebSocket arrived.
    Message(IncomingMessage<'a>),
    /// The answer to what the user has asked is complete.
    Answered(ServerAnswer<'a>),
    /// The server broke the rules of its protocol.
    Violated(ServerFault<'a>),
    /// Something arrived that answers nothing.
    Unasked(UnaskedInput<'a>),
    /// The server's FIN arrived.
    PeerFinished,
    /// The server has accepted all bytes that waited.
    Drained,
    /// The output has been handed to the kernel, as [`Progress::Flush`] asked.
    Flushed { ops_left: u32 },
    /// The moment of [`UserAction::WaitUntil`] has come.
    Deadline,
    /// What a user waits for with this ticket, a barrier or a signal, has happened at `at`.
    CueOpened { ticket: u32, at: Instant },
    /// The connection is closed, or could not be opened. The text is what TLS says of its failure.
    Closed(CloseReason, Option<&'a str>),
    /// The user is stopped: its iteration is counted. Its connection stays until [`Self::Leave`].
    Stop,
    /// The user is stopped, closes its connection and is removed.
    Leave,
}

impl<'a> Input<'a> {
    /// Returns the message that arrived.
    pub(crate) fn message(&self) -> Option<&'a [u8]> {
        match self {
            Self::Message(message) => Some(message.bytes()),
            _ => None,
        }
    }

    /// Reports whether data of the application arrived.
    pub(crate) fn is_received(&self) -> bool {
        // On channels, answers and ends are messages, too.
        let protocol = match self {
            Self::Bytes(_) | Self::Message(_) => return true,
            Self::Answered(answer) => answer.protocol(),
            Self::Violated(fault) => fault.protocol(),
            Self::Unasked(unasked) => unasked.protocol(),
            _ => return false,
        };
        protocol.messages == MessageForm::Events
    }
}

/// Progress of the machine after an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// The user waits for another input.
    Waits,
    /// The caller hands the output to the kernel at once. [`Input::Flushed`] follows. The user may
    /// run this many ops more.
    Flush { ops_left: u32 },
}

/// Handles an input. The actions that follow from it have been given to the caller when this
/// returns.
pub(crate) fn handle(cx: &mut UserContext<'_>, input: Input<'_>) -> Progress {
    let wait = cues::present(cx);
    let is_cut = matches!(input, Input::Stop);
    let held = cx.user.held_bytes();
    let progress = handle_input(cx, input);
    let progress = held::recount(cx, held, progress);
    if let Some(wait) = wait {
        cues::settle(cx, wait, is_cut);
    }
    progress
}

fn handle_input(cx: &mut UserContext<'_>, input: Input<'_>) -> Progress {
    let flow = match input {
        Input::Flushed { ops_left } => return run(cx, StepOutcome::Again, ops_left),
        Input::PeerFinished => return peer_finished(cx),
        Input::Begin => iteration::begin(cx),
        Input::Cancel => {
            iteration::begin(cx);
            outcomes::stop(cx);
            ending::leave(cx)
        }
        Input::Drained => match cx.user.wait() {
            Some(UserWait::SendSpace) => StepOutcome::Again,
            _ => StepOutcome::Wait,
        },
        Input::Deadline => deadline(cx),
        Input::CueOpened { ticket, at } => cues::opened(cx, ticket, at),
        Input::Closed(reason, text) => ending::closed(cx, reason, text),
        Input::Stop => {
            outcomes::stop(cx);
            StepOutcome::Wait
        }
        Input::Leave => stop_and_leave(cx),
        Input::Bytes(bytes) => expect::bytes_received(cx, bytes),
        Input::Message(message) if on_message::take(cx, message) => StepOutcome::Wait,
        // An event of a channel that only rules look at.
        Input::Message(_) if !cx.class().expects && skips_others(cx) => StepOutcome::Wait,
        Input::Message(message) => expect::message_received(cx, message),
        Input::Answered(answer) => answer.handle(cx),
        Input::Violated(fault) => fault.handle(cx),
        Input::Unasked(unasked) => unasked.handle(cx),
        // A stopped user only closes its connection.
        Input::Opening | Input::Opened | Input::SelfConnected
            if cx.user.is_deaf() || !cx.user.is_running() =>
        {
            StepOutcome::Wait
        }
        Input::Opening => {
            connect::opening(cx);
            StepOutcome::Wait
        }
        Input::Opened => connect::opened(cx),
        Input::SelfConnected => connect::reset_self_connection(cx),
    };
    run(cx, flow, OPS_MAX)
}

/// Runs the user's ops until one has to wait. This is the only place that moves the user in its
/// program.
fn run(cx: &mut UserContext<'_>, mut flow: StepOutcome, ops_left: u32) -> Progress {
    for ops_left in (0..=ops_left).rev() {
        let pc = cx.user.pc();
        cx.user.go_to(match flow {
            StepOutcome::Next | StepOutcome::Flush => pc + 1,
            StepOutcome::Again | StepOutcome::Wait => pc,
            StepOutcome::Go(pc) | StepOutcome::WaitAt(pc) => pc,
        });
        match flow {
            StepOutcome::Wait | StepOutcome::WaitAt(_) => return Progress::Waits,
            StepOutcome::Flush => return Progress::Flush { ops_left },
            StepOutcome::Next | StepOutcome::Again | StepOutcome::Go(_) => {}
        }
        if ops_left > 0 {
            flow = begin_op(cx);
        }
    }
    // A loop without a wait in it. Other users get their turn in between.
    cx.user.set_wait(UserWait::Yield);
    cx.wait_until(Deadline::Exact(cx.now));
    Progress::Waits
}

/// Begins the user's present op.
fn begin_op(cx: &mut UserContext<'_>) -> StepOutcome {
    cx.trace_op();
    match cx.op() {
        Op::Connect { timeout_ns, handshake } => connect::begin(cx, timeout_ns, handshake),
        Op::Send { template, frame } => send::begin(cx, template, frame),
        Op::SendRandom { bytes } => send::begin_random(cx, bytes as usize),
        Op::ExpectBytes { pattern, timeout_ns } => expect::begin_bytes(cx, pattern, timeout_ns),
        Op::ExpectMessage { pattern, timeout_ns } => expect::begin_message(cx, pattern, timeout_ns),
        Op::OfProtocol { .. } => cx.protocol_op().map_or(StepOutcome::Next, |op| op.begin(cx)),
        Op::Set { slot, template } => set::begin(cx, slot, template),
        Op::Branch { condition, otherwise } => branch::begin(cx, condition, otherwise),
        Op::Choose { choice } => choose::begin(cx, choice),
        Op::Jump { to } => StepOutcome::Go(to),
        Op::Wait { span_ns, jitter } => wait::begin(cx, span_ns, jitter),
        Op::Think { index } => wait::begin_drawn(cx, index),
        Op::AwaitTurn { limit } => limits::begin(cx, limit),
        Op::AwaitCue { cue, .. } => barrier::begin(cx, cue),
        Op::PassCue => StepOutcome::Next,
        Op::Signal { cue } => signal::begin(cx, cue),
        Op::LoopBegin { index } => loops::begin(cx, index),
        Op::LoopEnd { index } => loops::end_turn(cx, index),
        Op::TransactionBegin { index } => transactions::begin(cx, index),
        Op::TransactionEnd { index } => transactions::end(cx, index),
        Op::Stay => stay::begin(cx),
        Op::Close { how } => close::begin(cx, how),
        Op::End => iteration::end(cx),
    }
}

/// Resumes what the user waits for at a moment.
fn deadline(cx: &mut UserContext<'_>) -> StepOutcome {
    let wait = match cx.user.state {
        UserState::Running { wait, .. } => wait,
        UserState::Resting => {
            cx.record(Record::Late(cx.user.intended));
            cx.record(Record::RestOver);
            return iteration::begin(cx);
        }
        UserState::New | UserState::Stopped { .. } => return StepOutcome::Wait,
    };
    match wait {
        UserWait::Connect { .. } | UserWait::Upgrade | UserWait::RequestConnect { .. } => {
            connect::timed_out(cx)
        }
        UserWait::Answer { matched } => expect::timed_out(cx, matched.get()),
        UserWait::Reply { number } => protocol_op_timed_out(cx, number.get()),
        UserWait::Pong => protocol_op_timed_out(cx, 0),
        UserWait::Pause => {
            cx.record(Record::Late(cx.user.intended));
            cx.user.set_wait(UserWait::Yield);
            StepOutcome::Again
        }
        UserWait::Cue { ticket } => cues::timed_out(cx, ticket.get()),
        UserWait::Turn { index } => {
            cx.record(Record::Late(cx.user.intended));
            cx.user.set_wait(UserWait::Yield);
            loops::resume(cx, index.get())
        }
        UserWait::Yield => StepOutcome::Again,
        UserWait::SendSpace
        | UserWait::RunEnd
        | UserWait::Close
        | UserWait::RequestClose { .. }
        | UserWait::CloseAfterFailedConnect
        | UserWait::CloseAfterError => StepOutcome::Wait,
    }
}

fn protocol_op_timed_out(cx: &mut UserContext<'_>, number: u32) -> StepOutcome {
    cx.protocol_op().map_or(StepOutcome::Wait, |op| op.timed_out(cx, number))
}

/// Closes the connection after the server's FIN. If the user only yielded to other users, the
/// answer that it is about to expect may be here: it runs on first.
fn peer_finished(cx: &mut UserContext<'_>) -> Progress {
    if requests::peer_finished(cx) {
        return Progress::Waits;
    }
    if cx.user.wait() == Some(UserWait::Yield) {
        let mut progress = run(cx, StepOutcome::Again, OPS_MAX);
        while let Progress::Flush { ops_left } = progress {
            progress = run(cx, StepOutcome::Again, ops_left);
        }
        if let Some(UserWait::Close | UserWait::CloseAfterError) = cx.user.wait() {
            return Progress::Waits;
        }
    }
    cx.act(UserAction::CloseFinished);
    Progress::Waits
}

/// Reports whether messages that no step waits for mean nothing.
fn skips_others(cx: &UserContext<'_>) -> bool {
    cx.protocol().messages == MessageForm::Events
}

fn stop_and_leave(cx: &mut UserContext<'_>) -> StepOutcome {
    if cx.user.is_leaving() {
        return StepOutcome::Wait;
    }
    outcomes::stop(cx);
    if cx.user.state == UserState::Resting {
        cx.record(Record::RestOver);
    }
    let link = cx.user.link();
    cx.user.state = UserState::Stopped { link, is_deaf: true, is_leaving: true };
    match cx.socket {
        SocketStatus::Absent => cx.remove(),
        _ if cx.class().resets => cx.act(UserAction::Reset),
        _ => cx.close(),
    }
    StepOutcome::Wait
}

/// Ops that a user runs before it yields to other users.
const OPS_MAX: u32 = 64;
