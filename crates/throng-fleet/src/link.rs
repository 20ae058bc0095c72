//! A link between two machines over a bus: messages of any size, each once and in order, in both
//! directions.
//!
//! A message is cut into pieces, which are numbered and sent again until they are acknowledged.
//! Each packet also says what has arrived of the other direction. A packet without a piece is sent
//! when there was nothing to say for [`KEEP_ALIVE`]: the other end knows then that this one lives.
//!
//! An end may acknowledge later than a message arrives: when its caller has kept it. Then the other
//! end knows what has arrived and does not send it again, but keeps it for another receiver.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use throng_base::Instant;
use throng_bus::{Inbox, Outbox};

use crate::within::MESSAGE_BYTES_MAX;

/// One end of a link.
#[derive(Debug)]
pub(crate) struct Link {
    outbox: Outbox<Piece>,
    inbox: Inbox<Piece>,
    /// The pieces so far of the message that arrives; none before its first.
    partial: Option<Vec<u8>>,
    /// Number of the last piece of the last whole message.
    whole: u64,
    /// Pieces that the other end has lost, as of the last piece that came.
    missed: u64,
    /// The last number that the other end was told to have arrived here.
    told: u64,
    /// Of an end that acknowledges later: what the caller has kept.
    kept: Option<KeptNumbers>,
    /// The next moment at which the other end hears of this one, if there is nothing else to say.
    keep_alive: Instant,
    /// Bytes of a message of the other end at most.
    message_bytes_max: usize,
}

/// What the caller of a link has kept.
#[derive(Clone, Copy, Debug, Default)]
struct KeptNumbers {
    /// The number up to which it is kept.
    now: u64,
    /// The number up to which it will be kept at the next call.
    next: u64,
}

/// A part of a message.
#[derive(Clone, Debug)]
struct Piece {
    bytes: Vec<u8>,
    is_first: bool,
    is_last: bool,
}

/// What stands before the bytes of a piece.
#[derive(Debug, Serialize, Deserialize)]
struct PacketHead {
    /// Number of the piece; 0 if there is none.
    number: u64,
    /// The oldest number that the sender still has.
    first: u64,
    /// The number up to which everything has arrived at the sender.
    arrived: u64,
    /// The number up to which the sender needs nothing again: it is arrived and kept.
    acknowledged: u64,
    /// True for the first piece of a message.
    is_first: bool,
    /// True for the last piece of a message.
    is_last: bool,
}

impl Link {
    /// Creates an end that acknowledges what arrives, and takes messages of at most so many bytes.
    pub(crate) fn new(message_bytes_max: usize) -> Self {
        Self {
            outbox: Outbox::new(KEPT_BYTES_MAX),
            inbox: Inbox::default(),
            partial: None,
            whole: 0,
            missed: 0,
            told: 0,
            kept: None,
            keep_alive: Instant::ZERO,
            message_bytes_max,
        }
    }

    /// Creates an end that acknowledges what arrives when [`Self::keep`] says so.
    pub(crate) fn keeping(message_bytes_max: usize) -> Self {
        Self { kept: Some(KeptNumbers::default()), ..Self::new(message_bytes_max) }
    }

    /// Sends a message.
    pub(crate) fn send(&mut self, message: &impl Serialize) {
        // Messages are plain data with string keys.
        self.send_bytes(&serde_json::to_vec(message).expect("a message is JSON"));
    }

    /// Sends a message that may be too large for the other end.
    ///
    /// # Errors
    /// It has more than [`MESSAGE_BYTES_MAX`] bytes: nothing is sent.
    pub(crate) fn try_send(&mut self, message: &impl Serialize) -> Result<(), String> {
        let bytes = serde_json::to_vec(message).expect("a message is JSON");
        if bytes.len() > MESSAGE_BYTES_MAX {
            return Err(format!(
                "the scenario and its files take {} bytes on the bus: {MESSAGE_BYTES_MAX} at most",
                bytes.len()
            ));
        }
        self.send_bytes(&bytes);
        Ok(())
    }

