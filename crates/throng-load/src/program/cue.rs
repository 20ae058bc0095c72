//! Cues: the names by which users wait for one another.

/// A name by which users wait for one another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cue {
    /// Name in the scenario.
    pub name: String,
    /// Line of the first step that waits for it.
    pub line: u32,
    /// What lets the users that wait go on.
    pub kind: CueKind,
}

/// What lets the users that wait for a cue go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CueKind {
    /// This many users that have come: they go on together, and the next ones wait again.
    Barrier {
        /// Number of users; at least 1.
        users: u32,
    },
    /// The first `signal` of any user. Users that come later do not wait.
    Signal,
}

impl Cue {
    /// Describes what a user waits for.
    pub(crate) fn describe(&self) -> String {
        match self.kind {
            CueKind::Barrier { users } => format!("{users} users at the barrier `{}`", self.name),
            CueKind::Signal => format!("the signal `{}`", self.name),
        }
    }
}
