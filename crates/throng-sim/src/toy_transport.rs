//! A transport for tests: a cipher that reverses the bits of each byte, and a handshake that takes
//! a round trip. It is as strict as encryption is: a record out of order, a changed header and
//! plain bytes end the connection.

use std::num::NonZeroU32;

use throng_base::Instant;
use throng_proto::{
    OpenedRecords, SocketTransport, TransportError, TransportFactory, TransportKey, TransportRole,
    TransportStatus,
};

/// Transport whose records are a header and reversed bits. The header has the kind of the record,
/// its number in its direction, and its length: so no record is sealed twice, and none is lost.
#[derive(Default)]
pub struct ToyTransport {
    /// Connections; a place is free if it has none.
    connections: Vec<Option<ToyConnection>>,
    free: Vec<u32>,
}

/// Connection over the toy.
struct ToyConnection {
    role: TransportRole,
    status: TransportStatus,
    /// Number of the next record that is sent.
    sent: u32,
    /// Number of the next record that is received.
    received: u32,
    has_finished: bool,
}

/// Kind of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ToyRecord {
    /// The client begins.
    Hello = 0xA1,
    /// The server answers.
    Welcome,
    /// The client has the answer.
    Ready,
    Data,
    /// The sender sends no more.
    Bye,
    /// The sender gives up.
    Alert,
}

impl ToyTransport {
    /// The record has another kind than any, as plain bytes have.
    pub const UNKNOWN_RECORD: TransportError = TransportError::ContentType;
    /// The record does not follow the one before it.
    pub const OUT_OF_ORDER: TransportError = TransportError::BadRecordMac;
    /// The record is longer than a record may be.
    pub const TOO_LONG: TransportError = TransportError::RecordTooLong;
    /// The record is not expected here.
    pub const UNEXPECTED: TransportError = TransportError::UnexpectedMessage;
    /// The peer has given up.
    pub const ALERT: TransportError = TransportError::AlertReceived;
    /// The first byte of an alert.
    pub const ALERT_BYTE: u8 = ToyRecord::Alert as u8;
    /// Work of a step of the handshake.
    pub const HELLO_WORK_BYTES: usize = 160 << 10;
    /// Bytes before the payload of a record: its kind, its number, its length.
    pub const HEADER_BYTES: usize = 7;
    /// Longest payload. Short, so that many records are cut by reads and windows.
    pub const PAYLOAD_BYTES_MAX: usize = 1_000;

    /// Returns a factory of this transport, one for each core.
    pub fn factory() -> TransportFactory {
        TransportFactory::new(|_core| Box::<Self>::default())
    }

    /// Returns how many connections it knows.
    pub fn connections(&self) -> usize {
        self.connections.len() - self.free.len()
    }

    fn at(&mut self, key: TransportKey) -> &mut ToyConnection {
        self.connections[place(key)].as_mut().expect("the connection is not forgotten")
    }
}

impl SocketTransport for ToyTransport {
    fn record_bytes_max(&self) -> usize {
        Self::HEADER_BYTES + Self::PAYLOAD_BYTES_MAX
    }

    fn begin(&mut self, role: TransportRole, _now: Instant, out: &mut Vec<u8>) -> TransportKey {
        let status = TransportStatus::Opening;
        let mut connection =
            ToyConnection { role, status, sent: 0, received: 0, has_finished: false };
        if role == TransportRole::Client {
            connection.seal(ToyRecord::Hello, &[0; GREETING_BYTES], out);
        }
        let place = self.free.pop().unwrap_or(self.connections.len() as u32);
        match self.connections.get_mut(place as usize) {
            Some(free) => *free = Some(connection),
            None => self.connections.push(Some(connection)),
        }
        TransportKey(NonZeroU32::MIN.saturating_add(place))
    }

    fn open(
        &mut self,
        key: TransportKey,
        _now: Instant,
        input: &mut [u8],
        out: &mut Vec<u8>,
    ) -> OpenedRecords {
        let connection = self.at(key);
        let mut opened = OpenedRecords::default();
        let mut at = 0;
        while matches!(connection.status, TransportStatus::Opening | TransportStatus::Open) {
            match connection.open_one(&mut input[at..], out, &mut opened.work_bytes) {
                Ok(None) => {
                    opened.incomplete_bytes = input.len() - at;
                    break;
                }
                Ok(Some((payload, end))) => {
                    input.copy_within(at + payload.start..at + payload.end, opened.plain_bytes);
                    opened.plain_bytes += payload.len();
                    at += end;
                }
                Err(error) => {
                    connection.status = TransportStatus::Failed(error);
                    if error != Self::ALERT {
                        connection.seal(ToyRecord::Alert, &[], out);
                    }
                }
            }
        }
        opened.status = connection.status;
        opened
    }