    fn send_bytes(&mut self, bytes: &[u8]) {
        let last = (bytes.len().max(1) - 1) / PIECE_BYTES;
        for (number, piece) in bytes.chunks(PIECE_BYTES).enumerate() {
            let (is_first, is_last) = (number == 0, number == last);
            self.outbox.push(Piece { bytes: piece.to_vec(), is_first, is_last }, piece.len());
        }
    }

    /// Takes a packet. Returns the messages that are whole now.
    ///
    /// # Errors
    /// It is no packet, its numbers are none that the other end has, or the message in pieces is
    /// too large.
    pub(crate) fn on_packet(&mut self, packet: &[u8]) -> Result<Vec<Vec<u8>>, String> {
        let end = packet.iter().position(|byte| *byte == b'\n').ok_or("a packet without a head")?;
        let head: PacketHead =
            serde_json::from_slice(&packet[..end]).map_err(|error| error.to_string())?;
        let piece = &packet[end + 1..];
        if piece.len() > PIECE_BYTES {
            return Err(format!("a piece of {} bytes: {PIECE_BYTES} at most", piece.len()));
        }
        for number in [head.acknowledged, head.arrived] {
            self.outbox.check(number).map_err(|error| error.to_string())?;
        }
        if head.number > 0 {
            let PacketHead { number, first, is_first, is_last, .. } = head;
            let piece = Piece { bytes: piece.to_vec(), is_first, is_last };
            self.inbox.accept(number, first, piece).map_err(|error| error.to_string())?;
        }
        self.outbox.acknowledge(head.acknowledged);
        self.outbox.note_arrived(head.arrived);
        self.take_whole()
    }

    /// Takes the pieces that have come in order. Returns the messages that are whole now.
    fn take_whole(&mut self) -> Result<Vec<Vec<u8>>, String> {
        let mut whole = Vec::new();
        while let Some(Piece { bytes, is_first, is_last }) = self.inbox.pop() {
            let missed = self.inbox.missed();
            let has_hole = missed > self.missed;
            self.missed = missed;
            if is_last {
                self.whole = self.inbox.popped();
            }
            if is_first {
                self.partial = Some(Vec::new());
            } else if has_hole {
                self.partial = None;
            }
            // The beginning of a message may be lost, or have gone to another coordinator.
            let Some(partial) = &mut self.partial else { continue };
            if partial.len() + bytes.len() > self.message_bytes_max {
                self.partial = None;
                let most = self.message_bytes_max;
                return Err(format!("a message in pieces of more than {most} bytes"));
            }
            partial.extend(bytes);
            if is_last {
                whole.extend(self.partial.take());
            }
        }
        Ok(whole)
    }

    /// Begins to receive from another sender, to which this end keeps sending what the one before
    /// has not acknowledged.
    pub(crate) fn change_sender(&mut self) {
        (self.inbox, self.partial) = (Inbox::default(), None);
        (self.whole, self.missed, self.told) = (0, 0, 0);
        self.outbox.resend();
    }

    /// Lets all messages be acknowledged that were whole before the previous call. The caller takes
    /// what has arrived after each call, and has kept it before the next.
    pub(crate) fn keep(&mut self) {
        let whole = self.whole;
        self.kept = self.kept.map(|kept| KeptNumbers { now: kept.next, next: whole });
    }

    /// Reports whether the other end was not told yet what is acknowledged.
    pub(crate) fn has_unsaid(&self) -> bool {
        self.told < self.acknowledged()
    }

    /// Gives `send` each packet that is due, until it returns false.
    pub(crate) fn send_due(&mut self, now: Instant, mut send: impl FnMut(Vec<u8>) -> bool) {
        let first = self.outbox.first();
        let (arrived, acknowledged) = (self.inbox.acknowledged(), self.acknowledged());
        let mut has_sent = false;
        self.outbox.send_due(now, |number, piece| {
            let Piece { is_first, is_last, .. } = *piece;
            let head = PacketHead { number, first, arrived, acknowledged, is_first, is_last };
            let is_sent = send(packet(&head, &piece.bytes));
            has_sent |= is_sent;
            is_sent
        });
        if !has_sent && (self.keep_alive <= now || self.told < acknowledged) {
            let (is_first, is_last) = (false, false);
            let head = PacketHead { number: 0, first, arrived, acknowledged, is_first, is_last };
            has_sent = send(packet(&head, &[]));
        }
        if has_sent {
            self.told = acknowledged;
            self.keep_alive = now + KEEP_ALIVE;
        }
    }

