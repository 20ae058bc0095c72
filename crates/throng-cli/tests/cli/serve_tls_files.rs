//! Files of `throng serve` over TLS that change while it runs, with OpenSSL as the client.

use std::process::Command;

use rustix::process::Signal;
use serde_json::Value;

use crate::process::{Finished, Serving, TestDir};
use crate::serve_tls::{certificate, client_certificate, is_missing, snapshot};

const PAIR: [&str; 4] = ["--tls-cert", "server.pem", "--tls-key", "server.key"];

/// Makes a certificate of this subject in the files of the server.
fn renew(place: &TestDir, subject: &str) {
    certificate(place, subject);
    for kind in ["pem", "key"] {
        let from = place.path(&format!("{subject}.{kind}"));
        std::fs::rename(from, place.path(&format!("server.{kind}"))).unwrap();
    }
}

/// Returns the subject of the certificate that new connections get, of which the cores agree.
fn subject(place: &TestDir, server: &Serving) -> String {
    let line = format!(
        "for n in 1 2 3 4 5 6 7 8; do openssl s_client -connect {} </dev/null \
         | openssl x509 -noout -subject; done | sort -u",
        server.addr
    );
    let subjects = place.shell(&line).exits_with(0).stdout;
    assert_eq!(subjects.lines().count(), 1, "{subjects}");
    subjects.trim().rsplit([' ', '=']).next().unwrap_or_default().to_owned()
}

fn reload(place: &TestDir, server: &Serving, more: &[&str]) -> Finished {
    let pid = server.process.pid().to_string();
    place.throng(&[&["ctl", "reload", "--pid", &pid], more].concat())
}

#[test]
fn renewed_certificates_are_for_new_connections_and_broken_ones_change_nothing() {
    if is_missing("openssl") {
        return;
    }
    let place = TestDir::new();
    renew(&place, "first");
    let mut server = place.serve(&[&["echo", "--cores", "2"], &PAIR[..]].concat());
    assert_eq!(server.hello["tls"]["certificates"][0]["file"], "server.pem");
    assert_eq!(subject(&place, &server), "first");
    let mut client = Command::new("openssl");
    client.args(["s_client", "-quiet", "-connect", &server.addr]);
    let mut open = place.spawn(client);
    open.write_line("before");
    assert_eq!(open.line(), "before\n");

    renew(&place, "second");
    let answer = reload(&place, &server, &["--json"]).exits_with(0).json();
    let shown = &answer["certificates"][0];
    assert_eq!(shown["file"], "server.pem");
    assert!(matches!(shown["days_left"].as_i64(), Some(1..=2)), "{answer}");
    let printed = server.process.line_with("reloaded");
    let printed: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(printed["by"], "throng ctl reload");
    assert_eq!(printed["certificates"], answer["certificates"]);
    assert_eq!(subject(&place, &server), "second");

    renew(&place, "third");
    server.process.signal(Signal::HUP);
    assert!(server.process.line_with("reloaded").contains("SIGHUP"));
    assert_eq!(subject(&place, &server), "third");
    let text = reload(&place, &server, &[]).exits_with(0);
    text.stdout_contains(&["reloaded server.pem until 20", "server.pem expires in "]);

    for (file, text, says) in [
        ("server.pem", "broken", "server.pem has no certificate"),
        ("server.key", "broken", "server.key has no private key"),
    ] {
        let good = std::fs::read(place.path(file)).unwrap();
        place.write(file, text);
        reload(&place, &server, &[]).exits_with(2).stderr_contains(&[says, "goes on with"]);
        server.process.signal(Signal::HUP);
        for by in ["throng ctl reload", "SIGHUP"] {
            let failed = server.process.line_with("reload_failed");
            assert!(failed.contains(says) && failed.contains(by), "{failed}");
        }
        assert_eq!(subject(&place, &server), "third");
        std::fs::write(place.path(file), good).unwrap();
    }
    open.write_line("after");
    assert_eq!(open.line(), "after\n");
}

#[test]
fn a_server_without_files_reloads_nothing_and_ends_at_sighup() {
    let place = TestDir::new();
    for flags in [&["ok", "--tls-self-signed"][..], &["ok"]] {
        let server = place.serve(flags);
        reload(&place, &server, &[]).exits_with(2).stderr_contains(&["started without --tls-cert"]);
        server.process.signal(Signal::HUP);
        assert_eq!(server.process.finish().code, None);
    }
}

/// A terminal that closes sends SIGHUP, too.
#[test]
fn a_server_whose_terminal_closes_ends() {
    if is_missing("openssl") || is_missing("python3") {
        return;
    }
    let place = TestDir::new();
    renew(&place, "localhost");
    let script = "
import os, pty, sys
pid, terminal = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], sys.argv[1:])
seen = b''
while b'Ctrl-C to stop' not in seen:
    seen += os.read(terminal, 4096)
os.close(terminal)
os.waitpid(pid, 0)
";
    place.write("terminal.py", script);
    let flags = "serve ok --listen 127.0.0.1:0 --tls-cert server.pem --tls-key server.key";
    let mut python = Command::new("python3");
    python.arg(place.path("terminal.py")).arg(env!("CARGO_BIN_EXE_throng"));
    python.args(flags.split(' ')).current_dir(place.path("."));
    place.spawn(python).finish().exits_with(0);
}

