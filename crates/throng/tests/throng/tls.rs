//! A server over TLS, and its certificate while it runs: the example `tls`, with OpenSSL as client.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::examples::program;

fn shell(folder: &Path, line: &str) -> Output {
    Command::new("sh").args(["-c", line]).current_dir(folder).output().unwrap()
}

/// Makes a certificate of this subject, and its key.
fn renew(folder: &Path, subject: &str) {
    let made = shell(
        folder,
        &format!(
            "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 \
             -keyout key.pem -out chain.pem -subj /CN={subject}"
        ),
    );
    assert!(made.status.success(), "{made:?}");
}

#[test]
fn a_server_takes_a_renewed_certificate_and_keeps_it_if_the_next_is_broken() {
    let folder = tempfile::tempdir().unwrap();
    if !shell(folder.path(), "openssl version").status.success() {
        println!("skipped: there is no openssl");
        return;
    }
    renew(folder.path(), "first");
    let mut server = Command::new(program("tls"))
        .arg("127.0.0.1:0")
        .current_dir(folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let mut line = || lines.next().unwrap().unwrap();
    let address = line().rsplit(' ').next().unwrap().to_owned();
    let shows = |subject: &str| {
        let client = format!("openssl s_client -connect {address} </dev/null");
        let seen = shell(folder.path(), &client);
        let seen = String::from_utf8_lossy(&seen.stdout).into_owned();
        assert!(seen.contains(&format!("CN = {subject}")), "{subject}: {seen}");
    };
    shows("first");
    let mut input = server.stdin.take().unwrap();
    renew(folder.path(), "second");
    writeln!(input).unwrap();
    assert_eq!(line(), "new connections have the new certificate");
    shows("second");
    std::fs::write(folder.path().join("key.pem"), "broken").unwrap();
    writeln!(input).unwrap();
    assert!(line().starts_with("the old certificate stays: key.pem has no private key"));
    shows("second");
    drop(input);
    assert!(server.wait().unwrap().success());
}

#[test]
fn a_plain_server_has_no_certificate_to_renew() {
    let server = throng::Server::bind("127.0.0.1:0").on_bytes(|conn, bytes| conn.send(bytes));
    let server = server.start().unwrap();
    assert!(server.tls().is_none());
    let error = server.reload_tls(throng::tls::TlsServerOptions::new(Vec::new())).unwrap_err();
    assert_eq!(error.to_string(), "this server has no TLS: its connections are plain");
}
