//! The sampler on the kernel that the test runs on.

use std::env;
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;

use throng_base::time::Instant;
use throng_machine::process::parse_schedstat;
use throng_machine::{
    KernelSample, ListenerScope, Reason, Sampler, SamplerOptions, WatchedProcess,
};
use throng_measure::{Endpoint, Metric, ProcessMetric};

const fn second(n: u64) -> Instant {
    Instant::from_nanos(n * 1_000_000_000)
}

fn sampler(ports: Vec<u16>) -> Sampler {
    let processes = vec![WatchedProcess {
        program: Endpoint::Client,
        pid: std::process::id(),
        also: Vec::new(),
    }];
    let scope = ListenerScope::of_ports(ports);
    Sampler::new(SamplerOptions { scope, processes, ..SamplerOptions::default() })
}

#[test]
fn an_accept_queue_that_overflows_shows_in_the_counters() {
    let server = TcpListener::bind("127.0.0.1:0").expect("bind");
    let addr = server.local_addr().expect("address");
    let neighbour = TcpListener::bind("127.0.0.1:0").expect("bind");
    let mut of_neighbour = sampler(vec![neighbour.local_addr().expect("address").port()]);
    let mut sampler = sampler(vec![addr.port()]);
    let before = sampler.sample(second(0));
    assert_eq!(before.counters[Metric::LISTENER_COUNT], 1);
    assert_eq!(before.counters[Metric::LISTENER_DROPS], 0);
    assert_eq!(before.counters[Metric::LISTENER_ACCEPT_QUEUE], 0);
    let backlog = before.counters[Metric::LISTENER_BACKLOG];
    assert!((1..=4096).contains(&backlog), "{backlog}");

    // One more than the backlog fits; the ones after that are dropped and time out.
    let clients: Vec<_> = (0..=backlog).map_while(|_| TcpStream::connect(addr).ok()).collect();
    assert_eq!(clients.len() as i64, backlog + 1);
    // A busy machine processes a client's final ACK, or its SYN, a little later.
    let mut once = |what: &str, is_so: &dyn Fn(&KernelSample) -> bool| {
        let begun = std::time::Instant::now();
        loop {
            let sample = sampler.sample(second(1));
            if is_so(&sample) {
                return sample;
            }
            assert!(begun.elapsed() < Duration::from_secs(30), "{what}: {:?}", sample.counters);
            std::thread::sleep(Duration::from_millis(10));
        }
    };
    once("a full queue", &|sample| sample.counters[Metric::LISTENER_ACCEPT_QUEUE] == backlog + 1);
    for _ in 0..3 {
        assert!(TcpStream::connect_timeout(&addr, Duration::from_millis(50)).is_err());
    }
    let name = Metric::TCPEXT_LISTEN_DROPS;
    let after = once("drops", &|sample| sample.counters[name] >= before.counters[name] + 3);
    assert_eq!(after.counters[Metric::LISTENER_ACCEPT_QUEUE], backlog + 1);
    assert_eq!(after.counters[Metric::LISTENER_FULL], 1);
    for name in [
        Metric::TCPEXT_LISTEN_OVERFLOWS,
        Metric::TCPEXT_LISTEN_DROPS,
        Metric::LISTENER_DROPS,
        Metric::TCP_ACTIVE_OPENS,
    ] {
        let grown = after.counters[name] - before.counters[name];
        assert!(grown >= 3, "{name} grew by {grown}");
    }
    let neighbours = of_neighbour.sample(second(1)).counters[Metric::LISTENER_DROPS];
    assert_eq!(neighbours, 0, "the other listener dropped nothing");
    // A sum over the living threads: those of other tests may have ended, so it may have shrunk.
    assert!(after.counters[ProcessMetric::RUN_US.client] > 0);
}

