//! `throng lab --isolate` leaves nothing behind, however it ends. Needs root; skipped otherwise.

use std::fs;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use throng_measure::Interval;
use throng_measure::runfile::read;

/// More than any step here takes, even on a busy machine.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// The way in which the lab ends.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Ending {
    ByItself,
    By(Signal),
}

#[test]
fn nothing_is_left_after_a_normal_end() {
    check(Ending::ByItself, 8);
}

#[test]
fn nothing_is_left_after_ctrl_c() {
    check(Ending::By(Signal::INT), 300);
}

#[test]
fn nothing_is_left_after_the_lab_was_killed() {
    check(Ending::By(Signal::KILL), 300);
}

/// Runs a lab for `seconds`, or ends it while its load runs, and checks that nothing is left.
fn check(ending: Ending, seconds: u64) {
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    if !rustix::process::geteuid().is_root() {
        return println!("skipped: network namespaces need root");
    }
    if Command::new("ip").arg("-V").output().is_err() {
        return println!("skipped: ip is not installed (apt-get install iproute2)");
    }
    let before = Host::now();
    let folder = tempfile::tempdir().unwrap();
    let mut lab = start(seconds, folder.path());
    let children = wait_until_running(&mut lab, folder.path());
    assert_eq!(children.len(), 2, "server and generator run: {children:?}");
    let theirs: Vec<_> = children.iter().map(|child| namespace(*child).expect("it runs")).collect();
    let host = fs::read_link("/proc/self/ns/net").unwrap();
    assert!(!theirs.contains(&host) && theirs[0] != theirs[1], "each process has its namespace");
    assert_eq!(Host::now(), before, "the host does not see the veth pair");

    if let Ending::By(signal) = ending {
        let pid = Pid::from_child(&lab);
        kill_process(pid, signal).unwrap();
    }
    let status = wait(&mut lab);
    match ending {
        Ending::By(Signal::KILL) => {}
        Ending::By(_) => assert_eq!(status.code(), Some(4), "{status}"),
        // A busy machine can make the generator late, which only makes the result invalid.
        _ => assert!(matches!(status.code(), Some(0 | 3)), "{status}"),
    }
    let began = Instant::now();
    let is_left = || {
        children.iter().any(|child| namespace(*child).is_some())
            || namespaces().iter().any(|one| theirs.contains(one))
            || Host::now() != before
    };
    while is_left() {
        assert!(began.elapsed() < WAIT_MAX, "left: {:?}, was {before:?}", Host::now());
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Starts a lab that keeps its files in `folder`.
fn start(seconds: u64, folder: &Path) -> Child {
    let mut command = Command::new(crate::common::throng());
    command.args(["lab", "connscale", "--isolate", "--users", "200"]);
    command.args(["--seconds", &seconds.to_string()]).arg("--keep").arg(folder);
    let out = File::create(folder.join("lab.log")).unwrap();
    command.stdin(Stdio::null()).stdout(out.try_clone().unwrap()).stderr(out).spawn().unwrap()
}

/// Waits until every user is connected, and returns the process ids of server and generator.
fn wait_until_running(lab: &mut Child, folder: &Path) -> Vec<u32> {
    let began = Instant::now();
    loop {
        let intervals = File::open(folder.join("connscale.jsonl"))
            .ok()
            .and_then(|file| read(&mut BufReader::new(file)).ok())
            .map_or_else(Vec::new, |file| file.intervals);
        let connected =
            |interval: &Interval| interval.load.as_ref().map(|load| load.counters.connected);
        if intervals.iter().any(|interval| connected(interval) == Some(200)) {
            return children(lab.id());
        }
        let log = fs::read_to_string(folder.join("lab.log")).unwrap();
        if lab.try_wait().unwrap().is_some() || began.elapsed() > WAIT_MAX {
            let _ = lab.kill();
            panic!("the load did not start:\n{log}");
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn children(parent: u32) -> Vec<u32> {
    let mut found = Vec::new();
    for task in fs::read_dir(format!("/proc/{parent}/task")).unwrap().flatten() {
        let text = fs::read_to_string(task.path().join("children")).unwrap_or_default();
        found.extend(text.split_whitespace().map(|pid| pid.parse::<u32>().unwrap()));
    }
    found
}

fn wait(child: &mut Child) -> std::process::ExitStatus {
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if began.elapsed() > WAIT_MAX {
            child.kill().unwrap();
            panic!("the lab did not end");
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Returns the network namespace of a running process.
fn namespace(pid: u32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/ns/net")).ok()
}

/// Returns the network namespaces of all processes and their threads.
fn namespaces() -> Vec<PathBuf> {
    let tasks = fs::read_dir("/proc").unwrap().flatten();
    let tasks = tasks.filter_map(|entry| fs::read_dir(entry.path().join("task")).ok());
    let tasks = tasks.flatten().flatten();
    tasks.filter_map(|task| fs::read_link(task.path().join("ns/net")).ok()).collect()
}

/// The links and sysctls of the host, which a lab must not change.
#[derive(Clone, Debug, PartialEq)]
struct Host {
    links: Vec<String>,
    sysctls: Vec<String>,
}

impl Host {
    fn now() -> Self {
        let links = fs::read_to_string("/proc/net/dev").unwrap();
        let links = links.lines().filter_map(|line| line.split_once(':'));
        let sysctls = [
            "net/core/somaxconn",
            "net/ipv4/ip_local_port_range",
            "net/ipv4/tcp_child_ehash_entries",
            "net/ipv4/tcp_fin_timeout",
            "net/ipv4/tcp_max_syn_backlog",
            "net/ipv4/tcp_tw_reuse",
        ];
        let read =
            |name: &&str| fs::read_to_string(format!("/proc/sys/{name}")).unwrap_or_default();
        Self {
            links: links.map(|(name, _)| name.trim().to_owned()).collect(),
            sysctls: sysctls.iter().map(read).collect(),
        }
    }
}