    /// Reports whether the other end has all that was sent.
    pub(crate) fn is_empty(&self) -> bool {
        self.outbox.is_empty()
    }

    fn acknowledged(&self) -> u64 {
        self.kept.map_or(self.inbox.acknowledged(), |kept| kept.now)
    }
}

fn packet(head: &PacketHead, bytes: &[u8]) -> Vec<u8> {
    let mut packet = serde_json::to_vec(head).expect("numbers are JSON");
    packet.push(b'\n');
    packet.extend_from_slice(bytes);
    packet
}

/// Bytes of a piece: half of what a bus carries.
const PIECE_BYTES: usize = throng_bus::PAYLOAD_BYTES_MAX / 2;
/// Bytes that are kept for an end that is away: the reports of some hours.
const KEPT_BYTES_MAX: usize = 128 << 20;
/// Time without a word after which an end says that it lives.
pub const KEEP_ALIVE: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes of a message in these tests.
    const MOST: usize = 4 * PIECE_BYTES;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    /// Moves all packets that are due from one end to the other, and returns the messages.
    fn carry(from: &mut Link, to: &mut Link, now: Instant) -> Vec<String> {
        let mut packets = Vec::new();
        from.send_due(now, |packet| {
            packets.push(packet);
            true
        });
        let whole = packets.iter().flat_map(|packet| to.on_packet(packet).unwrap());
        whole.map(|bytes| serde_json::from_slice(&bytes).unwrap()).collect()
    }

    #[test]
    fn large_and_small_messages_come_whole_and_are_forgotten() {
        let (mut here, mut there) = (Link::new(MOST), Link::new(MOST));
        let large = "x".repeat(3 * PIECE_BYTES);
        here.send(&large);
        here.send(&"small");
        assert_eq!(carry(&mut here, &mut there, at(1)), [large, "small".to_owned()]);
        assert!(!here.is_empty());
        assert!(carry(&mut there, &mut here, at(1)).is_empty());
        assert!(here.is_empty());
    }

    #[test]
    fn what_is_not_kept_comes_again() {
        let (mut here, mut there) = (Link::new(MOST), Link::keeping(MOST));
        here.send(&"one");
        assert_eq!(carry(&mut here, &mut there, at(1)), ["one"]);
        carry(&mut there, &mut here, at(1));
        assert!(!here.is_empty(), "it is not acknowledged");
        assert!(carry(&mut here, &mut there, at(9)).is_empty(), "it came before");
        there.keep();
        carry(&mut there, &mut here, at(9));
        assert!(!here.is_empty(), "it is being kept");
        there.keep();
        carry(&mut there, &mut here, at(9));
        assert!(here.is_empty());
    }

    #[test]
    fn what_has_arrived_is_not_sent_again_before_it_is_kept() {
        let (mut here, mut there) = (Link::new(MOST), Link::keeping(MOST));
        here.send(&"one");
        assert_eq!(carry(&mut here, &mut there, at(1)), ["one"]);
        carry(&mut there, &mut here, at(1));
        let mut has_piece = false;
        here.send_due(at(60), |packet| {
            has_piece |= !packet.ends_with(b"\n");
            true
        });
        assert!(!has_piece && !here.is_empty());
        // Another receiver gets it.
        here.change_sender();
        assert_eq!(carry(&mut here, &mut Link::keeping(MOST), at(60)), ["one"]);
    }

    #[test]
    fn half_a_message_is_not_kept() {
        let (mut here, mut there) = (Link::new(MOST), Link::keeping(MOST));
        here.send(&"x".repeat(2 * PIECE_BYTES));
        let mut packets = Vec::new();
        here.send_due(at(1), |packet| {
            packets.push(packet);
            true
        });
        assert_eq!(there.on_packet(&packets[0]), Ok(Vec::new()));
        (0..3).for_each(|_| there.keep());
        carry(&mut there, &mut here, at(1));
        // All of it comes to the receiver that takes its place.
        here.change_sender();
        assert_eq!(carry(&mut here, &mut Link::keeping(MOST), at(2)).len(), 1);
    }

    #[test]
    fn messages_with_a_lost_piece_are_left_out_and_the_next_one_is_whole() {
        let (mut here, mut there) = (Link::new(MOST), Link::new(MOST));
        let mut packets = Vec::new();
        let mut sent = |here: &mut Link, now| {
            here.send_due(now, |packet| {
                packets.push(packet);
                true
            });
            std::mem::take(&mut packets)
        };
        here.send(&"x".repeat(2 * PIECE_BYTES));
        let first = sent(&mut here, at(1));
        assert_eq!(there.on_packet(&first[0]), Ok(Vec::new()));
        // The sender loses the rest of it, and the beginning of the next one.
        here.outbox = Outbox::new(PIECE_BYTES + 16);
        ["lost", "lost", "lost"].iter().for_each(|message| here.send(message));
        here.send(&"y".repeat(2 * PIECE_BYTES));
        here.send(&"whole");
        let rest = sent(&mut here, at(2));
        let whole = rest.iter().flat_map(|packet| there.on_packet(packet).unwrap());
        assert_eq!(whole.collect::<Vec<_>>(), [b"\"whole\""]);
    }

    #[test]
    fn an_end_that_has_nothing_to_say_shows_that_it_lives() {
        let mut link = Link::new(MOST);
        let mut packets = |now| {
            let mut count = 0;
            link.send_due(now, |_| {
                count += 1;
                true
            });
            count
        };
        let first = at(5);
        assert_eq!((packets(first), packets(first), packets(first + KEEP_ALIVE)), (1, 0, 1));
        assert!(Link::new(MOST).on_packet(b"no packet").is_err());
        assert!(Link::new(MOST).on_packet(b"{}\n").is_err());
    }

    /// Returns a packet with these numbers and a piece of so many bytes.
    fn made(number: u64, first: u64, arrived: u64, acknowledged: u64, bytes: usize) -> Vec<u8> {
        let (is_first, is_last) = (number == 1, false);
        let head = PacketHead { number, first, arrived, acknowledged, is_first, is_last };
        packet(&head, &vec![b'x'; bytes])
    }

    #[test]
    fn a_message_in_pieces_that_is_too_large_is_refused_and_its_bytes_are_forgotten() {
        let mut link = Link::new(MOST);
        for number in 1..=4 {
            assert_eq!(link.on_packet(&made(number, 1, 0, 0, PIECE_BYTES)), Ok(Vec::new()));
        }
        let error = link.on_packet(&made(5, 1, 0, 0, 1)).unwrap_err();
        assert!(error.contains(&format!("more than {MOST} bytes")), "{error}");
        assert_eq!(link.partial, None);
        for number in 6..400 {
            assert_eq!(link.on_packet(&made(number, 1, 0, 0, PIECE_BYTES)), Ok(Vec::new()));
        }
        assert_eq!(link.partial, None);
    }

    #[test]
    fn numbers_and_pieces_that_the_other_end_cannot_have_sent_are_refused() {
        let most = u64::MAX;
        let mut link = Link::new(MOST);
        link.send(&"one");
        for (packet, why) in [
            (made(most, most, 0, 0, 1), "comes next"),
            (made(1, 2, 0, 0, 1), "none before 2"),
            (made(0, 1, most, 0, 0), "only 1 were sent"),
            (made(0, 1, 0, 2, 0), "message 2 has arrived, and only 1 were sent"),
            (made(1, 1, 0, 0, PIECE_BYTES + 1), "a piece of 524289 bytes: 524288 at most"),
        ] {
            let error = link.on_packet(&packet).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
        assert!(!link.is_empty(), "nothing was acknowledged");
        assert_eq!(carry(&mut link, &mut Link::new(MOST), at(1)), ["one"]);
    }

    #[test]
    fn an_order_that_is_too_large_is_not_sent() {
        let mut link = Link::new(MOST);
        let error = link.try_send(&"x".repeat(MESSAGE_BYTES_MAX)).unwrap_err();
        assert!(error.contains("67108866 bytes") && error.contains("67108864 at most"), "{error}");
        assert!(link.is_empty());
    }
}
