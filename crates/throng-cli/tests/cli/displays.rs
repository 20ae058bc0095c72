//! What shows a run beside the terminal: `--open`, and the displays of a lab.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;

use rustix::process::Signal;

use crate::exposition::{Exposition, fetch};
use crate::process::{Running, Serving, TestDir, eventually};

/// Starts a run of a minute with `--open`; `PATH` is the folder `bin`.
fn open(place: &TestDir, server: &Serving) -> Running {
    let load = "[{ramp: {to: 1, over: 100ms}}, {hold: {for: 1m}}]";
    place.write("s.yaml", &server.scenario(load, "[connect, stay]"));
    let mut command = place.command(&["run", "s.yaml", "--open"]);
    command.env("PATH", place.path("bin"));
    let mut run = place.spawn(command);
    let link = run.line_with("live page: ");
    let link = link.trim().trim_start_matches("live page: ").to_owned();
    std::fs::write(place.path("link"), &link).unwrap();
    assert!(link.starts_with("http://127.0.0.1:") && link.contains("token="), "{link}");
    run
}

#[test]
fn a_browser_is_opened_with_the_link_that_is_printed() {
    let place = TestDir::new();
    std::fs::create_dir(place.path("bin")).unwrap();
    let opener = place.path("bin/xdg-open");
    let script = format!("#!/bin/sh\nprintf %s \"$1\" > {}\n", place.path("opened").display());
    std::fs::write(&opener, script).unwrap();
    std::fs::set_permissions(&opener, Permissions::from_mode(0o755)).unwrap();
    let server = place.serve(&["hold"]);
    let _run = open(&place, &server);
    let read = |name| std::fs::read_to_string(place.path(name)).unwrap_or_default();
    eventually("the browser has the link", || read("opened") == read("link"));
}

#[test]
fn a_machine_without_a_browser_says_so_and_runs_on() {
    let place = TestDir::new();
    let server = place.serve(&["hold"]);
    let mut run = open(&place, &server);
    run.line_with("connected 1 ");
    run.signal(Signal::INT);
    let finished = run.finish().exits_with(4);
    finished.stderr_contains(&["--open: xdg-open is not installed; open the link yourself"]);
}

#[test]
fn a_lab_is_shown_while_it_runs_and_its_run_has_a_page_afterwards() {
    let place = TestDir::new();
    let lab = "lab stressgrid-100k --users 20 --seconds 600 --no-tui --keep kept --report --ui \
               --metrics 127.0.0.1:0 --json result.json";
    let args: Vec<_> = lab.split_whitespace().collect();
    let mut running = place.start(&args);
    let link = running.line_with("live page: ");
    assert!(link.contains("http://127.0.0.1:") && link.contains("token="), "{link}");
    let url = running.line_with("metrics: ");
    let url = url.trim().trim_start_matches("metrics: ").to_owned();
    running.line_with("1/3 dispatch");
    eventually("users of the lab's run are counted", || {
        let scraped = Exposition::parse(&fetch(&url));
        scraped.get("throng_load_connects_ok_total", &[]) >= Some(1.0)
    });
    running.signal(Signal::INT);
    let finished = running.finish().exits_with(4);
    assert!(finished.stdout.contains("report: kept/dispatch.html"), "{finished:#?}");
    let page = std::fs::read_to_string(place.path("kept/dispatch.html")).unwrap();
    assert!(page.starts_with("<!doctype html>"), "{page}");
    assert_eq!(place.json("result.json")["lab"], "stressgrid-100k");
}
