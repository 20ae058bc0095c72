//! Peers that break rules, and connections that are cut.

use throng_base::Instant;
use throng_tls::{Alert, HandshakeCause, Suite, TlsEnd, TlsError, TlsFault, TlsLimits, TlsPhase};

use crate::certificates::Options;
use crate::end::{End, Ours, exchange, unix_now};
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
    assert_eq!(server.end, Some(TlsEnd::Failed(TlsError::NotTls(*b"GET /"))));
    assert_eq!((server.conn.phase(), server.out.len()), (TlsPhase::Gone, 0));
    let mut client = Ours::client(&options.client(), false);
    client.receive(b"HTTP/1.1 400 Bad Request\r\n");
    let error = TlsError::NotTls(*b"HTTP/");
    assert_eq!(error.to_string(), "the peer does not speak TLS: its first bytes are \"HTTP/\"");
    assert_eq!(client.end, Some(TlsEnd::Failed(error)));
}

#[test]
fn a_connection_that_is_cut_is_truncated_and_one_that_is_closed_is_not() {
    let options = Options::new();
    let [mut client, mut server] = open(&options);
    client.write(b"all");
    exchange(&mut client, &mut server, usize::MAX);
    assert_eq!(server.table.end_of_input(&server.conn), Err(TlsError::Truncated));
    client.close();
    client.close();
    exchange(&mut client, &mut server, usize::MAX);
    assert_eq!(server.table.end_of_input(&server.conn), Ok(()));
    assert_eq!(server.end, Some(TlsEnd::Closed));
    // The other direction is still open.
    server.write(b"answer");
    exchange(&mut client, &mut server, usize::MAX);
    assert_eq!(client.take_plain(), b"answer");
    let sealed = client.table.seal(&client.conn, [&b"more"[..]], &mut Vec::new());
    assert_eq!(sealed, Err(TlsError::NotOpen));
    let mut waiting = Ours::server(&options.server());
    assert_eq!(waiting.table.end_of_input(&waiting.conn), Err(TlsError::EndInHandshake));
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
            let Some(TlsEnd::Failed(error)) = &ours.end else { panic!("{record:?} is accepted") };
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
    client.receive(&[
        23, 3, 3, 0, 30, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        0, 0, 0, 0, 0,
    ]);
    assert_eq!(
        client.table.seal(&client.conn, [&b"x"[..]], &mut Vec::new()),
        Err(TlsError::NotOpen)
    );
    server.receive(&client.take_sent());
    let alert = TlsError::AlertReceived(Alert::BAD_RECORD_MAC);
    assert_eq!(server.end, Some(TlsEnd::Failed(alert)));
    assert_eq!(
        server.table.seal(&server.conn, [&b"x"[..]], &mut Vec::new()),
        Err(TlsError::NotOpen)
    );
    assert_eq!(server.out, []);
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
    for (pair, cause) in table {
        options.server.pairs = vec![pair];
        let mut client = Ours::client(&options.client(), false);
        let mut server = Ours::server(&options.server());
        exchange(&mut client, &mut server, usize::MAX);
        let Some(TlsEnd::Failed(TlsError::Handshake(failure))) = &client.end else {
            panic!("{:?}", client.end)
        };
        assert_eq!(failure.cause, cause);
        let Some(TlsEnd::Failed(TlsError::Handshake(failure))) = &server.end else {
            panic!("{:?}", server.end)
        };
        assert!(matches!(failure.cause, Cause::AlertReceived(_)), "{failure:?}");
    }
}

#[test]
fn ends_that_have_nothing_in_common_say_what() {
    use HandshakeCause as Cause;
    let cause = |options: &Options| {
        let mut client = Ours::client(&options.client(), false);
        let mut server = Ours::server(&options.server());
        exchange(&mut client, &mut server, usize::MAX);
        match server.end {
            Some(TlsEnd::Failed(TlsError::Handshake(failure))) => failure.cause,
            end => panic!("{end:?}"),
        }
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
}

#[test]
fn handshakes_have_limits() {
    let options = Options::new();
    let limits = TlsLimits { handshakes_max: 2, handshake_bytes_max: 500, ..TlsLimits::default() };
    let mut table = throng_tls::TlsTable::new(limits, unix_now());
    let config = options.server();
    let first = table.accept(&config, Instant::ZERO).unwrap();
    let second = table.accept(&config, Instant::ZERO).unwrap();
    assert_eq!(table.accept(&config, Instant::ZERO), Err(TlsError::TooManyHandshakes(2)));
    assert!(!table.has_room());
    table.remove(first);
    assert!(table.has_room());
    let due = table.deadline(&second);
    assert_eq!(due.as_nanos(), 10_000_000_000);
    assert_eq!(table.handle_timeout(&second, Instant::ZERO), Ok(()));
    assert_eq!(table.handle_timeout(&second, due), Err(TlsError::HandshakeTimeout(10_000)));
    table.remove(second);
    let mut server = Ours::server(&config);
    server.table = table;
    server.conn = server.table.accept(&config, Instant::ZERO).unwrap();
    // A handshake message that is longer than the limit, in records of 100 bytes.
    for part in 0..6 {
        let begin: &[u8] = if part == 0 { &[1, 0, 255, 0] } else { &[] };
        let content = [begin, &vec![3; 100 - begin.len()][..]].concat();
        server.receive(&[&[22, 3, 1, 0, 100][..], &content].concat());
    }
    assert_eq!(server.end, Some(TlsEnd::Failed(TlsError::HandshakeTooLong(500))));
    assert_eq!(server.conn.phase(), TlsPhase::Gone);
}

#[test]
fn a_record_that_does_not_become_whole_has_a_deadline() {
    let [mut client, mut server] = open(&Options::new());
    client.write(&[7; 1_000]);
    let bytes = client.take_sent();
    server.receive(&bytes[..700]);
    assert_eq!(server.table.counters().parts_bytes, 700);
    let due = server.table.deadline(&server.conn);
    assert_eq!(due.as_nanos(), 60_000_000_000);
    server.receive(&bytes[700..701]);
    assert_eq!(server.table.deadline(&server.conn), due, "a byte moves no deadline");
    assert_eq!(
        server.table.handle_timeout(&server.conn, due),
        Err(TlsError::RecordTimeout(60_000))
    );
    server.receive(&bytes[701..]);
    assert_eq!(server.table.counters().parts_bytes, 0);
    assert_eq!(server.take_plain(), [7; 1_000]);
    assert_eq!(server.table.deadline(&server.conn), Instant::FAR);
}

#[test]
fn empty_records_are_a_flood() {
    let options = Options::new();
    let mut theirs = Theirs::client(&client_config(&options));
    let mut server = Ours::server(&options.server());
    exchange(&mut theirs, &mut server, usize::MAX);
    // Warnings and user_canceled are without data, too; rustls cannot send them, so our end does.
    let [client, mut server] = open(&options);
    let mut table = client.table;
    let mut out = Vec::new();
    for _ in 0..40 {
        table.update_keys(&client.conn, &mut out).unwrap();
    }
    server.receive(&out);
    assert_eq!(server.end, Some(TlsEnd::Failed(TlsError::IdleRecords(32))));
    assert_eq!(TlsError::IdleRecords(32).alert(), Some(Alert::UNEXPECTED_MESSAGE));
}

/// A change in any byte of a handshake fails, or only makes the end wait. Nothing panics.
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
            let both_open = client.is_open() && server.is_open() && at < passed;
            let failed = client.end.is_some() || server.end.is_some();
            assert!(!both_open || failed || at >= passed, "{suite:?}: byte {at}");
        }
    }
}
