//! A look into a server, on real sockets: who is in the lists, and in which order.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::support::{ask, connect, eventually, options};
use throng_measure::ServerInspection;
use throng_server::pubsub::{Dialect, Policy, Publication, Rulebook, Subscription, TopicRules};
use throng_server::{AcceptTopology, Connection, Handler, Raw, RunningServer};

/// A handler that makes a connection a member of `room:X` for each capital X that it sends, stalls
/// at `!` until the test lets it go on, and answers all else.
struct Rooms {
    go_on: Arc<Mutex<Receiver<()>>>,
}

impl Handler for Rooms {
    type Session = Raw;
    type State = ();
    type Message = std::convert::Infallible;
    const NAME: &'static str = "rooms";

    fn topics(&self) -> Rulebook {
        let rules = TopicRules { policy: Policy::DropOldest, ..TopicRules::default() };
        Rulebook::all(rules)
    }

    fn event(&mut self, conn: &mut Connection<'_, Self>, bytes: &[u8]) {
        for byte in bytes {
            match byte {
                b'A'..=b'Z' => {
                    let topic = format!("room:{}", char::from(*byte));
                    conn.subscribe(&topic, Subscription::default());
                }
                b'!' => self.go_on.lock().unwrap().recv().unwrap(),
                _ => conn.send(b"ok"),
            }
        }
    }

    fn render(&mut self, _: &Publication, _: Dialect, out: &mut Vec<u8>) {
        out.resize(FRAME_BYTES, b'.');
    }
}

/// A frame that a few of fill the buffers of a socket.
const FRAME_BYTES: usize = 64 << 10;

fn start(cores: usize) -> (RunningServer<Rooms>, Sender<()>) {
    let (go_on, waiting) = channel();
    let go_on_of_cores = Arc::new(Mutex::new(waiting));
    let server = RunningServer::start(options(AcceptTopology::Reuseport, cores), move |_| Rooms {
        go_on: Arc::clone(&go_on_of_cores),
    });
    (server.unwrap(), go_on)
}

/// Connects `count` clients that join `rooms`.
fn join(server: &RunningServer<Rooms>, rooms: &str, count: usize) -> Vec<TcpStream> {
    let before = server.snapshot().counters.memberships;
    let mut members: Vec<TcpStream> = (0..count).map(|_| connect(server.addr())).collect();
    for member in &mut members {
        member.write_all(rooms.as_bytes()).unwrap();
    }
    let expected = before + (count * rooms.len()) as u64;
    eventually("all are members", || server.snapshot().counters.memberships == expected);
    members
}

/// Looks until a look that `holds` comes.
fn look_until(
    server: &RunningServer<Rooms>,
    what: &str,
    holds: impl Fn(&ServerInspection) -> bool,
) -> ServerInspection {
    let mut found = None;
    eventually(what, || {
        found = Some(server.inspect(5)).filter(|look| holds(look));
        found.is_some()
    });
    found.unwrap()
}

#[test]
fn the_largest_topics_come_first_with_their_members_on_all_cores() {
    let (server, _go_on) = start(3);
    let _members = [
        join(&server, "AB", 9),
        join(&server, "BC", 8),
        join(&server, "D", 5),
        join(&server, "E", 1),
    ];
    let look = look_until(&server, "all cores answer", |look| {
        look.is_complete() && look.topics_are_largest
    });
    let topics: Vec<_> = look.topics.iter().map(|it| (&it.topic[..], it.members)).collect();
    let expected = [("room:B", 17), ("room:A", 9), ("room:C", 8), ("room:D", 5), ("room:E", 1)];
    assert_eq!(topics, expected);
    let sum = |value: fn(&throng_measure::CoreInspection) -> u64| -> u64 {
        look.cores.iter().map(value).sum()
    };
    assert_eq!((sum(|core| core.connections), sum(|core| core.memberships)), (23, 40));
    assert!(look.slow.is_empty(), "{look:#?}");
}

#[test]
fn a_walk_of_several_turns_sees_the_whole_table() {
    let (server, _go_on) = start(1);
    let _members = join(&server, "A", CROWD);
    let look = look_until(&server, "the core answers", ServerInspection::is_complete);
    let core = &look.cores[0];
    assert_eq!((core.connections, look.topics[0].members), (CROWD as u64, CROWD as u64));
    assert!(core.places >= CROWD as u64 && core.places_seen == core.places, "{core:?}");
}

