//! What received bytes become: steps of the handshake, then plaintext.

use throng_base::Instant;

use crate::handshake::{HandshakeReport, TlsHandshakeKind};
use crate::keys::{ConnState, Flag, Way};
use crate::post_handshake::{self, PostMessage};
use crate::record::{ContentType, Opener, Phase, Records};
use crate::slot::Slot;
use crate::table::{OpenConn, Side, TlsKey, TlsTable};
use crate::{Alert, TlsCounters, TlsError};

/// What received bytes brought.
#[derive(Debug, Default)]
pub struct OpenOutcome {
    /// Length of the plaintext, which now is at the start of the input.
    pub plain_bytes: usize,
    /// Length of the end of the input that is not read, because its record is incomplete. The
    /// caller gives it again, in front of what it receives next.
    pub incomplete_bytes: usize,
    /// What the steps of the handshake cost, for the budget of a turn.
    pub cost_us: u32,
    /// The handshake was completed.
    pub established: Option<Box<HandshakeReport>>,
}

impl TlsTable {
    /// Opens the records at the start of `input`, in place. The messages of a handshake, the answer
    /// to a key update and the alert of a failure are appended to `out`. Then [`Self::status`] may
    /// have changed.
    ///
    /// Nothing is opened after the peer has finished or the connection has failed.
    pub fn open(
        &mut self,
        key: TlsKey,
        now: Instant,
        input: &mut [u8],
        out: &mut Vec<u8>,
    ) -> OpenOutcome {
        self.end_ticket_waits(now);
        let mut opened = OpenOutcome::default();
        let mut records = Records::new(input);
        let mut result = Ok(Reading::Open);
        if let Some(Slot::Handshake(_)) = self.slot(key) {
            result = self.read_handshake(key, now, &mut records, &mut opened, out);
        }
        if result == Ok(Reading::Open) {
            result = self.read_records(key, now, &mut records);
        }
        opened.plain_bytes = records.plain_bytes();
        match result {
            Err(error) => self.fail(key, error, out),
            Ok(Reading::Ended) => {}
            Ok(_) => opened.incomplete_bytes = records.rest_bytes(),
        }
        opened
    }

    /// Gives the handshake one record after the other, until it is complete.
    fn read_handshake(
        &mut self,
        key: TlsKey,
        now: Instant,
        records: &mut Records<'_>,
        opened: &mut OpenOutcome,
        out: &mut Vec<u8>,
    ) -> Result<Reading, TlsError> {
        let unix = self.unix_secs(now);
        let handshake = self.handshake(key).ok_or(TlsError::NotOpen)?;
        loop {
            let range = match records.next(handshake.phase()) {
                Ok(Some(range)) => range,
                Ok(None) => return Ok(Reading::Opening),
                Err(error) => {
                    handshake.refuse(&error, unix, out);
                    return Err(error);
                }
            };
            let step = handshake.step(records.bytes(range), unix, out)?;
            opened.cost_us += step.cost_us;
            if step.is_complete {
                break;
            }
        }
        let handshake = self.take_handshake(key).ok_or(TlsError::NotOpen)?;
        let done = handshake.finish()?;
        match done.established.kind {
            TlsHandshakeKind::Resumed => self.counters.handshakes_resumed += 1,
            _ => self.counters.handshakes_full += 1,
        }
        opened.established = Some(Box::new(done.established.clone()));
        self.begin_conn(key, done, now);
        Ok(Reading::Open)
    }

    fn read_records(
        &mut self,
        key: TlsKey,
        now: Instant,
        records: &mut Records<'_>,
    ) -> Result<Reading, TlsError> {
        let unix = self.unix_secs(now);
        let Some(OpenConn { keys, sides, counters }) = self.open_conn(key) else {
            return Ok(Reading::Ended);
        };
        let (half, state) = keys.split(Way::Receive);
        let (side, opener) = (state.take_side(sides), Opener::new(half));
        let mut reader = RecordReader { opener, state, side, counters, unix };
        let result = reader.read(records);
        let RecordReader { state, side, .. } = reader;
        state.put_side(side, sides);
        result?;
        Ok(if state.is(Flag::PeerClosed) { Reading::Ended } else { Reading::Open })
    }
}

