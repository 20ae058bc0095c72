//! The rates that a scenario allows its own users.

use std::fmt;

/// A limit of how often users do something, which the scenario sets itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateLimit {
    /// Users that share it.
    pub scope: LimitScope,
    /// What is limited.
    pub action: LimitedAction,
    /// Highest rate, per second.
    pub per_second: f64,
}

/// Users that share a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LimitScope {
    /// Each user has it alone.
    User,
    /// All users together.
    All,
}

/// What a limit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitedAction {
    /// Messages: `send` and `push`.
    Send,
    /// The `connect` step.
    Connect,
    /// HTTP requests.
    Request,
}

impl LimitedAction {
    /// All actions, in the order in which mistakes and documents name them.
    pub const ALL: [Self; 3] = [Self::Send, Self::Connect, Self::Request];

    /// Returns the key in a scenario.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Send => "send",
            Self::Connect => "connect",
            Self::Request => "request",
        }
    }
}

impl LimitScope {
    /// Returns the key in a scenario.
    pub const fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::All => "all",
        }
    }
}

/// Shows the name in reports: `all.send`.
impl fmt::Display for RateLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.scope.name(), self.action.name())
    }
}
