//! Sessions that are resumed, and those that must not be.

use throng_tls::{TicketKeys, TlsHandshakeKind, TlsServerConfig};

use crate::certificates::{Options, VERSIONS};
use crate::end::{End, Ours, exchange, talk};
use crate::rustls_end::{Theirs, client_config, server_config};

fn options_with_tickets() -> Options {
    let mut options = Options::new();
    options.server.tickets = Some(TicketKeys::new([5; 32]));
    options
}

#[test]
fn the_second_connection_resumes_the_session_of_the_first() {
    for version in VERSIONS {
        let mut options = options_with_tickets();
        options.client.max = version;
        let (client_config, server_config) = (options.client(), options.server());
        assert!(!client_config.has_session(0));
        for kind in [TlsHandshakeKind::Full, TlsHandshakeKind::Resumed, TlsHandshakeKind::Resumed] {
            let mut client = Ours::client(&client_config, true);
            let mut server = Ours::server(&server_config);
            exchange(&mut client, &mut server, 22);
            talk(&mut client, &mut server, usize::MAX);
            assert_eq!((client.kind(), server.kind()), (kind, kind), "{version:?}");
            assert!(client_config.has_session(0));
        }
    }
}

#[test]
fn a_connection_that_offers_no_session_has_a_full_handshake() {
    for version in VERSIONS {
        let mut options = options_with_tickets();
        options.client.max = version;
        let (client_config, server_config) = (options.client(), options.server());
        for _ in 0..3 {
            let mut client = Ours::client(&client_config, false);
            let mut server = Ours::server(&server_config);
            exchange(&mut client, &mut server, usize::MAX);
            assert_eq!(server.kind(), TlsHandshakeKind::Full);
        }
        assert!(client_config.has_session(0));
    }
}

#[test]
fn each_core_and_node_resumes_the_sessions_of_all_others() {
    let options = options_with_tickets();
    let client_config = options.client();
    let servers = [0, 1, 2].map(|core| TlsServerConfig::new(&options.server, core).unwrap());
    for (at, server_config) in servers.iter().enumerate() {
        let mut client = Ours::client(&client_config, true);
        let mut server = Ours::server(server_config);
        exchange(&mut client, &mut server, usize::MAX);
        assert_eq!(server.kind() == TlsHandshakeKind::Resumed, at > 0);
    }
}

/// A resumption would skip the check of the client's certificate.
#[test]
fn a_server_that_asks_for_certificates_gives_no_tickets() {
    for version in VERSIONS {
        let mut options = options_with_tickets().with_client_certificate();
        options.client.max = version;
        let (client_config, server_config) = (options.client(), options.server());
        for _ in 0..3 {
            let mut client = Ours::client(&client_config, true);
            let mut server = Ours::server(&server_config);
            exchange(&mut client, &mut server, usize::MAX);
            assert_eq!(server.kind(), TlsHandshakeKind::Full);
            assert!(!client_config.has_session(0));
        }
    }
}

#[test]
fn sessions_are_resumed_with_rustls_in_both_roles() {
    for version in VERSIONS {
        let mut options = options_with_tickets();
        options.client.ciphers.retain(|cipher| cipher.suite.version() == version);
        let (ours, theirs) = (options.client(), server_config(&options));
        let (ours_server, theirs_client) = (options.server(), client_config(&options));
        for kind in [TlsHandshakeKind::Full, TlsHandshakeKind::Resumed] {
            let mut client = Ours::client(&ours, true);
            exchange(&mut client, &mut Theirs::server(&theirs), usize::MAX);
            assert_eq!(client.kind(), kind, "{version:?}");
            let mut server = Ours::server(&ours_server);
            exchange(&mut Theirs::client(&theirs_client), &mut server, usize::MAX);
            assert_eq!(server.kind(), kind, "{version:?}");
        }
    }
}

#[test]
fn a_pool_keeps_the_newest_tickets_up_to_its_limit() {
    let mut options = options_with_tickets();
    options.client.tickets_max = 3;
    let (client_config, server_config) = (options.client(), options.server());
    for round in 1..6 {
        let mut client = Ours::client(&client_config, false);
        exchange(&mut client, &mut Ours::server(&server_config), usize::MAX);
        assert_eq!(client_config.tickets().len(), round.min(3));
        assert_eq!(client.table.counters().tickets_received, 1);
    }
}

#[test]
fn a_ticket_that_arrives_late_is_not_kept() {
    let options = options_with_tickets();
    let (client_config, server_config) = (options.client(), options.server());
    for (waits_ms, tickets) in [(1_999, 1), (2_000, 0)] {
        let mut client = Ours::client(&client_config, false);
        let mut server = Ours::server(&server_config);
        server.receive(&client.take_sent());
        client.receive(&server.take_sent());
        server.receive(&client.take_sent());
        client.now += std::time::Duration::from_millis(waits_ms);
        exchange(&mut client, &mut server, usize::MAX);
        assert_eq!(client.table.counters().tickets_received, tickets);
    }
}

#[test]
fn the_configurations_of_two_cores_share_no_tickets() {
    for version in VERSIONS {
        let mut options = options_with_tickets();
        options.client.max = version;
        let (one, server_config) = (options.client(), options.server());
        let another = one.for_other_core();
        for (config, kind) in [
            (&one, TlsHandshakeKind::Full),
            (&another, TlsHandshakeKind::Full),
            (&another, TlsHandshakeKind::Resumed),
            (&one, TlsHandshakeKind::Resumed),
        ] {
            let mut client = Ours::client(config, true);
            exchange(&mut client, &mut Ours::server(&server_config), usize::MAX);
            assert_eq!(client.kind(), kind, "{version:?}");
        }
    }
}
