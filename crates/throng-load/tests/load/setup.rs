//! `setup` and `teardown` over real sockets: their order, their values, their errors.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Mutex;

use throng_load::run::{LoadOptions, LoadPlan, SetupError, SetupWatch, SoloEnd, set_up, tear_down};

use crate::run::{parsed, run_scenario, server};

/// All lines that the server of the first test has received, in their order.
static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Notes each line and echoes it.
fn note_lines(mut stream: TcpStream) {
    let mut buffer = [0; 256];
    while let Ok(received @ 1..) = stream.read(&mut buffer) {
        let text = String::from_utf8_lossy(&buffer[..received]).trim().to_owned();
        LINES.lock().unwrap().push(text);
        if stream.write_all(&buffer[..received]).is_err() {
            return;
        }
    }
}

/// Takes the steps of `setup` or `teardown` to their end.
fn take<T>(steps: impl FnOnce(SetupWatch<'_>) -> T) -> T {
    steps(SetupWatch::silent(&mut || false))
}

#[test]
fn setup_runs_once_before_the_load_and_teardown_once_after_it() {
    let target = server(note_lines);
    let text = format!(
        "target: tcp://{target}
load: [{{arrivals: {{rate: 50/s, for: 1s, spacing: even}}}}]
setup:
  - set: {{room: \"r${{random(1,1000000)}}\"}}
  - connect
  - send: \"create ${{room}}\\n\"
  - expect: {{until: \"\\n\"}}
user:
  - connect
  - send: \"enter ${{setup.room}}\\n\"
  - expect: {{until: \"\\n\"}}
teardown:
  - connect
  - send: \"delete ${{setup.room}}\\n\"
  - expect: {{until: \"\\n\"}}
"
    );
    let mut scenario = parsed(&text);
    let options = LoadOptions { cores: Some(2), ..LoadOptions::default() };
    let mut plan = LoadPlan::new(&scenario, &options).unwrap();
    take(|watch| set_up(&mut scenario, &options, watch)).unwrap();
    // Both a plan that was made before `setup` and one that is made after it know its values.
    plan.take_setup(&scenario);
    assert_eq!(plan.program().tables()[0].cell(7, 0), scenario.tables[0].cell(0, 0));
    let run = run_scenario(&scenario, &options);
    take(|watch| tear_down(&scenario, &options, watch)).unwrap();
    assert_eq!(run.last.errors.total(), 0, "{:?}", run.last.errors);
    assert_eq!(run.last.counters.users_started, 50, "setup's user is none of the load");
    let lines = LINES.lock().unwrap();
    let room = lines[0].strip_prefix("create r").expect("setup comes first");
    let mut expected = vec![format!("create r{room}")];
    expected.extend((0..50).map(|_| format!("enter r{room}")));
    expected.push(format!("delete r{room}"));
    assert_eq!(*lines, expected);
}

#[test]
fn a_setup_that_fails_shows_what_its_user_saw() {
    let target = server(drop);
    let text = format!(
        "target: tcp://{target}
load: [{{arrivals: {{rate: 1/s, for: 1s}}}}]
setup: [connect, send: hello, expect: {{bytes: 5}}]
user: [connect]
"
    );
    let mut scenario = parsed(&text);
    let error = take(|watch| set_up(&mut scenario, &LoadOptions::default(), watch)).unwrap_err();
    let SetupError::Ended { end: SoloEnd::Failed, .. } = &error else { panic!("{error:?}") };
    let shown = error.to_string();
    for part in ["`setup` failed; its user's steps:", "step 1 connect (line 3)", "error "] {
        assert!(shown.contains(part), "{part:?} is not in {shown}");
    }
}

#[test]
fn teardown_can_follow_a_setup_that_failed_if_its_values_are_stored() {
    let target = server(drop);
    let allows_teardown = |before: &str| {
        let text = format!(
            "target: tcp://{target}
load: [{{arrivals: {{rate: 1/s, for: 1s}}}}]
setup: [{before}connect, send: hello, expect: {{bytes: 5}}, set: {{room: late}}]
user: [connect]
teardown: [connect, send: \"${{setup.room}}\"]
"
        );
        let mut scenario = parsed(&text);
        let error = take(|watch| set_up(&mut scenario, &LoadOptions::default(), watch));
        error.unwrap_err().allows_teardown(&scenario)
    };
    assert!(allows_teardown("set: {room: lobby}, "));
    assert!(!allows_teardown(""));
}

#[test]
fn no_teardown_follows_a_setup_without_a_connection() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let target = listener.local_addr().unwrap();
    drop(listener);
    let text = format!(
        "target: tcp://{target}
load: [{{arrivals: {{rate: 1/s, for: 1s}}}}]
setup: [connect]
user: [connect]
teardown: [connect]
"
    );
    let mut scenario = parsed(&text);
    let error = take(|watch| set_up(&mut scenario, &LoadOptions::default(), watch)).unwrap_err();
    assert!(!error.allows_teardown(&scenario), "{error}");
}

#[test]
fn a_setup_that_waits_can_be_interrupted() {
    let target = server(|mut stream| drop(stream.read(&mut [0; 16])));
    let text = format!(
        "target: tcp://{target}
load: [{{arrivals: {{rate: 1/s, for: 1s}}}}]
setup: [connect, wait: 5m]
user: [connect]
"
    );
    let mut scenario = parsed(&text);
    let mut questions = 0;
    let mut is_interrupted = || {
        questions += 1;
        questions > 3
    };
    let watch = SetupWatch::silent(&mut is_interrupted);
    let error = set_up(&mut scenario, &LoadOptions::default(), watch).unwrap_err();
    assert!(matches!(error, SetupError::Ended { end: SoloEnd::Interrupted, .. }), "{error:?}");
}