    fn status(&self, key: TransportKey) -> TransportStatus {
        let connection = self.connections[place(key)].as_ref();
        connection.expect("the connection is not forgotten").status
    }

    fn seal(&mut self, key: TransportKey, plain: &[u8], out: &mut Vec<u8>) {
        let connection = self.at(key);
        for payload in plain.chunks(Self::PAYLOAD_BYTES_MAX) {
            connection.seal(ToyRecord::Data, payload, out);
        }
    }

    fn finish(&mut self, key: TransportKey, out: &mut Vec<u8>) {
        let connection = self.at(key);
        if !std::mem::replace(&mut connection.has_finished, true) {
            connection.seal(ToyRecord::Bye, &[], out);
        }
    }

    fn forget(&mut self, key: TransportKey) {
        let forgotten = self.connections[place(key)].take();
        assert!(forgotten.is_some(), "a connection is forgotten once");
        self.free.push(key.0.get() - 1);
    }
}

impl ToyConnection {
    fn seal(&mut self, kind: ToyRecord, payload: &[u8], out: &mut Vec<u8>) {
        out.push(kind as u8);
        out.extend(self.sent.to_be_bytes());
        out.extend((payload.len() as u16).to_be_bytes());
        out.extend(payload.iter().map(|byte| byte.reverse_bits()));
        self.sent += 1;
    }

    /// Opens the record at the start of `input`. Returns where its plaintext is, and where it ends;
    /// `None` if it is incomplete.
    #[allow(clippy::type_complexity)]
    fn open_one(
        &mut self,
        input: &mut [u8],
        out: &mut Vec<u8>,
        work_bytes: &mut usize,
    ) -> Result<Option<(std::ops::Range<usize>, usize)>, TransportError> {
        let Some(&kind) = input.first() else { return Ok(None) };
        let kind = ToyRecord::from_byte(kind).ok_or(ToyTransport::UNKNOWN_RECORD)?;
        let Some((header, payload)) = input.split_at_mut_checked(ToyTransport::HEADER_BYTES) else {
            return Ok(None);
        };
        let number = u32::from_be_bytes([header[1], header[2], header[3], header[4]]);
        let length = usize::from(u16::from_be_bytes([header[5], header[6]]));
        if number != self.received {
            return Err(ToyTransport::OUT_OF_ORDER);
        }
        if length > ToyTransport::PAYLOAD_BYTES_MAX {
            return Err(ToyTransport::TOO_LONG);
        }
        let Some(payload) = payload.get_mut(..length) else { return Ok(None) };
        self.received += 1;
        payload.iter_mut().for_each(|byte| *byte = byte.reverse_bits());
        let is_open = self.status == TransportStatus::Open;
        let end = ToyTransport::HEADER_BYTES + length;
        match (kind, self.role) {
            (ToyRecord::Data, _) if is_open => {
                return Ok(Some((ToyTransport::HEADER_BYTES..end, end)));
            }
            (ToyRecord::Bye, _) if is_open => self.status = TransportStatus::Finished,
            (ToyRecord::Alert, _) => return Err(ToyTransport::ALERT),
            (ToyRecord::Hello, TransportRole::Server) if self.received == 1 => {
                *work_bytes += ToyTransport::HELLO_WORK_BYTES;
                self.seal(ToyRecord::Welcome, &[0; GREETING_BYTES], out);
            }
            (ToyRecord::Welcome, TransportRole::Client) if !is_open => {
                *work_bytes += ToyTransport::HELLO_WORK_BYTES;
                self.status = TransportStatus::Open;
                self.seal(ToyRecord::Ready, &[], out);
            }
            (ToyRecord::Ready, TransportRole::Server) if !is_open && self.received == 2 => {
                self.status = TransportStatus::Open;
            }
            _ => return Err(ToyTransport::UNEXPECTED),
        }
        Ok(Some((end..end, end)))
    }
}

impl ToyRecord {
    fn from_byte(byte: u8) -> Option<Self> {
        let all = [Self::Hello, Self::Welcome, Self::Ready, Self::Data, Self::Bye, Self::Alert];
        all.into_iter().find(|kind| *kind as u8 == byte)
    }
}

fn place(key: TransportKey) -> usize {
    key.0.get() as usize - 1
}

/// Length of what the handshake says.
const GREETING_BYTES: usize = 50;
