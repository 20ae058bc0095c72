//! What can be asked of a process, and what kind of process it is.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// One thing that can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verb {
    /// Which process this is: `{"pid", "title", "verbs"}`. Every process answers it.
    Who,
    /// What was measured until now: a server's `ServerSnapshot`, a generator's `LoadInterval`.
    Snapshot,
    /// Start `n` more users.
    Start,
    /// Stop `n` users.
    Stop,
    /// How many there are: `{"users", "connected"}` of a generator, `{"open"}` of a server.
    Count,
    /// Start no more users, or accept no more connections; those that exist go on.
    Pause,
    /// Take that back.
    Resume,
    /// Let what is open end, and accept or start nothing more.
    Drain,
    /// Drain, report and end the process.
    Shutdown,
}

impl Verb {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Who,
        Self::Snapshot,
        Self::Start,
        Self::Stop,
        Self::Count,
        Self::Pause,
        Self::Resume,
        Self::Drain,
        Self::Shutdown,
    ];

    /// Its name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Who => "who",
            Self::Snapshot => "snapshot",
            Self::Start => "start",
            Self::Stop => "stop",
            Self::Count => "count",
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Drain => "drain",
            Self::Shutdown => "shutdown",
        }
    }

    /// Whether it needs a number of users.
    pub fn needs_n(self) -> bool {
        matches!(self, Self::Start | Self::Stop)
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Verb {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|verb| verb.name() == name).ok_or(())
    }
}

/// The names of `verbs`, for a sentence.
pub(crate) fn names(verbs: &[Verb]) -> String {
    verbs.iter().map(|verb| verb.name()).collect::<Vec<_>>().join(", ")
}

/// Which end of a test a process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProcessRole {
    /// It accepts connections.
    Server,
    /// It makes them.
    Load,
}

impl fmt::Display for ProcessRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Server => "server",
            Self::Load => "load",
        })
    }
}
