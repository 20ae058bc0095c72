//! The handshake of one connection, until its keys are agreed.

mod backend;
mod context;
mod cost;
mod failure;

use rustls::client::UnbufferedClientConnection;
use rustls::server::UnbufferedServerConnection;

pub(crate) use self::backend::{HandshakeKeys, TicketReader};
pub use self::backend::{HandshakeReport, TlsHandshakeKind};
pub use self::context::KeyLogSink;
pub(crate) use self::context::{
    SecretCatcher, StepClock, StepGuard, client_key, offers_session, session_owner, unix_secs,
};
pub(crate) use self::cost::{CLIENT_CERTIFICATE_US, ECDSA_FLIGHT_US, RECORD_US, RSA_FLIGHT_US};
pub use self::cost::{CLIENT_FULL_US, CLIENT_RESUMED_US};
pub use self::failure::HandshakeFailure;

use self::backend::{Backend, Progress};
use self::context::TrafficSecrets;
use crate::record::Phase;
use crate::{TlsClient, TlsClientConfig, TlsError, TlsServerConfig};

/// Running handshake. It is dropped when it is complete.
pub(crate) struct Handshake {
    backend: Backend,
    /// The client; the default in the handshake of a server.
    client: TlsClient,
    secrets: TrafficSecrets,
    bytes: usize,
    /// Cost of the step that makes our flight, and of the last one.
    costs_us: [u32; 2],
}

/// What a record did to a handshake.
pub(crate) struct HandshakeStep {
    pub cost_us: u32,
    pub is_complete: bool,
}

impl Handshake {
    /// Creates the handshake of a server, which waits for a client's first bytes.
    pub(crate) fn server(config: &TlsServerConfig) -> Result<Self, TlsError> {
        let connection = UnbufferedServerConnection::new(config.rustls.clone());
        let connection = connection.map_err(HandshakeFailure::of)?;
        Ok(Self::new(Backend::server(connection), config.costs_us))
    }

    /// Creates the handshake of a client, and appends its first bytes.
    pub(crate) fn client(
        config: &TlsClientConfig,
        client: TlsClient,
        offers_session: bool,
        unix: u64,
        out: &mut Vec<u8>,
    ) -> Result<Self, TlsError> {
        let mut guard = StepGuard::enter(unix, offers_session, client.clone());
        let (rustls, name) = (config.rustls.clone(), config.server_name.clone());
        let connection = UnbufferedClientConnection::new(rustls, name);
        let connection = connection.map_err(HandshakeFailure::of)?;
        let mut this = Self::new(Backend::client(connection), cost::CLIENT_US);
        this.client = client;
        this.backend.offer(&[], out).map_err(HandshakeFailure::of)?;
        guard.move_secrets(&mut this.secrets);
        Ok(this)
    }

    fn new(backend: Backend, costs_us: [u32; 2]) -> Self {
        let secrets = TrafficSecrets::default();
        Self { backend, client: TlsClient::default(), secrets, bytes: 0, costs_us }
    }

    /// Returns what is known about the next record.
    pub(crate) const fn phase(&self) -> Phase {
        if self.bytes == 0 { Phase::First } else { Phase::Handshake }
    }

    /// Gives rustls one record.
    pub(crate) fn step(
        &mut self,
        record: &[u8],
        unix: u64,
        out: &mut Vec<u8>,
    ) -> Result<HandshakeStep, TlsError> {
        self.bytes += record.len();
        if self.bytes > HANDSHAKE_BYTES_MAX {
            return Err(TlsError::HandshakeTooLong(HANDSHAKE_BYTES_MAX));
        }
        // A session was offered, or not, when the handshake began.
        let mut guard = StepGuard::enter(unix, false, self.client.clone());
        let before = out.len();
        let progress = self.backend.offer(record, out).map_err(HandshakeFailure::of)?;
        guard.move_secrets(&mut self.secrets);
        let is_complete = progress == Progress::Complete;
        let made_flight = out.len() > before || is_complete;
        let cost_us = if made_flight { self.costs_us[0] } else { RECORD_US };
        if made_flight {
            self.costs_us[0] = self.costs_us[1];
        }
        Ok(HandshakeStep { cost_us, is_complete })
    }

    /// Appends the alert for a record that rustls does not see.
    pub(crate) fn refuse(&mut self, error: &TlsError, unix: u64, out: &mut Vec<u8>) {
        match (self.phase(), error.alert()) {
            (_, None) => {}
            (Phase::First, Some(alert)) => {
                out.extend_from_slice(&[21, 3, 3, 0, 2, alert.level(), alert.0]);
            }
            // rustls seals it with the keys that it has now.
            _ => {
                let _guard = StepGuard::enter(unix, false, self.client.clone());
                let _ = self.backend.offer(&backend::WRONG_HEADER, out);
            }
        }
    }

    /// Takes the keys out of a complete handshake.
    pub(crate) fn finish(self) -> Result<HandshakeKeys, TlsError> {
        self.backend.finish(&self.secrets, self.client.owner)
    }
}

/// Most bytes that a peer may send in a handshake: room for long chains of certificates.
const HANDSHAKE_BYTES_MAX: usize = 64 << 10;
