//! What received bytes become: steps of the handshake, then plaintext.

use std::ops::Range;

use throng_base::Instant;

use crate::conn::{Slot, TlsConn};
use crate::handshake::{Established, Finished, HandshakeStep};
use crate::keys::{ConnState, Flag, LargeKeys, SmallKeys, Way};
use crate::post_handshake::{self, PostMessage};
use crate::record::{ContentType, Cursor, Opener, Phase, Place};
use crate::side::Side;
use crate::table::{TlsTable, keys_of, take};
use crate::{Alert, TlsCounters, TlsError, TlsHandshakeKind};

/// Buffer of a core with received bytes, and room before them: [`crate::HEADROOM_BYTES`].
pub struct ReceiveBuffer<'a> {
    /// The whole buffer.
    pub bytes: &'a mut [u8],
    /// Where the received bytes stand.
    pub received: Range<usize>,
}

/// What received bytes brought.
#[derive(Debug, Default)]
pub struct Received {
    /// Where the plaintext stands in the buffer.
    pub plain: Range<usize>,
    /// The handshake was completed.
    pub established: Option<Box<Established>>,
    /// The caller must call [`TlsTable::seal`], be it without data: an answer is due.
    pub wants_send: bool,
    /// The peer sends nothing more, or the connection failed. What the buffer for sending then
    /// holds (an alert) should reach the peer before the connection is closed.
    pub end: Option<TlsEnd>,
    /// What the steps of the handshake cost, for the budget of a turn.
    pub cost_us: u32,
}

/// How a connection ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TlsEnd {
    /// The peer sent `close_notify`: everything arrived.
    Closed,
    /// The connection failed.
    Failed(TlsError),
}

impl TlsTable {
    /// Reads bytes that arrived. Records are opened in place, and their plaintext stands together
    /// in the buffer. The messages of a handshake, and the alert of a failure, are appended to
    /// `out`.
    pub fn receive(
        &mut self,
        conn: &mut TlsConn,
        now: Instant,
        input: ReceiveBuffer<'_>,
        out: &mut Vec<u8>,
    ) -> Received {
        let mut received = Received::default();
        let mut cursor = Cursor::new(input.bytes, input.received);
        let mut result = Ok(());
        if let Slot::Handshake(index) = conn.slot() {
            result = self.read_handshake(conn, index, now, &mut cursor, &mut received, out);
            if result.is_err() {
                self.counters.handshakes_failed += 1;
                self.remove(std::mem::replace(conn, TlsConn::new(Slot::Gone)));
            }
        }
        if matches!(conn.slot(), Slot::Small(_) | Slot::Large(_)) {
            result = self.read_records(conn, now, &mut cursor, &mut received);
            if let Err(error) = &result {
                self.counters.failed += 1;
                if let Some(alert) = error.alert() {
                    self.send_alert(conn, alert, out);
                }
            }
        }
        received.plain = cursor.into_plain();
        if let Err(error) = result {
            received.wants_send = false;
            received.end = Some(TlsEnd::Failed(error));
        }
        received
    }

    /// Gives the handshake one record after the other, until it is complete.
    fn read_handshake(
        &mut self,
        conn: &mut TlsConn,
        index: u32,
        now: Instant,
        cursor: &mut Cursor<'_>,
        received: &mut Received,
        out: &mut Vec<u8>,
    ) -> Result<(), TlsError> {
        let (unix, bytes_max) = (self.unix_secs(now), self.limits.handshake_bytes_max);
        let Some(handshake) = self.handshakes.at(index) else { return Ok(()) };
        loop {
            let place = match handshake.next_record(cursor) {
                Ok(Some(place)) => place,
                Ok(None) => return Ok(()),
                Err(error) => {
                    handshake.refuse(&error, unix, out);
                    return Err(error);
                }
            };
            let step = match place {
                Place::Buffer(range) => handshake.step(cursor.bytes(range), bytes_max, unix, out),
                Place::Part(bytes) => handshake.step(&bytes, bytes_max, unix, out),
            };
            match step? {
                HandshakeStep { cost_us, is_complete } => {
                    received.cost_us += cost_us;
                    if is_complete {
                        break;
                    }
                }
            }
        }
        let handshake = take(&mut self.handshakes, index).expect("it was there");
        *conn = TlsConn::new(Slot::Gone);
        self.open(conn, handshake.finish()?, now, received);
        Ok(())
    }

    /// Replaces the handshake of a connection by its keys.
    fn open(&mut self, conn: &mut TlsConn, done: Finished, now: Instant, received: &mut Received) {
        let is_client = done.is_client;
        *conn = TlsConn::new(match done.agreed.suite.needs_large_keys() {
            true => {
                let keys = LargeKeys::new(&done.agreed, is_client);
                Slot::Large(self.large.insert(keys).index())
            }
            false => {
                let keys = SmallKeys::new(&done.agreed, is_client);
                Slot::Small(self.small.insert(keys).index())
            }
        });
        let until = now + std::time::Duration::from_millis(self.limits.ticket_timeout_ms.into());
        let tickets = done.tickets.map(|reader| (reader, until));
        self.put_side(conn, Side { tickets, ..Side::default() });
        match done.established.kind {
            TlsHandshakeKind::Resumed => self.counters.handshakes_resumed += 1,
            _ => self.counters.handshakes_full += 1,
        }
        received.established = Some(Box::new(done.established));
    }

