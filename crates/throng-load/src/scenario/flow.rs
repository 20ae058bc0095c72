//! Checks that the steps of a user can follow one another: no `send` without a connection, no
//! `push` to a topic that is not joined, and no step after the end.
//!
//! Steps have no branches, so the connection's state before each of them is known. A loop takes at
//! least one turn. If a turn changes the state, the second turn is checked as well.

use super::reader::Reader;
use super::steps::{Action, CloseAction, Repeat, Step};
use super::template::Template;

/// State before a step.
#[derive(Clone, Default, PartialEq, Eq)]
struct State {
    connection: ConnectionState,
    /// Joined topics, in the order of joining.
    joined: Vec<Template>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum ConnectionState {
    /// Not connected.
    #[default]
    Closed,
    Open,
    /// The sending side is closed; answers are still read.
    HalfClosed,
    /// No later step is reached.
    Over,
}

/// Reports every step that is impossible at its position.
pub(super) fn check(reader: &mut Reader<'_>, steps: &[Step]) {
    check_steps(reader, steps, State::default());
}

/// Checks steps one after another and returns the state after the last one.
fn check_steps(reader: &mut Reader<'_>, steps: &[Step], mut state: State) -> State {
    for step in steps {
        if state.connection == ConnectionState::Over {
            let title = "this step is never reached";
            reader.error(step.span.clone(), title, "the step before it runs until the run ends");
            return state;
        }
        state = check_step(reader, step, state);
    }
    state
}

/// Checks a step and returns the state after it.
fn check_step(reader: &mut Reader<'_>, step: &Step, mut state: State) -> State {
    match (&step.action, state.connection) {
        (Action::Connect { .. }, ConnectionState::Open | ConnectionState::HalfClosed) => {
            reader.error(step.span.clone(), "already connected", "add a `close` before it");
            State { connection: ConnectionState::Open, ..state }
        }
        (Action::Connect { .. }, _) => {
            State { connection: ConnectionState::Open, joined: Vec::new() }
        }
        (Action::Wait { .. }, _) => state,
        (Action::Every { steps, span, .. }, _) => {
            let after = check_loop(reader, steps, state, true);
            if span.is_none() {
                State { connection: ConnectionState::Over, ..after }
            } else {
                after
            }
        }
        (Action::Repeat { steps, until }, _) => {
            check_loop(reader, steps, state, *until != Repeat::Times(1))
        }
        (action, ConnectionState::Closed) => {
            let name = match action {
                Action::Send(_) => "send",
                Action::ExpectBytes { .. } | Action::ExpectMessage { .. } => "expect",
                Action::Join { .. } => "join",
                Action::Push { .. } => "push",
                Action::Leave { .. } => "leave",
                Action::Stay => "stay",
                _ => "close",
            };
            let title = format!("`{name}` needs a connection");
            reader.error(step.span.clone(), title, "not connected here; add `connect` before it");
            // One missing `connect` is one mistake.
            match action {
                Action::Close(_) => state,
                Action::Push { topic, .. } | Action::Leave { topic, .. } => {
                    state.joined.push(topic.clone());
                    state_after(action, State { connection: ConnectionState::Open, ..state })
                }
                _ => state_after(action, State { connection: ConnectionState::Open, ..state }),
            }
        }
        (Action::Send(_), ConnectionState::HalfClosed) => {
            let label = "the sending side is closed";
            reader.error(step.span.clone(), "`send` after `close: half`", label);
            state
        }
        (Action::Close(CloseAction::Half), ConnectionState::HalfClosed) => {
            reader.error(step.span.clone(), "the sending side is already closed", "remove this");
            state
        }
        (Action::Join { topic, .. }, _) if state.joined.contains(topic) => {
            let label = "add a `leave` before it, or use another topic";
            reader.error(step.span.clone(), "this topic is already joined", label);
            state
        }
        (Action::Push { topic, .. } | Action::Leave { topic, .. }, _)
            if !state.joined.contains(topic) =>
        {
            let label = "add a `join` with exactly this topic before it";
            reader.error(step.span.clone(), "this topic is not joined", label);
            // One missing `join` is one mistake.
            state.joined.push(topic.clone());
            state_after(&step.action, state)
        }
        (action, _) => state_after(action, state),
    }
}

/// Returns the state after a valid step.
fn state_after(action: &Action, mut state: State) -> State {
    match action {
        Action::Join { topic, .. } => state.joined.push(topic.clone()),
        Action::Leave { topic, .. } => state.joined.retain(|joined| joined != topic),
        Action::Stay => state.connection = ConnectionState::Over,
        Action::Close(CloseAction::Half) => state.connection = ConnectionState::HalfClosed,
        Action::Close(_) => state = State::default(),
        _ => {}
    }
    state
}

/// Checks one turn of a loop, and a second one if the first changes the state and `again` is set.
fn check_loop(reader: &mut Reader<'_>, steps: &[Step], entry: State, again: bool) -> State {
    let mistakes = reader.mistakes.len();
    let once = check_steps(reader, steps, entry.clone());
    let unchanged = once == entry || once.connection == ConnectionState::Over;
    if !again || unchanged || reader.mistakes.len() > mistakes {
        return once;
    }
    let twice = check_steps(reader, steps, once);
    for mistake in &mut reader.mistakes[mistakes..] {
        mistake.help = Some("this happens from the second turn of the loop".to_owned());
    }
    twice
}
