//! Targets over TLS, whose servers are Python's and OpenSSL's.

use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;
use throng_load::run::LoadOptions;
use throng_load::scenario::Scenario;
use throng_measure::{ErrorKind, Operation, RunEventKind};
use throng_tls::SelfSigned;

use crate::foreign::ForeignServer;
use crate::run::{Run, run_scenario, run_text, server};

const USERS: u64 = 20;

/// Twenty users, each of whom runs its steps once.
const LOAD: &str = "load: [arrivals: {rate: 100/s, for: 200ms, spacing: even}]\n";

/// A certificate of its own, in files.
struct Certificate {
    folder: TempDir,
}

impl Certificate {
    /// Makes one for these names.
    fn of(names: &[&str]) -> Self {
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        let pair = SelfSigned::new(&names).unwrap().pair;
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("cert.pem"), pair.chain.text()).unwrap();
        std::fs::write(folder.path().join("key.pem"), pair.key.text()).unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    /// Starts a server of Python that shows it.
    fn serve(&self, kind: &str) -> Option<ForeignServer> {
        let (cert, key) = (self.path("cert.pem"), self.path("key.pem"));
        ForeignServer::start("python3", "tls.py", &[kind, &cert, &key])
    }
}

fn run(target: &str, tls: &str, user: &str) -> Run {
    let tls = if tls.is_empty() { String::new() } else { format!("tls: {tls}\n") };
    run_text(&format!("target: {target}\n{tls}{LOAD}user: {user}\n"))
}

#[track_caller]
fn assert_sums(run: &Run) {
    let c = &run.last.counters;
    assert_eq!(c.tls_started, c.tls_ok + c.tls_failed + c.tls_waiting, "{c:?}");
    assert_eq!(c.connects_started, c.connects_ok + c.connects_failed + c.connects_waiting);
    assert_eq!(run.times[Operation::Tls].count(), c.tls_ok);
    assert_eq!(run.times[Operation::Tcp].count(), c.tls_started);
}

/// Asserts that all connects have failed with this kind of error.
#[track_caller]
fn assert_all_fail(run: &Run, kind: ErrorKind) {
    let c = &run.last.counters;
    // A user begins again after an error.
    let failed = c.connects_failed;
    assert!(failed >= USERS, "{c:?}");
    assert_eq!(run.last.connect_failed.get(kind.name()), failed, "{:?}", run.last.connect_failed);
    assert_eq!((c.tls_failed, c.tls_ok), (failed, 0), "{c:?}");
    assert_sums(run);
}

#[test]
fn users_get_pages_over_https() {
    let certificate = Certificate::of(&["localhost", "127.0.0.1"]);
    let Some(server) = certificate.serve("http") else { return };
    let (port, ca) = (server.port, certificate.path("cert.pem"));
    let user = "[{get: /}, {get: /again}]";
    let run = run(&format!("https://127.0.0.1:{port}"), &format!("{{ca: {ca}}}"), user);
    let c = &run.last.counters;
    assert_eq!((c.http_ok, c.tls_ok, c.connects_ok), (2 * USERS, USERS, USERS), "{:?}", run.last);
    assert_sums(&run);
    assert!(run.times[Operation::Connect].max() >= run.times[Operation::Tls].max());
    let seen = server.seen();
    assert_eq!(seen["handshakes"], USERS, "{seen}");
    assert_eq!(seen["resumed"], c.tls_resumed, "both ends agree: {seen}");
}

#[test]
fn the_share_of_connects_that_is_asked_for_resumes_a_session() {
    let certificate = Certificate::of(&["127.0.0.1"]);
    for (share, expected) in [("0%", 0.0..=0.0), ("50%", 0.4..=0.5), ("100%", 0.8..=1.0)] {
        let Some(server) = certificate.serve("echo") else { return };
        let target = format!("tls://127.0.0.1:{}", server.port);
        let tls = format!("{{ca: {}, resume: {share}}}", certificate.path("cert.pem"));
        // Each connection waits for an answer, so the next one finds its session.
        let steps = "[connect, {send: a}, {expect: a}, close]";
        let load = "load: [arrivals: {rate: 1/s, for: 1s, spacing: even}]\n";
        let user = format!("user: [repeat: {{times: 40, do: {steps}}}]\n");
        let run = run_text(&format!("target: {target}\ntls: {tls}\n{load}{user}"));
        let c = &run.last.counters;
        assert_eq!(c.tls_ok, 40, "{c:?}");
        let reached = c.tls_resumed as f64 / 40.0;
        assert!(expected.contains(&reached), "{share}: {reached}");
        assert_eq!(server.seen()["resumed"], c.tls_resumed);
    }
}

