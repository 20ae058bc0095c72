//! Connections that a core follows one by one: when each was opened and last used, and its last
//! answers.
//!
//! The counters of all users say how many connections the target ended, and not after which time.
//! They say how many messages came unasked, and not whether an answer came twice. A few hundred
//! connections show both. A user without the flag costs one test of a bit.

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use throng_base::Instant;
use throng_measure::{EarlyClose, FollowedAnswers};

use super::core_stats::CoreStats;
use crate::user::{AnswerTiming, ErrorKind, Input, Record, close_code_name};

/// Connections that a core follows, by the index of their user.
#[derive(Debug, Default)]
pub(super) struct Followed {
    connections: HashMap<u32, FollowedConnection>,
    hasher: BuildHasherDefault<DefaultHasher>,
}

#[derive(Debug)]
struct FollowedConnection {
    opened_at: Instant,
    /// Moment at which its user last sent or received something.
    used_at: Instant,
    /// The longest time before that without anything, in microseconds.
    idle_us_most: u64,
    /// Moment at which its user sent the only message that is not answered yet.
    asked_at: Option<Instant>,
    /// Hashes of the last different answers, the newest at `next - 1`; 0 for none.
    answers: [u64; ANSWERS_MAX],
    /// Bits of the answers that came more than once as answers.
    constant: u8,
    next: u8,
}

/// What a message was to its user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MessageRole {
    /// The answer that a step waited for.
    Answer,
    /// A message that answered nothing.
    Unasked,
    /// Anything else: a wrong answer, or one that is kept for the next step.
    Other,
}

/// Counters that show what a message was.
#[derive(Clone, Copy, Debug)]
pub(super) struct AnswerCounts {
    answered: u64,
    unasked: u64,
}

impl AnswerCounts {
    pub(super) fn of(stats: &CoreStats) -> Self {
        let counters = &stats.counters;
        Self { answered: counters.messages_answered, unasked: counters.messages_unasked }
    }

    /// Returns what the message was that came since `before`.
    pub(super) fn role_since(self, before: Self) -> MessageRole {
        if self.answered > before.answered {
            MessageRole::Answer
        } else if self.unasked > before.unasked {
            MessageRole::Unasked
        } else {
            MessageRole::Other
        }
    }
}

/// What one input of a user did to its connection.
#[derive(Debug, Default)]
pub(super) struct ConnectionChange {
    pub(super) is_opened: bool,
    lost: Option<LostReason>,
    /// The user sent or received something.
    pub(super) is_used: bool,
    /// The socket is closed.
    is_closed: bool,
    /// The answer to a message arrived.
    answered: Option<AnswerTiming>,
    /// The user sent something.
    pub(super) has_sent: bool,
    /// Messages of the user that were not answered, and the intended moment of the oldest one,
    /// before and after.
    pub(super) unanswered: [(u16, Instant); 2],
}

#[derive(Clone, Copy, Debug)]
enum LostReason {
    Error(ErrorKind),
    CloseFrame(Option<u16>),
}

impl ConnectionChange {
    /// Returns what an input itself does.
    pub(super) fn of(input: &Input<'_>) -> Self {
        let is_closed = matches!(input, Input::Closed(..));
        Self { is_used: input.is_received(), is_closed, ..Self::default() }
    }

    /// Notes what a record says about the connection.
    pub(super) fn note(&mut self, record: &Record<'_>) {
        match record {
            Record::Connected { .. } => self.is_opened = true,
            Record::PeerClosed { code, .. } => self.lost = Some(LostReason::CloseFrame(*code)),
            Record::Error(kind @ (ErrorKind::ClosedByPeer | ErrorKind::ResetByPeer)) => {
                self.lost = Some(LostReason::Error(*kind));
            }
            Record::Answered { from: Some(_), timing } => self.answered = Some(*timing),
            _ => {}
        }
    }

    /// Reports whether the user sent a message, and waits for the answer to it alone.
    fn has_asked(&self) -> bool {
        let [(before, from_before), (after, from)] = self.unanswered;
        // Those that it has given up may count until it sends the next one.
        let is_only = before == 0 || before == 1 && self.answered.is_some() || from != from_before;
        self.has_sent && after == 1 && is_only
    }
}

