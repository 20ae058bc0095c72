//! The only file that knows how rustls 0.23 is driven. Version 0.24 has no unbuffered API: it will
//! need another form of this file.
//!
//! The rule that closes three traps of 0.23: rustls is offered one record at a time, what was
//! offered is kept until rustls discards it, and nothing is offered after `WriteTraffic`. Otherwise
//! rustls would read a KeyUpdate that arrived with the last message of the handshake, its answer
//! would be lost, or a peer could make it panic.

use rustls::client::{ClientConnectionData, UnbufferedClientConnection};
use rustls::kernel::KernelConnection;
use rustls::server::UnbufferedServerConnection;
use rustls::unbuffered::{ConnectionState, EncodeError, EncodeTlsData, UnbufferedStatus};
use rustls::{
    AlertDescription, CommonState, ConnectionTrafficSecrets, Error, ExtractedSecrets, HandshakeKind,
};
use zeroize::Zeroizing;

use super::context::{StepGuard, TrafficSecrets};
use super::failure::HandshakeFailure;
use crate::config::{suite_of, validity};
use crate::key_schedule::SECRET_BYTES_MAX;
use crate::keys::{HalfMaterial, KeyMaterial};
use crate::suite::{Suite, TlsVersion};
use crate::{TlsClient, TlsError};

/// Handshake of rustls, and what it was offered.
pub(super) struct Backend {
    machine: Machine,
    /// Records that rustls has seen and not discarded.
    offered: Vec<u8>,
}

enum Machine {
    Client(UnbufferedClientConnection),
    Server(UnbufferedServerConnection),
}

/// How far a handshake is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    Blocked,
    Complete,
}

/// How a handshake went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsHandshakeKind {
    /// A full handshake.
    Full,
    /// A full handshake with one more round trip: the server wanted another group for the key.
    Retried,
    /// A session was resumed.
    Resumed,
}

/// What a handshake agreed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandshakeReport {
    /// Version and cipher.
    pub suite: Suite,
    /// Full or resumed.
    pub kind: TlsHandshakeKind,
    /// Protocol that was agreed by ALPN.
    pub alpn: Option<Vec<u8>>,
    /// The peer showed a certificate, now or when the session that was resumed began.
    pub has_peer_certificate: bool,
    /// Second of Unix at which the peer's certificate expires, if it showed one.
    pub peer_valid_until: Option<u64>,
}

/// Complete handshake.
pub(crate) struct HandshakeKeys {
    pub is_client: bool,
    pub agreed: KeyMaterial,
    pub established: HandshakeReport,
    /// What reads the tickets of a server.
    pub tickets: Option<Box<TicketReader>>,
}

impl Backend {
    pub(super) fn client(connection: UnbufferedClientConnection) -> Self {
        Self { machine: Machine::Client(connection), offered: Vec::new() }
    }

    pub(super) fn server(connection: UnbufferedServerConnection) -> Self {
        Self { machine: Machine::Server(connection), offered: Vec::new() }
    }

    /// Gives rustls one more record, and appends what it sends to `out`: after an error its alert.
    pub(super) fn offer(&mut self, record: &[u8], out: &mut Vec<u8>) -> Result<Progress, Error> {
        self.offered.extend_from_slice(record);
        loop {
            match self.advance(out) {
                Ok(None) => {}
                Ok(Some(Progress::Complete)) if !self.offered.is_empty() => {
                    return Err(Error::General("bytes are left of the last message".into()));
                }
                Ok(Some(progress)) => return Ok(progress),
                Err(error) => {
                    if !self.common().wants_write() && !matches!(error, Error::AlertReceived(_)) {
                        self.refuse(record.len());
                    }
                    // rustls has nothing to read here: it first gives back what it wants to send.
                    while self.common().wants_write() && matches!(self.advance(out), Ok(None)) {}
                    return Err(error);
                }
            }
        }
    }

    /// Makes rustls queue an alert, `decode_error`, for an error that has none: it reads a wrong
    /// header, in the place of the last record or, if that was read, behind it.
    fn refuse(&mut self, record_bytes: usize) {
        let begin = self.offered.len().saturating_sub(record_bytes);
        for (byte, wrong) in self.offered[begin..].iter_mut().zip(WRONG_HEADER) {
            *byte = wrong;
        }
        self.offered.extend_from_slice(&WRONG_HEADER);
        let _ = self.advance(&mut Vec::new());
    }

    fn advance(&mut self, out: &mut Vec<u8>) -> Result<Option<Progress>, Error> {
        let (discard, result) = match &mut self.machine {
            Machine::Client(client) => settle(client.process_tls_records(&mut self.offered), out),
            Machine::Server(server) => settle(server.process_tls_records(&mut self.offered), out),
        };
        self.offered.drain(..discard);
        result
    }

    fn common(&self) -> &CommonState {
        match &self.machine {
            Machine::Client(client) => client,
            Machine::Server(server) => server,
        }
    }

