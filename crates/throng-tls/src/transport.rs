//! TLS as the transport of a core's connections.

use std::any::Any;
use std::time::Duration;

use throng_base::Instant;
use throng_proto::{OpenedRecords, SocketTransport, TransportKey, TransportRole, TransportStatus};

use crate::{
    ClientKey, RECORD_BYTES_MAX, TlsClient, TlsClientConfig, TlsConfigError, TlsError,
    TlsHandshakeKind, TlsKey, TlsServerConfig, TlsStatus, TlsTable,
};

/// TLS of all connections of a core that serves, connects, or both.
pub struct TlsTransport {
    table: TlsTable,
    server: Option<TlsServerConfig>,
    client: Option<(TlsClientConfig, SessionOffers)>,
    clients: ClientRules,
    /// Number of the client whose handshake begins next.
    next_client: u64,
}

/// Returns the certificate and the key of the client with this number.
pub type ClientKeySource = Box<dyn FnMut(u64) -> Result<ClientKey, TlsConfigError>>;

/// How the clients of a core are told apart.
#[derive(Default)]
struct ClientRules {
    /// Each client resumes sessions of its own alone.
    own_sessions: bool,
    keys: Option<ClientKeySource>,
}

impl ClientRules {
    fn client(&mut self, number: u64) -> Result<TlsClient, TlsError> {
        let key = self.keys.as_mut().map(|keys| keys(number)).transpose();
        let key = key.map_err(|error| TlsError::ClientKey(Box::new(error)))?;
        let owner = if self.own_sessions { number } else { 0 };
        Ok(TlsClient { owner, key })
    }
}

/// Which connections offer a session, if there is one.
struct SessionOffers {
    /// Share of the connections.
    share: f64,
    /// Offers that are due, less than two.
    due: f64,
    /// Offers so far.
    offered: u64,
}

impl SessionOffers {
    /// Reports whether the next connection offers a session.
    fn next(&mut self, has_session: bool) -> bool {
        // One offer that no session allowed is made up for.
        self.due = (self.due + self.share).min(2.0 - f64::EPSILON);
        let offers = has_session && self.due >= 1.0;
        self.due -= f64::from(u8::from(offers));
        self.offered += u64::from(offers);
        offers
    }
}

impl TlsTransport {
    /// Creates the transport of a core. `unix_at_zero` is the time of Unix at [`Instant::ZERO`].
    pub fn new(unix_at_zero: Duration) -> Self {
        Self {
            table: TlsTable::new(unix_at_zero),
            server: None,
            client: None,
            clients: ClientRules::default(),
            next_client: 0,
        }
    }

    /// Accepts connections with this configuration.
    #[must_use]
    pub fn with_server(mut self, config: TlsServerConfig) -> Self {
        self.server = Some(config);
        self
    }

    /// Connects with this configuration. `share` of the connections offer to resume a session, if
    /// there is one.
    #[must_use]
    pub fn with_client(mut self, config: TlsClientConfig, share: f64) -> Self {
        self.client = Some((config, SessionOffers { share, due: 0.0, offered: 0 }));
        self
    }

    /// Lets each client resume sessions of its own alone.
    #[must_use]
    pub fn with_own_sessions(mut self) -> Self {
        self.clients.own_sessions = true;
        self
    }

    /// Lets each client show the certificate that `keys` returns. A session stands for the
    /// certificate that was shown when it began: clients with different ones need sessions of their
    /// own.
    #[must_use]
    pub fn with_client_keys(mut self, keys: ClientKeySource) -> Self {
        self.clients.keys = Some(keys);
        self
    }

    /// Returns the connections.
    pub const fn table(&self) -> &TlsTable {
        &self.table
    }
}

impl SocketTransport for TlsTransport {
    fn record_bytes_max(&self) -> usize {
        RECORD_BYTES_MAX
    }

    fn for_client(&mut self, client: u64) {
        self.next_client = client;
    }

    fn begin(&mut self, role: TransportRole, now: Instant, out: &mut Vec<u8>) -> TransportKey {
        let key = match (role, &self.server, &mut self.client) {
            (TransportRole::Server, Some(config), _) => self.table.accept(config),
            (TransportRole::Client, _, Some((config, offers))) => {
                match self.clients.client(self.next_client) {
                    Ok(client) => {
                        let offers_session = offers.next(config.has_session(client.owner));
                        self.table.connect_as(config, client, offers_session, now, out)
                    }
                    Err(error) => self.table.refuse(error),
                }
            }
            _ => self.table.refuse(TlsError::NotOpen),
        };
        TransportKey(key.0)
    }

