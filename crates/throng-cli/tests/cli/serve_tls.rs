//! `throng serve` over TLS, with curl and OpenSSL as clients.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;

use serde_json::Value;

use crate::process::{Serving, TestDir, eventually};

/// Reports whether a program is missing here, and says so.
pub(crate) fn is_missing(program: &str) -> bool {
    let is_missing = Command::new(program).arg("version").output().is_err();
    if is_missing {
        println!("skipped: there is no {program}");
    }
    is_missing
}

/// Makes a certificate for `name` and 127.0.0.1, and its key, as `NAME.pem` and `NAME.key`.
pub(crate) fn certificate(place: &TestDir, name: &str) {
    let line = format!(
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 \
         -keyout {name}.key -out {name}.pem -subj /CN={name} \
         -addext subjectAltName=DNS:{name},IP:127.0.0.1"
    );
    place.shell(&line).exits_with(0);
}

/// Makes a certificate for a client, signed by the authority `ca`, and its key.
pub(crate) fn client_certificate(place: &TestDir, name: &str, ca: &str) {
    place.write("client.ext", "basicConstraints=CA:FALSE\nextendedKeyUsage=clientAuth\n");
    let line = format!(
        "openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes \
         -keyout {name}.key -out {name}.csr -subj /CN={name} && \
         openssl x509 -req -in {name}.csr -CA {ca}.pem -CAkey {ca}.key -CAcreateserial -days 2 \
         -extfile client.ext -out {name}.pem"
    );
    place.shell(&line).exits_with(0);
}

/// Returns what the server's cores have counted.
pub(crate) fn snapshot(place: &TestDir, server: &Serving) -> Value {
    let pid = server.process.pid().to_string();
    place.throng(&["ctl", "snapshot", "--json", "--pid", &pid]).json()
}

#[test]
fn a_self_signed_server_answers_and_has_the_fingerprint_that_it_prints() {
    if is_missing("openssl") || is_missing("curl") {
        return;
    }
    let place = TestDir::new();
    let server = place.serve(&["channels", "--tls-self-signed"]);
    for version in ["1.2", "1.3"] {
        let get = |path: &str| {
            let addr = &server.addr;
            let line = format!(
                "curl -sS -k --http1.1 --tls-max {version} --tlsv{version} 'https://{addr}{path}'"
            );
            place.shell(&line).exits_with(0).stdout
        };
        assert!(get("/").contains("<html"), "the page over TLS {version}");
        assert!(get("/socket/longpoll?vsn=2.0.0").contains("\"token\""), "TLS {version}");
    }
    let line = format!(
        "openssl s_client -connect {} -alpn h2,http/1.1 </dev/null | tee seen \
         | openssl x509 -noout -fingerprint -sha256",
        server.addr
    );
    let printed = server.hello["tls"]["fingerprint_sha256"].as_str().unwrap();
    place.shell(&line).exits_with(0).stdout_contains(&[printed]);
    let seen = std::fs::read_to_string(place.path("seen")).unwrap();
    assert!(seen.contains("ALPN protocol: http/1.1"), "{seen}");
}

#[test]
fn its_first_lines_say_how_to_reach_it() {
    let place = TestDir::new();
    let flags = ["serve", "channels", "--tls-self-signed", "--listen", "127.0.0.1:0"];
    let mut server = place.start(&flags);
    for (label, says) in [
        ("page", "https://127.0.0.1:"),
        ("socket", "wss://127.0.0.1:"),
        ("tls", "TLS 1.2 or later"),
        ("sha256", ":"),
        ("try", "curl -k https://127.0.0.1:"),
    ] {
        let line = server.line_with(&format!("  {label} "));
        assert!(line.contains(says), "{line}");
    }
}

#[test]
fn every_kind_of_tcp_answers_over_tls_and_sessions_are_resumed() {
    if is_missing("openssl") {
        return;
    }
    let place = TestDir::new();
    let server = place.serve(&["echo", "--tls-self-signed", "--cores", "2"]);
    let mut client = Command::new("openssl");
    client.args(["s_client", "-quiet", "-connect", &server.addr]);
    let mut client = place.spawn(client);
    client.write_line("hello over TLS");
    assert_eq!(client.line(), "hello over TLS\n");
    // OpenSSL connects five times more with the session of its first connection. Each may reach
    // another core.
    let line = format!("openssl s_client -tls1_2 -reconnect -connect {} </dev/null", server.addr);
    place.shell(&line).exits_with(0);
    eventually("sessions are resumed", || {
        snapshot(&place, &server)["counters"]["tls_resumed"] == 5
    });
}

