//! The verbs of the control protocol, and the role of a process.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// One action that a client can request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verb {
    /// The identity of the process: `{"pid", "title", "verbs"}`. Every process supports it.
    Who,
    /// The measurements until now: a server's `ServerSnapshot`, a generator's `LoadInterval`.
    Snapshot,
    /// A look into a server, a `ServerInspection`: its cores, its largest topics, its slowest and
    /// its busiest connections, at most `n` of each.
    Inspect,
    /// Starts `n` more users.
    Start,
    /// Stops `n` users.
    Stop,
    /// The numbers of users or connections: `{"users", "connected"}` of a generator, `{"open"}` of
    /// a server.
    Count,
    /// Starts no more users, or accepts no more connections; existing ones go on.
    Pause,
    /// Reverts a pause.
    Resume,
    /// Reads the certificates and ticket keys of a server again: `{"certificates"}`.
    Reload,
    /// Lets open connections or iterations end, and accepts or starts nothing more.
    Drain,
    /// Drains, reports and ends the process.
    Shutdown,
}

impl Verb {
    /// All verbs.
    pub const ALL: [Self; 11] = [
        Self::Who,
        Self::Snapshot,
        Self::Inspect,
        Self::Start,
        Self::Stop,
        Self::Count,
        Self::Pause,
        Self::Resume,
        Self::Reload,
        Self::Drain,
        Self::Shutdown,
    ];

    /// Returns the name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Who => "who",
            Self::Snapshot => "snapshot",
            Self::Inspect => "inspect",
            Self::Start => "start",
            Self::Stop => "stop",
            Self::Count => "count",
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Reload => "reload",
            Self::Drain => "drain",
            Self::Shutdown => "shutdown",
        }
    }

    /// Reports whether the verb needs a number of users.
    pub fn needs_n(self) -> bool {
        matches!(self, Self::Start | Self::Stop)
    }

    /// Reports whether the verb changes what the process does. The others only read.
    pub fn is_change(self) -> bool {
        match self {
            Self::Who | Self::Snapshot | Self::Inspect | Self::Count => false,
            Self::Start
            | Self::Stop
            | Self::Pause
            | Self::Resume
            | Self::Reload
            | Self::Drain
            | Self::Shutdown => true,
        }
    }

    /// Reports whether the verb may have a number: of users, or of rows.
    pub fn takes_n(self) -> bool {
        self.needs_n() || self == Self::Inspect
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

/// Joins the names of `verbs`, for a sentence.
pub(crate) fn names(verbs: &[Verb]) -> String {
    verbs.iter().map(|verb| verb.name()).collect::<Vec<_>>().join(", ")
}

/// The role of a process in a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProcessRole {
    /// A server, which accepts connections.
    Server,
    /// A generator, which opens connections.
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