#[test]
fn a_process_that_has_ended_is_not_an_unreadable_one() {
    let mut child = Command::new("sleep").arg("1000").spawn().expect("sleep");
    let processes =
        vec![WatchedProcess { program: Endpoint::Server, pid: child.id(), also: Vec::new() }];
    let mut sampler = Sampler::new(SamplerOptions { processes, ..SamplerOptions::default() });
    let before = sampler.sample(second(0));
    assert!(before.counters.get(ProcessMetric::THREADS.server).is_some(), "{:?}", before.unknown);
    child.kill().and_then(|()| child.wait()).expect("it ends");
    let after = sampler.sample(second(1));
    assert!(after.counters.get(ProcessMetric::THREADS.server).is_none());
    assert_eq!(after.unknown, before.unknown);
}

#[test]
fn a_process_that_ends_before_its_first_sample_was_there_too() {
    let mut child = Command::new("sleep").arg("1000").spawn().expect("sleep");
    let watched = |pid| WatchedProcess { program: Endpoint::Server, pid, also: Vec::new() };
    let mut sampler = sampler(Vec::new());
    let before = sampler.sample(second(0));
    sampler.watch(watched(child.id()));
    child.kill().and_then(|()| child.wait()).expect("it ends");
    assert_eq!(sampler.sample(second(1)).unknown, before.unknown);
    // A process that never existed cannot be read.
    sampler.watch(watched(child.id()));
    assert_ne!(sampler.sample(second(2)).unknown, before.unknown);
}

/// The cost of a sample, with this machine's own files. The budget is 1 % of a core at one sample a
/// second, and counting half-open connections may take 0.8 % of it. How long a file takes depends
/// on the machine; how many are read depends on the sampler.
#[test]
fn a_sample_is_cheap() {
    let server = TcpListener::bind("127.0.0.1:0").expect("bind");
    let mut sampler = sampler(vec![server.local_addr().expect("address").port()]);
    sampler.sample(second(0));
    let mut plain = Vec::new();
    let mut syn_recv = Vec::new();
    for n in 0..200 {
        // The times are far enough apart that every second sample counts half-open connections.
        let at = second(1 + n / 2 * 10_000);
        let began = cpu_ns();
        let sample = sampler.sample(at);
        let used_us = (cpu_ns() - began) / 1000;
        match sample.counters.get(Metric::DOCTOR_SYN_RECV_US) {
            None => plain.push(used_us),
            Some(walk_us) => syn_recv.push(walk_us),
        }
    }
    plain.sort_unstable();
    syn_recv.sort_unstable();
    let began = cpu_ns();
    let read = |_| fs::read_to_string("/proc/self/net/netstat").expect("procfs").len();
    assert!((0..FILES).map(read).all(|length| length > 0));
    let one_us = (cpu_ns() - began) as f64 / 1000.0 / f64::from(FILES);
    assert!(plain.len() >= 90 && syn_recv.len() >= 90, "{} {}", plain.len(), syn_recv.len());
    println!(
        "a sample: {} us of CPU at the median, {} at p90; counting half-open connections: {} us; \
         one file: {one_us:.1} us",
        plain[plain.len() / 2],
        plain[plain.len() * 9 / 10],
        syn_recv[syn_recv.len() / 2]
    );
    // Other programs on the machine slow some samples, even in CPU time; the cheaper half shows the
    // cost of sampling.
    let sample = plain[plain.len() / 4];
    assert!((sample as f64) < FILES_MOST * one_us, "{one_us} us for a file: {plain:?}");
}

/// The most files of the usual size that a sample may cost. It reads two dozen, some of them small,
/// and one for each thread.
const FILES_MOST: f64 = 100.0;
/// The files that are read to measure the cost of one.
const FILES: u32 = 2_000;

/// Returns the CPU time of this thread, to which other tests do not add.
fn cpu_ns() -> u64 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").expect("schedstat");
    parse_schedstat(&text).expect("three numbers").run_ns
}

#[test]
fn a_full_fd_table_does_not_blind_an_open_sampler() {
    play(&["sh", "-c", "ulimit -n 64; exec \"$0\" \"$@\""], "full");
}

#[test]
fn another_network_namespace_has_counters_of_its_own() {
    if !probe(&["unshare", "-rn", "true"]) {
        eprintln!("skipped: no network namespaces here");
        return;
    }
    play(&["unshare", "-rn"], "namespace");
}

