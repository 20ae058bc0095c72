//! Recordings of server and generator in a namespace each: each has its own map of counters. Needs
//! root; skipped otherwise.

use std::env;
use std::fs::File;
use std::io::Read;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use throng_measure::runfile::{RunFile, read};
use throng_measure::{Interval, KernelCounters, Metric, ProcessMetric, RunEventKind};
use throng_run::isolate::{Isolation, SERVER_ADDRESS};

const WAIT_MAX: Duration = Duration::from_secs(60);
const OVERFLOWS: Metric = Metric::TCPEXT_LISTEN_OVERFLOWS;

/// Returns a scenario of a hundred connects per second, for as long as a test may need.
fn scenario() -> String {
    format!(
        "target: tcp://{SERVER_ADDRESS}:7000\nload:\n  \
         - arrivals: {{rate: 100/s, for: 5m, spacing: even}}\n\
         user:\n  - connect: {{timeout: 500ms}}\n  - close\n"
    )
}

#[test]
fn an_overflow_of_the_servers_queue_is_in_the_servers_counters_alone() {
    let Some(namespaces) = NamespacePair::new() else { return };
    let control = namespaces.dir.path().join("server.sock");
    let mut server = Command::new(crate::common::throng());
    server.args(["serve", "ok", "--cores", "1", "--backlog", "4", "--exit-with-parent"]);
    server.args(["--listen", &format!("{SERVER_ADDRESS}:7000")]).arg("--control").arg(&control);
    let server = KillOnDrop(namespaces.isolation.spawn_server(piped(server)).unwrap());
    until(|| control.exists().then_some(()));
    let pid = Pid::from_child(&server.0);

    let mut load = namespaces.run(&scenario());
    load.arg("--server-control").arg(&control);
    let load = KillOnDrop(namespaces.isolation.spawn_generator(piped(load)).unwrap());
    let grown = |interval: &Interval| {
        interval.load.as_ref().is_some_and(|load| load.counters.connects_ok > 20)
    };
    namespaces.wait_for(grown);
    // The stopped server accepts nothing for a while.
    kill_process(pid, Signal::STOP).unwrap();
    let overflowed =
        |interval: &Interval| interval.server_kernel.get(OVERFLOWS).is_some_and(|n| n > 0);
    namespaces.wait_for(overflowed);
    kill_process(pid, Signal::CONT).unwrap();
    let file = namespaces.finish(load);

    let (first, last) = (&file.intervals[0], file.intervals.last().unwrap());
    assert!(file.header.target_is_here, "the control socket is on this machine");
    assert!(last.server_kernel[OVERFLOWS] > 0 && last.kernel[OVERFLOWS] == 0);
    assert_eq!(last.server_machine, None, "it is the same machine");
    let has = |map: &KernelCounters, part: &str| map.iter().any(|(name, _)| name.starts_with(part));
    assert!(has(&last.kernel, "process.client.") && !has(&last.server_kernel, "process.client."));
    assert!(has(&last.server_kernel, "process.server.") && !has(&last.kernel, "process.server."));
    assert_eq!(
        (last.server_kernel[Metric::LISTENER_COUNT], last.kernel[Metric::LISTENER_COUNT]),
        (1, 0)
    );
    assert_eq!(last.server_kernel[Metric::LISTENER_BACKLOG], 4);
    // The generator opens connections and the server accepts them. One namespace would show both.
    let grew = |metric| {
        let of = |map: fn(&Interval) -> &KernelCounters| map(last)[metric] - map(first)[metric];
        (of(|interval| &interval.kernel), of(|interval| &interval.server_kernel))
    };
    let ((opened, _), (_, taken)) =
        (grew(Metric::TCP_ACTIVE_OPENS), grew(Metric::TCP_PASSIVE_OPENS));
    assert!(opened > 20 && taken > 20, "{opened} {taken}");
    assert_eq!((grew(Metric::TCP_ACTIVE_OPENS).1, grew(Metric::TCP_PASSIVE_OPENS).0), (0, 0));
}

