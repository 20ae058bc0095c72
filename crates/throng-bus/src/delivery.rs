//! Delivery over a bus that loses messages: each once, and in order.
//!
//! The sender numbers its messages and keeps each until it is acknowledged ([`Outbox`]). The
//! receiver acknowledges what it has without a hole ([`Inbox`]). So a lost message comes again, and
//! one that comes twice counts once. What was said while the bus was away is said when it is back.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use throng_base::Instant;

/// Numbered messages that their receiver has not acknowledged.
#[derive(Debug)]
pub struct Outbox<T> {
    kept: VecDeque<KeptMessage<T>>,
    /// Number of the next message; the first is 1.
    next: u64,
    /// Number up to which the receiver has everything, although it has not acknowledged it.
    arrived: u64,
    lost: u64,
    /// Bytes of all messages that are kept.
    kept_bytes: usize,
    kept_bytes_max: usize,
}

#[derive(Debug)]
struct KeptMessage<T> {
    message: T,
    bytes: usize,
    /// Moment from which it is sent, again or for the first time.
    due: Instant,
}

/// A number that the other end cannot have sent, or cannot have received.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotANumber {
    /// The receiver has got a message that was not sent.
    #[error("message {number} has arrived, and only {sent} were sent")]
    NotSent {
        /// The number that it has got.
        number: u64,
        /// The last number that was sent.
        sent: u64,
    },
    /// The sender has lost its messages up to one behind this.
    #[error("message {number} of a sender that has none before {first}")]
    BehindItself {
        /// The number of the message.
        number: u64,
        /// The oldest number that the sender has.
        first: u64,
    },
    /// More messages are lost at once than a sender loses.
    #[error("message {number} where {next} comes next: at most {LOST_MAX} are lost at once")]
    TooFar {
        /// The number of the message.
        number: u64,
        /// The number of the one that comes next.
        next: u64,
    },
}

impl<T> Outbox<T> {
    /// Creates an outbox that keeps messages of at most so many bytes. Then it loses the oldest. It
    /// keeps the last one, however large.
    pub fn new(kept_bytes_max: usize) -> Self {
        Self { kept: VecDeque::new(), next: 1, arrived: 0, lost: 0, kept_bytes: 0, kept_bytes_max }
    }

    /// Adds a message of so many bytes. Returns its number.
    pub fn push(&mut self, message: T, bytes: usize) -> u64 {
        while self.kept_bytes + bytes > self.kept_bytes_max
            && let Some(oldest) = self.kept.pop_front()
        {
            self.kept_bytes -= oldest.bytes;
            self.lost += 1;
        }
        self.kept_bytes += bytes;
        self.kept.push_back(KeptMessage { message, bytes, due: Instant::ZERO });
        self.next += 1;
        self.next - 1
    }

    /// Checks a number up to which the receiver says that it has everything.
    ///
    /// # Errors
    /// It is larger than that of the last message.
    pub fn check(&self, number: u64) -> Result<(), NotANumber> {
        let sent = self.next - 1;
        if number <= sent { Ok(()) } else { Err(NotANumber::NotSent { number, sent }) }
    }

    /// Gives each message that is due to `send`, the oldest first, until `send` returns false. What
    /// was sent is due again after [`RESEND_AFTER`].
    pub fn send_due(&mut self, now: Instant, mut send: impl FnMut(u64, &T) -> bool) {
        let (first, arrived) = (self.first(), self.arrived_kept());
        let numbered = (first..).zip(&mut self.kept);
        // The receiver keeps no more of what comes after a hole.
        for (number, kept) in numbered.skip(arrived).take(WINDOW) {
            if kept.due <= now {
                if !send(number, &kept.message) {
                    break;
                }
                kept.due = now + RESEND_AFTER;
            }
        }
    }

    /// Returns the moment of the next [`Self::send_due`]; [`Instant::FAR`] if nothing is kept.
    pub fn due(&self) -> Instant {
        let missing = self.kept.iter().skip(self.arrived_kept());
        missing.take(WINDOW).map(|kept| kept.due).min().unwrap_or(Instant::FAR)
    }

    /// Notes that all messages up to this number have arrived: they are kept until they are
    /// acknowledged, but not sent again.
    pub fn note_arrived(&mut self, number: u64) {
        self.arrived = self.arrived.max(number.min(self.next - 1));
    }

    /// Lets all that is kept be due now: there is a new receiver.
    pub fn resend(&mut self) {
        self.arrived = 0;
        self.kept.iter_mut().for_each(|kept| kept.due = Instant::ZERO);
    }

    /// Forgets all messages up to this number: the receiver has them.
    pub fn acknowledge(&mut self, number: u64) {
        let known = number.min(self.next - 1) + 1;
        let known = known.saturating_sub(self.first());
        let bytes: usize = self.kept.drain(..known as usize).map(|kept| kept.bytes).sum();
        self.kept_bytes -= bytes;
    }

    /// Returns the number of the oldest message that is kept, or of the next one.
    pub fn first(&self) -> u64 {
        self.next - self.kept.len() as u64
    }

