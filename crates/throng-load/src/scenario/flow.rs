//! Where a user is between two steps: no `send` without a connection, no `push` to a topic that is
//! not joined, and no step after the end.
//!
//! The connection's state before each step is known: after each way through a branch it must be the
//! same. A loop takes at least one turn. If a turn changes the state, the second turn is checked as
//! well.

use std::ops::Range;

use super::reader::Reader;
use super::template::Template;
use crate::program::LimitedAction;

/// The state before a step, and the step that is checked.
pub(crate) struct Flow<'r, 's> {
    reader: &'r mut Reader<'s>,
    name: &'static str,
    span: Range<usize>,
    state: FlowState,
}

#[derive(Clone, Default, PartialEq, Eq)]
struct FlowState {
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

impl<'r, 's> Flow<'r, 's> {
    pub(super) fn new(reader: &'r mut Reader<'s>) -> Self {
        Self { reader, name: "", span: 0..0, state: FlowState::default() }
    }

    /// Begins the check of a step. Returns false, and reports the step, if it is never reached.
    pub(super) fn reach(&mut self, name: &'static str, span: &Range<usize>) -> bool {
        (self.name, self.span) = (name, span.clone());
        let is_over = self.state.connection == ConnectionState::Over;
        if is_over {
            let label = "the step before it runs until the run ends";
            self.error("this step is never reached", label);
        }
        !is_over
    }

    /// Reports a mistake in the step.
    pub(crate) fn error(&mut self, title: &str, label: &str) {
        self.reader.error(self.span.clone(), title, label);
    }

    /// Reports whether the user is connected. If not, reports the mistake once: continues as if it
    /// were connected. HTTP requests open their connections themselves.
    pub(crate) fn require_connection(&mut self) -> bool {
        if self.reader.protocol.opens_itself || self.state.connection != ConnectionState::Closed {
            return true;
        }
        let title = format!("`{}` needs a connection", self.name);
        self.error(&title, "not connected here; add `connect` before it");
        self.state.connection = ConnectionState::Open;
        false
    }

    /// Reports a topic that is not joined, once: continues as if it were joined.
    pub(crate) fn require_topic(&mut self, topic: &Template) {
        let is_connected = self.require_connection();
        if self.has_joined(topic) {
            return;
        }
        if is_connected {
            let label = "add a `join` with exactly this topic before it";
            self.error("this topic is not joined", label);
        }
        self.join(topic);
    }

    /// Reports a topic that no step joins.
    pub(crate) fn require_join_of(&mut self, topic: &Template) {
        if !self.reader.joined.contains(topic) {
            self.error("no step joins this topic", "no `join` has exactly this topic");
        }
    }

    /// Notes that the step does what limits may count.
    pub(crate) fn acts(&mut self, action: LimitedAction) {
        if !self.reader.limited_actions.contains(&action) {
            self.reader.limited_actions.push(action);
        }
    }

    /// Reports whether the user has a connection.
    pub(crate) fn is_connected(&self) -> bool {
        self.state.connection != ConnectionState::Closed
    }

    /// Reports whether the sending side is closed.
    pub(crate) fn is_half_closed(&self) -> bool {
        self.state.connection == ConnectionState::HalfClosed
    }

    /// Reports whether the user has joined a topic.
    pub(crate) fn has_joined(&self, topic: &Template) -> bool {
        self.state.joined.contains(topic)
    }

    /// Marks the user as connected.
    pub(crate) fn connect(&mut self) {
        self.state.connection = ConnectionState::Open;
    }

    /// Marks the sending side as closed.
    pub(crate) fn half_close(&mut self) {
        self.state.connection = ConnectionState::HalfClosed;
    }

    /// Marks the user as not connected, and in no topic.
    pub(crate) fn disconnect(&mut self) {
        self.state = FlowState::default();
    }

    /// Adds a topic to those that the user has joined.
    pub(crate) fn join(&mut self, topic: &Template) {
        if !self.reader.joined.contains(topic) {
            self.reader.joined.push(topic.clone());
        }
        self.state.joined.push(topic.clone());
    }

    /// Removes a topic from those that the user has joined.
    pub(crate) fn leave(&mut self, topic: &Template) {
        self.state.joined.retain(|joined| joined != topic);
    }

    /// Reports whether no later step is reached.
    pub(crate) fn is_over(&self) -> bool {
        self.state.connection == ConnectionState::Over
    }

    /// Marks all later steps as never reached.
    pub(crate) fn end(&mut self) {
        self.state.connection = ConnectionState::Over;
    }

    /// Checks parts of which one runs. After each of them the user must be in the same state, or
    /// reach no further step.
    pub(crate) fn check_branches(&mut self, parts: &[impl Fn(&mut Self)]) {
        let (name, span, entry) = (self.name, self.span.clone(), self.state.clone());
        let mut after: Option<FlowState> = None;
        let mut differs = false;
        for part in parts {
            self.state = entry.clone();
            part(self);
            if self.state.connection == ConnectionState::Over {
                continue;
            }
            differs |= after.as_ref().is_some_and(|after| *after != self.state);
            after.get_or_insert_with(|| self.state.clone());
        }
        let over = FlowState { connection: ConnectionState::Over, ..FlowState::default() };
        self.state = after.unwrap_or(over);
        (self.name, self.span) = (name, span);
        if differs {
            // One mistake is enough.
            self.state = entry;
            let label = "after each the user must have the same connection and the same topics";
            self.error("its lists of steps end differently", label);
        }
    }

    /// Checks one turn of a loop, and a second one if the first changes the state and `again` is
    /// set.
    pub(crate) fn check_turns(&mut self, again: bool, turn: impl Fn(&mut Self)) {
        let (mistakes, entry) = (self.reader.mistakes.len(), self.state.clone());
        turn(self);
        let unchanged = self.state == entry || self.state.connection == ConnectionState::Over;
        if !again || unchanged || self.reader.mistakes.len() > mistakes {
            return;
        }
        turn(self);
        for mistake in &mut self.reader.mistakes[mistakes..] {
            mistake.help = Some("this happens from the second turn of the loop".to_owned());
        }
    }
}