    /// Opens the whole records. What arrived of another one is kept.
    fn read_records(
        &mut self,
        conn: &TlsConn,
        now: Instant,
        cursor: &mut Cursor<'_>,
        received: &mut Received,
    ) -> Result<(), TlsError> {
        let unix = self.unix_secs(now);
        let mut side = self.take_side(conn);
        let had_part = !side.part.is_empty();
        let keys = keys_of(&mut self.small, &mut self.large, conn).ok_or(TlsError::NotOpen)?;
        let (half, state) = keys.split(Way::Receive);
        let mut reader = RecordReader {
            opener: Opener::new(half),
            state,
            side: &mut side,
            counters: &mut self.counters,
            unix,
        };
        let begun = reader.counters.records_opened;
        let result = reader.read(cursor);
        received.wants_send = reader.state.is(Flag::OwesUpdate) && !reader.state.is(Flag::WeClosed);
        if reader.state.is(Flag::PeerClosed) {
            received.end = Some(TlsEnd::Closed);
        }
        let opened = reader.counters.records_opened > begun;
        if !had_part || opened {
            side.part_since = now;
        }
        self.put_side(conn, side);
        result
    }
}

/// Reader of the records of an open connection.
struct RecordReader<'a> {
    opener: Opener<'a>,
    state: &'a mut ConnState,
    side: &'a mut Side,
    counters: &'a mut TlsCounters,
    unix: u64,
}

impl RecordReader<'_> {
    fn read(&mut self, cursor: &mut Cursor<'_>) -> Result<(), TlsError> {
        let phase = Phase::Open(self.state.suite.version());
        // "Any data received after a closure alert has been received MUST be ignored." (section
        // 6.1). After our own alert the peer's data mean nothing either, but its close_notify does.
        while !self.state.is(Flag::PeerClosed) {
            match cursor.next(&mut self.side.part, phase)? {
                None => break,
                Some(Place::Buffer(range)) => {
                    let (typ, plain) = self.opener.open(cursor.bytes(range.clone()))?;
                    let plain = range.start + plain.start..range.start + plain.end;
                    if self.content(typ, cursor.bytes(plain.clone()))? {
                        cursor.keep(plain);
                    }
                }
                Some(Place::Part(mut bytes)) => {
                    let (typ, plain) = self.opener.open(&mut bytes)?;
                    if self.content(typ, &bytes[plain.clone()])? {
                        cursor.keep_part(&bytes[plain]);
                    }
                }
            }
        }
        Ok(())
    }

    /// Acts on the content of a record. Returns whether it is data for the application.
    fn content(&mut self, typ: ContentType, content: &[u8]) -> Result<bool, TlsError> {
        self.counters.records_opened += 1;
        // "Handshake messages MUST NOT be interleaved with other record types." (section 5.1)
        if typ != ContentType::Handshake && !self.side.message.is_empty() {
            return Err(TlsError::Unexpected("a record between the parts of a message"));
        }
        match typ {
            ContentType::Data if !content.is_empty() => {
                self.state.idle_records = 0;
                return Ok(true);
            }
            ContentType::Data => {}
            ContentType::Handshake => self.messages(content)?,
            ContentType::Alert => self.alert(content)?,
            ContentType::ChangeCipherSpec => {
                return Err(TlsError::Unexpected("change_cipher_spec after the handshake"));
            }
        }
        self.state.idle_records += 1;
        match self.state.idle_records > IDLE_RECORDS_MAX {
            true => Err(TlsError::IdleRecords(IDLE_RECORDS_MAX)),
            false => Ok(false),
        }
    }

    fn messages(&mut self, content: &[u8]) -> Result<(), TlsError> {
        let Self { opener, state, side, counters, unix } = self;
        let Side { message: rest, tickets, .. } = &mut **side;
        let (mut updates, mut asks_update) = (0, false);
        post_handshake::read(state, rest, content, |message| {
            match message {
                PostMessage::KeyUpdate { asks } => {
                    updates += 1;
                    asks_update |= asks;
                }
                // One ticket is enough for the next connection, and what reads it is ten times as
                // large as the connection.
                PostMessage::Ticket(body) => {
                    if let Some((reader, _)) = tickets.take() {
                        reader.read(body, *unix)?;
                        counters.tickets_received += 1;
                    }
                }
            }
            Ok(())
        })?;
        for _ in 0..updates {
            opener.update();
            counters.key_updates += 1;
        }
        // An answer that is due answers all requests before it.
        if asks_update {
            state.set(Flag::OwesUpdate);
        }
        Ok(())
    }

    /// "Unless otherwise specified, [...] error alerts MUST be [...] treated as fatal, regardless of
    /// the AlertLevel" in TLS 1.3 (section 6); warnings of TLS 1.2 are counted as records without
    /// data.
    fn alert(&mut self, content: &[u8]) -> Result<(), TlsError> {
        let [level, number] = *content else {
            return Err(match content.is_empty() {
                true => TlsError::EmptyRecord,
                false => TlsError::Malformed("an alert"),
            });
        };
        match Alert(number) {
            Alert::CLOSE_NOTIFY => {
                self.state.set(Flag::PeerClosed);
            }
            Alert::USER_CANCELED => {}
            _ if level == WARNING && !self.state.suite.is_13() => {}
            alert => {
                // Nothing may follow: a fatal alert ends both directions.
                self.state.set(Flag::WeClosed);
                return Err(TlsError::AlertReceived(alert));
            }
        }
        Ok(())
    }
}

/// Level of an alert that does not end a connection.
const WARNING: u8 = 1;

/// Records without data that a peer may send in a row: more are a flood.
const IDLE_RECORDS_MAX: u8 = 32;