/// How far a connection is after its records were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    /// The handshake is running.
    Opening,
    /// More may be received.
    Open,
    /// Nothing more is received.
    Ended,
}

/// Reader of the records of an open connection.
struct RecordReader<'a> {
    opener: Opener<'a>,
    state: &'a mut ConnState,
    side: Side,
    counters: &'a mut TlsCounters,
    unix: u64,
}

impl RecordReader<'_> {
    fn read(&mut self, records: &mut Records<'_>) -> Result<(), TlsError> {
        let phase = Phase::Open(self.state.suite.version());
        // "Any data received after a closure alert has been received MUST be ignored." (section
        // 6.1)
        while !self.state.is(Flag::PeerClosed)
            && let Some(range) = records.next(phase)?
        {
            let (typ, plain) = self.opener.open(records.bytes(range.clone()))?;
            let plain = range.start + plain.start..range.start + plain.end;
            if self.content(typ, records.bytes(plain.clone()))? {
                records.keep(plain);
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
            ContentType::Handshake => {
                self.messages(content)?;
                // A message counts once, in however many records it arrives.
                if !self.side.message.is_empty() {
                    return Ok(false);
                }
            }
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
        let Side { message: rest, tickets } = side;
        let mut is_asked = false;
        post_handshake::read(state, rest, content, |message| {
            match message {
                PostMessage::KeyUpdate { asks } => {
                    opener.update();
                    counters.key_updates += 1;
                    is_asked |= asks;
                }
                // One ticket is enough for the next connection.
                PostMessage::Ticket(body) => {
                    if let Some((reader, _)) = tickets.take() {
                        reader.read(body, *unix)?;
                        counters.tickets_received += 1;
                    }
                }
            }
            Ok(())
        })?;
        // "an implementation which receives multiple KeyUpdates while it is silent [responds] with
        // a single update" (section 4.6.3)
        if is_asked {
            state.set(Flag::OwesUpdate);
        }
        Ok(())
    }

    /// Reads an alert. In TLS 1.3 all but two are fatal, whatever their level says (section 6); a
    /// warning of TLS 1.2 is a record without data.
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
            alert => return Err(TlsError::AlertReceived(alert)),
        }
        Ok(())
    }
}

/// Level of an alert that does not end a connection.
const WARNING: u8 = 1;

/// Records without data that a peer may send in a row: more are a flood.
const IDLE_RECORDS_MAX: u8 = 32;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handshake::HandshakeKeys;
    use crate::keys::ConnKeys;
    use crate::keys::tests::{agreed, pair};
    use crate::record::Sealer;
    use crate::suite::Suite;

    /// Returns an open client, and the keys of its server.
    fn client() -> (TlsTable, TlsKey, Box<dyn ConnKeys>) {
        let suite = Suite::Tls13Aes128;
        let [agreed, _] = agreed(suite);
        let established = HandshakeReport {
            suite,
            kind: TlsHandshakeKind::Full,
            alpn: None,
            has_peer_certificate: true,
            peer_valid_until: None,
        };
        let mut table = TlsTable::new(std::time::Duration::ZERO);
        let key = table.refuse(TlsError::NotOpen);
        let done = HandshakeKeys { is_client: true, agreed, established, tickets: None };
        table.begin_conn(key, done, Instant::ZERO);
        let [_, server] = pair(suite);
        (table, key, server)
    }

    #[test]
    fn a_message_counts_once_in_however_many_records_it_arrives() {
        let (mut table, key, mut server) = client();
        let mut ticket = vec![4, 0, 0, 200];
        ticket.resize(4 + 200, 7);
        let mut check = |messages: u8, is_open: bool| {
            for _ in 0..messages {
                for byte in ticket.chunks(1) {
                    let mut record = Vec::new();
                    let mut sealer = Sealer::new(server.half(Way::Send));
                    sealer.one(ContentType::Handshake, byte, &mut record).unwrap();
                    table.open(key, Instant::ZERO, &mut record, &mut Vec::new());
                }
            }
            assert_eq!(table.status(key) == crate::TlsStatus::Open, is_open);
        };
        check(IDLE_RECORDS_MAX, true);
        check(1, false);
    }
}
