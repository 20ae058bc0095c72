//! A full accept queue of the kernel: tells dropped SYNs from half-open connections.

use std::fs;
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType};
use throng_driver::{Clock, netns};
use throng_lab::handshake::{HALF_OPEN, SYNS_DROPPED, finding};
use throng_machine::{ListenerScope, Sampler, SamplerOptions};
use throng_measure::{Interval, LoadInterval, Metric, ServerSnapshot};
use throng_run::isolate::{Isolation, SERVER_ADDRESS, sources};

const BURST: usize = 500;

#[test]
fn on_loopback_a_full_queue_drops_syns() {
    // A separate thread moves into a namespace where no other program changes the counters.
    let test = std::thread::spawn(|| {
        let is_alone = netns::unshare().is_ok()
            && Command::new("ip")
                .args(["link", "set", "lo", "up"])
                .status()
                .is_ok_and(|s| s.success());
        if !is_alone {
            return println!(
                "skipped: network namespaces need root and ip (apt-get install iproute2)"
            );
        }
        let mut server = Server::listen(Ipv4Addr::LOCALHOST);
        let mut intervals = vec![server.interval(0, 0)];
        assert_eq!(server.dropped(), 0);
        let burst = connect(SocketAddrV4::new(Ipv4Addr::LOCALHOST, server.port));
        // `connect` has sent every SYN, but a busy machine may read them later.
        let settled = wait_for(BURST as u64, || established(&burst) + server.dropped());
        assert!(settled >= BURST as u64, "the kernel has read only {settled} SYNs");
        let client = established(&burst);
        intervals.push(server.interval(1000, client));
        intervals.push(server.interval(2000, client));

        let found = finding(&intervals).expect("a finding");
        println!("{found:#?}");
        assert_eq!(found.id, SYNS_DROPPED);
        assert!((1..=3).contains(&client), "{client} were established");
        assert_eq!(server.accept_all(), client, "the server knows all of them");
        let dropped =
            found.evidence.iter().find(|shown| shown.counter == Metric::TCPEXT_LISTEN_DROPS.name());
        let dropped = dropped.map_or(0.0, |shown| shown.to - shown.from);
        assert!(dropped >= (BURST as u64 - client) as f64, "{dropped} SYNs were dropped");
        assert!(
            found
                .evidence
                .iter()
                .any(|shown| shown.counter == Metric::TCPEXT_LISTEN_OVERFLOWS.name())
        );
    });
    test.join().unwrap();
}

#[test]
fn behind_a_slow_link_a_full_queue_leaves_connections_half_open() {
    let isolation = match Isolation::new(1000) {
        Ok(isolation) => isolation,
        Err(error) => return println!("skipped: {error}"),
    };
    let hold = |spawn: &dyn Fn(Command) -> std::io::Result<Child>| {
        let mut cat = Command::new("cat");
        cat.stdin(Stdio::piped());
        NamespaceHolder(spawn(cat).unwrap())
    };
    let at_server = hold(&|command| isolation.spawn_server(command));
    let at_load = hold(&|command| isolation.spawn_generator(command));

    let test = std::thread::spawn(move || {
        assert!(netns::enter(at_server.0.id()).unwrap());
        fs::write("/proc/sys/net/ipv4/tcp_syncookies", "1").unwrap();
        let mut server = Server::listen(SERVER_ADDRESS);
        let target = SocketAddrV4::new(SERVER_ADDRESS, server.port);
        // Both sides must know each other's hardware address before the link is slowed.
        drop(at_load.run(move || TcpStream::connect(target).unwrap()));
        assert_eq!(wait_for(1, || server.accept_all()), 1);
        if let Err(error) = limit_link("add", SLOW) {
            return println!(
                "skipped: tc cannot slow the link (apt-get install iproute2): {error}"
            );
        }
        let mut intervals = vec![server.interval(0, 0)];
        assert_eq!(server.dropped(), 0);
        // The last SYN leaves before the first SYN-ACK arrives, so no SYN finds a full accept
        // queue.
        let burst = at_load.run(move || connect(target));
        limit_link("change", FAST).unwrap();
        // The qdisc applies its new rate at the next packet.
        let kick = UdpSocket::bind((SERVER_ADDRESS, 0)).unwrap();
        kick.send_to(b"go", (sources().next().unwrap(), 9)).unwrap();
        let client = wait_for(BURST as u64, || established(&burst));
        // An accept queue of length 1 takes 2; the kernel drops the last packets of all other
        // handshakes.
        wait_for(client.saturating_sub(2), || server.dropped());
        intervals.push(server.interval(1000, client));
        intervals.push(server.interval(2000, client));

        let found = finding(&intervals).expect("a finding");
        println!("{found:#?}");
        assert_eq!(found.id, HALF_OPEN);
        let known = server.accept_all();
        assert!((1..=3).contains(&known), "the server knows {known}");
        assert!(client > known, "all {client} are known");
        let says = format!("{} connections were half-open", client - known);
        assert!(found.text.starts_with(&says), "not {says:?}: {}", found.text);
    });
    test.join().unwrap();
}

