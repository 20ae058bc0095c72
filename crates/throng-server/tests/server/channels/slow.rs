//! A client that does not read, in a topic whose channel intercepts.

use std::time::Duration;

use throng_driver::{ConnectSpec, SocketOptions, SourceAddress};
use throng_server::channels::Channels;
use throng_server::pubsub::{Policy, Rulebook, TopicRules};
use throng_sim::{Faults, PeerSocket, SimPeers, check_over_all};

use super::puppet::puppets;
use super::world::{Got, Received, TEXT, World, addr, frame, upgrade};

/// A client that receives only on request.
struct Sleeper {
    driver: SimPeers,
    fd: PeerSocket,
    received: Received,
}

impl Sleeper {
    /// Connects and joins `puppet:a`.
    fn join(world: &mut World<'_>) -> Self {
        let mut driver = world.sim.peers();
        let spec = ConnectSpec {
            target: addr(),
            source: SourceAddress::Any,
            options: SocketOptions::default(),
        };
        let fd = driver.open(world.sim, &spec).unwrap();
        let mut sleeper = Self { driver, fd, received: Received::default() };
        world.wait(A_MOMENT);
        sleeper.send(upgrade("/socket/websocket?vsn=2.0.0", "").replace('\n', "\r\n").as_bytes());
        world.wait(A_MOMENT);
        sleeper.read(world);
        assert!(matches!(sleeper.received.take(), Some(Got::Answer(..))));
        sleeper.send(&frame(TEXT, br#"["1","1","puppet:a","phx_join",{}]"#));
        world.wait(A_MOMENT);
        sleeper.read(world);
        assert!(matches!(sleeper.received.take(), Some(Got::Text(..))));
        sleeper
    }

    fn send(&mut self, bytes: &[u8]) {
        assert_eq!(self.driver.send(&self.fd, bytes).unwrap(), bytes.len());
    }

    /// Receives until nothing more arrives.
    fn read(&mut self, world: &mut World<'_>) {
        let mut buffer = [0; 4_096];
        let mut idle = 0;
        while idle < 10 {
            match self.driver.recv(&self.fd, &mut buffer) {
                Ok(0) => panic!("the server has closed it"),
                Ok(count) => {
                    self.received.push(&buffer[..count]);
                    idle = 0;
                }
                Err(_) => idle += 1,
            }
            world.wait(Duration::from_millis(1));
        }
    }

    /// Returns the numbers in the messages that it has received.
    fn numbers(&mut self) -> Vec<usize> {
        let number = |got| match got {
            Got::Text(text) => {
                let (_, after) = text.split_once(r#""n":"#).unwrap();
                after.split([',', '}']).next().unwrap().parse().unwrap()
            }
            other => panic!("{other:?}"),
        };
        std::iter::from_fn(|| self.received.take()).map(number).collect()
    }
}

fn slow_puppets() -> Channels {
    let rules = TopicRules {
        policy: Policy::DropOldest,
        queue_bytes_max: QUEUE_BYTES,
        ..TopicRules::default()
    };
    puppets().topics(Rulebook::all(rules))
}

#[test]
fn a_slow_reader_of_a_topic_that_intercepts_is_spared_by_the_topics_policy() {
    check_over_all(3, |sim| {
        sim.set_faults(Faults {
            window_bytes_min: 8_000,
            window_bytes_max: 8_000,
            ..Faults::none()
        });
        let mut world = World::new(sim, &slow_puppets(), 1);
        let mut slow = Sleeper::join(&mut world);
        let speaker = world.open("/socket/websocket?vsn=2.0.0", "");
        world.text(speaker, r#"["1","1","puppet:a","phx_join",{}]"#);
        world.next(speaker);
        let text = "x".repeat(MESSAGE_BYTES);
        let say = |world: &mut World<'_>, event: &str, number: usize| {
            let payload = format!(r#"{{"n":{number},"text":"{text}"}}"#);
            world.text(speaker, &format!(r#"["1",null,"puppet:a","{event}",{payload}]"#));
            assert!(matches!(world.next(speaker), Got::Text(_)));
        };
        // More than may wait in a connection without the protection of a policy.
        const { assert!(SAID * MESSAGE_BYTES > 3 << 19) };
        (0..SAID).for_each(|number| say(&mut world, "all", number));
        say(&mut world, "filtered", SAID);
        world.wait(Duration::from_millis(100));
        slow.read(&mut world);
        let counters = world.counters();
        assert_eq!((counters.open, counters.resets, counters.slow_closed), (2, 0, 0));
        assert_eq!(counters.intercepted, 2, "what was filtered, by both");
        // The sender's own copies were sent directly, the other client's went through its queue.
        assert_eq!(counters.fanned_out, SAID as u64);
        let numbers = slow.numbers();
        assert_eq!(numbers.len() as u64, SAID as u64 + 1 - counters.dropped_oldest);
        assert!(counters.dropped_oldest > 0 && counters.fanout_queued > counters.dropped_oldest);
        let gap = numbers.windows(2).position(|pair| pair[0] + 1 != pair[1]).unwrap();
        let (old, new) = numbers.split_at(gap + 1);
        assert!(old[0] == 0 && new.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{numbers:?}");
        assert_eq!(new.last(), Some(&SAID), "what it intercepts comes, in its place");
        assert!(new.len() > QUEUE_BYTES / MESSAGE_BYTES / 2, "the queue was used: {numbers:?}");
    });
}

#[test]
fn a_slow_reader_is_not_idle_while_it_reads_and_one_that_reads_nothing_is() {
    for idle_timeout in [None, Some(PATIENCE)] {
        check_over_all(3, |sim| {
            sim.set_faults(Faults {
                window_bytes_min: 8_000,
                window_bytes_max: 8_000,
                ..Faults::none()
            });
            let timeout = if idle_timeout.is_none() { PATIENCE } else { 10 * PATIENCE };
            let channels = slow_puppets().timeout(timeout);
            let mut world = World::with_idle_timeout(sim, &channels, 1, idle_timeout);
            let mut slow = Sleeper::join(&mut world);
            let speaker = world.open("/socket/websocket?vsn=2.0.0", "");
            world.text(speaker, r#"["1","1","puppet:a","phx_join",{}]"#);
            world.next(speaker);
            let text = "x".repeat(MESSAGE_BYTES);
            let go_on = |world: &mut World<'_>, slow: Option<&mut Sleeper>| {
                let say = format!(r#"["1",null,"puppet:a","all",{{"n":1,"text":"{text}"}}]"#);
                world.text(speaker, &say);
                assert!(matches!(world.next(speaker), Got::Text(_)));
                if let Some(slow) = slow {
                    let _ = slow.driver.recv(&slow.fd, &mut [0; 2_000]);
                }
                world.wait(Duration::from_millis(200));
            };
            // More is sent than the client reads, so that bytes wait all the time.
            (0..100).for_each(|_| go_on(&mut world, Some(&mut slow)));
            let counters = world.counters();
            assert_eq!((counters.open, counters.idle_timeouts), (2, 0));
            assert!(counters.dropped_oldest > 10, "{}", counters.dropped_oldest);
            (0..100).for_each(|_| go_on(&mut world, None));
            let counters = world.counters();
            assert_eq!((counters.open, counters.idle_timeouts), (1, 1));
        });
    }
}

/// The idle timeout.
const PATIENCE: Duration = Duration::from_secs(4);
/// Longer than any packet is in flight.
const A_MOMENT: Duration = Duration::from_millis(20);
const QUEUE_BYTES: usize = 40_000;
const MESSAGE_BYTES: usize = 4_000;
const SAID: usize = 400;