#[test]
fn the_name_that_a_client_asks_for_chooses_the_certificate() {
    if is_missing("openssl") {
        return;
    }
    let place = TestDir::new();
    let mut flags = vec!["hold"];
    for name in ["one.test", "two.test"] {
        certificate(&place, name);
    }
    flags.extend(["--tls-cert", "one.test.pem", "--tls-key", "one.test.key"]);
    flags.extend(["--tls-cert", "two.test.pem", "--tls-key", "two.test.key"]);
    let server = place.serve(&flags);
    for (asked, shown) in
        [("one.test", "one.test"), ("two.test", "two.test"), ("three.test", "one.test")]
    {
        let line = format!(
            "openssl s_client -connect {} -servername {asked} </dev/null \
             | openssl x509 -noout -subject",
            server.addr
        );
        place.shell(&line).exits_with(0).stdout_contains(&[shown]);
    }
}

#[test]
fn plain_http_is_answered_with_a_sentence_and_counted_by_its_name() {
    let place = TestDir::new();
    let server = place.serve(&["chat", "--tls-self-signed"]);
    let mut stream = TcpStream::connect(&server.addr).unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 400 ") && body.contains("`https://`"), "{answer}");
    assert!(head.contains(&format!("content-length: {}", body.len())), "{answer}");
    // What is no request gets no answer.
    let mut stream = TcpStream::connect(&server.addr).unwrap();
    stream.write_all(b"hello, this is no request\n").unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    assert!(answer.is_empty(), "{answer:?}");
    // A connection is counted when it is closed at both ends.
    eventually("both are counted", || {
        let snapshot = snapshot(&place, &server);
        snapshot["tls_errors"]["not_tls"] == 2 && snapshot["counters"]["tls_failures"] == 2
    });
}

#[test]
fn with_a_client_ca_only_its_clients_connect() {
    if is_missing("openssl") || is_missing("curl") {
        return;
    }
    let place = TestDir::new();
    for name in ["localhost", "ca", "other"] {
        certificate(&place, name);
    }
    client_certificate(&place, "client", "ca");
    client_certificate(&place, "stranger", "other");
    let files = ["--tls-cert", "localhost.pem", "--tls-key", "localhost.key"];
    let more = ["--tls-client-ca", "ca.pem", "--tls-min", "1.3"];
    let server = place.serve(&[&["channels"][..], &files, &more].concat());
    let curl = |with: &str| {
        let addr = &server.addr;
        let line = format!("curl -sS --http1.1 --cacert localhost.pem {with} https://{addr}/");
        place.shell(&line)
    };
    curl("--cert client.pem --key client.key").exits_with(0).stdout_contains(&["<html"]);
    assert_ne!(curl("").code, Some(0));
    assert_ne!(curl("--cert stranger.pem --key stranger.key").code, Some(0));
    assert_ne!(curl("--cert client.pem --key client.key --tls-max 1.2").code, Some(0));
    eventually("each has its name", || {
        let errors = snapshot(&place, &server)["tls_errors"].take();
        let names = ["certificate_missing", "certificate_unknown_issuer", "no_common_version"];
        names.iter().all(|name| errors[name] == 1)
    });
}

#[test]
fn wrong_files_are_exit_code_2_and_the_file_is_named() {
    if is_missing("openssl") {
        return;
    }
    let place = TestDir::new();
    for name in ["one", "two"] {
        certificate(&place, name);
    }
    place.write("empty.pem", "");
    let refused = |flags: &[&str], parts: &[&str]| {
        let all = [&["serve", "ok", "--listen", "127.0.0.1:0"][..], flags].concat();
        place.throng(&all).exits_with(2).stderr_contains(parts);
    };
    let pair = |chain, key| ["--tls-cert", chain, "--tls-key", key];
    refused(&pair("none.pem", "one.key"), &["none.pem cannot be read", "ls -l none.pem"]);
    refused(&pair("empty.pem", "one.key"), &["empty.pem has no certificate", "BEGIN CERTIFICATE"]);
    refused(&pair("one.pem", "one.pem"), &["one.pem has no private key"]);
    refused(&pair("one.pem", "two.key"), &["two.key does not belong", "one.pem", "openssl pkey"]);
    refused(&["--tls-cert", "one.pem"], &["--tls-key"]);
    refused(
        &[&pair("one.pem", "one.key")[..], &["--tls-cert", "two.pem"]].concat(),
        &["2 times --tls-cert and 1 times --tls-key"],
    );
    refused(&["--tls-client-ca", "one.pem"], &["--tls-cert", "--tls-self-signed"]);
    let both = [&pair("one.pem", "one.key")[..], &["--tls-self-signed"]].concat();
    refused(&both, &["cannot be used with"]);
    let with_ca = [&pair("one.pem", "one.key")[..], &["--tls-client-ca", "one.key"]].concat();
    refused(&with_ca, &["one.key has no certificate"]);
}
