//! The users of one core that are watched: their lines, for the thread that writes them.

use std::sync::mpsc::{SyncSender, TrySendError};

use throng_base::Instant;

use super::config::GeneratorConfig;
use super::trace_format::{TraceFormat, TraceState};
use crate::program::Program;
use crate::user::{IterationEnd, Record, TraceEvent, UserAction};

/// Users to watch, and where their lines go.
#[derive(Clone, Debug)]
pub struct TraceOptions {
    /// Numbers of the users.
    pub users: Vec<u64>,
    /// True to show whole messages.
    pub is_full: bool,
    /// Receiver of the lines. If it is full, lines are left out and counted.
    pub sink: SyncSender<TraceMessage>,
}

/// Message about a user that is watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TraceMessage {
    /// A line of text.
    Line {
        /// The user.
        user: u64,
        /// The line, with its time.
        text: String,
    },
    /// An iteration of the user has ended.
    Ended {
        /// The user.
        user: u64,
        /// The way in which it ended.
        end: IterationEnd,
    },
    /// The values that the user has stored, just before its iteration ends.
    Stored {
        /// The user.
        user: u64,
        /// The values by their places.
        values: Vec<Vec<u8>>,
    },
    /// The user is gone.
    Removed {
        /// The user.
        user: u64,
    },
}

/// The watched users of one core.
#[derive(Debug)]
pub(super) struct Tracer {
    users: Vec<(u64, TraceState)>,
    is_full: bool,
    sink: SyncSender<TraceMessage>,
    /// Beginning of the run.
    began: Instant,
    /// Lines left out since the last one.
    lines_lost: u64,
}

impl Tracer {
    pub(super) fn new(options: &TraceOptions, config: &GeneratorConfig) -> Self {
        Self {
            users: options.users.iter().map(|id| (*id, TraceState::default())).collect(),
            is_full: options.is_full,
            sink: options.sink.clone(),
            began: config.start_at,
            lines_lost: 0,
        }
    }

    /// Reports whether the user is watched.
    pub(super) fn follows(&self, user: u64) -> bool {
        self.users.iter().any(|(id, _)| *id == user)
    }

    /// Shows an action of a user that is watched.
    pub(super) fn note(
        &mut self,
        program: &Program,
        (user, class): (u64, u16),
        now: Instant,
        action: &UserAction<'_>,
    ) {
        let Some((_, state)) = self.users.iter_mut().find(|(id, _)| *id == user) else { return };
        let (began, is_full) = (self.began, self.is_full);
        let format = TraceFormat { program, began, is_full, class, user };
        for text in format.lines(state, now, action) {
            self.send(TraceMessage::Line { user, text });
        }
        match action {
            UserAction::Record(_, Record::End(end)) => {
                self.send(TraceMessage::Ended { user, end: *end });
            }
            UserAction::Trace(_, TraceEvent::Stored(values)) => {
                self.send(TraceMessage::Stored { user, values: values.to_vec() });
            }
            UserAction::Remove => self.send(TraceMessage::Removed { user }),
            _ => {}
        }
    }

    /// Sends a message, unless the receiver is full or gone. A core never waits for it.
    fn send(&mut self, message: TraceMessage) {
        if self.lines_lost > 0
            && let TraceMessage::Line { user, .. } = &message
        {
            let text = format!("({} lines are missing here)", self.lines_lost);
            if self.sink.try_send(TraceMessage::Line { user: *user, text }).is_ok() {
                self.lines_lost = 0;
            }
        }
        if let Err(TrySendError::Full(_)) = self.sink.try_send(message) {
            self.lines_lost += 1;
        }
    }
}