#[test]
fn a_plain_user_sees_what_is_refused() {
    if !probe(&["setpriv", "--reuid", "65534", "--clear-groups", "true"]) {
        eprintln!("skipped: not root, or no setpriv");
        return;
    }
    play(&["setpriv", "--reuid", "65534", "--clear-groups"], "plain");
}

/// Runs the three tests above, in a process of their own.
#[test]
fn in_another_process() {
    match env::var("THRONG_TEST_ROLE").as_deref() {
        Ok("full") => with_a_full_fd_table(),
        Ok("namespace") => in_a_namespace(),
        Ok("plain") => as_a_plain_user(),
        _ => {}
    }
}

fn probe(words: &[&str]) -> bool {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

fn play(prefix: &[&str], role: &str) {
    // Another user may not be allowed to enter the build directory.
    let dir = tempfile::tempdir().expect("a directory");
    let copy = dir.path().join("live");
    fs::copy(env::current_exe().expect("own path"), &copy).expect("copy");
    probe(&["chmod", "-R", "a+rx", &dir.path().to_string_lossy()]);
    let output = Command::new(prefix[0])
        .args(&prefix[1..])
        .arg(copy)
        .args(["--exact", "in_another_process", "--nocapture"])
        .env("THRONG_TEST_ROLE", role)
        .output()
        .expect(role);
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{stdout}{}", String::from_utf8_lossy(&output.stderr));
    assert!(stdout.contains("1 passed"), "the other process ran its test: {stdout}");
}

fn with_a_full_fd_table() {
    let mut sampler = sampler(vec![]);
    sampler.sample(second(0));
    let hoard: Vec<_> = (0..100).map_while(|_| fs::File::open("/dev/null").ok()).collect();
    assert!(fs::File::open("/dev/null").is_err(), "the table is full");
    let blind = sampler.sample(second(1));
    drop(hoard);
    for name in [
        Metric::TCPEXT_LISTEN_OVERFLOWS,
        Metric::SOCKSTAT_TCP_INUSE,
        Metric::LISTENER_COUNT,
        Metric::FILES_OPEN,
    ] {
        assert!(blind.counters.get(name).is_some(), "{name} in {:?}", blind.unknown);
    }
    // The process's own files are opened each time. They are missing with the reason, not as zero.
    let because = |why: &throng_machine::Unknown| match &why.reason {
        Reason::Failed(text) => text.contains("os error 24"),
        _ => false,
    };
    assert!(blind.unknown.iter().any(because), "{:?}", blind.unknown);
    assert!(blind.counters.get(ProcessMetric::THREADS.client).is_none());
}

fn in_a_namespace() {
    let sample: KernelSample = sampler(vec![]).sample(second(0));
    assert_eq!(sample.counters[Metric::TCP_IN_SEGS], 0, "nothing has ever been sent here");
    assert_eq!(sample.counters[Metric::LISTENER_COUNT], 0);
    assert!(sample.counters.get(Metric::LISTENER_BACKLOG).is_none());
    assert_eq!(sample.counters[Metric::LISTENER_SYN_RECV], 0);
    assert!(sample.machine.is_some());
}

fn as_a_plain_user() {
    let processes = vec![WatchedProcess { program: Endpoint::Server, pid: 1, also: Vec::new() }];
    let options = SamplerOptions { processes, ..SamplerOptions::default() };
    let sample = Sampler::new(options).sample(second(0));
    // The kernel shows listeners to any user; it may hide another user's threads.
    assert!(sample.counters.get(Metric::LISTENER_COUNT).is_some(), "{:?}", sample.unknown);
    assert!(sample.counters.get(Metric::TCPEXT_LISTEN_DROPS).is_some());
    let root = throng_machine::ProcRoot::default();
    let refused = throng_machine::process::rss_exact(&root, 1);
    assert_eq!(refused.why().expect("no memory of another user").reason, Reason::Refused);
}
