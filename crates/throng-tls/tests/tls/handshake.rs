//! Handshakes of both roles, and data afterwards.

use std::sync::{Arc, Mutex};

use throng_tls::{KeyLogSink, Suite, TlsHandshakeKind, TlsVersion};

use crate::certificates::Options;
use crate::end::{CUTS, End, Ours, exchange, talk};
use crate::rustls_end::{Theirs, client_config, server_config};

/// Makes a connection, talks over it and closes it.
fn check(client: &mut dyn End, server: &mut dyn End, cut: usize) {
    exchange(client, server, cut);
    assert!(client.is_open() && server.is_open(), "reads of {cut}");
    talk(client, server, cut);
    client.close();
    server.close();
    exchange(client, server, cut);
}

#[test]
fn each_suite_works_between_our_ends_however_reads_are_cut() {
    for suite in Suite::PREFERENCE {
        let options = Options::new().only(suite);
        let (client_config, server_config) = (options.client(), options.server());
        for cut in CUTS {
            let mut client = Ours::client(&client_config, false);
            let mut server = Ours::server(&server_config);
            check(&mut client, &mut server, cut);
            for end in [client, server] {
                let established = end.established.clone().unwrap();
                assert_eq!((established.suite, established.kind), (suite, TlsHandshakeKind::Full));
                assert!(end.is_finished());
            }
        }
    }
}

#[test]
fn each_suite_works_with_rustls_in_both_roles() {
    for suite in Suite::PREFERENCE {
        let options = Options::new().only(suite);
        let (rustls_client, rustls_server) = (client_config(&options), server_config(&options));
        for cut in CUTS {
            let mut theirs = Theirs::server(&rustls_server);
            check(&mut Ours::client(&options.client(), false), &mut theirs, cut);
            let mut theirs = Theirs::client(&rustls_client);
            check(&mut theirs, &mut Ours::server(&options.server()), cut);
        }
    }
}

#[test]
fn client_certificates_are_checked_in_both_roles() {
    for suite in [Suite::Tls13Aes128, Suite::Tls12Aes128] {
        let options = Options::new().only(suite).with_client_certificate();
        let mut client = Ours::client(&options.client(), false);
        let mut server = Ours::server(&options.server());
        check(&mut client, &mut server, usize::MAX);
        assert!(server.established.unwrap().has_peer_certificate);
        // The authority's certificates are valid until the year 4096.
        assert_eq!(client.established.unwrap().peer_valid_until, Some(67_090_118_400));
        let mut theirs = Theirs::server(&server_config(&options));
        check(&mut Ours::client(&options.client(), false), &mut theirs, 22);
        let mut theirs = Theirs::client(&client_config(&options));
        check(&mut theirs, &mut Ours::server(&options.server()), 22);
    }
}

/// The last bytes of a handshake and the first data may arrive in one read, cut anywhere.
#[test]
fn data_behind_the_handshake_arrive_wherever_the_reads_are_cut() {
    for suite in [Suite::Tls13Aes128, Suite::Tls13Aes256, Suite::Tls12Aes128] {
        let options = Options::new().only(suite);
        let (client_config, server_config) = (options.client(), options.server());
        let run = |cut: Option<usize>| {
            let mut client = Ours::client(&client_config, false);
            let mut server = Ours::server(&server_config);
            while !client.is_open() {
                server.receive(&client.take_sent());
                client.receive(&server.take_sent());
            }
            client.write(b"first");
            client.write(b"second");
            let bytes = client.take_sent();
            let (begin, end) = bytes.split_at(cut.unwrap_or_default().min(bytes.len()));
            server.receive(begin);
            server.receive(end);
            assert_eq!(server.take_plain(), b"firstsecond", "{suite:?}, {cut:?}");
            bytes.len()
        };
        for cut in 0..run(None) {
            run(Some(cut));
        }
    }
}

#[test]
fn protocols_are_agreed_by_alpn() {
    let mut options = Options::new();
    options.client.alpn = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    options.server.alpn = vec![b"http/1.1".to_vec()];
    let mut client = Ours::client(&options.client(), false);
    let mut server = Ours::server(&options.server());
    check(&mut client, &mut server, usize::MAX);
    for end in [client, server] {
        assert_eq!(end.established.unwrap().alpn.as_deref(), Some(&b"http/1.1"[..]));
    }
}

#[test]
fn steps_report_what_they_cost() {
    let options = Options::new();
    let mut client = Ours::client(&options.client(), false);
    let mut server = Ours::server(&options.server());
    check(&mut client, &mut server, usize::MAX);
    assert!((160..300).contains(&server.cost_us), "{}", server.cost_us);
    assert!((300..400).contains(&client.cost_us), "{}", client.cost_us);
}

/// What Wireshark needs, of each version: both ends log the same lines in the format of NSS.
#[test]
fn secrets_reach_the_key_logs_of_both_ends_in_their_format() {
    let labels = [
        (TlsVersion::V12, vec!["CLIENT_RANDOM"]),
        (
            TlsVersion::V13,
            vec![
                "CLIENT_HANDSHAKE_TRAFFIC_SECRET",
                "CLIENT_TRAFFIC_SECRET_0",
                "EXPORTER_SECRET",
                "SERVER_HANDSHAKE_TRAFFIC_SECRET",
                "SERVER_TRAFFIC_SECRET_0",
            ],
        ),
    ];
    for (version, labels) in labels {
        let logs: [Arc<Mutex<Vec<String>>>; 2] = Default::default();
        let [ours, theirs] = logs.each_ref().map(|log| {
            let log = Arc::clone(log);
            Some(KeyLogSink::new(move |line| log.lock().unwrap().push(line.to_owned())))
        });
        let mut options = Options::new();
        (options.client.max, options.client.key_log, options.server.key_log) =
            (version, ours, theirs);
        let mut client = Ours::client(&options.client(), false);
        check(&mut client, &mut Ours::server(&options.server()), usize::MAX);
        let [mut client, mut server] = logs.map(|log| std::mem::take(&mut *log.lock().unwrap()));
        client.sort();
        server.sort();
        assert_eq!(client, server);
        let secret_digits = if version == TlsVersion::V12 { 96 } else { 64 };
        assert_eq!(client.len(), labels.len(), "{client:?}");
        for (line, label) in client.iter().zip(labels) {
            let [is, random, secret] = line.split(' ').collect::<Vec<_>>()[..] else {
                panic!("{line}")
            };
            assert_eq!((is, random.len(), secret.len()), (label, 64, secret_digits));
            assert!(line.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' '));
        }
    }
}