impl Followed {
    /// Follows what happened to the connection of the user at `index`. `is_followed` says whether
    /// that user's connection is followed. Returns whether it is from now on.
    pub(super) fn follow(
        &mut self,
        index: u32,
        is_followed: bool,
        change: &ConnectionChange,
        now: Instant,
        stats: &mut CoreStats,
    ) -> bool {
        if change.is_opened {
            if !is_followed && self.connections.len() == FOLLOWED_MAX {
                return false;
            }
            let mut connection = FollowedConnection::new(now);
            connection.asked_at = change.has_asked().then_some(now);
            self.connections.insert(index, connection);
            return true;
        }
        if !is_followed {
            return false;
        }
        if let Some(reason) = change.lost {
            if let Some(lost) = self.connections.remove(&index)
                && stats.early_closes.len() < EARLY_CLOSES_MAX
            {
                stats.early_closes.push(lost.early_close(reason, now));
            }
            return false;
        }
        if change.is_closed {
            self.connections.remove(&index);
            return false;
        }
        if change.is_used
            && let Some(connection) = self.connections.get_mut(&index)
        {
            connection.use_at(now);
            if let (Some(timing), Some(asked_at)) = (change.answered, connection.asked_at) {
                stats.times.from_send.record_us(timing.arrived_at().micros_since(asked_at));
            }
            let [before, after] = change.unanswered;
            if change.has_asked() {
                connection.asked_at = Some(now);
            } else if before != after {
                // It waits for no answer, or for several.
                connection.asked_at = None;
            }
        }
        true
    }

    /// Compares a message with the last answers of the user at `index`.
    pub(super) fn compare(
        &mut self,
        index: u32,
        message: &[u8],
        role: MessageRole,
        counters: &mut FollowedAnswers,
    ) {
        let Some(connection) = self.connections.get_mut(&index) else { return };
        let hash = self.hasher.hash_one(message).max(1);
        let known = connection.answers.iter().position(|answer| *answer == hash);
        match (known, role) {
            (None, MessageRole::Answer) => {
                let next = connection.next;
                connection.answers[usize::from(next)] = hash;
                connection.constant &= !(1 << next);
                connection.next = (next + 1) % ANSWERS_MAX as u8;
                counters.answers += 1;
            }
            // A server that always answers the same: a repetition proves nothing.
            (Some(at), MessageRole::Answer) => connection.constant |= 1 << at,
            (Some(at), MessageRole::Unasked) if connection.constant & (1 << at) == 0 => {
                counters.repeats += 1;
            }
            (_, MessageRole::Unasked | MessageRole::Other) => {}
        }
    }
}

impl FollowedConnection {
    fn new(now: Instant) -> Self {
        Self {
            opened_at: now,
            used_at: now,
            idle_us_most: 0,
            asked_at: None,
            answers: [0; ANSWERS_MAX],
            constant: 0,
            next: 0,
        }
    }

    /// Notes that its user sent or received something.
    fn use_at(&mut self, now: Instant) {
        self.idle_us_most = self.idle_us_most.max(now.micros_since(self.used_at));
        self.used_at = now;
    }

    fn early_close(&self, reason: LostReason, now: Instant) -> EarlyClose {
        let millis = |since: Instant| now.micros_since(since) / 1000;
        EarlyClose {
            error: match reason {
                LostReason::Error(kind) => kind.name().to_owned(),
                LostReason::CloseFrame(code) => close_code_name(code),
            },
            open_ms: millis(self.opened_at),
            idle_ms: millis(self.used_at),
            idle_ms_before: self.idle_us_most / 1000,
        }
    }
}

/// Connections that a core follows at a time.
const FOLLOWED_MAX: usize = 256;

/// Closes of followed connections that a core reports in an interval.
pub(super) const EARLY_CLOSES_MAX: usize = 16;

/// Answers that a followed connection remembers.
const ANSWERS_MAX: usize = 8;

#[cfg(test)]
mod tests {

    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn opened() -> ConnectionChange {
        ConnectionChange { is_opened: true, ..ConnectionChange::default() }
    }

    fn lost(code: u16) -> ConnectionChange {
        let mut change = ConnectionChange::default();
        change.note(&Record::PeerClosed { code: Some(code), reason: "" });
        change
    }

    #[test]
    fn a_close_is_reported_with_the_age_and_the_idle_time_of_its_connection() {
        let (mut followed, mut stats) = (Followed::default(), CoreStats::new(0, 1));
        assert!(followed.follow(7, false, &opened(), at(1_000), &mut stats));
        let used = ConnectionChange { is_used: true, ..ConnectionChange::default() };
        assert!(followed.follow(7, true, &used, at(3_000), &mut stats));
        assert!(!followed.follow(7, true, &lost(1001), at(8_000), &mut stats));
        let expected = EarlyClose {
            error: ErrorKind::CloseFrame.with(1001),
            open_ms: 7_000,
            idle_ms: 5_000,
            idle_ms_before: 2_000,
        };
        assert_eq!(stats.early_closes, [expected]);
        // A connection that its user closes is none, and its place is free.
        assert!(followed.follow(8, false, &opened(), at(9_000), &mut stats));
        let closed = ConnectionChange { is_closed: true, ..ConnectionChange::default() };
        assert!(!followed.follow(8, true, &closed, at(9_500), &mut stats));
        assert!(followed.connections.is_empty());
        assert_eq!(stats.early_closes.len(), 1);
    }

