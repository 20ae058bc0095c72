//! The users of one core that are watched: their lines, for the thread that writes them.

use std::sync::mpsc::{Sender, SyncSender, TrySendError};

use throng_base::Instant;

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
    pub sink: SyncSender<TraceLine>,
    /// Receiver of what becomes of the users, if it matters. None of it is left out, so it is for
    /// users that end after one iteration.
    pub fates: Option<Sender<UserFate>>,
}

/// Line about a user that is watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceLine {
    /// The user.
    pub user: u64,
    /// The line, with its time.
    pub text: String,
}

/// What becomes of a user that is watched. All its lines before are sent before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UserFate {
    /// The values that the user has stored, by their places, just before its iteration ends.
    Stored(Vec<Vec<u8>>),
    /// An iteration of the user has ended in this way.
    Ended(IterationEnd),
    /// The user is gone.
    Removed,
}

/// The watched users of one core.
#[derive(Debug)]
pub(super) struct Tracer {
    users: Vec<(u64, TraceState)>,
    is_full: bool,
    sink: SyncSender<TraceLine>,
    fates: Option<Sender<UserFate>>,
    /// Beginning of the run.
    began: Instant,
    /// Lines left out since the last one.
    lines_lost: u64,
}

impl Tracer {
    pub(super) fn new(options: &TraceOptions, began: Instant) -> Self {
        Self {
            users: options.users.iter().map(|id| (*id, TraceState::default())).collect(),
            is_full: options.is_full,
            sink: options.sink.clone(),
            fates: options.fates.clone(),
            began,
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
            self.send(TraceLine { user, text });
        }
        let Some(fates) = &self.fates else { return };
        let fate = match action {
            UserAction::Record(_, Record::End(end)) => UserFate::Ended(*end),
            UserAction::Trace(_, TraceEvent::Stored(values)) => UserFate::Stored(values.to_vec()),
            UserAction::Remove => UserFate::Removed,
            _ => return,
        };
        // A receiver that is gone does not matter here.
        _ = fates.send(fate);
    }

    /// Sends a line, unless the receiver is full or gone. A core never waits for it.
    fn send(&mut self, line: TraceLine) {
        if self.lines_lost > 0 {
            let text = format!("({} lines are missing here)", self.lines_lost);
            if self.sink.try_send(TraceLine { user: line.user, text }).is_ok() {
                self.lines_lost = 0;
            }
        }
        if let Err(TrySendError::Full(_)) = self.sink.try_send(line) {
            self.lines_lost += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::scenario::Scenario;

    #[test]
    fn what_becomes_of_a_user_is_known_though_its_lines_are_left_out() {
        let scenario = "target: tcp://h:1\nload: [{ramp: {to: 1, over: 1s}}]\nuser: [connect]\n";
        let scenario = Scenario::parse(scenario, "test").unwrap_or_else(|wrong| panic!("{wrong}"));
        let program = Program::compile(&scenario);
        let (sink, lines) = mpsc::sync_channel(1);
        let (fates, fate) = mpsc::channel();
        let options = TraceOptions { users: vec![3], is_full: false, sink, fates: Some(fates) };
        let now = Instant::from_nanos(0);
        let mut tracer = Tracer::new(&options, now);
        let values = [b"room".to_vec()];
        for action in [
            UserAction::Record(0, Record::Begin),
            UserAction::Close,
            UserAction::Trace(0, TraceEvent::Stored(&values)),
            UserAction::Record(0, Record::End(IterationEnd::Finished)),
            UserAction::Remove,
        ] {
            tracer.note(&program, (3, 0), now, &action);
        }
        assert_eq!(lines.try_iter().count(), 1, "the others have no place");
        let fate: Vec<_> = fate.try_iter().collect();
        let ended = UserFate::Ended(IterationEnd::Finished);
        assert_eq!(fate, [UserFate::Stored(values.to_vec()), ended, UserFate::Removed]);
    }
}
