//! HTTP answers that break the protocol: what a run and a trial say of them.

use serde_json::Value;
use throng_measure::ErrorKind;

use crate::process::{Running, TestDir};

/// A server whose answers are as their paths say.
const SERVER: &str = r#"
import asyncio
OK = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s"
ANSWERS = {
    "/short": OK % (5, b"0123456789"),
    "/hang": OK % (100, b"0123456789"),
    "/large": OK % (5000, b"x" * 5000),
    "/gzip": b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\nabc",
    "/json": b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 4\r\n\r\n"
             b"\x1f\x8b\x08\x00",
    "/plain": b"HTTP/1.1 200 OK\r\ncontent-encoding: identity\r\ncontent-length: 2\r\n\r\nno",
    "/latin": b"HTTP/1.1 200 OK\r\nserver: Caf\xe9\r\ncontent-length: 2\r\n\r\nok",
}
async def serve(reader, writer):
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            writer.write(ANSWERS[head.split()[1].decode()])
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()
async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
asyncio.run(main())
"#;

/// Starts the server; `None` if there is no Python here.
fn server(place: &TestDir) -> Option<(Running, String)> {
    place.python(SERVER)
}

/// Writes a scenario of a few users, each of which takes these steps.
fn scenario(place: &TestDir, port: &str, steps: &str) -> String {
    let load = "load: [{arrivals: {rate: 20/s, for: 1s}}]";
    let head = format!("target: http://127.0.0.1:{port}\non_error: stop\n{load}\n");
    place.write("s.yaml", &format!("{head}user: {steps}\n"))
}

/// Runs a scenario, and returns what it says of itself. A machine that is busy with other things
/// may make it invalid, so its exit code says nothing.
fn run(place: &TestDir, file: &str) -> Value {
    let finished = place.throng(&["run", file, "--json", "end.json"]);
    assert!(finished.code.is_some_and(|code| code < 4), "{finished:#?}");
    place.json("end.json")
}

#[test]
fn bytes_that_no_request_asked_for_degrade_a_run_and_are_its_cause() {
    let place = TestDir::new();
    let Some((_server, port)) = server(&place) else { return };
    let file = scenario(&place, &port, "[get: /short]");
    let run = run(&place, &file);
    let started = &run["http"]["started"];
    assert!(started.as_u64() > Some(0), "{run:#}");
    assert_eq!(run["errors"][ErrorKind::HttpUnasked.name()], *started, "{run:#}");
    assert_eq!((&run["http"]["ok"], &run["http"]["failed"]), (started, &0.into()), "{run:#}");
    assert_ne!(run["validity"]["grade"], "valid", "{run:#}");
    assert!(run["validity"]["reasons"].to_string().contains("no request asked for"), "{run:#}");
    assert!(run["diagnosis"]["findings"].to_string().contains("answers_unasked"), "{run:#}");
    let trial = place.throng(&["try", &file]).exits_with(1);
    for part in ["5 bytes that no request asked for: `56789`", "error http_unasked"] {
        assert!(trial.stdout.contains(part), "{part:?} is not in {trial:#?}");
    }
}

#[test]
fn an_answer_that_does_not_end_is_shown_and_is_no_slow_server() {
    let place = TestDir::new();
    let Some((_server, port)) = server(&place) else { return };
    let file = scenario(&place, &port, "[get: {path: /hang, timeout: 2s}]");
    let run = run(&place, &file);
    let http = &run["http"];
    assert!(http["started"].as_u64() > Some(0), "{http:#}");
    let ended = (&http["failed"], &http["incomplete"]);
    assert_eq!(ended, (&http["started"], &http["started"]), "{http:#}");
    let findings = run["diagnosis"]["findings"].to_string();
    assert!(findings.contains("answers_incomplete"), "{findings}");
    assert!(!findings.contains("server_slow"), "{findings}");
    let trial = place.throng(&["try", &file]).exits_with(1);
    for part in ["< HTTP/1.1 200 OK", "received only `HTTP/1.1 200`, 10 of 100 bytes of the body"] {
        assert!(trial.stdout.contains(part), "{part:?} is not in {trial:#?}");
    }
}

#[test]
fn a_trial_tells_the_length_of_a_body_and_the_names_in_a_head() {
    let place = TestDir::new();
    let Some((_server, port)) = server(&place) else { return };
    let file = scenario(&place, &port, "[get: /large, get: /latin]");
    let trial = place.throng(&["try", &file]).exits_with(0);
    for part in ["< 5000 bytes; the first 1024: `xxx", "< server: Café"] {
        assert!(trial.stdout.contains(part), "{part:?} is not in {trial:#?}");
    }
    let file = scenario(&place, &port, "[get: /gzip]");
    let run = place.throng(&["run", &file, "--details"]);
    assert!(run.stdout.contains("cannot be read: the transfer-encoding is not"), "{run:#?}");
}

#[test]
fn a_check_of_a_compressed_body_says_that_it_is_compressed() {
    let place = TestDir::new();
    let Some((_server, port)) = server(&place) else { return };
    let says = "compressed (`content-encoding: gzip`), and throng does not decompress it";
    for check in ["expect: {json: {ok: true}}", "capture: {id: /id}", "expect: {contains: a}"] {
        let file = scenario(&place, &port, &format!("[get: {{path: /json, {check}}}]"));
        let trial = place.throng(&["try", &file]).exits_with(1);
        assert!(trial.stdout.contains(says), "{check}: {trial:#?}");
    }
    let run = run(&place, "s.yaml");
    assert!(run["exchanges"].to_string().contains("does not decompress it"), "{run:#}");
    let file = scenario(&place, &port, "[get: {path: /plain, expect: {text: a}}]");
    let trial = place.throng(&["try", &file]).exits_with(1);
    assert!(!trial.stdout.contains("decompress"), "{trial:#?}");
}