#[test]
fn a_certificate_that_expires_soon_is_warned_of() {
    if is_missing("openssl") {
        return;
    }
    let place = TestDir::new();
    renew(&place, "localhost");
    let flags = ["serve", "ok", "--listen", "127.0.0.1:0"];
    let mut server = place.start(&[&flags, &PAIR[..]].concat());
    let warning = server.line_with("warning: ");
    let says = [1, 2].map(|days| format!("server.pem expires in {days} day"));
    assert!(says.iter().any(|says| warning.contains(says)), "{warning}");
    // One that is made now is valid for long.
    let server = place.serve(&["ok", "--tls-self-signed"]);
    server.process.signal(Signal::TERM);
    assert_eq!(server.process.finish().exits_with(0).stderr, "");
}

/// Connects with OpenSSL, and returns whether a session was resumed. The session of the connection
/// is kept in `saves`.
fn is_resumed(place: &TestDir, server: &Serving, version: &str, files: [&str; 2]) -> bool {
    let [offers, saves] = files;
    let mut client = Command::new("openssl");
    client.args(["s_client", "-connect", &server.addr, version]).current_dir(place.path("."));
    if !offers.is_empty() {
        client.args(["-sess_in", offers]);
    }
    client.args(["-sess_out", saves]);
    let mut client = place.spawn(client);
    // Tickets of TLS 1.3 arrive before the echo.
    client.write_line("hello");
    let mut is_resumed = None;
    loop {
        let line = client.line();
        assert!(!line.is_empty(), "{version} {offers}: {:#?}", client.finish());
        match line.trim() {
            "hello" => break,
            line if line.starts_with("Reused, ") => is_resumed = Some(true),
            line if line.starts_with("New, ") => is_resumed = is_resumed.or(Some(false)),
            _ => {}
        }
    }
    client.close_stdin();
    client.finish();
    is_resumed.expect("OpenSSL says it")
}

#[test]
fn servers_with_one_file_of_ticket_keys_resume_each_others_sessions() {
    if is_missing("openssl") {
        return;
    }
    let place = TestDir::new();
    let keys: Vec<String> =
        (0..5).map(|_| place.shell("openssl rand -base64 48").exits_with(0).stdout).collect();
    place.write("tickets.keys", &keys[0]);
    let shared = ["echo", "--tls-self-signed", "--tls-ticket-keys", "tickets.keys"];
    let [one, two] = [0, 1].map(|_| place.serve(&shared));
    let other = place.serve(&["echo", "--tls-self-signed"]);
    let reload_all = |keys: &[String]| {
        place.write("tickets.keys", &keys.concat());
        for server in [&one, &two] {
            reload(&place, server, &[]).exits_with(0);
        }
    };
    for version in ["-tls1_2", "-tls1_3"] {
        reload_all(&keys[..1]);
        assert!(!is_resumed(&place, &one, version, ["", "session"]));
        assert!(is_resumed(&place, &two, version, ["session", "ignored"]), "{version}");
        assert!(!is_resumed(&place, &other, version, ["session", "ignored"]), "{version}");
        // The second of three seals now, and the first one still opens.
        reload_all(&keys[..3]);
        assert!(is_resumed(&place, &two, version, ["session", "ignored"]), "{version}");
        assert!(!is_resumed(&place, &two, version, ["", "newer"]));
        // The first one is gone.
        reload_all(&keys[1..4]);
        assert!(!is_resumed(&place, &one, version, ["session", "ignored"]), "{version}");
        assert!(is_resumed(&place, &one, version, ["newer", "ignored"]), "{version}");
    }
    place.write("tickets.keys", "no key\n");
    let says = ["tickets.keys has no usable ticket keys: line 1", "goes on with what it has"];
    reload(&place, &one, &[]).exits_with(2).stderr_contains(&says);
    let refused = place.throng(&[&["serve"], &shared[..]].concat()).exits_with(2);
    refused.stderr_contains(&["tickets.keys has no usable ticket keys", "openssl rand -base64 48"]);
}

/// A resumption would skip the check of the client's certificate.
#[test]
fn no_session_is_resumed_where_clients_show_a_certificate() {
    if is_missing("openssl") {
        return;
    }
    let place = TestDir::new();
    certificate(&place, "ca");
    client_certificate(&place, "client", "ca");
    let flags = ["echo", "--tls-self-signed", "--tls-client-ca", "ca.pem"];
    let server = place.serve(&flags);
    let line = format!(
        "openssl s_client -tls1_2 -reconnect -cert client.pem -key client.key -connect {} \
         </dev/null",
        server.addr
    );
    place.shell(&line).exits_with(0);
    crate::process::eventually("all have connected", || {
        snapshot(&place, &server)["counters"]["tls_opened"] == 6
    });
    assert_eq!(snapshot(&place, &server)["counters"]["tls_resumed"], 0);
    let with_keys = [&["serve"], &flags[..], &["--tls-ticket-keys", "keys"]].concat();
    place.throng(&with_keys).exits_with(2).stderr_contains(&["cannot be used with"]);
}
