//! Bytes of idle connections, counted at the allocator.

use std::alloc::System;

use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use throng_base::Instant;
use throng_tls::{
    CONN_BYTES, CertifiedPair, Cipher, PemFile, Suite, TlsClientConfig, TlsClientOptions, TlsKey,
    TlsServerConfig, TlsServerOptions, TlsStatus, TlsTable, TrustAnchors,
};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Connections of the test: whole chunks of a table.
const CONNS: usize = 3 * 1024;

/// Makes a connection between two tables.
fn connect(
    now: Instant,
    client: (&mut TlsTable, &TlsClientConfig),
    server: (&mut TlsTable, &TlsServerConfig),
) -> [TlsKey; 2] {
    let (mut to_server, mut to_client) = (Vec::new(), Vec::new());
    let keys = [client.0.connect(client.1, false, now, &mut to_server), server.0.accept(server.1)];
    while !to_server.is_empty() || !to_client.is_empty() {
        server.0.open(keys[1], now, &mut std::mem::take(&mut to_server), &mut to_client);
        client.0.open(keys[0], now, &mut std::mem::take(&mut to_client), &mut to_server);
    }
    assert_eq!(client.0.status(keys[0]), TlsStatus::Open);
    assert_eq!(server.0.status(keys[1]), TlsStatus::Open);
    keys
}

#[test]
fn an_idle_connection_owns_its_keys_and_nothing_else() {
    assert_eq!(CONN_BYTES, 144);
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let pair = CertifiedPair {
        chain: PemFile::new("chain.pem", certified.cert.pem()),
        key: PemFile::new("key.pem", certified.signing_key.serialize_pem()),
    };
    for (suite, bytes) in
        [(Suite::Tls13Aes128, 148), (Suite::Tls12ChaCha20, 148), (Suite::Tls13Aes256, 212)]
    {
        let mut options = TlsServerOptions::new(vec![pair.clone()]);
        options.suites = vec![suite];
        let server_config = TlsServerConfig::new(&options, 0).unwrap();
        let mut options = TlsClientOptions::new("localhost");
        options.trust = TrustAnchors::Unverified;
        options.ciphers = Cipher::of_suites(&[suite]);
        let client_config = TlsClientConfig::new(&options).unwrap();
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        let (mut clients, mut servers) = (TlsTable::new(now), TlsTable::new(now));
        let region = Region::new(ALLOCATOR);
        // A connection each 100 ms: few wait for a ticket at a time.
        let at = |number: usize| Instant::from_nanos(number as u64 * 100_000_000);
        let mut keys = Vec::with_capacity(CONNS);
        for number in 0..CONNS {
            let client = (&mut clients, &client_config);
            keys.push(connect(at(number), client, (&mut servers, &server_config)));
        }
        // Each connection has received something, and no client waits any more.
        let later = at(CONNS + 100);
        for [client, server] in &keys {
            let mut record = Vec::new();
            servers.seal(*server, [&b"hello"[..]], &mut record).unwrap();
            let opened = clients.open(*client, later, &mut record, &mut Vec::new());
            assert_eq!(opened.plain_bytes, 5);
        }
        let change = region.change();
        let held = change.bytes_allocated as isize - change.bytes_deallocated as isize;
        let of_keys = CONNS * size_of::<[TlsKey; 2]>();
        let each = (held as usize - of_keys) as f64 / (2 * CONNS) as f64;
        // The tables of handshakes and of what clients wait for have a chunk each.
        let most = f64::from(bytes) + 20.0;
        assert!(each >= f64::from(bytes) && each < most, "{suite:?}: {each} of {bytes} bytes");
    }
}
