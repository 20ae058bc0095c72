//! Prometheus' own judges of the metrics: `promtool`, and the parsers of its Python client.

use std::fs::File;
use std::process::Command;

use crate::exposition::fetch;
use crate::process::{Running, Serving, TestDir, eventually};
use crate::tools::{Tool, clients, root, run_to_success};

#[test]
fn promtool_has_no_complaint() {
    const PROMTOOL: &str = "target/clients/promtool";
    if Tool::file(PROMTOOL, "promtool is not installed").skips() {
        return;
    }
    let place = TestDir::new();
    let measured = Measured::start(&place);
    for (number, url) in measured.urls().iter().enumerate() {
        let text = place.path(&format!("{number}.txt"));
        std::fs::write(&text, fetch(url)).unwrap();
        let mut promtool = Command::new(root().join(PROMTOOL));
        promtool.args(["check", "metrics"]).stdin(File::open(&text).unwrap());
        let output = promtool.output().unwrap();
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(output.status.success() && said.trim().is_empty(), "{url}: {said}");
    }
}

#[test]
fn the_python_client_reads_both_formats() {
    const PYTHON: &str = "target/clients/python/bin/python";
    if Tool::file("target/clients/python/installed", "the Python client is not installed").skips() {
        return;
    }
    let place = TestDir::new();
    let measured = Measured::start(&place);
    let mut python = Command::new(root().join(PYTHON));
    python.arg(clients().join("python/metrics.py")).args(measured.urls());
    let said = run_to_success(python);
    assert_eq!(said.matches(" families").count(), 2, "{said}");
}

/// A server and a run, both with metrics.
struct Measured {
    server: Serving,
    _run: Running,
    of_run: String,
}

impl Measured {
    /// Starts both and waits until the run has errors, so that every kind of sample is there.
    fn start(place: &TestDir) -> Self {
        let server = place.serve(&["echo", "--metrics", "0"]);
        let user =
            "[connect, {send: hi}, {expect: {bytes: 2}}, {expect: {bytes: 2, timeout: 50ms}}]";
        let load = "[{ramp: {to: 3, over: 100ms}}, {hold: {for: 10m}}]";
        place.write("s.yaml", &server.scenario(load, user));
        let mut run = place.start(&["run", "s.yaml", "--metrics", "0"]);
        let line = run.line_with("metrics: ");
        let of_run = line.trim().trim_start_matches("metrics: ").to_owned();
        eventually("the run has errors", || fetch(&of_run).contains("kind=\"expect_timeout\""));
        Self { server, _run: run, of_run }
    }

    fn urls(&self) -> [&str; 2] {
        [&self.of_run, self.server.hello["metrics"].as_str().unwrap()]
    }
}
