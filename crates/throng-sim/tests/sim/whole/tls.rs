//! The real server and the real generator over TLS.
//!
//! Keys and signatures are random, so the lengths of a few messages differ between two runs with
//! one seed.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use throng_proto::TransportFactory;
use throng_server::AcceptTopology;
use throng_sim::{Faults, check};
use throng_tls::{
    SelfSigned, Suite, TicketMaster, TlsClientConfig, TlsClientOptions, TlsServerConfig,
    TlsServerOptions, TlsTransport, TrustAnchors,
};

use super::pair::{Pair, Shape};

/// Scenario of users who send more than a record at once and receive it back.
const BULK: &str = "
load: [{arrivals: {rate: 20/s, for: 3s}}]
user: [connect, {send: {random: 40KiB}}, {expect: {bytes: 40960, timeout: 60s}}, close]
";

/// Returns a factory of transports with this suite, and the configurations that its clients use.
fn tls(suite: Suite) -> (TransportFactory, Arc<Mutex<Vec<TlsClientConfig>>>) {
    let pair = SelfSigned::new(&["localhost".to_owned()]).unwrap().pair;
    let mut server = TlsServerOptions::new(vec![pair]);
    (server.suites, server.tickets) = (vec![suite], TicketMaster::random());
    let mut client = TlsClientOptions::new("localhost");
    (client.suites, client.trust) = (vec![suite], TrustAnchors::Unverified);
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
            let has_sessions = configs.lock().unwrap().iter().any(TlsClientConfig::has_session);
            assert!(has_sessions, "{suite:?}: no ticket arrived");
        });
    }
}
