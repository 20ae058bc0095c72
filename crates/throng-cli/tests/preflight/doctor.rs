//! `throng doctor --for`: its verdict, its exit code, its changes, and the facts that it cannot
//! read.

use std::process::{Command, Output};

use serde_json::Value;

use crate::bench::{Bench, confined};

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn the_first_line_is_the_verdict_and_the_exit_code_follows_it() {
    let bench = Bench::behind(&["prlimit", "--nofile=200:200"]).with(&[]);
    let fits = bench.throng(&["doctor", "--for", "100", "--cores", "1"]).output().unwrap();
    assert_eq!(fits.status.code(), Some(0), "{}", text(&fits));
    assert!(
        text(&fits).starts_with("100 connections with client and server here fit: "),
        "{}",
        text(&fits)
    );
    let short = bench
        .throng(&["doctor", "--for", "1k", "--cores", "1", "--role", "server"])
        .output()
        .unwrap();
    assert_eq!(short.status.code(), Some(2), "{}", text(&short));
    let first = text(&short).lines().next().unwrap().to_owned();
    assert!(first.starts_with("1k connections to a server here do not fit: 1 of "), "{first}");
    assert!(first.contains("the first, fd tables, holds 132"), "{first}");
    assert!(text(&short).contains("\ndo:\n  --cores "), "{}", text(&short));
}

#[test]
fn a_dry_run_shows_every_limit_and_a_run_only_what_is_short() {
    let bench = Bench::behind(&["prlimit", "--nofile=200:200"]).with(&["--cores", "1"]);
    std::fs::write(
        bench.path("many.yaml"),
        "target: tcp://127.0.0.1:5555\nload: [{ramp: {to: 1k, over: 1s}}]\nuser: [connect, stay]\n",
    )
    .unwrap();
    let dry = bench.throng(&["run", "many.yaml", "--dry-run", "--cores", "1"]).output().unwrap();
    assert_eq!(dry.status.code(), Some(2), "{}", text(&dry));
    assert!(
        text(&dry).contains("fs.epoll.max_user_watches") && text(&dry).contains("short  fd tables"),
        "{}",
        text(&dry)
    );
    let refused = bench.run(1_000, &[]);
    assert_eq!(refused.code, Some(2));
    assert!(
        refused.stderr.contains("short  fd tables") && !refused.stderr.contains("max_user_watches"),
        "{}",
        refused.stderr
    );
    assert!(refused.stderr.lines().count() < 24, "one screen: {}", refused.stderr);
}

#[test]
fn what_is_applied_is_enough_and_says_how_to_undo_it() {
    let narrow = "echo 40000 40009 > /proc/sys/net/ipv4/ip_local_port_range; \
                  echo 128 > /proc/sys/net/core/somaxconn";
    let Some(bench) = Bench::in_namespace(narrow) else { return };
    let ask = ["doctor", "--for", "20k", "--target", "tcp://198.18.0.9:80", "--role", "client"];
    let with = |flag: &str| bench.throng(&[&ask[..], &[flag]].concat()).output().unwrap();
    let file = with("--sysctl");
    assert_eq!(file.status.code(), Some(2), "{}", text(&file));
    let set: Vec<_> = text(&file)
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
        .map(str::to_owned)
        .collect();
    assert_eq!(set, ["net.ipv4.ip_local_port_range = 1024 65535"], "{}", text(&file));

    let applied = with("--apply");
    assert_eq!(applied.status.code(), Some(0), "{}", text(&applied));
    let said = text(&applied);
    assert!(said.contains("net.ipv4.ip_local_port_range: 40000 40009 -> 1024 65535"), "{said}");
    let undo = said.lines().find_map(|line| line.trim().strip_prefix("undo: ")).unwrap();
    assert_eq!(undo, "sysctl -w net.ipv4.ip_local_port_range=\"40000 40009\"");
    let range = || {
        let cat =
            Command::new("cat").arg("/proc/sys/net/ipv4/ip_local_port_range").output().unwrap();
        text(&cat).split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(range(), ["1024", "65535"]);
    let file =
        said.lines().find_map(|line| line.strip_prefix("undo all changes: sysctl -p ")).unwrap();
    let undo_file = std::fs::read_to_string(file).unwrap();
    assert!(undo_file.ends_with("net.ipv4.ip_local_port_range = 40000 40009\n"), "{undo_file}");
    assert!(file.starts_with("/run/throng/undo-"), "{file}");
    std::fs::remove_file(file).unwrap();
    // The second time there is nothing left to change.
    let again = with("--apply");
    assert!(text(&again).contains("nothing to change"), "{}", text(&again));
    let undone = Command::new("sh").args(["-c", undo]).output();
    if undone.is_ok_and(|output| output.status.success()) {
        assert_eq!(range(), ["40000", "40009"], "the command that it printed works");
    }
}

#[test]
fn a_plain_user_is_told_what_root_would_type() {
    let plain = ["setpriv", "--reuid=54321", "--regid=54321", "--clear-groups"];
    let bench = Bench::behind(&plain);
    if !bench.throng(&["--version"]).output().is_ok_and(|output| output.status.success()) {
        return println!("skipped: only root becomes another user");
    }
    let output =
        bench.throng(&["doctor", "--for", "1G", "--role", "server", "--apply"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    for part in ["sudo ", "doctor --for 1G", "sysctl -w fs.epoll.max_user_watches="] {
        assert!(text(&output).contains(part), "{part:?} is not in {}", text(&output));
    }
}

#[test]
fn where_nothing_can_be_read_it_says_what_and_why() {
    let Some(confined) = confined(&["--without-netlink"]) else { return };
    // A container without netlink whose `/proc` is hidden, as a plain user.
    let hide = "mount -t tmpfs none /proc && exec \"$@\"";
    let mut prefix = vec!["unshare", "--mount", "sh", "-c", hide, "sh"];
    prefix.extend(confined.iter().map(String::as_str));
    // The last step, because only root may be able to read Python's files.
    prefix.extend(["setpriv", "--reuid=54321", "--regid=54321", "--clear-groups"]);
    let bench = Bench::behind(&prefix);
    if !bench.throng(&["--version"]).output().is_ok_and(|output| output.status.success()) {
        return println!("skipped: only root hides /proc");
    }
    let facts = bench.throng(&["doctor"]).output().unwrap();
    assert_eq!(facts.status.code(), Some(0), "{}", text(&facts));
    assert!(
        text(&facts).contains("unknown (proc/meminfo: does not exist here)"),
        "{}",
        text(&facts)
    );
    let asked = bench.throng(&["doctor", "--for", "1k", "--json"]).output().unwrap();
    assert_eq!(asked.status.code(), Some(0), "{}", text(&asked));
    let said: Value = serde_json::from_slice(&asked.stdout).unwrap();
    let checks = said["checks"].as_array().unwrap();
    let unknown: Vec<_> = checks.iter().filter(|check| check["state"] == "unknown").collect();
    assert!(unknown.len() + 1 >= checks.len(), "but for fds, which getrlimit tells: {said}");
    assert!(unknown.iter().all(|check| {
        check["because"].as_str().is_some_and(|why| why.contains("does not exist here"))
    }));
    assert!(
        said["verdict"].as_str().unwrap().contains(&format!(
            "{} of {}",
            unknown.len(),
            checks.len()
        )),
        "{said}"
    );
    // The known facts still count.
    let many = bench.throng(&["doctor", "--for", "1G"]).output().unwrap();
    assert_eq!(many.status.code(), Some(2), "{}", text(&many));
}