#[test]
fn users_send_and_receive_over_tls_under_the_name_of_the_scenario() {
    let certificate = Certificate::of(&["chat.example"]);
    let Some(server) = certificate.serve("echo") else { return };
    let (port, ca) = (server.port, certificate.path("cert.pem"));
    let tls = format!("{{ca: {ca}, server_name: chat.example}}");
    let user = "[connect, {send: hello}, {expect: hello}, close]";
    let run = run(&format!("tls://127.0.0.1:{port}"), &tls, user);
    let c = &run.last.counters;
    assert_eq!((c.messages_answered, c.users_finished), (USERS, USERS), "{:?}", run.last);
    assert_sums(&run);
    let seen = server.seen();
    assert_eq!(seen["names"].as_array().map_or(0, Vec::len) as u64, USERS, "{seen}");
    assert_eq!(seen["names"][0], "chat.example");
}

#[test]
fn each_wrong_certificate_has_its_kind_of_error() {
    let certificate = Certificate::of(&["127.0.0.1"]);
    let Some(server) = certificate.serve("echo") else { return };
    let target = format!("tls://127.0.0.1:{}", server.port);
    let (own, other) = (certificate.path("cert.pem"), Certificate::of(&["127.0.0.1"]));
    let user = "[connect, close]";
    let other_name = format!("{{ca: {own}, server_name: other.example}}");
    let wrong_name = run(&target, &other_name, user);
    let kind = ErrorKind::TlsWrongName;
    assert_all_fail(&wrong_name, kind);
    // The first error of the kind says which name was asked for.
    let first = wrong_name.events.iter().find_map(|event| match event {
        RunEventKind::FirstError(first) => Some(first),
        _ => None,
    });
    let first = first.unwrap_or_else(|| panic!("{:?}", wrong_name.events));
    assert_eq!((&*first.kind, &*first.expected), (kind.name(), "a handshake of TLS"));
    assert!(first.got.contains("not valid for name \"other.example\""), "{first}");
    let other_ca = format!("{{ca: {}}}", other.path("cert.pem"));
    assert_all_fail(&run(&target, &other_ca, user), ErrorKind::TlsUnknownIssuer);
    let unverified = run(&target, "{verify: none, server_name: other.example}", user);
    assert_eq!(unverified.last.counters.tls_ok, USERS, "{:?}", unverified.last.connect_failed);
}

#[test]
fn a_plain_port_does_not_speak_tls() {
    let addr = server(|mut stream| {
        use std::io::{Read, Write};
        let _ = stream.read(&mut [0; 1_024]);
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        while let Ok(1..) = stream.read(&mut [0; 1_024]) {}
    });
    let run = run(&format!("tls://{addr}"), "{verify: none}", "[connect, close]");
    assert_all_fail(&run, ErrorKind::TlsNotSpoken);
}

#[test]
fn a_server_that_closes_or_never_answers_fails_the_handshake() {
    let addr = server(|mut stream| {
        let _ = std::io::Read::read(&mut stream, &mut [0; 4_096]);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        while let Ok(1..) = std::io::Read::read(&mut stream, &mut [0; 4_096]) {}
    });
    let closes = run(&format!("tls://{addr}"), "{verify: none}", "[connect, close]");
    assert_all_fail(&closes, ErrorKind::TlsClosed);
    let certificate = Certificate::of(&["127.0.0.1"]);
    let Some(silent) = certificate.serve("silent") else { return };
    let target = format!("tls://127.0.0.1:{}", silent.port);
    let user = "[connect: {timeout: 300ms}, close]";
    let run = run(&target, "{verify: none}", user);
    assert_all_fail(&run, ErrorKind::TlsTimeout);
    assert_eq!(run.times.unanswered[Operation::Tls].count(), run.last.counters.tls_failed);
}

#[test]
fn an_expired_certificate_of_openssl_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| -> PathBuf { folder.path().join(name) };
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"])
        .args(["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"])
        .args(["-addext", "basicConstraints=critical,CA:FALSE"])
        .args(["-not_before", "20200101000000Z", "-not_after", "20200201000000Z", "-keyout"])
        .arg(path("key.pem"))
        .arg("-out")
        .arg(path("cert.pem"))
        .output();
    // Older versions cannot make one that has expired.
    if !made.is_ok_and(|made| made.status.success()) {
        eprintln!("skipped: `openssl` is not installed, or is too old");
        return;
    }
    let (cert, key) = (path("cert.pem"), path("key.pem"));
    let args = ["echo", cert.to_str().unwrap(), key.to_str().unwrap()];
    let Some(server) = ForeignServer::start("python3", "tls.py", &args) else { return };
    let target = format!("tls://127.0.0.1:{}", server.port);
    let run = run(&target, &format!("{{ca: {}}}", cert.display()), "[connect, close]");
    assert_all_fail(&run, ErrorKind::TlsExpired);
}

