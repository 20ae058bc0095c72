//! An end of a connection, and the bytes between two of them.

use std::time::{Duration, SystemTime};

use throng_base::Instant;
use throng_tls::{
    HandshakeReport, OpenOutcome, TlsClientConfig, TlsError, TlsKey, TlsServerConfig, TlsStatus,
    TlsTable,
};

/// End of a connection.
pub(crate) trait End {
    fn receive(&mut self, bytes: &[u8]);
    /// Takes the bytes for the peer.
    fn take_sent(&mut self) -> Vec<u8>;
    /// Takes the plaintext that arrived.
    fn take_plain(&mut self) -> Vec<u8>;
    fn write(&mut self, data: &[u8]);
    fn update_keys(&mut self);
    fn close(&mut self);
    fn is_open(&self) -> bool;
}

/// End with our record layer.
pub(crate) struct Ours {
    pub table: TlsTable,
    pub key: TlsKey,
    pub out: Vec<u8>,
    pub plain: Vec<u8>,
    pub established: Option<HandshakeReport>,
    pub cost_us: u32,
    pub now: Instant,
    /// The incomplete record at the end of what was received.
    pub incomplete: Vec<u8>,
}

impl Ours {
    pub(crate) fn client(config: &TlsClientConfig, offers_session: bool) -> Self {
        let (mut table, mut out) = (table(), Vec::new());
        let key = table.connect(config, offers_session, Instant::ZERO, &mut out);
        Self::new(table, key, out)
    }

    pub(crate) fn server(config: &TlsServerConfig) -> Self {
        let mut table = table();
        let key = table.accept(config);
        Self::new(table, key, Vec::new())
    }

    fn new(table: TlsTable, key: TlsKey, out: Vec<u8>) -> Self {
        Self {
            table,
            key,
            out,
            plain: Vec::new(),
            established: None,
            cost_us: 0,
            now: Instant::ZERO,
            incomplete: Vec::new(),
        }
    }

    pub(crate) fn kind(&self) -> throng_tls::TlsHandshakeKind {
        self.established.as_ref().expect("the handshake is complete").kind
    }

    pub(crate) fn failure(&self) -> Option<TlsError> {
        match self.table.status(self.key) {
            TlsStatus::Failed(error) => Some(error.clone()),
            _ => None,
        }
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.table.status(self.key) == TlsStatus::Finished
    }

    pub(crate) fn seal(&mut self, data: &[u8]) -> Result<(), TlsError> {
        self.table.seal(self.key, [data], &mut self.out)
    }
}

impl End for Ours {
    fn receive(&mut self, bytes: &[u8]) {
        self.incomplete.extend_from_slice(bytes);
        let input = &mut self.incomplete;
        let OpenOutcome { plain_bytes, incomplete_bytes, cost_us, established } =
            self.table.open(self.key, self.now, input, &mut self.out);
        self.plain.extend_from_slice(&input[..plain_bytes]);
        input.drain(..input.len() - incomplete_bytes);
        if let Some(established) = established {
            self.established = Some(*established);
        }
        self.cost_us += cost_us;
    }

    fn take_sent(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }

    fn take_plain(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.plain)
    }

    fn write(&mut self, data: &[u8]) {
        self.seal(data).unwrap();
    }

    fn update_keys(&mut self) {
        self.table.update_keys(self.key, true, &mut self.out).unwrap();
    }

    fn close(&mut self) {
        self.table.finish(self.key, &mut self.out);
    }

    fn is_open(&self) -> bool {
        self.table.status(self.key) == TlsStatus::Open
    }
}

/// Returns an empty table whose clock begins now.
pub(crate) fn table() -> TlsTable {
    TlsTable::new(unix_now())
}

pub(crate) fn unix_now() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap()
}

/// Passes bytes until neither end sends, in reads of at most `cut` bytes.
pub(crate) fn exchange(a: &mut dyn End, b: &mut dyn End, cut: usize) {
    loop {
        let (from_a, from_b) = (a.take_sent(), b.take_sent());
        if from_a.is_empty() && from_b.is_empty() {
            return;
        }
        from_a.chunks(cut).for_each(|bytes| b.receive(bytes));
        from_b.chunks(cut).for_each(|bytes| a.receive(bytes));
    }
}

/// Sends data both ways, and checks that they arrive.
pub(crate) fn talk(a: &mut dyn End, b: &mut dyn End, cut: usize) {
    for length in [1, 100, 16_384, 16_385, 50_000] {
        let data: Vec<u8> = (0..length).map(|at| at as u8).collect();
        a.write(&data);
        b.write(&data);
        exchange(a, b, cut);
        assert!(a.take_plain() == data, "{length} bytes in reads of {cut}");
        assert!(b.take_plain() == data, "{length} bytes in reads of {cut}");
    }
}

/// Lengths of reads around the lengths of headers, tags and short records.
pub(crate) const CUTS: [usize; 8] = [1, 2, 5, 21, 22, 23, 1_000, usize::MAX];