    #[test]
    fn an_answer_counts_from_when_its_message_was_sent_and_not_from_when_it_was_due() {
        let (mut followed, mut stats) = (Followed::default(), CoreStats::new(0, 1));
        followed.follow(7, false, &opened(), at(0), &mut stats);
        // `unanswered`: their number, and the moment at which the oldest was due.
        let mut before = (0, Instant::FAR);
        let mut step = |ms: u64, what: &str, unanswered: (u16, u64)| {
            let after = (unanswered.0, at(unanswered.1));
            let mut change = ConnectionChange {
                is_used: true,
                has_sent: what.contains("message"),
                unanswered: [before, after],
                ..ConnectionChange::default()
            };
            if what.contains("answer") {
                let timing = AnswerTiming::own(at(ms));
                change.note(&Record::Answered { from: Some(before.1), timing });
            }
            before = after;
            followed.follow(7, true, &change, at(ms), &mut stats);
            (stats.times.from_send.count(), stats.times.from_send.max() / 1_000)
        };
        step(1_000, "message", (1, 1_000));
        // The next turn was due before the answer to the last one.
        assert_eq!(step(3_000, "answer, message", (1, 2_000)), (1, 2_000));
        // What comes unasked answers nothing, and what nothing answers asks nothing.
        assert_eq!(step(3_500, "other", (1, 2_000)), (1, 2_000));
        assert_eq!(step(3_600, "message of no question", (1, 2_000)), (1, 2_000));
        assert_eq!(step(4_900, "answer", (0, 0)), (2, 2_000));
        // A time-out; then an answer that may be that of the message before, and the next message.
        step(5_000, "message", (1, 5_000));
        step(8_000, "time-out, message", (1, 8_000));
        step(8_100, "late", (1, 8_000));
        step(9_000, "message", (1, 9_000));
        assert_eq!(step(9_100, "answer", (0, 0)), (3, 2_000));
        // Of several messages on their way, the answer may be any one's.
        step(10_000, "message", (1, 10_000));
        step(10_100, "message", (2, 10_000));
        step(19_000, "answer", (1, 10_100));
        assert_eq!(step(19_500, "answer", (0, 0)), (3, 2_000));
    }

    #[test]
    fn only_so_many_connections_and_closes_are_kept() {
        let (mut followed, mut stats) = (Followed::default(), CoreStats::new(0, 1));
        for index in 0..1_000 {
            let follows = followed.follow(index, false, &opened(), at(0), &mut stats);
            assert_eq!(follows, (index as usize) < FOLLOWED_MAX);
        }
        for index in 0..FOLLOWED_MAX as u32 {
            followed.follow(index, true, &lost(1011), at(1), &mut stats);
        }
        assert_eq!((followed.connections.len(), stats.early_closes.len()), (0, EARLY_CLOSES_MAX));
    }

    #[test]
    fn an_answer_that_comes_again_unasked_is_a_repeat() {
        let (mut followed, mut stats) = (Followed::default(), CoreStats::new(0, 1));
        followed.follow(7, false, &opened(), at(0), &mut stats);
        let mut counters = FollowedAnswers::default();
        let mut compare = |message: &str, role| {
            followed.compare(7, message.as_bytes(), role, &mut counters);
        };
        (0..20).for_each(|n| {
            compare(&format!("answer {n}"), MessageRole::Answer);
            compare(&format!("answer {n}"), MessageRole::Unasked);
            compare(&format!("answer {n}"), MessageRole::Other);
            compare("tick", MessageRole::Unasked);
        });
        assert_eq!((counters.answers, counters.repeats), (20, 20));
    }

    #[test]
    fn answers_that_are_always_the_same_prove_nothing() {
        let (mut followed, mut stats) = (Followed::default(), CoreStats::new(0, 1));
        followed.follow(7, false, &opened(), at(0), &mut stats);
        let mut counters = FollowedAnswers::default();
        for _ in 0..20 {
            followed.compare(7, b"ok", MessageRole::Answer, &mut counters);
        }
        followed.compare(7, b"ok", MessageRole::Unasked, &mut counters);
        assert_eq!((counters.answers, counters.repeats), (1, 0));
    }
}
