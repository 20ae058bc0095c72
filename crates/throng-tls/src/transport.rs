//! TLS as the transport of a core's connections.

use std::time::Duration;

use throng_base::Instant;
use throng_proto::{
    OpenedRecords, Transport, TransportError, TransportKey, TransportRole, TransportStatus,
};

use crate::{
    RECORD_BYTES_MAX, TlsClientConfig, TlsCounters, TlsError, TlsHandshakeKind, TlsKey,
    TlsServerConfig, TlsStatus, TlsTable,
};

/// Transport of a core whose connections have TLS.
pub struct TlsTransport {
    table: TlsTable,
    role: TlsRole,
    has_resumed: bool,
}

/// What the connections of a core are, and how they make their handshakes.
enum TlsRole {
    Server(TlsServerConfig),
    Client(TlsClientConfig, SessionOffers),
}

/// Which connections offer a session, if there is one.
struct SessionOffers {
    /// Share of the connections.
    share: f64,
    /// Offers that are due, less than two.
    due: f64,
}

impl SessionOffers {
    /// Reports whether the next connection offers a session.
    fn next(&mut self, has_session: bool) -> bool {
        // One offer that no session allowed is made up for.
        self.due = (self.due + self.share).min(2.0 - f64::EPSILON);
        let offers = has_session && self.due >= 1.0;
        self.due -= f64::from(u8::from(offers));
        offers
    }
}

impl TlsTransport {
    /// Creates the transport of a core whose connections are accepted. `unix_at_zero` is the time
    /// of Unix at [`Instant::ZERO`].
    pub fn server(config: TlsServerConfig, unix_at_zero: Duration) -> Self {
        Self {
            table: TlsTable::new(unix_at_zero),
            role: TlsRole::Server(config),
            has_resumed: false,
        }
    }

    /// Creates the transport of a core that connects. `share` of the connections offer to resume a
    /// session, if there is one. `unix_at_zero` is the time of Unix at [`Instant::ZERO`].
    pub fn client(config: TlsClientConfig, share: f64, unix_at_zero: Duration) -> Self {
        let role = TlsRole::Client(config, SessionOffers { share, due: 0.0 });
        Self { table: TlsTable::new(unix_at_zero), role, has_resumed: false }
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
        let key = match &mut self.role {
            TlsRole::Server(config) => {
                debug_assert_eq!(
                    role,
                    TransportRole::Server,
                    "the core's connections are accepted"
                );
                self.table.accept(config)
            }
            TlsRole::Client(config, offers) => {
                debug_assert_eq!(role, TransportRole::Client, "the core connects");
                let offers_session = offers.next(config.has_session());
                self.table.connect(config, offers_session, now, out)
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
        if let Some(established) = &opened.established {
            self.has_resumed = established.kind == TlsHandshakeKind::Resumed;
        }
        OpenedRecords {
            plain_bytes: opened.plain_bytes,
            incomplete_bytes: opened.incomplete_bytes,
            work_bytes: opened.cost_us as usize * WORK_BYTES_PER_US,
        }
    }

    fn has_resumed(&self) -> bool {
        self.has_resumed
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
}

/// Bytes that cost as much to open as one microsecond of a handshake's work. Four signatures of
/// ECDSA, or one of RSA, fill a core's `handshake_work_bytes_max`.
const WORK_BYTES_PER_US: usize = 640;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_of_connections_offers_a_session_and_one_that_was_missing_is_made_up_for() {
        let offers = |share: f64, connections: u32| {
            let mut offers = SessionOffers { share, due: 0.0 };
            (0..connections).filter(|number| offers.next(*number > 0)).count()
        };
        assert_eq!([0.0, 0.25, 0.8, 1.0].map(|share| offers(share, 100)), [0, 25, 80, 99]);
    }
}