/// Makes the files of these users, each with a subject of its own, and a data file with a row for
/// each. Returns `data` and `load`; `None` without OpenSSL.
fn users_with_certificates(folder: &TempDir, names: &[&str]) -> Option<String> {
    let path = |name: &str| folder.path().join(name);
    let mut rows = "cert,key\n".to_owned();
    let mut authorities = String::new();
    for name in names {
        let (cert, key) = (format!("{name}.pem"), format!("{name}.key"));
        let made = Command::new("openssl")
            .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"])
            .args(["-nodes", "-subj", &format!("/CN={name}")])
            .args(["-addext", &format!("subjectAltName=DNS:{name}"), "-keyout"])
            .arg(path(&key))
            .arg("-out")
            .arg(path(&cert))
            .output();
        if !made.is_ok_and(|made| made.status.success()) {
            eprintln!("skipped: `openssl` is not installed");
            return None;
        }
        authorities.push_str(&std::fs::read_to_string(path(&cert)).unwrap());
        rows.push_str(&format!("{cert},{key}\n"));
    }
    std::fs::write(path("users.csv"), rows).unwrap();
    std::fs::write(path("clients.pem"), authorities).unwrap();
    let count = names.len();
    Some(format!(
        "data: users.csv\nload: [ramp: {{to: {count}, over: 1s}}, hold: {{for: 200ms}}]\n"
    ))
}

#[test]
fn each_user_shows_the_certificate_of_its_row() {
    let certificate = Certificate::of(&["127.0.0.1"]);
    let folder = tempfile::tempdir().unwrap();
    let names = ["ada.example", "bob.example", "eve.example"];
    let Some(head) = users_with_certificates(&folder, &names) else { return };
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (cert, key) = (certificate.path("cert.pem"), certificate.path("key.pem"));
    let args = ["echo", &cert, &key, &path("clients.pem")];
    let Some(server) = ForeignServer::start("python3", "tls.py", &args) else { return };
    let again = "[connect, {send: a}, {expect: a}, close]";
    let text = format!(
        "target: tls://127.0.0.1:{}\n\
         tls: {{ca: {cert}, client: {{cert: \"${{row.cert}}\", key: \"${{row.key}}\"}}}}\n\
         {head}user: [repeat: {{times: 2, do: {again}}}, {{wait: 1m}}]\n",
        server.port
    );
    let scenario =
        Scenario::parse(&text, &path("scenario.yaml")).unwrap_or_else(|it| panic!("{it}"));
    let run = run_scenario(&scenario, &LoadOptions { cores: Some(2), ..LoadOptions::default() });
    let c = &run.last.counters;
    assert_eq!(c.tls_failed, 0, "{:?}", run.last.connect_failed);
    assert_eq!((c.tls_ok, c.tls_resumed), (6, 3), "a user resumes its own session: {c:?}");
    let seen = server.seen();
    let mut clients: Vec<_> =
        seen["clients"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    clients.sort_unstable();
    assert_eq!(clients, names.iter().flat_map(|name| [*name; 2]).collect::<Vec<_>>(), "{seen}");
}

#[test]
fn a_server_that_asks_for_a_certificate_refuses_users_without_one() {
    let certificate = Certificate::of(&["127.0.0.1"]);
    let (cert, key) = (certificate.path("cert.pem"), certificate.path("key.pem"));
    let args = ["echo", &cert, &key, &cert];
    let Some(server) = ForeignServer::start("python3", "tls.py", &args) else { return };
    let target = format!("tls://127.0.0.1:{}", server.port);
    let user = "[connect, {send: a}, {expect: a}, close]";
    let without = run(&target, &format!("{{ca: {cert}}}"), user);
    assert_eq!(without.last.counters.messages_answered, 0, "{:?}", without.last.counters);
    let client = format!("{{ca: {cert}, client: {{cert: {cert}, key: {key}}}}}");
    let with = run(&target, &client, user);
    assert_eq!(with.last.counters.messages_answered, USERS, "{:?}", with.last.connect_failed);
}

#[test]
fn users_with_tickets_of_their_own_resume_only_their_own_sessions() {
    let certificate = Certificate::of(&["127.0.0.1"]);
    for (tickets, at_least, at_most) in [("user", USERS, USERS), ("core", USERS + 1, 2 * USERS)] {
        let Some(server) = certificate.serve("echo") else { return };
        let target = format!("tls://127.0.0.1:{}", server.port);
        let tls = format!("{{ca: {}, tickets: {tickets}}}", certificate.path("cert.pem"));
        let steps = "[connect, {send: a}, {expect: a}, close]";
        let run = run(&target, &tls, &format!("[repeat: {{times: 2, do: {steps}}}]"));
        let c = &run.last.counters;
        assert_eq!(c.tls_ok, 2 * USERS, "{c:?}");
        assert!((at_least..=at_most).contains(&c.tls_resumed), "{tickets}: {c:?}");
        assert_eq!(server.seen()["resumed"], c.tls_resumed);
    }
}
