//! Peers that break rules, and connections that are cut.

use throng_base::Instant;
use throng_tls::{Alert, HandshakeCause, Suite, TlsError, TlsFault, TlsStatus, TrustAnchors};

use crate::certificates::Options;
use crate::end::{End, Ours, exchange, table};
use crate::rustls_end::{Theirs, client_config, server_config};

/// Returns a connection of our two ends.
fn open(options: &Options) -> [Ours; 2] {
    let mut client = Ours::client(&options.client(), false);
    let mut server = Ours::server(&options.server());
    exchange(&mut client, &mut server, usize::MAX);
    [client, server]
}

#[test]
fn plaintext_at_a_tls_port_is_named_in_both_roles() {
    let options = Options::new();
    let mut server = Ours::server(&options.server());
    server.receive(b"GET / HTTP/1.1\r\n\r\n");
    assert_eq!(server.failure(), Some(TlsError::NotTls(*b"GET /")));
    assert!(server.out.is_empty());
    let mut client = Ours::client(&options.client(), false);
    client.receive(b"HTTP/1.1 400 Bad Request\r\n");
    let error = TlsError::NotTls(*b"HTTP/");
    assert_eq!(error.to_string(), "the peer does not speak TLS: its first bytes are \"HTTP/\"");
    assert_eq!(client.failure(), Some(error));
}

#[test]
fn a_connection_that_is_cut_is_truncated_and_one_that_is_closed_is_not() {
    let options = Options::new();
    let [mut client, mut server] = open(&options);
    client.write(b"all");
    exchange(&mut client, &mut server, usize::MAX);
    assert!(server.is_open(), "the end would be a truncation");
    client.close();
    client.close();
    exchange(&mut client, &mut server, usize::MAX);
    assert!(server.is_finished());
    // The other direction is still open.
    server.write(b"answer");
    exchange(&mut client, &mut server, usize::MAX);
    assert_eq!(client.take_plain(), b"answer");
    assert_eq!(client.seal(b"more"), Err(TlsError::NotOpen));
}

#[test]
fn a_peer_is_told_of_its_mistake_by_the_right_alert() {
    for suite in [Suite::Tls13Aes128, Suite::Tls12Aes128] {
        let options = Options::new().only(suite);
        let (rustls_client, rustls_server) = (client_config(&options), server_config(&options));
        let table: [(&[u8], Alert); 3] = [
            (&[23, 3, 3, 0, 30], Alert::BAD_RECORD_MAC),
            (&[23, 3, 3, 0xff, 0xff], Alert::RECORD_OVERFLOW),
            (&[99, 3, 3, 0, 30], Alert::UNEXPECTED_MESSAGE),
        ];
        for (header, alert) in table {
            let record = [header, &[0; 30]].concat();
            let mut ours = Ours::server(&options.server());
            let mut theirs = Theirs::client(&rustls_client);
            exchange(&mut theirs, &mut ours, usize::MAX);
            ours.receive(&record);
            let Some(error) = ours.failure() else { panic!("{record:?} is accepted") };
            assert_eq!((error.alert(), error.fault()), (Some(alert), TlsFault::Peer));
            theirs.receive(&ours.take_sent());
            let seen = format!("{:?}", theirs.error);
            assert!(seen.starts_with("Some(AlertReceived("), "{seen}");
            // The client's end, too.
            let mut ours = Ours::client(&options.client(), false);
            let mut theirs = Theirs::server(&rustls_server);
            exchange(&mut ours, &mut theirs, usize::MAX);
            ours.receive(&record);
            theirs.receive(&ours.take_sent());
            assert!(theirs.error.is_some());
        }
    }
}

#[test]
fn nothing_follows_a_fatal_alert() {
    let [mut client, mut server] = open(&Options::new());
    client.receive(&[&[23, 3, 3, 0, 30][..], &[0; 30]].concat());
    assert_eq!(client.seal(b"x"), Err(TlsError::NotOpen));
    server.receive(&client.take_sent());
    assert_eq!(server.failure(), Some(TlsError::AlertReceived(Alert::BAD_RECORD_MAC)));
    assert_eq!(server.seal(b"x"), Err(TlsError::NotOpen));
    assert!(server.out.is_empty());
}