    /// Takes the keys, and drops what rustls kept. Fails if the keys are not those of the secrets
    /// that it reported: a later key update would be wrong.
    pub(super) fn finish(
        self,
        secrets: &TrafficSecrets,
        owner: u64,
    ) -> Result<HandshakeKeys, TlsError> {
        let common = self.common();
        let established = established(common)?;
        let (is_client, extracted, kernel) = match self.machine {
            Machine::Client(client) => {
                let (extracted, kernel) =
                    client.dangerous_into_kernel_connection().map_err(HandshakeFailure::of)?;
                (true, extracted, Some(kernel))
            }
            Machine::Server(server) => {
                let (extracted, _) =
                    server.dangerous_into_kernel_connection().map_err(HandshakeFailure::of)?;
                (false, extracted, None)
            }
        };
        let suite = established.suite;
        let (ours, theirs) = match is_client {
            true => (&secrets.client, &secrets.server),
            false => (&secrets.server, &secrets.client),
        };
        let ExtractedSecrets { tx, rx } = extracted;
        let agreed = KeyMaterial {
            suite,
            send: half(suite, ours.bytes(), &tx)?,
            receive: half(suite, theirs.bytes(), &rx)?,
        };
        // TLS 1.2 sends its tickets in the handshake.
        let tickets = kernel.filter(|_| suite.version() == TlsVersion::V13);
        let tickets = tickets.map(|kernel| Box::new(TicketReader { kernel, owner }));
        Ok(HandshakeKeys { is_client, agreed, established, tickets })
    }
}

/// Header that no record has.
pub(super) const WRONG_HEADER: [u8; 5] = [0xff, 3, 3, 0xff, 0xff];

/// Handles what rustls reports. Returns the bytes to discard, and how far the handshake is, unless
/// it goes on at once.
fn settle<Data>(
    status: UnbufferedStatus<'_, '_, Data>,
    out: &mut Vec<u8>,
) -> (usize, Result<Option<Progress>, Error>) {
    let result = match status.state {
        Ok(ConnectionState::EncodeTlsData(mut data)) => encode(&mut data, out).map(|()| None),
        Ok(ConnectionState::TransmitTlsData(data)) => {
            data.done();
            Ok(None)
        }
        Ok(ConnectionState::BlockedHandshake) => Ok(Some(Progress::Blocked)),
        Ok(ConnectionState::WriteTraffic(_)) => Ok(Some(Progress::Complete)),
        Ok(ConnectionState::PeerClosed | ConnectionState::Closed) => {
            Err(Error::AlertReceived(AlertDescription::CloseNotify))
        }
        Ok(_) => Err(Error::General("data in the handshake".into())),
        Err(error) => Err(error),
    };
    (status.discard, result)
}

fn encode<Data>(data: &mut EncodeTlsData<'_, Data>, out: &mut Vec<u8>) -> Result<(), Error> {
    let Err(EncodeError::InsufficientSize(size)) = data.encode(&mut []) else {
        return Err(Error::General("a message of no bytes".into()));
    };
    let begin = out.len();
    out.resize(begin + size.required_size, 0);
    let wrong = |_| Error::General("a message longer than it said".into());
    data.encode(&mut out[begin..]).map_err(wrong).map(drop)
}

fn established(common: &CommonState) -> Result<HandshakeReport, TlsError> {
    let suite = common.negotiated_cipher_suite().and_then(|suite| suite_of(suite.suite()));
    let kind = match common.handshake_kind() {
        Some(HandshakeKind::Resumed) => TlsHandshakeKind::Resumed,
        Some(HandshakeKind::FullWithHelloRetryRequest) => TlsHandshakeKind::Retried,
        Some(HandshakeKind::Full) | None => TlsHandshakeKind::Full,
    };
    let chain = common.peer_certificates();
    let of_peer = chain.and_then(|chain| chain.first()).and_then(|it| validity(it));
    Ok(HandshakeReport {
        suite: suite.ok_or(TlsError::KeysDiffer)?,
        kind,
        alpn: common.alpn_protocol().map(<[u8]>::to_vec),
        has_peer_certificate: chain.is_some(),
        peer_valid_until: of_peer.map(|(_, until)| until),
    })
}

/// Returns the keys of a direction, after a comparison of what rustls uses with what follows from
/// the secret that it reported.
fn half(
    suite: Suite,
    secret: &[u8],
    (seq, keys): &(u64, ConnectionTrafficSecrets),
) -> Result<HalfMaterial, TlsError> {
    let (key, iv) = match keys {
        ConnectionTrafficSecrets::Aes128Gcm { key, iv }
        | ConnectionTrafficSecrets::Aes256Gcm { key, iv }
        | ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => (key.as_ref(), iv.as_ref()),
        _ => return Err(TlsError::KeysDiffer),
    };
    if key.len() != suite.key_bytes() {
        return Err(TlsError::KeysDiffer);
    }
    if suite.version() == TlsVersion::V13 {
        if secret.len() != suite.secret_bytes() {
            return Err(TlsError::KeysDiffer);
        }
        let half = HalfMaterial::from_secret(suite, secret, *seq);
        let is_same = half.key[..key.len()] == *key && half.iv == *iv;
        return if is_same { Ok(half) } else { Err(TlsError::KeysDiffer) };
    }
    let mut half = HalfMaterial {
        secret: Zeroizing::new([0; SECRET_BYTES_MAX]),
        key: Zeroizing::new([0; 32]),
        iv: iv.try_into().map_err(|_| TlsError::KeysDiffer)?,
        seq: *seq,
    };
    half.key[..key.len()].copy_from_slice(key);
    Ok(half)
}

/// What rustls keeps of a client for the tickets of its server: 1.5 kB.
pub(crate) struct TicketReader {
    kernel: KernelConnection<ClientConnectionData>,
    /// Owner of the session.
    owner: u64,
}

impl TicketReader {
    /// Gives rustls the body of a ticket, which puts it into the pool of its configuration.
    pub(crate) fn read(mut self: Box<Self>, body: &[u8], unix: u64) -> Result<(), TlsError> {
        let client = TlsClient { owner: self.owner, key: None };
        let _guard = StepGuard::enter(unix, false, client);
        let read = self.kernel.handle_new_session_ticket(body);
        read.map_err(|_| TlsError::Malformed("a ticket"))
    }
}
