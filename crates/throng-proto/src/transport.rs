//! The trait of a transport: what lies between the bytes of sessions and those of sockets.

use std::any::Any;
use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;

use throng_base::Instant;

use crate::TransportError;

/// Transport of the connections of one core: encryption, and the handshake before it. A plain
/// connection has none.
///
/// A transport never sees a socket or a clock. Both directions are cut into records. What is sent
/// is appended to the caller's buffer. A record that is sealed has its place in the stream: the
/// caller sends all of it, in order, or closes the connection. So a caller seals bytes only when it
/// sends them, and what the kernel does not take is never sealed again.
pub trait SocketTransport {
    /// Returns the length of the longest record.
    fn record_bytes_max(&self) -> usize;

    /// Names the client whose handshake [`Self::begin`] begins next: a transport may tell its
    /// clients apart.
    fn for_client(&mut self, _client: u64) {}

    /// Begins the handshake of a connection. Appends what this role sends first.
    fn begin(&mut self, role: TransportRole, now: Instant, out: &mut Vec<u8>) -> TransportKey;

    /// Opens the records at the start of `input`, in place, and appends answers of the transport's
    /// own (a handshake, an alert) to `out`.
    ///
    /// Opens nothing after the peer has finished or the transport has failed.
    fn open(
        &mut self,
        key: TransportKey,
        now: Instant,
        input: &mut [u8],
        out: &mut Vec<u8>,
    ) -> OpenedRecords;

    /// Returns the state of a connection.
    fn status(&self, key: TransportKey) -> TransportStatus;

    /// Returns more about the failure of a connection than its [`TransportError`] says, for people:
    /// the names in a certificate, say. `None` if there is no more.
    fn failure_text(&self, key: TransportKey) -> Option<String> {
        let _ = key;
        None
    }

    /// Seals `plain`, and appends the records to `out`. After [`Self::finish`] the caller's socket
    /// refuses them.
    fn seal(&mut self, key: TransportKey, plain: &[u8], out: &mut Vec<u8>);

    /// Ends the sending direction: appends the record that says so to the peer. Appends nothing
    /// when it is called again.
    fn finish(&mut self, key: TransportKey, out: &mut Vec<u8>);

    /// Forgets a connection whose socket is closed. Its key is free.
    fn forget(&mut self, key: TransportKey);

    /// Takes another configuration for the handshakes that begin from now on: other certificates,
    /// say. Returns false if `config` is not one of this transport.
    fn configure(&mut self, config: Box<dyn Any + Send>) -> bool {
        let _ = config;
        false
    }

    /// Returns how many handshakes have offered to resume an earlier session.
    fn offered(&self) -> u64 {
        0
    }
}

/// Role of this process in a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransportRole {
    /// It has connected.
    Client,
    /// It has accepted the connection.
    Server,
}

/// Number of a connection in its core's transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TransportKey(pub NonZeroU32);

/// Outcome of [`SocketTransport::open`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenedRecords {
    /// Length of the plaintext, which now is at the start of the input.
    pub plain_bytes: usize,
    /// Length of the end of the input that is not opened, because its record is incomplete. The
    /// caller gives it again, in front of what it receives next.
    pub incomplete_bytes: usize,
    /// Work that the length of the input does not show, such as a signature: the number of bytes
    /// that cost as much to open.
    pub work_bytes: usize,
    /// State of the connection then.
    pub status: TransportStatus,
    /// The handshake was completed, and it resumed an earlier session.
    pub has_resumed: bool,
}

/// State of a connection's transport.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TransportStatus {
    /// The handshake is under way.
    #[default]
    Opening,
    /// Bytes can be sent and received.
    Open,
    /// The peer has said that it sends no more.
    Finished,
    /// The connection cannot go on.
    Failed(TransportError),
}

/// Makes the transport of each core. Clones share what the transports read, such as certificates.
#[derive(Clone)]
pub struct TransportFactory(Arc<MakeTransport>);

type MakeTransport = dyn Fn(usize) -> Box<dyn SocketTransport> + Send + Sync;

impl TransportFactory {
    /// Creates a factory. `make` runs on the thread of the core whose number it gets.
    pub fn new(make: impl Fn(usize) -> Box<dyn SocketTransport> + Send + Sync + 'static) -> Self {
        Self(Arc::new(make))
    }

    /// Makes the transport of the core with this number.
    pub fn make(&self, core: usize) -> Box<dyn SocketTransport> {
        (self.0)(core)
    }
}

impl fmt::Debug for TransportFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TransportFactory")
    }
}
