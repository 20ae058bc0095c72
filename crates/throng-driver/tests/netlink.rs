//! Netlink queries to a real kernel: listeners, accept queues, and half-open connections in network
//! namespaces of the test.

use std::env;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use throng_driver::netlink::{DiagSocket, Family, ListenerState, States};

/// Longer than any step here takes, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// Connections that wait in the accept queue.
const WAITING: usize = 3;

fn listener_of(family: Family, addr: SocketAddr) -> ListenerState {
    let found = DiagSocket::open().expect("a socket").listeners(family).expect("listeners");
    let mine: Vec<_> = found.into_iter().filter(|listener| listener.addr == addr).collect();
    assert_eq!(mine.len(), 1, "{addr} is listed once: {mine:?}");
    mine[0]
}

/// Waits until `read` returns `expected`: a client's `connect` may return a little before its last
/// ACK has reached the server.
#[track_caller]
fn eventually<T: PartialEq + std::fmt::Debug>(expected: T, mut read: impl FnMut() -> T) {
    let began = Instant::now();
    while read() != expected && began.elapsed() < PATIENCE {
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(read(), expected);
}

fn an_accept_queue_grows_and_shrinks(family: Family, bind: &str) {
    let server = TcpListener::bind(bind).expect("bind");
    let addr = server.local_addr().expect("address");
    let empty = listener_of(family, addr);
    assert_eq!(empty.accept_queue, 0);
    assert!(empty.backlog >= 1, "{empty:?}");
    assert!(empty.inode > 0, "{empty:?}");

    let clients: Vec<_> =
        (0..WAITING).map(|_| TcpStream::connect(addr).expect("connect")).collect();
    eventually(WAITING as u32, || listener_of(family, addr).accept_queue);
    server.accept().expect("accept");
    assert_eq!(listener_of(family, addr).accept_queue, WAITING as u32 - 1);
    drop(clients);
}

#[test]
fn an_accept_queue_grows_and_shrinks_on_ipv4() {
    an_accept_queue_grows_and_shrinks(Family::V4, "127.0.0.1:0");
}

#[test]
fn an_accept_queue_grows_and_shrinks_on_ipv6() {
    an_accept_queue_grows_and_shrinks(Family::V6, "[::1]:0");
}

#[test]
fn connections_are_counted_by_local_port() {
    let listen = || TcpListener::bind("127.0.0.1:0").expect("bind");
    let (one, two, idle) = (listen(), listen(), listen());
    let port = |server: &TcpListener| server.local_addr().expect("address").port();
    let connect = |server: &TcpListener, n: usize| -> Vec<_> {
        let addr = server.local_addr().expect("address");
        (0..n).map(|_| TcpStream::connect(addr).expect("connect")).collect()
    };
    let clients = (connect(&one, 40), connect(&two, 2));

    let (port_of_one, port_of_two) = (port(&one), port(&two));
    let mut diag = DiagSocket::open().expect("netlink");
    let mut count = |ports: &[u16]| {
        diag.count(Family::V4, States::ESTABLISHED, ports, |_| true).expect("count")
    };
    eventually(40, || count(&[port(&one)]));
    eventually(2, || count(&[port(&two)]));
    assert_eq!(count(&[port(&idle)]), 0);
    assert_eq!(count(&[port(&idle), port(&two), port(&one)]), 42);
    // More ranges of ports than one question holds: every other one, the two servers' own among
    // them.
    let many: Vec<u16> = (1..=u16::MAX)
        .filter(|port| port % 2 == 0 || [port_of_one, port_of_two].contains(port))
        .filter(|other| *other != port(&idle))
        .collect();
    assert!(count(&many) >= 42);
    assert_eq!(count(&[port_of_one; 9]), 40, "a repeated port counts once");
    // Without a filter the clients' sockets count too.
    assert!(count(&[]) >= 84);
    drop(clients);
}

#[test]
fn an_answer_of_many_datagrams_is_read_to_its_end() {
    let servers: Vec<_> =
        (0..600).map(|_| TcpListener::bind("127.0.0.1:0").expect("bind")).collect();
    let mut diag = DiagSocket::open().expect("netlink");
    for _ in 0..2 {
        let found = diag.listeners(Family::V4).expect("listeners");
        for server in &servers {
            let addr = server.local_addr().expect("address");
            assert!(found.iter().any(|listener| listener.addr == addr), "{addr} is missing");
        }
    }
}

/// A token bucket on the server's side of a veth pair delays its SYN-ACKs, so its connections stay
/// in SYN-RECV while the clients retry: one SYN-ACK passes in seven seconds.
#[test]
fn half_open_connections_are_counted_in_syn_recv() {
    let can_run = Command::new("unshare").args(["-rn", "tc", "-V"]).stdout(Stdio::null()).status();
    if !can_run.is_ok_and(|status| status.success()) {
        eprintln!("skipped: no network namespaces or no tc here");
        return;
    }
    let server = play("server", &["-rn"]).output().expect("server");
    let output = String::from_utf8_lossy(&server.stdout);
    assert!(server.status.success(), "{output}{}", String::from_utf8_lossy(&server.stderr));
    print!("{output}");
}

const CLIENTS: u64 = 20;

/// Runs the two other processes of the test above, each in its own network namespace, which ends
/// with the process.
#[test]
fn in_a_namespace() {
    match env::var("THRONG_TEST_ROLE").as_deref() {
        Ok("server") => serve_half_open(),
        Ok("client") => connect_half_open(),
        _ => {}
    }
}

fn play(role: &str, unshare: &[&str]) -> Command {
    let mut command = Command::new("unshare");
    command
        .args(unshare)
        .arg(env::current_exe().expect("own path"))
        .args(["--exact", "in_a_namespace", "--nocapture"])
        .env("THRONG_TEST_ROLE", role);
    command
}

fn run(line: &str) {
    let mut words = line.split(' ');
    let status = Command::new(words.next().expect("a command")).args(words).status();
    assert!(status.expect(line).success(), "{line}");
}

fn serve_half_open() {
    let mut client = play("client", &["-n"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("client");
    let mut lines = BufReader::new(client.stdout.take().expect("stdout")).lines();
    while !lines.next().expect("a line").expect("utf-8").ends_with("ready") {}

    run("ip link set lo up");
    run(&format!(
        "ip link add s0 address 02:00:00:00:00:01 type veth \
         peer name c0 address 02:00:00:00:00:02 netns {}",
        client.id()
    ));
    run("ip link set s0 addrgenmode none up");
    run("ip addr add 198.18.0.1/24 dev s0");
    run("ip neigh add 198.18.0.2 lladdr 02:00:00:00:00:02 dev s0 nud permanent");
    run("tc qdisc add dev s0 root tbf rate 96bit burst 100 limit 100000");
    let server = TcpListener::bind("198.18.0.1:5555").expect("bind");
    client.stdin.take().expect("stdin").write_all(b"go\n").expect("go");

    let mut diag = DiagSocket::open().expect("netlink");
    let mut count =
        |ports: &[u16]| diag.count(Family::V4, States::SYN_RECV, ports, |_| true).expect("count");
    let began = Instant::now();
    let mut seen = 0;
    while seen < CLIENTS - 2 && began.elapsed() < PATIENCE {
        thread::sleep(Duration::from_millis(10));
        seen = count(&[5555]);
    }
    println!("{seen} of {CLIENTS} in SYN-RECV after {:?}", began.elapsed());
    let (other, any) = (count(&[5556]), count(&[]));
    client.kill().expect("kill");
    client.wait().expect("wait");
    drop(server);
    // The bucket's first tokens let one or two SYN-ACKs pass.
    assert!((CLIENTS - 2..=CLIENTS).contains(&seen), "{seen} of {CLIENTS}");
    assert_eq!(other, 0);
    assert!(any >= CLIENTS - 3, "{any}");
}

fn connect_half_open() {
    println!("ready");
    std::io::stdin().read_line(&mut String::new()).expect("go");
    run("ip link set c0 addrgenmode none up");
    run("ip addr add 198.18.0.2/24 dev c0");
    run("ip neigh add 198.18.0.1 lladdr 02:00:00:00:00:01 dev c0 nud permanent");
    let addr = "198.18.0.1:5555".parse().expect("address");
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| thread::spawn(move || TcpStream::connect_timeout(&addr, PATIENCE)))
        .collect();
    for client in clients {
        drop(client.join());
    }
}
