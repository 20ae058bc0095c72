//! Two ends of a TLS connection, and between them a script of an attacker: it cuts, changes, drops
//! and inserts bytes, and makes the ends write, take new keys and close.
//!
//! The first byte selects the suite, and whether the script's bytes replace the client's.

use std::sync::OnceLock;
use std::time::Duration;

use throng_base::Instant;
use throng_tls::{
    Cipher, SelfSigned, Suite, TicketKeys, TlsClientConfig, TlsClientOptions, TlsKey,
    TlsServerConfig, TlsServerOptions, TlsStatus, TlsTable, TrustAnchors,
};

/// Checks that no script makes an end panic, or report plaintext that the other did not write; and
/// that everything arrives if bytes are only cut.
pub fn check(bytes: &[u8]) {
    let Some((first, script)) = bytes.split_first() else { return };
    let (client, server) = &configs()[usize::from(first % 6)];
    let mut ends = [End::client(client), End::server(server)];
    if first & 0x80 != 0 {
        let receiver = usize::from(first >> 6 & 1);
        ends[receiver].receive(script);
        assert!(ends[receiver].plain.is_empty(), "plaintext without keys");
        return ends.into_iter().for_each(End::forget);
    }
    let mut wires = [Wire::default(), Wire::default()];
    let mut script = script.iter().copied();
    while let Some(step) = script.next() {
        let from = usize::from(step >> 3 & 1);
        let argument = usize::from(script.next().unwrap_or_default());
        match step % 8 {
            0 | 1 => deliver(&mut ends, &mut wires, from, usize::MAX),
            2 => deliver(&mut ends, &mut wires, from, argument + 1),
            3 => wires[from].change(argument, script.next().unwrap_or_default()),
            4 => wires[from].insert(&script.by_ref().take(argument % 32).collect::<Vec<_>>()),
            5 => ends[from].write(argument * 97),
            6 => ends[from].update_keys(argument % 2 == 1),
            _ => ends[from].finish(),
        }
    }
    for _ in 0..8 {
        deliver(&mut ends, &mut wires, 0, usize::MAX);
        deliver(&mut ends, &mut wires, 1, usize::MAX);
    }
    judge(&ends, &wires);
    ends.into_iter().for_each(End::forget);
}

fn judge(ends: &[End; 2], wires: &[Wire; 2]) {
    for (from, to) in [(0, 1), (1, 0)] {
        assert!(ends[from].written.starts_with(&ends[to].plain), "not what was written");
    }
    if wires.iter().all(|wire| !wire.is_changed) {
        for (from, to) in [(0, 1), (1, 0)] {
            let floods = matches!(ends[to].status(), TlsStatus::Failed(error)
                if error.name() == "idle_records");
            if floods {
                return;
            }
            assert!(!matches!(ends[to].status(), TlsStatus::Failed(_)), "{:?}", ends[to].status());
            assert_eq!(ends[from].written, ends[to].plain);
        }
    }
}

/// Delivers bytes of an end to the other one.
fn deliver(ends: &mut [End; 2], wires: &mut [Wire; 2], from: usize, bytes_max: usize) {
    let wire = &mut wires[from];
    wire.bytes.append(&mut ends[from].out);
    let length = bytes_max.min(wire.bytes.len());
    let bytes: Vec<u8> = wire.bytes.drain(..length).collect();
    if !bytes.is_empty() {
        ends[1 - from].receive(&bytes);
    }
}

/// Bytes on their way.
#[derive(Default)]
struct Wire {
    bytes: Vec<u8>,
    is_changed: bool,
}

impl Wire {
    fn change(&mut self, at: usize, by: u8) {
        let at = at * 3;
        if let Some(byte) = self.bytes.get_mut(at) {
            *byte ^= by;
            self.is_changed |= by != 0;
        }
    }

    fn insert(&mut self, bytes: &[u8]) {
        self.is_changed |= !bytes.is_empty();
        self.bytes.extend_from_slice(bytes);
    }
}

/// End with a table of its own.
struct End {
    table: TlsTable,
    key: TlsKey,
    out: Vec<u8>,
    incomplete: Vec<u8>,
    written: Vec<u8>,
    plain: Vec<u8>,
}

impl End {
    fn client(config: &TlsClientConfig) -> Self {
        let (mut table, mut out) = (TlsTable::new(UNIX), Vec::new());
        let key = table.connect(config, true, Instant::ZERO, &mut out);
        Self::new(table, key, out)
    }

    fn server(config: &TlsServerConfig) -> Self {
        let mut table = TlsTable::new(UNIX);
        let key = table.accept(config);
        Self::new(table, key, Vec::new())
    }

    fn new(table: TlsTable, key: TlsKey, out: Vec<u8>) -> Self {
        let (incomplete, written, plain) = (Vec::new(), Vec::new(), Vec::new());
        Self { table, key, out, incomplete, written, plain }
    }

    fn status(&self) -> TlsStatus<'_> {
        self.table.status(self.key)
    }

    fn receive(&mut self, bytes: &[u8]) {
        let had_ended = matches!(self.status(), TlsStatus::Failed(_) | TlsStatus::Finished);
        let out_bytes = self.out.len();
        self.incomplete.extend_from_slice(bytes);
        let input = &mut self.incomplete;
        let opened = self.table.open(self.key, Instant::ZERO, input, &mut self.out);
        assert!(opened.plain_bytes + opened.incomplete_bytes <= input.len());
        assert!(!had_ended || (opened.plain_bytes, self.out.len()) == (0, out_bytes));
        self.plain.extend_from_slice(&input[..opened.plain_bytes]);
        input.drain(..input.len() - opened.incomplete_bytes);
    }

    fn write(&mut self, length: usize) {
        let data: Vec<u8> = (0..length).map(|at| at as u8).collect();
        if self.table.seal(self.key, [&data[..]], &mut self.out).is_ok() {
            self.written.extend_from_slice(&data);
        }
    }

    fn update_keys(&mut self, asks: bool) {
        let _ = self.table.update_keys(self.key, asks, &mut self.out);
    }

    fn finish(&mut self) {
        self.table.finish(self.key, &mut self.out);
    }

    fn forget(mut self) {
        self.table.forget(self.key);
        assert_eq!(self.table.handshakes(), 0);
    }
}

/// Returns the configurations of both ends for each suite.
fn configs() -> &'static [(TlsClientConfig, TlsServerConfig)] {
    static CONFIGS: OnceLock<Vec<(TlsClientConfig, TlsServerConfig)>> = OnceLock::new();
    CONFIGS.get_or_init(|| {
        let pair = SelfSigned::new(&["localhost".to_owned()]).unwrap().pair;
        let of_suite = |suite| {
            let mut server = TlsServerOptions::new(vec![pair.clone()]);
            (server.suites, server.tickets) = (vec![suite], TicketKeys::random());
            let mut client = TlsClientOptions::new("localhost");
            client.trust = TrustAnchors::Unverified;
            client.ciphers = Cipher::of_suites(&[suite]);
            (TlsClientConfig::new(&client).unwrap(), TlsServerConfig::new(&server, 0).unwrap())
        };
        Suite::PREFERENCE.into_iter().map(of_suite).collect()
    })
}

/// A moment at which the certificate is valid.
const UNIX: Duration = Duration::from_secs(1_800_000_000);