/// Returns why the handshake of an end failed.
fn cause(end: &Ours) -> HandshakeCause {
    match end.failure() {
        Some(TlsError::Handshake(failure)) => failure.cause,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_client_says_what_is_wrong_with_a_certificate() {
    use HandshakeCause as Cause;
    let mut options = Options::new();
    let stranger = crate::certificates::Authority::new("stranger");
    let at = |year| rcgen::date_time_ymd(year, 1, 1);
    let table = [
        (
            options.authority.sign_with(&["localhost"], |params| params.not_after = at(2001)),
            Cause::CertificateExpired,
        ),
        (
            options.authority.sign_with(&["localhost"], |params| params.not_before = at(4000)),
            Cause::CertificateNotYetValid,
        ),
        (options.authority.sign(&["other.example"]), Cause::CertificateForOtherName),
        (stranger.sign(&["localhost"]), Cause::CertificateUnknownIssuer),
    ];
    for (pair, expected) in table {
        options.server.pairs = vec![pair];
        let mut client = Ours::client(&options.client(), false);
        let mut server = Ours::server(&options.server());
        exchange(&mut client, &mut server, usize::MAX);
        assert_eq!(cause(&client), expected);
        assert!(matches!(cause(&server), Cause::AlertReceived(_)), "{:?}", server.failure());
    }
}

#[test]
fn ends_that_have_nothing_in_common_say_what() {
    use HandshakeCause as Cause;
    let cause = |options: &Options| {
        let mut server = Ours::server(&options.server());
        exchange(&mut Ours::client(&options.client(), false), &mut server, usize::MAX);
        cause(&server)
    };
    let mut versions = Options::new();
    versions.client.max = throng_tls::TlsVersion::V12;
    versions.server.min = throng_tls::TlsVersion::V13;
    assert_eq!(cause(&versions), Cause::NoCommonVersion);
    let mut suites = Options::new();
    suites.client.suites = vec![Suite::Tls13Aes128];
    suites.server.suites = vec![Suite::Tls13ChaCha20];
    assert_eq!(cause(&suites), Cause::NoCommonCipher);
    let mut alpn = Options::new();
    alpn.client.alpn = vec![b"h2".to_vec()];
    alpn.server.alpn = vec![b"http/1.1".to_vec()];
    assert_eq!(cause(&alpn), Cause::NoCommonProtocol);
    let mut certificate = Options::new();
    certificate.server.client_ca = Some(certificate.authority.file());
    assert_eq!(cause(&certificate), Cause::CertificateMissing);
    // The client learns of it after its handshake, by an alert.
    let [client, _] = open(&certificate);
    assert_eq!(client.failure(), Some(TlsError::AlertReceived(Alert::CERTIFICATE_REQUIRED)));
}

#[test]
fn a_handshake_has_a_limit_of_bytes() {
    let mut server = Ours::server(&Options::new().server());
    // A message that is longer than the limit, in records of 16 kB.
    for part in 0..5 {
        assert_eq!((part, server.failure()), (part, None));
        let begin: &[u8] = if part == 0 { &[1, 0, 255, 255] } else { &[] };
        let content = [begin, &vec![3; 16_000 - begin.len()][..]].concat();
        server.receive(&[&[22, 3, 1, 0x3e, 0x80][..], &content].concat());
    }
    assert_eq!(server.failure(), Some(TlsError::HandshakeTooLong(65_536)));
    assert_eq!(server.table.handshakes(), 0);
}

#[test]
fn updates_without_end_are_a_flood_even_in_one_read() {
    let [mut client, mut server] = open(&Options::new());
    for _ in 0..40 {
        client.update_keys();
    }
    server.receive(&client.take_sent());
    assert_eq!(server.failure(), Some(TlsError::IdleRecords(32)));
    assert_eq!(TlsError::IdleRecords(32).alert(), Some(Alert::UNEXPECTED_MESSAGE));
    client.receive(&server.take_sent());
    assert_eq!(client.failure(), Some(TlsError::AlertReceived(Alert::UNEXPECTED_MESSAGE)));
}

#[test]
fn a_forgotten_connection_leaves_nothing() {
    let options = Options::new();
    let mut table = table();
    let config = options.client();
    let mut seen = std::collections::HashSet::new();
    for _ in 0..10 {
        let key = table.connect(&config, false, Instant::ZERO, &mut Vec::new());
        seen.insert(key);
        table.forget(key);
        assert_eq!(table.handshakes(), 0);
        assert_eq!(table.status(key), TlsStatus::Failed(&TlsError::NotOpen));
    }
    assert_eq!(seen.len(), 1, "a free key is used again");
}

/// A change in a byte of a handshake fails, makes the ends wait, or changes nothing that matters.
#[test]
fn a_changed_handshake_never_opens_a_connection_with_other_keys() {
    for suite in [Suite::Tls13Aes128, Suite::Tls12Aes128] {
        let options = Options::new().only(suite);
        let (client_config, server_config) = (options.client(), options.server());
        for at in (0..1_200usize).step_by(7) {
            let mut client = Ours::client(&client_config, false);
            let mut server = Ours::server(&server_config);
            let mut passed = 0;
            for _ in 0..4 {
                for from_client in [true, false] {
                    let (from, to): (&mut Ours, &mut Ours) = match from_client {
                        true => (&mut client, &mut server),
                        false => (&mut server, &mut client),
                    };
                    let mut bytes = from.take_sent();
                    if let Some(byte) =
                        at.checked_sub(passed).and_then(|at: usize| bytes.get_mut(at))
                    {
                        *byte ^= 0x41;
                    }
                    passed += bytes.len();
                    to.receive(&bytes);
                }
            }
            // The version in the header of a record of the handshake is not authenticated.
            if client.is_open() && server.is_open() {
                crate::end::talk(&mut client, &mut server, usize::MAX);
            }
        }
    }
}

#[test]
fn a_certificate_that_is_its_own_authority_is_trusted_where_a_file_names_it() {
    use HandshakeCause as Cause;
    for (name, until, is_named, expected) in [
        ("localhost", 4000, true, None),
        ("localhost", 4000, false, Some(Cause::CertificateUnknownIssuer)),
        ("other.example", 4000, true, Some(Cause::CertificateForOtherName)),
        ("localhost", 2001, true, Some(Cause::CertificateExpired)),
    ] {
        let pair = crate::certificates::own_authority(name, until);
        let mut options = Options::new();
        if is_named {
            options.client.trust = TrustAnchors::File(pair.chain.clone());
        }
        options.server.pairs = vec![pair];
        let [client, _] = open(&options);
        assert_eq!(client.is_open(), expected.is_none(), "{:?}", client.failure());
        if let Some(expected) = expected {
            assert_eq!(cause(&client), expected);
        }
    }
}
