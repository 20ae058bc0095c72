//! TLS as the transport of a core's connections.

use std::time::Duration;

use throng_base::Instant;
use throng_proto::{
    OpenedRecords, Transport, TransportError, TransportKey, TransportRole, TransportStatus,
};

use crate::{
    RECORD_BYTES_MAX, TlsClientConfig, TlsCounters, TlsError, TlsKey, TlsServerConfig, TlsStatus,
    TlsTable,
};

/// Transport of a core whose connections have TLS.
pub struct TlsTransport {
    table: TlsTable,
    role: TlsRole,
}

/// What the connections of a core are, and how they make their handshakes.
enum TlsRole {
    Server(TlsServerConfig),
    Client(TlsClientConfig),
}

impl TlsTransport {
    /// Creates the transport of a core whose connections are accepted. `unix_at_zero` is the time
    /// of Unix at [`Instant::ZERO`].
    pub fn server(config: TlsServerConfig, unix_at_zero: Duration) -> Self {
        Self { table: TlsTable::new(unix_at_zero), role: TlsRole::Server(config) }
    }

    /// Creates the transport of a core that connects. `unix_at_zero` is the time of Unix at
    /// [`Instant::ZERO`].
    pub fn client(config: TlsClientConfig, unix_at_zero: Duration) -> Self {
        Self { table: TlsTable::new(unix_at_zero), role: TlsRole::Client(config) }
    }

    /// Returns what was counted.
    pub const fn counters(&self) -> &TlsCounters {
        self.table.counters()
    }
}

impl Transport for TlsTransport {
    fn record_bytes_max(&self) -> usize {
        RECORD_BYTES_MAX
    }

    fn begin(&mut self, role: TransportRole, now: Instant, out: &mut Vec<u8>) -> TransportKey {
        let key = match &self.role {
            TlsRole::Server(config) => {
                debug_assert_eq!(
                    role,
                    TransportRole::Server,
                    "the core's connections are accepted"
                );
                self.table.accept(config)
            }
            TlsRole::Client(config) => {
                debug_assert_eq!(role, TransportRole::Client, "the core connects");
                self.table.connect(config, config.has_session(), now, out)
            }
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
        if opened.plain_bytes == 0
            && let TlsRole::Server(_) = &self.role
            && let TlsStatus::Failed(TlsError::NotTls(begin)) = self.table.status(TlsKey(key.0))
            && is_http(begin)
        {
            out.extend_from_slice(PLAIN_HTTP_ANSWER);
        }
        OpenedRecords {
            plain_bytes: opened.plain_bytes,
            incomplete_bytes: opened.incomplete_bytes,
            work_bytes: opened.cost_us as usize * WORK_BYTES_PER_US,
        }
    }

    fn status(&self, key: TransportKey) -> TransportStatus {
        match self.table.status(TlsKey(key.0)) {
            TlsStatus::Opening => TransportStatus::Opening,
            TlsStatus::Open => TransportStatus::Open,
            TlsStatus::Finished => TransportStatus::Finished,
            TlsStatus::Failed(error) => TransportStatus::Failed(TransportError(error.name())),
        }
    }

    fn seal(&mut self, key: TransportKey, plain: &[u8], out: &mut Vec<u8>) {
        match self.table.seal(TlsKey(key.0), [plain], out) {
            // The status says that the connection has failed.
            Ok(()) | Err(TlsError::KeysExhausted) => {}
            Err(error) => debug_assert!(false, "sealed for a connection that is not open: {error}"),
        }
    }

    fn finish(&mut self, key: TransportKey, out: &mut Vec<u8>) {
        self.table.finish(TlsKey(key.0), out);
    }

    fn forget(&mut self, key: TransportKey) {
        self.table.forget(TlsKey(key.0));
    }

    fn resumed(&self) -> u64 {
        self.table.counters().handshakes_resumed
    }
}

/// Reports whether the first bytes of a client are those of an HTTP request.
fn is_http(begin: &[u8; 5]) -> bool {
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

/// Bytes that cost as much to open as one microsecond of a handshake's work. Four signatures of
/// ECDSA, or one of RSA, fill a core's `handshake_work_bytes_max`.
const WORK_BYTES_PER_US: usize = 640;
