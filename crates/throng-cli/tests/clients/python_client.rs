//! PyPI's `phoenix-channels-python-client`, which speaks both versions of the protocol.

use std::process::Command;

use crate::process::TestDir;
use crate::tools::{Tool, clients, root, run_to_success};

#[test]
fn version_1_is_as_the_python_client_expects() {
    speaks("1.0");
}

#[test]
fn version_2_is_as_the_python_client_expects() {
    speaks("2.0");
}

fn speaks(version: &str) {
    const PYTHON: &str = "target/clients/python/bin/python";
    if Tool::file("target/clients/python/installed", "the Python client is not installed").skips() {
        return;
    }
    let place = TestDir::new();
    let server = place.serve(&["channels"]);
    let mut python = Command::new(root().join(PYTHON));
    python.arg(clients().join("python/client.py"));
    python.arg(format!("ws://{}/socket/websocket", server.addr)).arg(version);
    let said = run_to_success(python);
    assert!(said.contains(&format!("version {version}: replies")), "{said}");
}