/// More connections than a turn of a look walks over.
const CROWD: usize = 2_500;

#[test]
fn a_member_that_does_not_read_is_the_first_of_the_slow() {
    let (server, _go_on) = start(2);
    let readers = join(&server, "N", 8);
    let slow = join(&server, "N", 1).remove(0);
    for mut reader in readers {
        thread::spawn(move || while reader.read(&mut [0; 1 << 16]).is_ok_and(|read| read > 0) {});
    }
    let sender = server.handle();
    let peer = slow.local_addr().unwrap().to_string();
    let look = look_until(&server, "the member is the first of the slow", |look| {
        for _ in 0..20 {
            let _ = sender.publish(Publication::new("room:N", ()));
        }
        look.slow.first().is_some_and(|first| first.peer.as_ref() == Some(&peer))
    });
    let first = &look.slow[0];
    assert!(first.pending_bytes >= 1, "{first:?}");
    assert!(first.unacknowledged_bytes > Some(0), "the kernel's buffer is full: {first:?}");
    assert!(first.blocked_us >= first.stalled_us, "{first:?}");
    let core = &look.cores[first.core as usize];
    assert!(core.slow_connections >= 1 && core.pending_bytes >= first.pending_bytes, "{core:?}");
    drop(slow);
    look_until(&server, "it has gone", |look| {
        look.slow.iter().all(|it| it.peer.as_ref() != Some(&peer))
    });
}

#[test]
fn a_client_that_asks_all_the_time_is_the_first_of_the_busy() {
    let (server, _go_on) = start(2);
    let _idle: Vec<TcpStream> = (0..20).map(|_| connect(server.addr())).collect();
    let mut busy = connect(server.addr());
    let peer = busy.local_addr().unwrap().to_string();
    let ends = Arc::new(AtomicBool::new(false));
    let asking = {
        let ends = Arc::clone(&ends);
        thread::spawn(move || {
            while !ends.load(SeqCst) {
                ask(&mut busy);
            }
        })
    };
    let look = look_until(&server, "the client is the first of the busy", |look| {
        look.busy.first().is_some_and(|first| first.peer.as_ref() == Some(&peer))
    });
    let first = &look.busy[0];
    assert_eq!(look.busy.len(), 1, "the others are silent: {look:#?}");
    assert_eq!(look.busy_missed_bytes_max, 0);
    // Each message is a byte, each answer two, in a send of its own.
    assert_eq!(first.messages_received, first.bytes_received, "{first:?}");
    assert_eq!(first.bytes_sent, 2 * first.sends, "{first:?}");
    assert!(first.messages_received.abs_diff(first.sends) <= 1, "{first:?}");
    ends.store(true, SeqCst);
    asking.join().unwrap();
    look_until(&server, "it is silent", |look| look.busy.is_empty());
}

#[test]
fn a_core_that_stalls_is_silent_for_longer_and_longer() {
    let (server, go_on) = start(1);
    let mut client = connect(server.addr());
    ask(&mut client);
    assert_eq!(server.snapshot().counters.open, 1);
    client.write_all(b"!").unwrap();
    let silent_ms = |look: &ServerInspection| look.cores[0].silent_ms;
    let first = look_until(&server, "it is silent", |look| silent_ms(look).is_some());
    assert_eq!(first.cores[0].connections, 1, "as of its last answer");
    assert!(!first.is_complete() && !first.topics_are_largest);
    let second = server.inspect(5);
    assert!(silent_ms(&second) > silent_ms(&first), "{second:#?}");
    go_on.send(()).unwrap();
    look_until(&server, "it answers", |look| silent_ms(look).is_none());
    ask(&mut client);
}

#[test]
fn callers_that_ask_at_once_all_get_a_look() {
    let (server, _go_on) = start(2);
    let _members = join(&server, "A", 3);
    look_until(&server, "all cores answer", ServerInspection::is_complete);
    let server = &server;
    thread::scope(|scope| {
        let looks: Vec<_> = (1..=8).map(|rows| scope.spawn(move || server.inspect(rows))).collect();
        for look in looks {
            let look = look.join().unwrap();
            assert_eq!((look.cores.len(), look.handler), (2, "rooms".to_owned()));
        }
    });
    server.stop();
    assert!(!server.inspect(1).is_complete(), "a stopped server has silent cores");
}
