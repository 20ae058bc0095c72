//! Protocols with their own deadlines.

use std::time::Duration;

use throng_base::Instant;
use throng_base::wheel::TICK;
use throng_driver::Sockets;
use throng_engine::{CloseReason, CoreLimits, Deadline};
use throng_proto::{Input, Session};
use throng_sim::{Faults, SimCoresOptions, check, check_over_all};

use crate::scripted::{Callback, Scripted, dial, spawn, to_server};

/// Protocol that sends a ping after each 100 ms without input. Instead of the third ping it reports
/// the event `gone`.
struct Heartbeat {
    deadline: Instant,
    silences: u32,
    is_gone: bool,
    panics: bool,
}

const SILENCE: Duration = Duration::from_millis(100);

impl Default for Heartbeat {
    fn default() -> Self {
        Self { deadline: Instant::ZERO, silences: 0, is_gone: false, panics: false }
    }
}

impl Session for Heartbeat {
    type Event<'a> = &'a [u8];
    type Scratch = ();

    fn next<'a, 'i: 'a>(
        &mut self,
        now: Instant,
        input: &mut Input<'i>,
        _scratch: &'a mut (),
        _out: &mut Vec<u8>,
    ) -> Option<&'a [u8]> {
        if std::mem::take(&mut self.is_gone) {
            return Some(b"gone");
        }
        if input.is_empty() {
            return None;
        }
        self.silences = 0;
        self.deadline = now + SILENCE;
        Some(input.take_all())
    }

    fn deadline(&self) -> Instant {
        self.deadline
    }

    fn handle_timeout(&mut self, now: Instant, out: &mut Vec<u8>) {
        assert!(!self.panics, "panic of the test");
        assert!(now >= self.deadline, "called before its time");
        self.silences += 1;
        self.deadline = now + SILENCE;
        if self.silences == 3 {
            self.is_gone = true;
            self.deadline = Instant::FAR;
        } else {
            out.extend_from_slice(b"ping");
        }
    }
}

#[test]
fn a_session_runs_at_its_deadlines_and_its_events_are_reported() {
    check(5, |sim| {
        let server = Scripted::<Heartbeat, false>::new(|conn, callback| {
            if *callback == Callback::Event(b"gone".to_vec()) {
                conn.close();
            }
        });
        let server = spawn(sim, server.with_listener(), CoreLimits::default());
        let mut driver = sim.cores::<()>(&SimCoresOptions::default()).drivers().remove(0);
        let peer = driver.connect(&to_server()).unwrap();
        sim.run_for(Duration::from_secs(1));
        let core = server.borrow();
        let log = &core.app().log;
        let gone = [
            Callback::Opened,
            Callback::Event(b"gone".to_vec()),
            Callback::Closed(CloseReason::Requested),
        ];
        assert_eq!(core.app().callbacks_of(0), gone);
        // The first deadline is at once; two silent intervals follow.
        let took = log[1].at.since(log[0].at);
        assert!(2 * SILENCE <= took && took <= 2 * SILENCE + 3 * TICK, "{took:?}");
        let mut callback = [0; 20];
        let received = driver.recv(&peer, &mut callback).unwrap();
        assert_eq!(&callback[..received], b"pingping");
        driver.close(peer, Default::default());
    });
}

#[test]
fn a_session_with_input_does_not_time_out() {
    check_over_all(5, |sim| {
        let server = Scripted::<Heartbeat, false>::new(|_, _| ());
        let server = spawn(sim, server.with_listener(), CoreLimits::default());
        let client = Scripted::<throng_proto::Raw, true>::new(|conn, callback| {
            if matches!(callback, Callback::Opened | Callback::Deadline) {
                conn.send(b"x");
                conn.set_deadline(Deadline::Exact(conn.now() + Duration::from_millis(60)));
            }
        });
        let client = spawn(sim, client, CoreLimits::default());
        dial(&client, 0);
        sim.run_for(Duration::from_secs(5));
        // The first byte arrives before the first tick.
        assert_eq!(client.borrow().app().bytes_of(0), b"");
        assert_eq!(server.borrow().app().bytes_of(0).len(), 84);
    });
}

