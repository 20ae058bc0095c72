//! `--tls-keylog`: the secrets of connections, for Wireshark.

use rustix::process::Signal;

use crate::process::TestDir;
use crate::serve_tls::is_missing;

/// Returns the lines of a key log in order.
fn lines(place: &TestDir, name: &str) -> Vec<String> {
    let text = std::fs::read_to_string(place.path(name)).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

#[test]
fn openssl_and_the_server_log_the_same_secrets() {
    if is_missing("openssl") {
        return;
    }
    for (version, labels) in [("-tls1_2", 1), ("-tls1_3", 5)] {
        let place = TestDir::new();
        let server = place.serve(&["echo", "--tls-self-signed", "--tls-keylog", "server.log"]);
        assert_eq!(server.hello["tls"]["key_log"], "server.log");
        let line = format!(
            "openssl s_client {version} -keylogfile client.log -connect {} </dev/null",
            server.addr
        );
        place.shell(&line).exits_with(0);
        server.process.signal(Signal::TERM);
        let ended = server.process.finish().exits_with(0);
        ended.stderr_contains(&["warning: the secrets of all TLS connections", "server.log"]);
        let of_client = lines(&place, "client.log");
        // OpenSSL begins with a comment.
        let of_client: Vec<_> = of_client.into_iter().filter(|it| !it.starts_with('#')).collect();
        assert_eq!((of_client.len(), lines(&place, "server.log")), (labels, of_client));
    }
}

#[test]
fn both_ends_log_all_connections_and_no_run_file_has_a_secret() {
    let place = TestDir::new();
    let server = place.serve(&["echo", "--tls-self-signed", "--tls-keylog", "server.log"]);
    let scenario = format!(
        "target: tls://{}\ntls: {{verify: none}}\nload: [arrivals: {{rate: 20/s, for: 1s}}]\n\
         user: [connect, {{send: hello}}, {{expect: hello}}, close]\n",
        server.addr
    );
    place.write("s.yaml", &scenario);
    let flags = ["--details", "--json", "summary.json", "--tls-keylog", "client.log"];
    let run = place.throng(&[&["run", "s.yaml"], &flags[..]].concat());
    assert!(run.code == Some(0) || run.code == Some(3), "{run:#?}");
    let warning = "warning: the secrets of all TLS connections are written to client.log";
    assert_eq!(run.stderr.matches(warning).count(), 1, "{}", run.stderr);
    // One user of `try`, by the variable that curl and browsers know.
    let mut one = place.command(&["try", "s.yaml"]);
    let one = one.env("SSLKEYLOGFILE", "try.log").output().unwrap();
    assert!(String::from_utf8_lossy(&one.stderr).contains("are written to try.log"), "{one:?}");
    server.process.signal(Signal::TERM);
    let served = server.process.finish().exits_with(0).stdout;
    let mut of_clients = [lines(&place, "client.log"), lines(&place, "try.log")].concat();
    of_clients.sort();
    let connects = place.json("summary.json")["connect"]["ok"].as_u64().unwrap();
    assert!(connects > 5, "{connects}");
    assert_eq!(of_clients.len() as u64, 5 * (connects + 1));
    // A server that resumes a session logs a secret of 0-RTT, too, although that is off.
    let mut of_server = lines(&place, "server.log");
    of_server.retain(|line| !line.starts_with("CLIENT_EARLY_TRAFFIC_SECRET "));
    assert_eq!(of_server, of_clients);
    let told = [std::fs::read_to_string(place.path("run.jsonl")).unwrap(), run.stdout, served];
    for line in of_clients {
        let (random_and_label, secret) = line.rsplit_once(' ').unwrap();
        let random = random_and_label.rsplit(' ').next().unwrap();
        assert!(!told.iter().any(|text| text.contains(secret) || text.contains(random)));
    }
}

#[test]
fn a_key_log_that_cannot_be_is_refused() {
    let place = TestDir::new();
    let serve = |more: &[&str]| {
        let all = [&["serve", "ok", "--listen", "127.0.0.1:0"][..], more].concat();
        place.throng(&all).exits_with(2)
    };
    serve(&["--tls-keylog", "keys"]).stderr_contains(&["no connection is over TLS"]);
    let nowhere = ["--tls-self-signed", "--tls-keylog", "/no/such/folder/keys"];
    serve(&nowhere).stderr_contains(&["cannot write /no/such/folder/keys"]);
    let user = "load: [arrivals: {rate: 1/s, for: 1s}]\nuser: [connect]\n";
    place.write("s.yaml", &format!("target: tcp://127.0.0.1:1\n{user}"));
    let run = place.throng(&["run", "s.yaml", "--tls-keylog", "keys"]).exits_with(2);
    run.stderr_contains(&["no connection is over TLS"]);
    assert!(!place.path("keys").exists());
}