/// A server with a backlog of 1 that accepts no connection, and the kernel's counters in its
/// namespace.
struct Server {
    listener: OwnedFd,
    port: u16,
    sampler: Sampler,
    drops_before: Option<i64>,
}

impl Server {
    fn listen(address: Ipv4Addr) -> Self {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let listener =
            net::socket_with(AddressFamily::INET, SocketType::STREAM, flags, None).unwrap();
        net::bind(&listener, &SocketAddrV4::new(address, 0)).unwrap();
        net::listen(&listener, 1).unwrap();
        let bound = net::getsockname(&listener).unwrap();
        let port = SocketAddrV4::try_from(bound).unwrap().port();
        let scope = ListenerScope::Ports(vec![port]);
        let sampler = Sampler::new(SamplerOptions { scope, ..SamplerOptions::default() });
        Self { listener, port, sampler, drops_before: None }
    }

    /// Returns the interval of a recorder: the client's count, the counters of a server that has
    /// accepted no connection, and the kernel's.
    fn interval(&mut self, at_ms: u64, client: u64) -> Interval {
        let mut load = LoadInterval::default();
        load.counters.connected = client;
        Interval {
            at_ms,
            span_ms: 1000,
            load: Some(load),
            server: Some(ServerSnapshot::default()),
            kernel: self.sampler.sample(Clock.now()).counters,
            ..Interval::default()
        }
    }

    /// Returns the SYNs and last packets of handshakes that the kernel dropped at the listener
    /// since the first sample.
    fn dropped(&mut self) -> u64 {
        let total = self.interval(0, 0).kernel[Metric::TCPEXT_LISTEN_DROPS];
        (total - *self.drops_before.get_or_insert(total)).cast_unsigned()
    }

    /// Accepts all waiting connections and returns their number.
    fn accept_all(&self) -> u64 {
        let mut accepted = Vec::new();
        loop {
            match net::accept(&self.listener) {
                Ok(fd) => accepted.push(fd),
                Err(Errno::AGAIN) => return accepted.len() as u64,
                Err(error) => panic!("accept: {error}"),
            }
        }
    }
}

/// A process that keeps a namespace reachable until it is dropped.
struct NamespaceHolder(Child);

impl NamespaceHolder {
    /// Runs `job` in the process's namespace.
    fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> T {
        let pid = self.0.id();
        let inside = std::thread::spawn(move || {
            assert!(netns::enter(pid).unwrap());
            job()
        });
        inside.join().unwrap()
    }
}

impl Drop for NamespaceHolder {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// A rate at which one packet passes and the next waits for seconds.
const SLOW: [&str; 6] = ["rate", "96bit", "burst", "100", "limit", "1000000"];

/// A rate at which all waiting packets pass in a few milliseconds.
const FAST: [&str; 6] = ["rate", "100mbit", "burst", "100000", "limit", "1000000"];

/// Limits the server's side of the link. Call it in the server's namespace.
fn limit_link(verb: &str, limits: [&str; 6]) -> Result<(), String> {
    let mut tc = Command::new("tc");
    tc.args(["qdisc", verb, "dev", "veth-server", "root", "tbf"]).args(limits);
    match tc.status() {
        Ok(status) if status.success() => Ok(()),
        other => Err(format!("{other:?}")),
    }
}

/// Starts a burst of connects without waiting for them.
fn connect(target: SocketAddrV4) -> Vec<OwnedFd> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let start = |_| {
        let fd = net::socket_with(AddressFamily::INET, SocketType::STREAM, flags, None).unwrap();
        match net::connect(&fd, &target) {
            Ok(()) | Err(Errno::INPROGRESS) => fd,
            Err(error) => panic!("connect: {error}"),
        }
    };
    (0..BURST).map(start).collect()
}

/// Returns the connections that are established for their client.
fn established(burst: &[OwnedFd]) -> u64 {
    let mut fds: Vec<_> = burst.iter().map(|fd| PollFd::new(fd, PollFlags::OUT)).collect();
    poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap();
    let is_open = |fd: &&PollFd<'_>| fd.revents() == PollFlags::OUT;
    fds.iter().filter(is_open).count() as u64
}

/// Waits until `count` returns at least `target`, half a minute at most, and returns its result.
fn wait_for(target: u64, mut count: impl FnMut() -> u64) -> u64 {
    let began = Instant::now();
    loop {
        let now = count();
        if now >= target || began.elapsed() > Duration::from_secs(30) {
            return now;
        }
        sleep(Duration::from_millis(10));
    }
}
