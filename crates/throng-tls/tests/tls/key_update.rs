//! Key updates, and the limits of what a peer may send without data.

use throng_tls::{Suite, TlsError};

use crate::certificates::Options;
use crate::end::{CUTS, End, Ours, exchange, talk};
use crate::rustls_end::{Theirs, client_config, server_config};

/// Takes new keys in turn, with data between.
fn check(a: &mut dyn End, b: &mut dyn End, cut: usize) {
    exchange(a, b, cut);
    for round in 0..6 {
        match round % 3 {
            0 => a.update_keys(),
            1 => b.update_keys(),
            _ => {
                a.update_keys();
                b.update_keys();
            }
        }
        talk(a, b, cut);
    }
}

const SUITES: [Suite; 3] = [Suite::Tls13Aes128, Suite::Tls13Aes256, Suite::Tls13ChaCha20];

#[test]
fn keys_are_updated_by_both_ends() {
    for suite in SUITES {
        let options = Options::new().only(suite);
        for cut in [1, 22, 1_000, usize::MAX] {
            let mut client = Ours::client(&options.client(), false);
            let mut server = Ours::server(&options.server());
            check(&mut client, &mut server, cut);
            assert!(client.table.counters().key_updates >= 16);
        }
    }
}

#[test]
fn keys_are_updated_with_rustls() {
    for suite in SUITES {
        let options = Options::new().only(suite);
        for cut in [1, 22, 1_000, usize::MAX] {
            let mut theirs = Theirs::server(&server_config(&options));
            check(&mut Ours::client(&options.client(), false), &mut theirs, cut);
            let mut theirs = Theirs::client(&client_config(&options));
            check(&mut theirs, &mut Ours::server(&options.server()), cut);
        }
    }
}

/// rustls would read the update itself, lose its answer, and keep old secrets.
#[test]
fn an_update_in_one_read_with_the_last_message_of_the_handshake_is_ours() {
    for suite in SUITES {
        let options = Options::new().only(suite);
        let rustls_client = client_config(&options);
        for cut in CUTS {
            let mut server = Ours::server(&options.server());
            let mut client = Theirs::client(&rustls_client);
            while client.connection.is_handshaking() {
                server.receive(&client.take_sent());
                client.receive(&server.take_sent());
            }
            client.update_keys();
            client.write(b"sealed with the second key");
            let bytes = client.take_sent();
            bytes.chunks(cut).for_each(|bytes| server.receive(bytes));
            assert_eq!(server.take_plain(), b"sealed with the second key");
            talk(&mut client, &mut server, cut);
            server.update_keys();
            talk(&mut client, &mut server, cut);
            assert_eq!(client.error, None);
        }
    }
}

/// "an implementation which receives multiple KeyUpdates while it is silent [responds] with a
/// single update" (RFC 8446 section 4.6.3), "prior to sending its next Application Data record".
#[test]
fn requests_have_one_answer_before_the_next_data() {
    let options = Options::new();
    let mut client = Ours::client(&options.client(), false);
    let mut server = Ours::server(&options.server());
    exchange(&mut client, &mut server, usize::MAX);
    for _ in 0..20 {
        client.update_keys();
        server.receive(&client.take_sent());
    }
    assert!(server.out.is_empty(), "the server is silent");
    server.write(b"data");
    assert_eq!(server.out.len(), (5 + 5 + 1 + 16) + (5 + 4 + 1 + 16), "one KeyUpdate, then data");
    server.write(b" and more");
    exchange(&mut client, &mut server, usize::MAX);
    assert_eq!(client.take_plain(), b"data and more");
    talk(&mut client, &mut server, usize::MAX);
}

#[test]
fn more_than_32_updates_without_data_are_a_flood() {
    let options = Options::new();
    let mut client = Ours::client(&options.client(), false);
    let mut server = Ours::server(&options.server());
    exchange(&mut client, &mut server, usize::MAX);
    for round in 0..3 {
        for _ in 0..32 {
            client.update_keys();
        }
        client.write(&[round]);
        exchange(&mut client, &mut server, usize::MAX);
        assert_eq!(server.take_plain(), [round]);
    }
    for _ in 0..33 {
        client.update_keys();
    }
    exchange(&mut client, &mut server, usize::MAX);
    assert_eq!(server.failure(), Some(TlsError::IdleRecords(32)));
}