    /// Returns how many messages were lost because too many were kept.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Returns how many of the messages that are kept have arrived.
    fn arrived_kept(&self) -> usize {
        (self.arrived + 1).saturating_sub(self.first()) as usize
    }

    /// Reports whether every message was acknowledged or lost.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }
}

/// The receiving end of one [`Outbox`].
#[derive(Debug)]
pub struct Inbox<T> {
    /// Number of the message that comes next.
    next: u64,
    /// The oldest number that the sender still had: what is missing before it does not come.
    first: u64,
    /// Messages that came before an earlier one.
    early: BTreeMap<u64, T>,
    missed: u64,
}

impl<T> Default for Inbox<T> {
    fn default() -> Self {
        Self { next: 1, first: 1, early: BTreeMap::new(), missed: 0 }
    }
}

impl<T> Inbox<T> {
    /// Takes a message. `first` is the oldest number that its sender still has.
    ///
    /// # Errors
    /// The numbers are none that a sender has: nothing is taken.
    pub fn accept(&mut self, number: u64, first: u64, message: T) -> Result<(), NotANumber> {
        if first > number {
            return Err(NotANumber::BehindItself { number, first });
        }
        let next = self.next.max(self.first);
        if number > next.saturating_add(LOST_MAX) {
            return Err(NotANumber::TooFar { number, next });
        }
        self.first = self.first.max(first);
        let next = self.next.max(self.first);
        if number >= self.next && number < next + WINDOW as u64 {
            self.early.insert(number, message);
        }
        Ok(())
    }

    /// Returns the next message in order; `None` while it has not come.
    pub fn pop(&mut self) -> Option<T> {
        loop {
            if let Some(message) = self.early.remove(&self.next) {
                self.next += 1;
                return Some(message);
            }
            if self.next >= self.first {
                return None;
            }
            let present = self.early.keys().next().copied();
            let hole_end = present.map_or(self.first, |number| number.min(self.first));
            self.missed += hole_end - self.next;
            self.next = hole_end;
        }
    }

    /// Returns the number up to which [`Self::pop`] has returned or passed over all messages.
    pub fn popped(&self) -> u64 {
        self.next - 1
    }

    /// Returns the number up to which every message has come or is lost: the acknowledgement.
    pub fn acknowledged(&self) -> u64 {
        let mut number = self.next.max(self.first);
        while self.early.contains_key(&number) {
            number += 1;
        }
        number - 1
    }

    /// Returns how many messages were lost at the sender, as far as they were passed over.
    pub fn missed(&self) -> u64 {
        self.missed
    }
}

