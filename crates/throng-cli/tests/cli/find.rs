//! `throng find` against servers with a known limit.

use serde_json::Value;

use crate::process::TestDir;

/// A server that answers as many connections at once as its limit allows, and closes the others.
const LIMITED: &str = r#"
import socket, threading

LIMIT = 37
lock = threading.Lock()
served = 0

def serve(connection):
    global served
    with lock:
        fits = served < LIMIT
        served += fits
    try:
        while fits and connection.recv(100):
            connection.sendall(b"ok")
    except OSError:
        pass
    connection.close()
    with lock:
        served -= fits

listener = socket.create_server(("127.0.0.1", 0), backlog=512)
print(listener.getsockname()[1], flush=True)
while True:
    connection, _ = listener.accept()
    threading.Thread(target=serve, args=(connection,), daemon=True).start()
"#;

/// Every user is asked once at the end, when all are connected.
fn scenario(port: &str) -> String {
    format!(
        "target: tcp://127.0.0.1:{port}\n\
         params: {{users: 10}}\n\
         load: [ramp: {{to: $(users), over: 100ms}}, hold: {{for: 600ms}}]\n\
         user: [connect, send: a, expect: ok, stay]\n\
         on_error: stop\n"
    )
}

fn lines(dir: &TestDir, name: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(dir.path(name)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn the_largest_number_of_users_that_a_server_holds_is_found() {
    let dir = TestDir::new();
    let Some((_server, port)) = dir.python(LIMITED) else { return };
    dir.write("s.yaml", &scenario(&port));
    let search = ["find", "s.yaml", "--slo", "errors == 0", "--rest", "100ms"];
    let flags = ["-o", "knee.md", "--", "--no-calibrate"];
    let found = dir.throng(&[&search[..], &flags].concat()).exits_with(0);
    assert!(found.stdout.contains("users 37 met errors == 0; 38 did not"), "{}", found.stdout);
    let lines = lines(&dir, "find.jsonl");
    assert_eq!(lines[0]["knob"], "users");
    assert!(lines.len() <= 2 + 13, "{lines:?}");
    let knee = std::fs::read_to_string(dir.path("knee.md")).unwrap();
    assert!(knee.starts_with("**users 37 met errors == 0; 38 did not**\n"), "{knee}");
    assert!(knee.contains("| 37 | 0 | met |"), "{knee}");

    // The search has ended: nothing runs again.
    let again = dir.throng(&[&search[..], &flags[2..]].concat()).exits_with(0);
    assert!(again.stdout.contains("and it has ended; --restart begins anew"), "{}", again.stdout);
    let other = dir.throng(&["find", "s.yaml", "--slo", "errors < 2"]).exits_with(2);
    assert!(other.stderr.contains("it has another search"), "{}", other.stderr);
}

#[test]
fn a_search_that_was_killed_goes_on() {
    let dir = TestDir::new();
    let Some((_server, port)) = dir.python(LIMITED) else { return };
    dir.write("s.yaml", &scenario(&port));
    let search = ["find", "s.yaml", "--slo", "errors == 0", "--rest", "100ms", "--"];
    let search = [&search[..], &["--no-calibrate"]].concat();
    dir.throng(&search).exits_with(0);
    // What is left of a search that was killed while it wrote its fourth run.
    let text = std::fs::read_to_string(dir.path("find.jsonl")).unwrap();
    let kept: Vec<_> = text.lines().take(5).collect();
    let torn = &kept[4][..kept[4].len() / 2];
    dir.write("find.jsonl", &format!("{}\n{torn}", kept[..4].join("\n")));
    let resumed = dir.throng(&search).exits_with(0);
    assert!(resumed.stdout.contains("this search has 3 runs; --restart"), "{}", resumed.stdout);
    assert!(resumed.stdout.contains("users 37 met errors == 0"), "{}", resumed.stdout);
    // What came after the torn line is in the file, too.
    let again = dir.throng(&search).exits_with(0);
    let runs = resumed.stdout.lines().filter(|line| line.starts_with("run ")).count();
    let known = format!("this search has {} runs, and it has ended", 3 + runs);
    assert!(again.stdout.contains(&known), "{runs}: {}", again.stdout);
}

#[test]
fn a_search_that_cannot_begin_says_why() {
    let dir = TestDir::new();
    dir.write("s.yaml", &scenario("1"));
    let refused = |flags: &[&str], why: &str| {
        let refused = dir.throng(&[&["find", "s.yaml"], flags].concat()).exits_with(2);
        assert!(refused.stderr.contains(why), "{flags:?}: {}", refused.stderr);
    };
    refused(&[], "there is nothing to search for");
    refused(&["--slo", "conect.p99 < 1s"], "did you mean `connect.p99`?");
    let slo = ["--slo", "errors == 0"];
    refused(&[&slo[..], &["--knob", "user"]].concat(), "did you mean users?");
    refused(&[&slo[..], &["--knob", "arrivals"]].concat(), "it has users");
    refused(&[&slo[..], &["--from", "10/s"]].concat(), "users is a number above 0");
    refused(&[&slo[..], &["--from", "20", "--to", "10"]].concat(), "--to is less than");
    refused(&[&slo[..], &["-o", "x.html"]].concat(), "a search is written as .md");
    dir.write("notes.jsonl", "mine\n");
    let notes = [&slo[..], &["--record", "notes.jsonl"]].concat();
    refused(&notes, "it is not the file of a search");
    refused(&[&notes[..], &["--restart"]].concat(), "it is not the file of a search");
    refused(&[&slo[..], &["-o", "s.yaml"]].concat(), "it is the scenario");
}
