//! An end of a connection, and the bytes between two of them.

use std::time::{Duration, SystemTime};

use throng_base::Instant;
use throng_tls::{
    Established, HEADROOM_BYTES, ReceiveBuffer, Received, TlsClientConfig, TlsConn, TlsEnd,
    TlsLimits, TlsPhase, TlsServerConfig, TlsTable,
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
    pub conn: TlsConn,
    pub out: Vec<u8>,
    pub plain: Vec<u8>,
    pub established: Option<Established>,
    pub end: Option<TlsEnd>,
    pub cost_us: u32,
    pub now: Instant,
    buffer: Vec<u8>,
}

impl Ours {
    pub(crate) fn client(config: &TlsClientConfig, offers_session: bool) -> Self {
        let (mut table, mut out) = (table(), Vec::new());
        let conn = table.connect(config, offers_session, Instant::ZERO, &mut out).unwrap();
        Self::new(table, conn, out)
    }

    pub(crate) fn server(config: &TlsServerConfig) -> Self {
        let mut table = table();
        let conn = table.accept(config, Instant::ZERO).unwrap();
        Self::new(table, conn, Vec::new())
    }

    fn new(table: TlsTable, conn: TlsConn, out: Vec<u8>) -> Self {
        Self {
            table,
            conn,
            out,
            plain: Vec::new(),
            established: None,
            end: None,
            cost_us: 0,
            now: Instant::ZERO,
            buffer: vec![0; HEADROOM_BYTES],
        }
    }

    pub(crate) fn kind(&self) -> throng_tls::TlsHandshakeKind {
        self.established.as_ref().expect("the handshake is complete").kind
    }
}

impl End for Ours {
    fn receive(&mut self, bytes: &[u8]) {
        self.buffer.truncate(HEADROOM_BYTES);
        self.buffer.extend_from_slice(bytes);
        let received = HEADROOM_BYTES..self.buffer.len();
        let input = ReceiveBuffer { bytes: &mut self.buffer, received };
        let Received { plain, established, wants_send, end, cost_us } =
            self.table.receive(&mut self.conn, self.now, input, &mut self.out);
        self.plain.extend_from_slice(&self.buffer[plain]);
        if let Some(established) = established {
            self.established = Some(*established);
        }
        if wants_send {
            self.table.seal(&self.conn, [], &mut self.out).unwrap();
        }
        self.end = self.end.take().or(end);
        self.cost_us += cost_us;
    }

    fn take_sent(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }

    fn take_plain(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.plain)
    }

    fn write(&mut self, data: &[u8]) {
        self.table.seal(&self.conn, [data], &mut self.out).unwrap();
    }

    fn update_keys(&mut self) {
        self.table.update_keys(&self.conn, &mut self.out).unwrap();
    }

    fn close(&mut self) {
        self.table.close(&self.conn, &mut self.out);
    }

    fn is_open(&self) -> bool {
        self.conn.phase() == TlsPhase::Open
    }
}

/// Returns an empty table whose clock begins now.
pub(crate) fn table() -> TlsTable {
    TlsTable::new(TlsLimits::default(), unix_now())
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
