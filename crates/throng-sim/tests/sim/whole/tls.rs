//! The real server and the real generator over TLS.
//!
//! Keys and signatures are random, so the lengths of a few messages differ between two runs with
//! one seed.

use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use throng_base::Instant;
use throng_driver::{ConnectSpec, SocketClose, SocketOptions, SourceAddress};
use throng_engine::CoreLimits;
use throng_measure::Operation;
use throng_proto::{SocketTransport, TransportFactory, TransportRole, TransportStatus};
use throng_server::AcceptTopology;
use throng_sim::{Faults, check};
use throng_tls::{
    CertifiedPair, Cipher, PemFile, SelfSigned, Suite, TicketKeys, TlsClientConfig,
    TlsClientOptions, TlsServerConfig, TlsServerOptions, TlsTransport, TrustAnchors,
};

use super::pair::{Pair, Shape, server_addr};

/// Scenario of users who send more than a record at once and receive it back.
const BULK: &str = "
load: [{arrivals: {rate: 20/s, for: 3s}}]
user: [connect, {send: {random: 40KiB}}, {expect: {bytes: 40960, timeout: 60s}}, close]
";

/// Returns a factory of transports with this suite, and the configurations that its clients use.
fn tls(suite: Suite) -> (TransportFactory, Arc<Mutex<Vec<TlsClientConfig>>>) {
    let pair = SelfSigned::new(&["localhost".to_owned()]).unwrap().pair;
    let mut server = TlsServerOptions::new(vec![pair]);
    (server.suites, server.tickets) = (vec![suite], TicketKeys::random());
    let mut client = TlsClientOptions::new("localhost");
    client.ciphers = Cipher::of_suites(&[suite]);
    client.trust = TrustAnchors::Unverified;
    let configs: Arc<Mutex<Vec<TlsClientConfig>>> = Arc::default();
    let clients = configs.clone();
    let factory = TransportFactory::new(move |core| {
        let client = TlsClientConfig::new(&client).unwrap();
        clients.lock().unwrap().push(client.clone());
        let server = TlsServerConfig::new(&server, core as u16).unwrap();
        let transport = TlsTransport::new(Duration::from_secs(1_800_000_000));
        Box::new(transport.with_server(server).with_client(client, 0.5))
    });
    (factory, configs)
}

#[test]
fn users_and_server_talk_over_a_rough_network() {
    for suite in [Suite::Tls13Aes128, Suite::Tls13ChaCha20, Suite::Tls12Aes256] {
        check(3, |sim| {
            let (factory, configs) = tls(suite);
            sim.set_transport(factory);
            sim.set_faults(Faults { syn_loss: 0.0, window_bytes_min: 500, ..Faults::rough() });
            let pair = Pair::start(sim, AcceptTopology::Reuseport, Shape::default(), BULK);
            pair.finish(sim, Duration::from_secs(120));
            let load = pair.load_counters();
            assert!(load.users_started > 20, "{load:?}");
            assert_eq!((load.users_finished, pair.errors()), (load.users_started, 0), "{load:?}");
            let server = pair.server_counters(sim);
            assert_eq!((server.open, server.accepted), (0, server.closed));
            let has_sessions = configs.lock().unwrap().iter().any(|config| config.has_session(0));
            assert!(has_sessions, "{suite:?}: no ticket arrived");
        });
    }
}

/// Returns the work of the step in which a server with this certificate signs.
fn work_of_a_signature(pair: CertifiedPair) -> usize {
    let mut client = TlsClientOptions::new("localhost");
    client.trust = TrustAnchors::Unverified;
    let mut transport = TlsTransport::new(Duration::from_secs(1_800_000_000))
        .with_server(TlsServerConfig::new(&TlsServerOptions::new(vec![pair]), 0).unwrap())
        .with_client(TlsClientConfig::new(&client).unwrap(), 0.0);
    let (mut hello, mut out) = (Vec::new(), Vec::new());
    transport.begin(TransportRole::Client, Instant::ZERO, &mut hello);
    let server = transport.begin(TransportRole::Server, Instant::ZERO, &mut out);
    let opened = transport.open(server, Instant::ZERO, &mut hello, &mut out);
    assert!(opened.status == TransportStatus::Opening && !out.is_empty());
    hello.len() + opened.work_bytes
}

#[test]
fn a_turn_has_work_for_four_signatures_of_ecdsa_or_for_one_of_rsa() {
    let work_bytes_max = CoreLimits::default().handshake_work_bytes_max;
    let in_a_turn = |pair| work_bytes_max.div_ceil(work_of_a_signature(pair));
    assert_eq!(in_a_turn(SelfSigned::new(&["localhost".to_owned()]).unwrap().pair), 4);
    let arguments = "req -x509 -newkey rsa:2048 -nodes -keyout - -out - -subj /CN=localhost";
    let Ok(made) = Command::new("openssl").args(arguments.split(' ')).output() else {
        println!("not run: there is no openssl here");
        return;
    };
    let file = PemFile::new("openssl", made.stdout);
    assert_eq!(in_a_turn(CertifiedPair { chain: file.clone(), key: file }), 1);
}

/// Handshakes that are never begun, and such that drip: neither is served, and neither delays users
/// or is kept.
#[test]
fn users_do_not_wait_for_a_flood_of_handshakes_that_do_not_end() {
    const SILENT: u64 = 300;
    const DRIPPING: u64 = 150;
    let users = "load: [arrivals: {rate: 5/s, for: 12s}]\n\
                 user: [connect, {send: {random: 100}}, {expect: {bytes: 100}}, close]\n";
    check(2, |sim| {
        let (factory, _) = tls(Suite::Tls13Aes128);
        let mut hello = Vec::new();
        factory.make(9).begin(TransportRole::Client, Instant::ZERO, &mut hello);
        sim.set_transport(factory);
        sim.set_faults(Faults::none());
        let shape = Shape { server_cores: 2, backlog: 1_000, ..Shape::default() };
        let pair = Pair::start(sim, AcceptTopology::Reuseport, shape, users);
        let mut flood = sim.peers();
        let spec = ConnectSpec {
            target: server_addr(),
            source: SourceAddress::Any,
            options: SocketOptions::default(),
        };
        let all: Vec<_> = (0..SILENT + DRIPPING).map(|_| flood.connect(&spec).unwrap()).collect();
        sim.run_for(Duration::from_millis(50));
        for byte in hello.iter().take(90) {
            for peer in &all[SILENT as usize..] {
                flood.send_raw(peer, &[*byte]).unwrap();
            }
            sim.run_for(Duration::from_millis(100));
            let server = pair.server_counters(sim);
            assert!(server.tls_part_bytes <= DRIPPING * 90, "{server:?}");
            assert!(server.tls_under_way <= DRIPPING + 5, "{server:?}");
        }
        pair.finish(sim, Duration::from_secs(120));
        let load = pair.load_counters();
        assert_eq!((load.users_finished, pair.errors()), (load.users_started, 0), "{load:?}");
        assert!(load.users_started > 40, "{load:?}");
        for stats in pair.core_stats() {
            let slowest = stats.times[Operation::Connect].max();
            assert!(slowest < 50_000, "a connect of {slowest} us");
        }
        let server = pair.server_counters(sim);
        assert_eq!(server.tls_handshake_timeouts, SILENT + DRIPPING);
        assert_eq!((server.open, server.tls_under_way, server.tls_part_bytes), (0, 0, 0));
        all.into_iter().for_each(|peer| flood.close(peer, SocketClose::Reset));
    });
}