/// Messages that are on their way at once.
const WINDOW: usize = 64;
/// Messages that a sender loses at once at most: a message a second in half a year.
const LOST_MAX: u64 = 1 << 24;
/// Time after which a message without an acknowledgement is sent again: some times the round trip
/// between far machines, and the time between two acknowledgements.
pub const RESEND_AFTER: Duration = Duration::from_secs(3);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    fn sent(outbox: &mut Outbox<u64>, now: Instant) -> Vec<u64> {
        let mut numbers = Vec::new();
        outbox.send_due(now, |number, _| {
            numbers.push(number);
            true
        });
        numbers
    }

    #[test]
    fn a_message_is_sent_again_until_it_is_acknowledged() {
        let mut outbox = Outbox::new(10);
        assert_eq!((outbox.due(), outbox.push(7, 1), outbox.push(8, 1)), (Instant::FAR, 1, 2));
        assert_eq!(sent(&mut outbox, at(1)), [1, 2]);
        assert!(sent(&mut outbox, at(2)).is_empty());
        let due = outbox.due();
        assert_eq!(due, at(1) + RESEND_AFTER);
        assert_eq!(sent(&mut outbox, due), [1, 2]);
        outbox.acknowledge(1);
        outbox.acknowledge(1);
        assert_eq!(outbox.first(), 2);
        outbox.acknowledge(5);
        assert!(outbox.is_empty());
    }

    #[test]
    fn what_has_arrived_is_kept_but_not_sent_again() {
        let mut outbox = Outbox::new(10);
        (1..=3).for_each(|number| _ = outbox.push(number, 1));
        assert_eq!(sent(&mut outbox, at(1)), [1, 2, 3]);
        outbox.note_arrived(2);
        outbox.note_arrived(1);
        assert_eq!(sent(&mut outbox, at(9)), [3]);
        outbox.note_arrived(7);
        assert_eq!((outbox.due(), outbox.push(4, 1), outbox.first()), (Instant::FAR, 4, 1));
        assert_eq!(sent(&mut outbox, at(19)), [4]);
        outbox.resend();
        assert_eq!(sent(&mut outbox, at(19)), [1, 2, 3, 4]);
        outbox.acknowledge(3);
        assert_eq!(sent(&mut outbox, at(29)), [4]);
    }

    #[test]
    fn what_the_bus_refuses_is_due_at_once_again() {
        let mut outbox = Outbox::new(10);
        outbox.push(7, 1);
        outbox.send_due(at(1), |_, _| false);
        assert_eq!(sent(&mut outbox, at(1)), [1]);
    }

    #[test]
    fn a_full_outbox_loses_the_oldest_and_the_receiver_counts_it() {
        let mut outbox = Outbox::new(2);
        let mut inbox = Inbox::default();
        (1..=5).for_each(|number| _ = outbox.push(number, 1));
        assert_eq!((outbox.first(), outbox.lost()), (4, 3));
        outbox.send_due(at(1), |number, message| {
            inbox.accept(number, 4, *message).unwrap();
            true
        });
        assert_eq!(std::iter::from_fn(|| inbox.pop()).collect::<Vec<_>>(), [4, 5]);
        assert_eq!((inbox.missed(), inbox.acknowledged()), (3, 5));
    }

    #[test]
    fn an_outbox_keeps_bytes_and_at_least_the_last_message() {
        let mut outbox = Outbox::new(10);
        for (bytes, first, lost) in [(4, 1, 0), (6, 1, 0), (1, 2, 1), (99, 4, 3), (1, 5, 4)] {
            outbox.push(0, bytes);
            assert_eq!((outbox.first(), outbox.lost()), (first, lost), "{bytes}");
        }
        outbox.acknowledge(5);
        outbox.push(0, 10);
        assert_eq!(outbox.lost(), 4, "what is acknowledged has no bytes");
    }

    #[test]
    fn numbers_that_no_sender_has_are_refused_and_change_nothing() {
        let mut inbox = Inbox::default();
        let (far, most) = (LOST_MAX + 2, u64::MAX);
        let refused = [(far, far), (far, 1), (most, most), (most, 1), (1, 2), (0, most), (5, most)];
        for (number, first) in refused {
            let error = inbox.accept(number, first, 0).unwrap_err();
            assert!(error.to_string().contains(&number.to_string()), "{error}");
        }
        assert_eq!((inbox.pop(), inbox.acknowledged(), inbox.missed()), (None, 0, 0));
        inbox.accept(1, 1, 7).unwrap();
        assert_eq!((inbox.pop(), inbox.acknowledged()), (Some(7), 1));
    }

    #[test]
    fn more_than_was_sent_is_acknowledged_by_none() {
        let mut outbox = Outbox::new(10);
        (1..=2).for_each(|number| _ = outbox.push(number, 1));
        assert_eq!(outbox.check(2), Ok(()));
        for number in [3, u64::MAX] {
            assert_eq!(outbox.check(number), Err(NotANumber::NotSent { number, sent: 2 }));
        }
        outbox.note_arrived(u64::MAX);
        outbox.acknowledge(u64::MAX);
        assert!(outbox.is_empty());
        assert_eq!((outbox.first(), outbox.push(3, 1)), (3, 3));
    }

    #[test]
    fn messages_before_a_hole_come_before_those_behind_it() {
        let mut inbox = Inbox::default();
        inbox.accept(2, 1, 2).unwrap();
        assert_eq!((inbox.pop(), inbox.acknowledged()), (None, 0));
        inbox.accept(5, 4, 5).unwrap();
        assert_eq!(inbox.acknowledged(), 3);
        assert_eq!((inbox.pop(), inbox.pop(), inbox.missed()), (Some(2), None, 2));
        inbox.accept(4, 4, 4).unwrap();
        assert_eq!((inbox.pop(), inbox.pop(), inbox.acknowledged()), (Some(4), Some(5), 5));
    }

    proptest! {
        /// A bus that loses, repeats and reorders, in both directions.
        #[test]
        fn each_message_comes_once_and_in_order(
            messages in 1_u64..300,
            fates in prop::collection::vec((0_u8..4, 0_u8..4), 50..200),
        ) {
            let mut outbox = Outbox::new(1_000);
            (1..=messages).for_each(|message| _ = outbox.push(message, 1));
            let mut inbox = Inbox::default();
            let mut received = Vec::new();
            let mut on_the_way: Vec<(u64, u64)> = Vec::new();
            // After the faults comes a calm time, in which all that is left arrives.
            let calm = std::iter::repeat_n((1, 1), 2 * messages as usize + 10);
            for (step, (fate, acknowledgement)) in (0..).zip(fates.into_iter().chain(calm)) {
                let now = at(step * RESEND_AFTER.as_secs());
                outbox.send_due(now, |number, message| {
                    match fate {
                        0 => {}
                        1 => on_the_way.push((number, *message)),
                        2 => on_the_way.extend([(number, *message); 2]),
                        _ => on_the_way.insert(0, (number, *message)),
                    }
                    true
                });
                for (number, message) in on_the_way.drain(..) {
                    inbox.accept(number, outbox.first(), message).unwrap();
                }
                received.extend(std::iter::from_fn(|| inbox.pop()));
                if acknowledgement > 0 {
                    outbox.acknowledge(inbox.acknowledged());
                }
            }
            prop_assert!(outbox.is_empty());
            prop_assert_eq!(received, (1..=messages).collect::<Vec<_>>());
            prop_assert_eq!((inbox.missed(), outbox.lost()), (0, 0));
        }
    }
}