#[test]
fn exact_deadlines_are_exact_beside_those_of_a_session() {
    check_over_all(20, |sim| {
        let mut prng = sim.prng();
        let mut wanted = None;
        let client = Scripted::<Heartbeat, true>::new(move |conn, callback| match callback {
            Callback::Opened | Callback::Deadline => {
                if let Some(wanted) = wanted {
                    assert_eq!(conn.clock(), wanted);
                }
                let at = conn.now() + Duration::from_nanos(prng.below(300_000_000));
                wanted = Some(at);
                conn.set_deadline(Deadline::Exact(at));
            }
            _ => {}
        });
        let server = Scripted::<throng_proto::Raw, false>::new(|conn, callback| {
            if let Callback::Event(_) = callback {
                conn.send(b"pong");
            }
        });
        spawn(sim, server.with_listener(), CoreLimits::default());
        let client = spawn(sim, client, CoreLimits::default());
        dial(&client, 0);
        sim.run_for(Duration::from_secs(20));
        let core = client.borrow();
        assert!(core.app().count(|callback| *callback == Callback::Deadline) > 80);
        assert!(core.app().bytes_of(0).len() > 400, "the session's own deadlines fire too");
    });
}

#[test]
fn a_session_that_panics_ends_its_connection_alone() {
    check_over_all(3, |sim| {
        sim.set_faults(Faults::rough());
        let server = Scripted::<Heartbeat, false>::new(|conn, callback| {
            if *callback == Callback::Opened && *conn.state() == 0 {
                conn.session().0.panics = true;
            }
        });
        let server = spawn(sim, server.with_listener(), CoreLimits::default());
        let client = Scripted::<throng_proto::Raw, true>::new(|_, _| ());
        let client = spawn(sim, client, CoreLimits::default());
        dial(&client, 0);
        dial(&client, 1);
        sim.run_for(Duration::from_secs(70));
        let core = server.borrow();
        assert_eq!(
            core.app().callbacks_of(0),
            [Callback::Opened, Callback::Closed(CloseReason::Panicked)]
        );
        assert_eq!(core.app().bytes_of(1), b"gone");
    });
}

/// Protocol in which every byte is a message.
#[derive(Default)]
struct Bytewise;

impl Session for Bytewise {
    type Event<'a> = &'a [u8];
    type Scratch = ();

    fn next<'a, 'i: 'a>(
        &mut self,
        _now: Instant,
        input: &mut Input<'i>,
        _scratch: &'a mut (),
        _out: &mut Vec<u8>,
    ) -> Option<&'a [u8]> {
        if input.is_empty() { None } else { Some(input.take(1)) }
    }
}

#[test]
fn a_flood_of_requests_with_large_answers_is_cut_off_at_the_limit() {
    check(3, |sim| {
        let server = Scripted::<Bytewise, false>::new(|conn, callback| {
            if let Callback::Event(_) = callback {
                conn.send(&[0; 10_000]);
            }
        });
        let server = spawn(sim, server.with_listener(), CoreLimits::default());
        let mut driver = sim.cores::<()>(&SimCoresOptions::default()).drivers().remove(0);
        let peer = driver.connect(&to_server()).unwrap();
        sim.run_for(Duration::from_millis(1));
        assert_eq!(driver.send(&peer, &[1; 60_000]), Ok(60_000));
        sim.run_for(Duration::from_secs(1));
        let core = server.borrow();
        let answered = core.app().count(|callback| matches!(callback, Callback::Event(_)));
        assert!((100..250).contains(&answered), "{answered}");
        let callback = core.app().callbacks();
        assert_eq!(callback.last(), Some(&Callback::Closed(CloseReason::Overflow)));
        driver.close(peer, Default::default());
    });
}

#[test]
fn events_of_one_segment_share_the_limit_of_waiting_bytes() {
    check(5, |sim| {
        sim.set_faults(Faults {
            window_bytes_min: 1_000,
            window_bytes_max: 9_000,
            ..Faults::none()
        });
        // Each byte has a large answer, and all bytes arrive at once.
        let server = Scripted::<Bytewise, false>::new(|conn, callback| {
            if let Callback::Event(_) = callback {
                conn.send(&vec![0; 400_000]);
            }
        });
        let limits = CoreLimits { pending_bytes_max: 1_000_000, ..CoreLimits::default() };
        let server = spawn(sim, server.with_listener(), limits);
        let mut driver = sim.cores::<()>(&SimCoresOptions::default()).drivers().remove(0);
        let peer = driver.connect(&to_server()).unwrap();
        sim.run_for(Duration::from_millis(10));
        driver.send(&peer, &[7; 100]).unwrap();
        sim.run_for(Duration::from_millis(100));
        let core = server.borrow_mut().cx().counters();
        assert_eq!((core.slots, core.pending_overflows, core.pending_bytes), (0, 1, 0));
        let answered =
            server.borrow().app().count(|callback| matches!(callback, Callback::Event(_)));
        assert_eq!(answered, 3, "no answer is made after the overflow");
        drop(peer);
    });
}
