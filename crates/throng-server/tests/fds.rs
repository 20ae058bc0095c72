//! Full fd tables. The server runs in a process of its own under a small `ulimit -n`; the clients
//! run in this process.

mod support;

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use support::*;
use throng_measure::RunEventKind;
use throng_server::{AcceptTopology, RunningServer, ServerOptions, kinds};

#[test]
fn a_full_private_table_passes_connections_on_until_all_tables_are_full() {
    for accept in ["reuseport", "shared", "dispatch"] {
        let mut server = ServerProcess::start(150, &format!("{accept} private"));
        let room = server.count("room") as usize;
        assert!((100..400).contains(&room), "{room}");
        let mut open: Vec<_> = (0..room).map(|_| connect(server.addr)).collect();
        // However unevenly the kernel spreads connections: while one core has room, none waits.
        open.iter_mut().for_each(ask);
        assert_eq!(server.count("open") as usize, room, "{accept}");

        let mut waiting: Vec<_> = (0..20).map(|_| connect(server.addr)).collect();
        for stream in &mut waiting {
            stream.write_all(b"?").unwrap();
        }
        assert!(!is_answered(&mut waiting[0]));
        assert_eq!(server.count("open") as usize, room, "{accept}");
        eventually("a pause", || server.count("pauses_fd") > 0 && server.count("full_events") > 0);
        open.iter_mut().for_each(ask);

        drop(open.split_off(room - 20));
        waiting.iter_mut().for_each(read_ok);
        drop((open, waiting));
        eventually("all gone", || server.count("open") == 0);
        assert_eq!(server.count("accepted"), server.count("closed"), "{accept}");
        assert_eq!(server.count("hand_over_failures"), 0, "{accept}");
    }
}

#[test]
fn a_full_shared_table_pauses_accepting_and_a_close_resumes_it() {
    for accept in ["reuseport", "shared", "dispatch"] {
        let mut server = ServerProcess::start(120, &format!("{accept} together"));
        let mut clients: Vec<_> = (0..200).map(|_| connect(server.addr)).collect();
        for stream in &mut clients {
            stream.write_all(b"?").unwrap();
        }
        eventually("EMFILE", || server.count("emfile") > 0);
        eventually("a pause", || server.count("pauses_fd") > 0 && server.count("full_events") > 0);
        // Accepted connections are still served, and when they close, the waiting ones follow.
        let mut served = 0;
        eventually(accept, || {
            let before = clients.len();
            clients.retain_mut(|stream| !is_served(stream));
            served += before - clients.len();
            clients.is_empty()
        });
        assert_eq!(served, 200, "{accept}");
        eventually("all gone", || server.count("open") == 0);
        eventually("it resumes", || server.count("resumed_events") > 0);
        ask(&mut connect(server.addr));
        // With room again, the acceptor does not pause and does not spin.
        let turns = server.count("turns");
        std::thread::sleep(A_WHILE);
        assert!(server.count("turns") - turns < 20, "{accept}");
    }
}

fn is_served(stream: &mut TcpStream) -> bool {
    use std::io::Read;
    stream.set_nonblocking(true).unwrap();
    matches!(stream.read(&mut [0; 2]), Ok(2))
}

/// A server in a process of its own. It ends when its standard input closes.
struct ServerProcess {
    child: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
    addr: SocketAddr,
}

impl ServerProcess {
    fn start(fds: usize, what: &str) -> Self {
        let test = std::env::current_exe().unwrap();
        let mut child = Command::new("sh")
            .arg("-c")
            .arg(format!("ulimit -n {fds} && exec \"$0\" --exact --nocapture --ignored the_server"))
            .arg(test)
            .env("THRONG_TEST_SERVER", what)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let mut from = BufReader::new(child.stdout.take().unwrap());
        let to = child.stdin.take();
        let addr = answer(&mut from, "addr").parse().unwrap();
        Self { child, to, from, addr }
    }

    fn count(&mut self, what: &str) -> u64 {
        writeln!(self.to.as_ref().unwrap(), "{what}").unwrap();
        answer(&mut self.from, what).parse().unwrap()
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        self.to = None;
        let _ = self.child.wait();
    }
}

/// Returns the rest of the next line that begins with `= what `.
fn answer(from: &mut impl BufRead, what: &str) -> String {
    let prefix = format!("= {what} ");
    for line in from.lines() {
        if let Some((_, rest)) = line.unwrap().split_once(&prefix) {
            return rest.to_owned();
        }
    }
    panic!("the server has ended");
}

/// Not a test: the program that [`ServerProcess`] runs.
#[test]
#[ignore = "the other tests run it in a process of its own"]
fn the_server() {
    let Ok(what) = std::env::var("THRONG_TEST_SERVER") else { return };
    let (accept, tables) = what.split_once(' ').unwrap();
    let accept: AcceptTopology = accept.parse().unwrap();
    let private_fds = tables == "private";
    let options = ServerOptions {
        private_fds,
        connections_max: (!private_fds).then_some(10_000),
        ..options(accept, 4)
    };
    let server = RunningServer::start(options, |_| kinds::Ok).unwrap();
    println!("= addr {}", server.addr());
    let mut events = Vec::new();
    for line in std::io::stdin().lines() {
        let what = line.unwrap();
        let snapshot = snapshot(&server);
        events.extend(server.events());
        let counters = &snapshot.counters;
        let is_full = |kind: &RunEventKind| match kind {
            RunEventKind::FdTableFull { errno, .. } => errno == "EMFILE",
            _ => false,
        };
        let is_resumed = |kind: &RunEventKind| matches!(kind, RunEventKind::AcceptResumed { .. });
        let number = match what.as_str() {
            "room" => snapshot.connections_max,
            "open" => counters.open,
            "accepted" => counters.accepted,
            "closed" => counters.closed,
            "pauses_fd" => counters.pauses_fd,
            "hand_over_failures" => counters.hand_over_failures,
            "emfile" => snapshot.accept_errors.get("EMFILE"),
            "turns" => snapshot.core.turns,
            "full_events" => events.iter().filter(|event| is_full(&event.kind)).count() as u64,
            "resumed_events" => {
                events.iter().filter(|event| is_resumed(&event.kind)).count() as u64
            }
            other => panic!("{other}?"),
        };
        println!("= {what} {number}");
    }
}
