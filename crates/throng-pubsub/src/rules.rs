//! What becomes of publications that somebody is too slow for.

use std::fmt;
use std::str::FromStr;

/// What gives way when a queue of publications is full: a slow reader's, a core's mailbox, or a topic's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Policy {
    /// The new publication is not queued: the reader gets the old ones, then a gap.
    DropNewest,
    /// The oldest one that is not on its way yet makes room: the reader gets a gap, then the new ones.
    DropOldest,
    /// At most one waits, and a new one takes its place: for topics whose publications are states, not events.
    KeepLatest,
    /// The reader is disconnected. The default: a gap that nobody is told of is worse than an end that the client sees,
    /// and answers by connecting and asking for what it missed. A queue that no one reader owns (a mailbox, a
    /// topic's) has nobody to disconnect; there this is [`Self::DropNewest`].
    #[default]
    Close,
}

impl Policy {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::DropNewest, Self::DropOldest, Self::KeepLatest, Self::Close];

    /// As it is written on the command line and in reports.
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

/// The limits of a topic, and what happens at them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopicRules {
    /// What gives way.
    pub policy: Policy,
    /// Bytes of this topic that may wait for one slow reader. Default 512 KiB, so that a few topics fit into the
    /// connection's own limit of 1 MiB.
    pub queue_bytes_max: usize,
    /// Bytes of publications that may wait on a core while those before them are delivered: of each what
    /// [`Publication::weight`](crate::Publication::weight) says. Default 16 MiB, which is some 60,000 short ones.
    pub backlog_bytes_max: usize,
}

impl Default for TopicRules {
    fn default() -> Self {
        Self { policy: Policy::default(), queue_bytes_max: 512 << 10, backlog_bytes_max: 16 << 20 }
    }
}

/// What a slow reader's queue knows of the topic that its frames belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lane {
    /// Tells the topics of one core apart; never 0.
    pub id: u32,
    /// What gives way.
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