#[test]
fn a_foreign_server_is_watched_from_its_namespace_under_load() {
    let Some(namespaces) = NamespacePair::new() else { return };
    let mut server = Command::new(env::current_exe().unwrap());
    server
        .args(["--exact", "both_ends::a_server_that_never_accepts"])
        .env("THRONG_TEST_ROLE", "server");
    let server = KillOnDrop(namespaces.isolation.spawn_server(piped(server)).unwrap());
    let watch = || {
        let mut watch = Command::new(crate::common::throng());
        watch.args(["doctor", "--watch", "--port", "7000", "--interval", "200ms", "--json"]);
        watch.args(["--listen", &format!("{SERVER_ADDRESS}:7001")]);
        KillOnDrop(namespaces.isolation.spawn_server(piped(watch)).unwrap())
    };
    let first = watch();

    // Server and watch may need a moment until they listen.
    let load = until(|| {
        let mut load = namespaces.run(&scenario());
        load.args(["--server-facts", &format!("{SERVER_ADDRESS}:7001"), "--interval", "500ms"]);
        let mut load = KillOnDrop(namespaces.isolation.spawn_generator(piped(load)).unwrap());
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(5) {
            if namespaces.intervals().is_some() {
                return Some(load);
            }
            if load.0.try_wait().unwrap().is_some() {
                return None;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        None
    });
    let overflowed =
        |interval: &Interval| interval.server_kernel.get(OVERFLOWS).is_some_and(|n| n > 0);
    namespaces.wait_for(overflowed);
    drop(first);
    namespaces.wait_for(|interval| interval.events.iter().any(is_lost));
    let _second = watch();
    namespaces.wait_for(|interval| interval.events.iter().any(is_back));
    namespaces.wait_for(|interval| is_after_the_loss(&namespaces, interval));
    let file = namespaces.finish(load);

    let last =
        file.intervals.iter().rev().find(|interval| !interval.server_kernel.is_empty()).unwrap();
    assert!(last.server_kernel[OVERFLOWS] > 0 && last.kernel[OVERFLOWS] == 0);
    assert!(last.server_kernel[ProcessMetric::THREADS.server] >= 1);
    assert_eq!(last.server, None, "it has no control socket");
    let pid = server.0.id().to_string();
    let watched =
        |interval: &Interval| interval.server_kernel.get(ProcessMetric::RUN_US.server).is_some();
    assert!(file.intervals.iter().any(watched), "process {pid} was found by its port");
    assert!(
        file.intervals.iter().all(|interval| !interval.kernel.is_empty()),
        "the run never stopped"
    );
}

/// The server process of the test above, which starts this test as a process.
#[test]
fn a_server_that_never_accepts() {
    if env::var("THRONG_TEST_ROLE").as_deref() != Ok("server") {
        return;
    }
    let listener = TcpListener::bind((SERVER_ADDRESS, 7000)).unwrap();
    rustix::net::listen(&listener, 4).unwrap();
    // The server ends with the test, which holds the pipe's write end.
    let _ = std::io::stdin().read(&mut [0]);
}

fn is_lost(event: &throng_measure::RunEvent) -> bool {
    matches!(event.kind, RunEventKind::FactsLost { .. })
}

fn is_back(event: &throng_measure::RunEvent) -> bool {
    matches!(event.kind, RunEventKind::FactsBack { .. })
}

fn is_after_the_loss(namespaces: &NamespacePair, interval: &Interval) -> bool {
    let file = namespaces.intervals().unwrap_or_default();
    let back = file.iter().find(|interval| interval.events.iter().any(is_back));
    back.is_some_and(|back| interval.at_ms > back.at_ms && !interval.server_kernel.is_empty())
}

/// Two namespaces and a folder for files.
struct NamespacePair {
    isolation: Isolation,
    dir: tempfile::TempDir,
}

impl NamespacePair {
    fn new() -> Option<Self> {
        match Isolation::new(1000) {
            Ok(isolation) => Some(Self { isolation, dir: tempfile::tempdir().unwrap() }),
            Err(error) => {
                println!("skipped: {error}");
                None
            }
        }
    }

    fn record(&self) -> PathBuf {
        self.dir.path().join("run.jsonl")
    }

    fn run(&self, scenario: &str) -> Command {
        let path = self.dir.path().join("load.yaml");
        std::fs::write(&path, scenario).unwrap();
        let mut command = Command::new(crate::common::throng());
        command.arg("run").arg(path).arg("--record").arg(self.record());
        command.args(["--no-calibrate", "--exit-with-parent"]);
        command.arg("--control").arg(self.dir.path().join("load.sock"));
        command
    }

    /// Returns the recorded intervals; none before the first.
    fn intervals(&self) -> Option<Vec<Interval>> {
        Some(load_file(&self.record())?.intervals).filter(|intervals| !intervals.is_empty())
    }

    #[track_caller]
    fn wait_for(&self, is_so: impl Fn(&Interval) -> bool) {
        until(|| self.intervals()?.iter().any(&is_so).then_some(()));
    }

    /// Ends the load and returns its run file.
    #[track_caller]
    fn finish(&self, mut load: KillOnDrop) -> RunFile {
        drop(load.0.stdin.take());
        until(|| load.0.try_wait().unwrap());
        let file = load_file(&self.record()).unwrap();
        assert!(file.end.is_some(), "the run came to its end");
        file
    }
}

fn load_file(path: &Path) -> Option<RunFile> {
    read(&mut std::io::BufReader::new(File::open(path).ok()?)).ok()
}

/// A process that is killed when the test ends, in whatever way.
struct KillOnDrop(Child);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn piped(mut command: Command) -> Command {
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

#[track_caller]
fn until<T>(mut poll: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(result) = poll() {
            return result;
        }
        assert!(began.elapsed() < WAIT_MAX, "it did not happen");
        std::thread::sleep(Duration::from_millis(50));
    }
}
