//! `setup` and `teardown` of a scenario, against a server in another language.

use rustix::process::Signal;

use crate::process::{Running, TestDir};

/// A server of rooms, which answers `no` to what is impossible.
const SERVER: &str = "import asyncio
rooms = set()
async def serve(reader, writer):
    while line := await reader.readline():
        verb, room = line.decode().split()
        known = room in rooms
        if verb == 'create':
            rooms.add(room)
        if verb == 'delete':
            rooms.discard(room)
        writer.write(b'yes\\n' if known != (verb == 'create') else b'no\\n')
    writer.close()
async def main():
    server = await asyncio.start_server(serve, '127.0.0.1', 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
asyncio.run(main())
";

/// Starts the server; `None` if there is no Python here.
fn rooms(place: &TestDir) -> Option<(Running, String)> {
    place.python(SERVER)
}

/// A scenario whose setup creates a room; `enter` and `delete` are what users and teardown name.
fn scenario(port: &str, create: &str, enter: &str, delete: &str) -> String {
    let ask = |verb: &str, room: &str| {
        format!("  - connect\n  - send: \"{verb} {room}\\n\"\n  - expect: \"yes\\n\"\n")
    };
    format!(
        "target: tcp://127.0.0.1:{port}\nload: [{{arrivals: {{rate: 20/s, for: 1s}}}}]\nsetup:\n  \
         - set: {{room: \"{create}\"}}\n{}user:\n{}teardown:\n{}",
        ask("create", "${room}"),
        ask("enter", enter),
        ask("delete", delete)
    )
}

#[test]
fn users_and_teardown_have_the_values_of_setup() {
    let place = TestDir::new();
    let Some((_server, port)) = rooms(&place) else { return };
    let room = "${setup.room}";
    place.write("s.yaml", &scenario(&port, "${uuid()}", room, room));
    let finished = place.throng(&["run", "s.yaml"]);
    for part in ["taking the steps of `setup`", "no errors", "`teardown`: ok, no step failed"] {
        assert!(finished.stdout.contains(part), "{part:?} is not in {finished:#?}");
    }
    assert!(!finished.stderr.contains("teardown"), "{finished:#?}");
    // One user of each class, with a setup and a teardown of its own.
    let tried = place.throng(&["try", "s.yaml"]).exits_with(0);
    tried.stdout_contains(&[
        "`setup`, by one user\n",
        "step 3 send (line 6)",
        "`setup`: ok, no step failed",
        "`teardown`, by one user\n",
        "step 2 send (line 14)",
        "`teardown`: ok, no step failed",
    ]);
}

#[test]
fn no_run_starts_when_setup_fails() {
    let place = TestDir::new();
    let Some((_server, port)) = rooms(&place) else { return };
    let (room, other) = ("${setup.room}", "elsewhere");
    // Its first run leaves the room behind, so that no other run creates it.
    place.write("s.yaml", &scenario(&port, "lobby", room, other));
    let finished = place.throng(&["run", "s.yaml", "--json", "sum.json"]);
    for part in ["`teardown` failed", "expect (line 15)", "the run itself is whole"] {
        assert!(finished.stderr.contains(part), "{part:?} is not in {finished:#?}");
    }
    assert!(place.path("run.jsonl").exists(), "{finished:#?}");
    let json = std::fs::read_to_string(place.path("sum.json")).unwrap();
    assert!(json.contains("\"teardown\"") && json.contains("`teardown` failed"), "{json}");
    // The run may be invalid on a busy machine. The teardown changes neither grade nor exit code.
    assert!(matches!(finished.code, Some(0 | 3)), "{finished:#?}");
    let earlier = std::fs::read(place.path("run.jsonl")).unwrap();
    let finished = place.throng(&["run", "s.yaml"]).exits_with(2);
    for part in ["`setup` failed", "expect (line 7)", "`no\\n`", "the run was not started"] {
        assert!(finished.stderr.contains(part), "{part:?} is not in {finished:#?}");
    }
    assert_eq!(std::fs::read(place.path("run.jsonl")).unwrap(), earlier, "it is as it was");
    place.throng(&["run", "s.yaml", "--record", "second.jsonl"]).exits_with(2);
    assert!(!place.path("second.jsonl").exists(), "the run was not started");
    place.throng(&["try", "s.yaml"]).exits_with(2).stderr_contains(&["`setup` failed"]);
}

#[test]
fn a_setup_that_fails_half_way_leaves_nothing_behind() {
    let place = TestDir::new();
    let Some((_server, port)) = rooms(&place) else { return };
    let scenario = |second: &str| {
        format!(
            "target: tcp://127.0.0.1:{port}\nload: [{{arrivals: {{rate: 20/s, for: 1s}}}}]\n\
             setup:\n  - set: {{room: lobby}}\n  - connect\n  - send: \"create ${{room}}\\n\"\n  \
             - expect: \"yes\\n\"\n  - send: \"{second}\\n\"\n  - expect: \"yes\\n\"\n\
             user: [connect]\n\
             teardown:\n  - connect\n  - send: \"delete ${{setup.room}}\\n\"\n  \
             - expect: \"yes\\n\"\n"
        )
    };
    place.write("fails.yaml", &scenario("enter elsewhere"));
    place.write("succeeds.yaml", &scenario("enter lobby"));
    for command in ["run", "try"] {
        let finished = place.throng(&[command, "fails.yaml"]).exits_with(2);
        let finished = finished.stderr_contains(&["`setup` failed"]);
        let finished = finished.stdout_contains(&["`teardown`"]);
        assert!(!finished.stderr.contains("`teardown` failed"), "{finished:#?}");
    }
    // The room of the others is gone.
    let tried = place.throng(&["try", "succeeds.yaml"]).exits_with(0);
    tried.stdout_contains(&["`setup`: ok, no step failed"]);
}

#[test]
fn a_setup_that_is_interrupted_is_incomplete() {
    let place = TestDir::new();
    let Some((_server, port)) = rooms(&place) else { return };
    let text = format!(
        "target: tcp://127.0.0.1:{port}\nload: [{{arrivals: {{rate: 1/s, for: 1s}}}}]\n\
         setup: [connect, wait: 5m]\nuser: [connect]\n"
    );
    place.write("s.yaml", &text);
    let mut run = place.start(&["run", "s.yaml"]);
    run.line_with("taking the steps of `setup`");
    run.signal(Signal::INT);
    let finished = run.finish().exits_with(4);
    finished.stderr_contains(&["`setup` was interrupted", "the run was not started"]);
}

#[test]
fn a_trial_whose_setup_is_interrupted_is_incomplete_though_teardown_fails() {
    let place = TestDir::new();
    let Some((_server, port)) = rooms(&place) else { return };
    let text = format!(
        "target: tcp://127.0.0.1:{port}\nload: [{{arrivals: {{rate: 1/s, for: 1s}}}}]\n\
         setup: [connect, wait: 5m]\nuser: [connect]\n\
         teardown: [connect, send: \"delete elsewhere\\n\", expect: \"yes\\n\"]\n"
    );
    place.write("s.yaml", &text);
    let mut trial = place.start(&["try", "s.yaml"]);
    trial.line_with("step 2 wait");
    trial.signal(Signal::INT);
    let finished = trial.finish().exits_with(4);
    finished.stderr_contains(&["`setup` was interrupted", "`teardown` failed"]);
}

#[test]
fn the_json_of_a_run_whose_setup_failed_has_the_failure() {
    let place = TestDir::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    place.write("s.yaml", &scenario(&port.to_string(), "lobby", "${setup.room}", "elsewhere"));
    place.throng(&["run", "s.yaml", "--json", "sum.json"]).exits_with(2);
    let written = std::fs::read_to_string(place.path("sum.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&written).unwrap();
    assert_eq!(json["schema"], "throng.not_started/1");
    let error = json["error"].as_str().unwrap();
    assert!(error.contains("`setup` failed") && error.contains("ECONNREFUSED"), "{error}");
    assert_eq!(json["teardown"]["ok"], false);
    let error = json["teardown"]["error"].as_str().unwrap();
    assert!(error.contains("was not taken"), "{error}");
}

#[test]
fn no_teardown_follows_a_setup_that_reached_no_server() {
    let place = TestDir::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let room = "${setup.room}";
    place.write("s.yaml", &scenario(&port.to_string(), "lobby", room, room));
    for command in ["run", "try"] {
        let finished = place.throng(&[command, "s.yaml"]).exits_with(2);
        let finished = finished.stderr_contains(&["`setup` failed"]);
        assert!(!finished.stdout.contains("`teardown`"), "{finished:#?}");
        let finished = finished.stderr_contains(&["`teardown` was not taken: the user of"]);
        assert!(!finished.stderr.contains("`teardown` failed"), "{finished:#?}");
    }
}
