//! The rules of a topic: what happens to publications for slow readers.

use std::fmt;
use std::str::FromStr;

/// The policy of a full queue of publications: of a slow reader, of a core's mailbox, or of a
/// topic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Policy {
    /// The new publication is not queued: the reader gets the old ones, then a gap.
    DropNewest,
    /// The oldest publication that is not being sent makes room: the reader gets a gap, then the
    /// new ones.
    DropOldest,
    /// At most one publication waits, and a new one replaces it: for topics whose publications are
    /// states, not events.
    KeepLatest,
    /// The reader is disconnected. The default: a silent gap is worse than a close, which the
    /// client sees, so that it connects again and requests what it has missed. A queue without a
    /// single reader (a mailbox, a topic's) has no connection to close; there this is
    /// [`Self::DropNewest`].
    #[default]
    Close,
}

impl Policy {
    /// All policies.
    pub const ALL: [Self; 4] = [Self::DropNewest, Self::DropOldest, Self::KeepLatest, Self::Close];

    /// Returns the name on the command line and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::DropNewest => "drop-newest",
            Self::DropOldest => "drop-oldest",
            Self::KeepLatest => "keep-latest",
            Self::Close => "close",
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Policy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|policy| policy.name() == text).ok_or_else(|| {
            format!("`{text}` is not one of drop-newest, drop-oldest, keep-latest, close")
        })
    }
}

/// The limits of a topic, and the policy beyond them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopicRules {
    /// The policy of full queues.
    pub policy: Policy,
    /// Bytes of this topic that may wait for one slow reader. Default 512 KiB, so that a few topics
    /// fit into the connection's own limit of 1 MiB.
    pub queue_bytes_max: usize,
    /// Bytes of publications that may wait on a core while earlier ones are delivered, each counted
    /// by its [`Publication::weight`](crate::Publication::weight). Default 16 MiB, about 60,000
    /// short ones.
    pub backlog_bytes_max: usize,
}

impl Default for TopicRules {
    fn default() -> Self {
        Self { policy: Policy::default(), queue_bytes_max: 512 << 10, backlog_bytes_max: 16 << 20 }
    }
}

/// The rules of a topic in the send queue of a slow reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lane {
    /// A number that distinguishes the topics of one core; never 0.
    pub id: u32,
    /// The policy of the full queue.
    pub policy: Policy,
    /// Bytes of the lane that may wait.
    pub queue_bytes_max: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_is_read_as_it_is_written() {
        for policy in Policy::ALL {
            assert_eq!(policy.to_string().parse(), Ok(policy));
        }
        assert!("drop".parse::<Policy>().unwrap_err().contains("keep-latest"));
    }
}
