//! OpenSSL as the peer, over sockets of this machine.

use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};

use throng_tls::{
    CertifiedPair, PemFile, Suite, TicketKeys, TlsHandshakeKind, TlsVersion, TrustAnchors,
};

use crate::certificates::{Options, VERSIONS};
use crate::end::{End, Ours, exchange};
use crate::program::{Program, is_here};
use crate::socket::Socket;

fn version_flag(version: TlsVersion) -> &'static str {
    if version == TlsVersion::V13 { "-tls1_3" } else { "-tls1_2" }
}

#[test]
fn s_client_talks_updates_keys_and_resumes() {
    if !is_here("openssl", &["version"]) {
        return;
    }
    for version in VERSIONS {
        let mut options = Options::new();
        options.server.tickets = Some(TicketKeys::new([1; 32]));
        let (config, folder) = (options.server(), options.folder());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        for session in ["-sess_out", "-sess_in"] {
            let mut client = Program::start(
                "openssl",
                &[
                    "s_client",
                    "-connect",
                    &address,
                    "-servername",
                    "localhost",
                    "-CAfile",
                    "ca.pem",
                    "-verify_return_error",
                    version_flag(version),
                    session,
                    "session",
                    "-record_padding",
                    "64",
                ],
                folder.path(),
            );
            let mut server = Socket::new(Ours::server(&config), listener.accept().unwrap().0);
            server.until("handshake", |end| end.is_open());
            let is_second = session == "-sess_in";
            assert_eq!(server.end.kind() == TlsHandshakeKind::Resumed, is_second, "{version:?}");
            client.expect("Verify return code: 0 (ok)");
            client.write("hello\n");
            server.expect("hello");
            server.write("from the server\n");
            client.expect("from the server");
            if version == TlsVersion::V13 {
                for command in ["K", "k"] {
                    let before = server.end.table.counters().key_updates;
                    client.write(&format!("{command}\n"));
                    server.until(command, |end| end.table.counters().key_updates > before);
                    client.write("after the update\n");
                    server.expect("after the update");
                    server.write(&format!("answer to {command}\n"));
                    client.expect(&format!("answer to {command}"));
                }
                server.end.update_keys();
                server.write("our update\n");
                client.expect("our update");
                client.write("still here\n");
                server.expect("still here");
            }
            client.write("Q\n");
            server.until("close_notify", Ours::is_finished);
        }
    }
}

#[test]
fn s_server_talks_updates_keys_and_resumes() {
    if !is_here("openssl", &["version"]) {
        return;
    }
    for version in VERSIONS {
        let mut options = Options::new();
        options.client.max = version;
        let (config, folder) = (options.client(), options.folder());
        // A port that was free a moment ago: the server says when it has it.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let address = format!("127.0.0.1:{port}");
        let mut server = Program::start(
            "openssl",
            &["s_server", "-accept", &address, "-cert", "chain.pem", "-key", "key.pem"],
            folder.path(),
        );
        server.expect("ACCEPT");
        for kind in [TlsHandshakeKind::Full, TlsHandshakeKind::Resumed] {
            let stream = TcpStream::connect(&address).unwrap();
            let mut client = Socket::new(Ours::client(&config, true), stream);
            client.until("handshake", |end| end.is_open());
            assert_eq!(client.end.kind(), kind, "{version:?}");
            client.until("ticket", |_| config.has_session(0));
            client.write("hello\n");
            server.expect("hello");
            server.write("from s_server\n");
            client.expect("from s_server");
            if version == TlsVersion::V13 {
                for command in ["K", "k"] {
                    let before = client.end.table.counters().key_updates;
                    server.write(&format!("{command}\n"));
                    client.until(command, |end| end.table.counters().key_updates > before);
                    server.write("after the update\n");
                    client.expect("after the update");
                    client.write(&format!("answer to {command}\n"));
                    server.expect(&format!("answer to {command}"));
                }
                client.end.update_keys();
                client.write("our update\n");
                server.expect("our update");
                server.write("still here\n");
                client.expect("still here");
            }
            client.end.close();
            client.flush();
            server.expect("DONE");
            server.text.clear();
        }
    }
}

#[test]
fn openssl_and_we_agree_on_each_suite() {
    if !is_here("openssl", &["version"]) {
        return;
    }
    for suite in Suite::PREFERENCE {
        let options = Options::new().only(suite);
        let (config, folder) = (options.server(), options.folder());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let arguments = ["s_client", "-connect", &address, "-CAfile", "ca.pem", "-quiet"];
        let mut client = Program::start("openssl", &arguments, folder.path());
        let mut server = Socket::new(Ours::server(&config), listener.accept().unwrap().0);
        server.until("handshake", |end| end.is_open());
        assert_eq!(server.end.established.as_ref().unwrap().suite, suite);
        client.write(&"a line of some length\n".repeat(2_000));
        let all = 22 * 2_000;
        server.until("all lines", |end| end.plain.len() == all);
        server.write("and back\n");
        client.expect("and back");
    }
}

/// RSA costs a server four times as much as ECDSA: a turn has room for one such step.
#[test]
fn a_key_of_rsa_works_and_its_price_is_reported() {
    if !is_here("openssl", &["version"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let arguments = "req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out chain.pem -days 30 \
                     -subj /CN=localhost -addext subjectAltName=DNS:localhost";
    let made = Command::new("openssl")
        .args(arguments.split_whitespace())
        .current_dir(folder.path())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert!(made.success());
    let read = |name| PemFile::read(&folder.path().join(name)).unwrap();
    let mut options = Options::new();
    options.client.trust = TrustAnchors::Unverified;
    let rsa = CertifiedPair { chain: read("chain.pem"), key: read("key.pem") };
    options.server.pairs = vec![rsa];
    for version in VERSIONS {
        options.client.max = version;
        let mut client = Ours::client(&options.client(), false);
        let mut server = Ours::server(&options.server());
        exchange(&mut client, &mut server, usize::MAX);
        assert!(client.is_open());
        assert!((1_000..1_100).contains(&server.cost_us), "{}", server.cost_us);
    }
}