    fn open(
        &mut self,
        key: TransportKey,
        now: Instant,
        input: &mut [u8],
        out: &mut Vec<u8>,
    ) -> OpenedRecords {
        let opened = self.table.open(TlsKey(key.0), now, input, out);
        if let Some((config, _)) = &self.client {
            if let Some(established) = &opened.established {
                config.seen.note_agreed(established);
            }
            if let TlsStatus::Failed(error) = self.table.status(TlsKey(key.0)) {
                config.seen.note_failure(error);
            }
        }
        if opened.plain_bytes == 0
            && self.server.is_some()
            && let TlsStatus::Failed(TlsError::NotTls(begin)) = self.table.status(TlsKey(key.0))
            && is_http_request(begin)
        {
            out.extend_from_slice(PLAIN_HTTP_ANSWER);
        }
        OpenedRecords {
            plain_bytes: opened.plain_bytes,
            incomplete_bytes: opened.incomplete_bytes,
            work_bytes: opened.cost_us as usize * WORK_BYTES_PER_US,
            status: self.status(key),
            has_resumed: opened
                .established
                .is_some_and(|established| established.kind == TlsHandshakeKind::Resumed),
        }
    }

    fn status(&self, key: TransportKey) -> TransportStatus {
        match self.table.status(TlsKey(key.0)) {
            TlsStatus::Opening => TransportStatus::Opening,
            TlsStatus::Open => TransportStatus::Open,
            TlsStatus::Finished => TransportStatus::Finished,
            TlsStatus::Failed(error) => TransportStatus::Failed(error.cause()),
        }
    }

    fn failure_text(&self, key: TransportKey) -> Option<String> {
        let TlsStatus::Failed(error) = self.table.status(TlsKey(key.0)) else { return None };
        Some(match error {
            TlsError::Handshake(failure) => failure.text.clone(),
            error => error.to_string(),
        })
    }

    fn seal(&mut self, key: TransportKey, plain: &[u8], out: &mut Vec<u8>) {
        // A connection that cannot seal has failed, which its status reports.
        let _ = self.table.seal(TlsKey(key.0), [plain], out);
    }

    fn finish(&mut self, key: TransportKey, out: &mut Vec<u8>) {
        self.table.finish(TlsKey(key.0), out);
    }

    fn forget(&mut self, key: TransportKey) {
        self.table.forget(TlsKey(key.0));
    }

    fn configure(&mut self, config: Box<dyn Any + Send>) -> bool {
        match config.downcast::<TlsServerConfig>() {
            Ok(config) if self.server.is_some() => {
                self.server = Some(*config);
                true
            }
            _ => false,
        }
    }

    fn offered(&self) -> u64 {
        self.client.as_ref().map_or(0, |(_, offers)| offers.offered)
    }
}

/// Reports whether the first bytes of a client are those of an HTTP request.
fn is_http_request(begin: &[u8; 5]) -> bool {
    let methods = ["GET ", "HEAD ", "POST ", "PUT ", "DELETE ", "CONNECT ", "OPTIONS ", "PATCH "];
    methods.iter().any(|method| {
        let bytes = method.len().min(begin.len());
        begin[..bytes] == method.as_bytes()[..bytes]
    })
}

/// Answer to a client that speaks HTTP without TLS.
const PLAIN_HTTP_ANSWER: &[u8] = b"HTTP/1.1 400 Bad Request\r\n\
    content-type: text/plain; charset=utf-8\r\n\
    content-length: 74\r\n\
    connection: close\r\n\
    \r\n\
    This port speaks TLS: the address must begin with `https://` or `wss://`.\n";

/// Bytes that cost as much to open as one microsecond of a handshake's work: an event costs the
/// engine as much. Four signatures of ECDSA, or one of RSA, fill a core's
/// `handshake_work_bytes_max`.
const WORK_BYTES_PER_US: usize = 1 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_of_connections_offers_a_session_and_one_that_was_missing_is_made_up_for() {
        let offers = |share: f64, connections: u32| {
            let mut offers = SessionOffers { share, due: 0.0, offered: 0 };
            (0..connections).filter(|number| offers.next(*number > 0)).count()
        };
        assert_eq!([0.0, 0.25, 0.8, 1.0].map(|share| offers(share, 100)), [0, 25, 80, 99]);
    }
}
