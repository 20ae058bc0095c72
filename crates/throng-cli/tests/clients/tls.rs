//! PyPI's `websockets` over TLS, with a certificate that OpenSSL made and the client checks.

use std::process::Command;

use crate::process::TestDir;
use crate::tools::{Tool, clients, root, run_to_success};

#[test]
fn a_python_client_speaks_websockets_over_tls() {
    const PYTHON: &str = "target/clients/python/bin/python";
    let python =
        Tool::file("target/clients/python/installed", "the Python client is not installed");
    if python.and(Tool::command("openssl", &["version"])).skips() {
        return;
    }
    let place = TestDir::new();
    place
        .shell(
            "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 \
             -keyout key.pem -out chain.pem -subj /CN=localhost \
             -addext subjectAltName=IP:127.0.0.1",
        )
        .exits_with(0);
    let serve = |kind| place.serve(&[kind, "--tls-cert", "chain.pem", "--tls-key", "key.pem"]);
    let (chat, channels) = (serve("chat"), serve("channels"));
    let mut python = Command::new(root().join(PYTHON));
    python.arg(clients().join("python/wss_client.py")).arg(place.path("chain.pem"));
    python.arg(format!("wss://{}/", chat.addr));
    python.arg(format!("wss://{}/socket/websocket", channels.addr));
    let said = run_to_success(python);
    assert!(said.contains("join: ok"), "{said}");
}
