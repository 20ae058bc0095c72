//! Whether the steps of a user can follow one another: nothing is sent on a connection that is not
//! open, and nothing comes after the end.
//!
//! The steps have no branches, so the connection's state is known before each of them. A loop takes
//! at least one turn; where a turn leaves another state than it found, the second turn is walked
//! through as well.

use super::reader::Reader;
use super::steps::{Action, CloseHow, Repeat, Step};

/// What is known before a step.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// No connection.
    Closed,
    Open,
    /// Nothing more can be sent; answers are still read.
    HalfClosed,
    /// No step is reached any more.
    Over,
}

/// Notes every step that cannot be done where it stands.
pub(super) fn check(reader: &mut Reader<'_>, steps: &[Step]) {
    walk(reader, steps, State::Closed);
}

fn walk(reader: &mut Reader<'_>, steps: &[Step], mut state: State) -> State {
    for step in steps {
        if state == State::Over {
            let title = "this step is never reached";
            reader.error(step.span.clone(), title, "the step before it goes on until the run ends");
            return state;
        }
        state = after(reader, step, state);
    }
    state
}

fn after(reader: &mut Reader<'_>, step: &Step, state: State) -> State {
    match (&step.action, state) {
        (Action::Connect { .. }, State::Open | State::HalfClosed) => {
            reader.error(step.span.clone(), "there is a connection already", "`close` comes first");
            State::Open
        }
        (Action::Connect { .. }, _) => State::Open,
        (Action::Wait { .. }, _) => state,
        (Action::Every { steps, span, .. }, _) => {
            let after = walk_loop(reader, steps, state, true);
            if span.is_none() { State::Over } else { after }
        }
        (Action::Repeat { steps, until }, _) => {
            walk_loop(reader, steps, state, *until != Repeat::Times(1))
        }
        (action, State::Closed) => {
            let what = match action {
                Action::Send(_) => "`send` has nothing to send on",
                Action::Expect { .. } => "`expect` has nothing to read from",
                Action::Stay => "`stay` has no connection to keep",
                _ => "`close` has nothing to close",
            };
            reader.error(
                step.span.clone(),
                what,
                "there is no connection here; `connect` comes first",
            );
            // One missing `connect` is one mistake.
            if matches!(action, Action::Close(_)) {
                State::Closed
            } else {
                state_after(action, State::Open)
            }
        }
        (Action::Send(_), State::HalfClosed) => {
            let label = "`close: half` has ended the sending";
            reader.error(step.span.clone(), "nothing more can be sent", label);
            state
        }
        (Action::Close(CloseHow::Half), State::HalfClosed) => {
            reader.error(step.span.clone(), "the sending half is closed already", "leave this out");
            state
        }
        (action, _) => state_after(action, state),
    }
}

/// The state after a step that could be done.
fn state_after(action: &Action, state: State) -> State {
    match action {
        Action::Stay => State::Over,
        Action::Close(CloseHow::Half) => State::HalfClosed,
        Action::Close(_) => State::Closed,
        _ => state,
    }
}

fn walk_loop(reader: &mut Reader<'_>, steps: &[Step], entry: State, again: bool) -> State {
    let mistakes = reader.mistakes.len();
    let once = walk(reader, steps, entry);
    if !again || once == entry || once == State::Over || reader.mistakes.len() > mistakes {
        return once;
    }
    let twice = walk(reader, steps, once);
    for mistake in &mut reader.mistakes[mistakes..] {
        mistake.help = Some("this is so from the second turn of the loop on".to_owned());
    }
    twice
}
