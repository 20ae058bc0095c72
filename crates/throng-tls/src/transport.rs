//! TLS as a transport of the engine.

use std::time::Duration;

use throng_base::Instant;
use throng_proto::{
    OpenedRecords, SocketTransport, TransportError, TransportKey, TransportRole, TransportStatus,
};

use crate::record::RECORD_BYTES_MAX;
use crate::table::{TlsKey, TlsStatus, TlsTable};
use crate::{TlsClientConfig, TlsError, TlsServerConfig};

/// TLS of all connections of a core that serves, connects, or both.
pub struct TlsTransport {
    table: TlsTable,
    server: Option<TlsServerConfig>,
    client: Option<(TlsClientConfig, SessionShare)>,
}

/// Share of connections that offer a session, of those that could.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionShare {
    percent: u8,
    /// What is left over, in percent of a connection.
    rest: u8,
}

impl SessionShare {
    /// All connections, as browsers do.
    pub const ALL: Self = Self::percent(100);

    /// Creates a share from percent; more than 100 are 100.
    pub const fn percent(percent: u8) -> Self {
        Self { percent: if percent > 100 { 100 } else { percent }, rest: 0 }
    }

    /// Decides for the next connection: evenly, and exactly this share of any 100.
    fn next(&mut self) -> bool {
        self.rest += self.percent;
        let offers = self.rest >= 100;
        self.rest -= if offers { 100 } else { 0 };
        offers
    }
}

impl TlsTransport {
    /// Creates the transport of a core. `unix_at_zero` is the time of Unix at [`Instant::ZERO`].
    pub fn new(unix_at_zero: Duration) -> Self {
        Self { table: TlsTable::new(unix_at_zero), server: None, client: None }
    }

    /// Accepts connections with this configuration.
    #[must_use]
    pub fn with_server(mut self, config: TlsServerConfig) -> Self {
        self.server = Some(config);
        self
    }

    /// Connects with this configuration. This share of the connections that can offer a session
    /// does so.
    #[must_use]
    pub fn with_client(mut self, config: TlsClientConfig, share: SessionShare) -> Self {
        self.client = Some((config, share));
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

    fn begin(&mut self, role: TransportRole, now: Instant, out: &mut Vec<u8>) -> TransportKey {
        let key = match (role, &self.server, &mut self.client) {
            (TransportRole::Server, Some(config), _) => self.table.accept(config),
            (TransportRole::Client, _, Some((config, share))) => {
                let offers_session = config.has_session() && share.next();
                self.table.connect(config, offers_session, now, out)
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
        OpenedRecords {
            plain_bytes: opened.plain_bytes,
            incomplete_bytes: opened.incomplete_bytes,
            work_bytes: opened.cost_us as usize * WORK_BYTES_OF_US,
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
        // A connection that cannot seal has failed, which its status reports.
        let _ = self.table.seal(TlsKey(key.0), [plain], out);
    }

    fn finish(&mut self, key: TransportKey, out: &mut Vec<u8>) {
        self.table.finish(TlsKey(key.0), out);
    }

    fn forget(&mut self, key: TransportKey) {
        self.table.forget(TlsKey(key.0));
    }
}

/// Bytes of work that the engine takes for a microsecond.
const WORK_BYTES_OF_US: usize = 1 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_met_exactly_in_any_hundred_connections() {
        for percent in [0, 1, 33, 80, 99, 100, 200] {
            let mut share = SessionShare::percent(percent);
            for _ in 0..3 {
                let offers = (0..100).filter(|_| share.next()).count();
                assert_eq!(offers, usize::from(percent.min(100)));
            }
        }
    }
}
