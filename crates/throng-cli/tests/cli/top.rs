//! `throng top`.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::process::{TestDir, eventually};

#[test]
fn a_look_is_printed_as_text_without_a_terminal_and_as_json() {
    let place = TestDir::new();
    let server = place.serve(&["echo", "--cores", "2"]);
    let mut client = TcpStream::connect(&server.addr).unwrap();
    client.write_all(b"hello").unwrap();
    eventually("the client is connected", || place.count(server.process.pid())["open"] == 1);
    for args in [&["top"][..], &["top", "--once"]] {
        let text = place.throng(args).exits_with(0).stdout;
        for part in [&format!("echo on {}", server.addr)[..], "CORE", "TOPIC", "SLOW", "BUSY"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains('\u{1b}'), "{text}");
    }
    let pid = server.process.pid().to_string();
    let connections = |look: &Value| -> Option<u64> {
        let cores = look["cores"].as_array()?;
        Some(cores.iter().filter_map(|core| core["connections"].as_u64()).sum())
    };
    let look = place.throng(&["top", "--json", "--pid", &pid]).exits_with(0).json();
    assert_eq!((connections(&look), look["handler"].as_str()), (Some(1), Some("echo")));
    let control = server.hello["control"].as_str().unwrap();
    let look = place.throng(&["top", "--json", "--control", control]).exits_with(0).json();
    assert_eq!(connections(&look), Some(1));
}

#[test]
fn what_cannot_be_inspected_is_refused_with_a_reason() {
    let place = TestDir::new();
    let missing = place.throng(&["top", "--once"]).exits_with(2);
    missing.stderr_contains(&["no throng server", "throng doctor --watch --port PORT"]);
    place.throng(&["top", "--rows", "101"]).exits_with(2).stderr_contains(&["101"]);
    let server = place.serve(&["hold"]);
    let scenario =
        server.scenario("[{ramp: {to: 1, over: 100ms}}, {hold: {for: 5m}}]", "[connect, stay]");
    place.write("stay.yaml", &scenario);
    let mut run = place.start(&["run", "stay.yaml", "--interval", "100ms"]);
    run.line_with("connected 1 ");
    // The run is no server, so the server is the only choice.
    place.throng(&["top", "--once"]).exits_with(0);
    let pid = run.pid().to_string();
    let refused = place.throng(&["top", "--once", "--pid", &pid]).exits_with(2);
    refused.stderr_contains(&["does not support `inspect`"]);
}

#[test]
fn the_server_of_a_calibration_does_not_hide_the_only_other_one() {
    let place = TestDir::new();
    let server = place.serve(&["ok"]);
    place
        .write("stay.yaml", &server.scenario("[{ramp: {to: 1, over: 100ms}}]", "[connect, close]"));
    let run = place.start(&["run", "stay.yaml", "--calibrate", "1m"]);
    eventually("the calibration's server runs", || {
        let text = place.throng(&["ctl", "list"]).stdout;
        text.lines().filter(|line| line.contains(" server ")).count() == 2
    });
    let text = place.throng(&["top", "--once"]).exits_with(0).stdout;
    assert!(text.contains(&server.addr), "{text}");
    run.signal(rustix::process::Signal::INT);
    run.finish();
}

#[test]
fn a_terminal_shows_looks_until_a_key_ends_it() {
    let place = TestDir::new();
    let server = place.serve(&["echo"]);
    let throng = env!("CARGO_BIN_EXE_throng");
    let command = format!("stty rows 24 cols 80; exec {throng} top");
    let mut script = Command::new("script");
    script.args(["-qec", &command, "/dev/null"]).current_dir(place.path("."));
    script.env("TERM", "xterm").env("LC_ALL", "C.UTF-8").env("XDG_RUNTIME_DIR", place.path("."));
    let mut top = script.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut keys, mut screen) = (top.stdin.take().unwrap(), top.stdout.take().unwrap());
    let mut shown = String::new();
    let mut bytes = [0; 4096];
    while !shown.contains("CORE") {
        let read = screen.read(&mut bytes).unwrap();
        assert!(read > 0, "it ended: {shown:?}");
        shown += &String::from_utf8_lossy(&bytes[..read]);
    }
    assert!(shown.contains(&server.addr) && shown.contains("q quit"), "{shown:?}");
    keys.write_all(b"q").unwrap();
    assert!(top.wait().unwrap().success(), "{shown:?}");
}
