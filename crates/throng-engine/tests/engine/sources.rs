//! Byte sources, and shared bytes.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use throng_driver::{SocketClose, Sockets};
use throng_engine::{ByteSource, CloseReason, CoreLimits, SendPart};
use throng_sim::{Faults, check, check_over_all};

use crate::scripted::{Callback, Raws, dial, spawn, to_server};

/// Source of numbers in order, in pieces of about the requested size.
struct Numbers {
    next: u32,
    end: u32,
    made: Rc<Cell<usize>>,
}

impl Numbers {
    fn text(end: u32) -> Vec<u8> {
        (0..end).flat_map(|number| format!("{number},").into_bytes()).collect()
    }
}

impl ByteSource for Numbers {
    fn fill(&mut self, bytes: usize, out: &mut Vec<u8>) -> bool {
        assert_ne!(self.end, 0, "panic of the test");
        let end = out.len() + bytes;
        while out.len() < end && self.next < self.end {
            out.extend(format!("{},", self.next).bytes());
            self.next += 1;
        }
        self.made.set(self.made.get() + out.len());
        self.next < self.end
    }
}

fn slow() -> Faults {
    Faults {
        window_bytes_min: 3_000,
        window_bytes_max: 6_000,
        partial_send: 0.5,
        segment_bytes_max: 900,
        delay_max: Duration::from_millis(2),
        ..Faults::none()
    }
}

#[test]
fn a_source_is_sent_in_its_place_even_to_a_slow_peer() {
    check_over_all(20, |sim| {
        let faults = if sim.seed().is_multiple_of(2) { slow() } else { Faults::none() };
        sim.set_faults(faults);
        let shared: Arc<[u8]> = vec![b's'; 40_000].into();
        let (end, parted) = (40_000, Arc::clone(&shared));
        let made = Rc::new(Cell::new(0));
        let counted = Rc::clone(&made);
        let server = Raws::<false>::new(move |conn, callback| {
            if *callback == Callback::Opened {
                conn.send(b"before ");
                let made = Rc::clone(&counted);
                conn.send_source(Box::new(Numbers { next: 0, end, made }));
                conn.send(b" between ");
                conn.send_parts(&[
                    SendPart::Own(b"<"),
                    SendPart::Shared(&parted),
                    SendPart::Own(b">"),
                ]);
                conn.send(b" after");
            }
        });
        let limits = CoreLimits { pending_bytes_max: 100_000, ..CoreLimits::default() };
        let server = spawn(sim, server.with_listener(), limits);
        let client = spawn(sim, Raws::<true>::new(|_, _| ()), CoreLimits::default());
        dial(&client, 7);
        let mut most = 0;
        for _ in 0..500 {
            sim.run_for(Duration::from_millis(5));
            let mut server = server.borrow_mut();
            most = most.max(server.cx().counters().pending_bytes);
        }
        let mut want = [&b"before "[..], &Numbers::text(end), b" between <", &shared].concat();
        want.extend(b"> after");
        let client = client.borrow();
        let got = client.app().bytes_of(7);
        assert!(got == want, "{} bytes, {} wanted", got.len(), want.len());
        // Of a quarter of a megabyte, at most one piece and the bytes behind it waited.
        assert!(most < 75_000, "{most}");
        let counters = server.borrow_mut().cx().counters();
        assert_eq!((counters.pending_bytes, counters.pending_overflows, counters.slots), (0, 0, 1));
        assert_eq!((made.get(), Arc::strong_count(&shared)), (Numbers::text(end).len(), 2));
    });
}

#[test]
fn a_source_makes_no_bytes_that_the_peer_does_not_take() {
    check(5, |sim| {
        sim.set_faults(Faults { window_bytes_min: 500, window_bytes_max: 500, ..Faults::none() });
        let made = Rc::new(Cell::new(0));
        let counted = Rc::clone(&made);
        let server = Raws::<false>::new(move |conn, callback| {
            if *callback == Callback::Opened {
                let made = Rc::clone(&counted);
                conn.send_source(Box::new(Numbers { next: 0, end: 1_000_000, made }));
            }
        });
        let server = spawn(sim, server.with_listener(), CoreLimits::default());
        // The peer receives nothing.
        let mut driver = sim.cores::<()>(&Default::default()).drivers().remove(0);

        let peer = driver.connect(&to_server()).unwrap();
        sim.run_for(Duration::from_secs(1));
        let pending = server.borrow_mut().cx().counters().pending_bytes;
        assert!(made.get() < 20_000 && pending < 20_000, "{} made, {pending} wait", made.get());
        driver.close(peer, SocketClose::Reset);
        sim.run_for(Duration::from_secs(1));
        let counters = server.borrow_mut().cx().counters();
        assert_eq!((counters.pending_bytes, counters.slots), (0, 0));
    });
}

#[test]
fn a_source_that_panics_ends_its_connection_alone() {
    check_over_all(10, |sim| {
        let server = Raws::<false>::new(|conn, callback| match callback {
            Callback::Opened => conn.send(b"hello"),
            Callback::Event(_) => {
                let made = Rc::default();
                conn.send_source(Box::new(Numbers { next: 0, end: 0, made }));
            }
            _ => {}
        });
        let server = spawn(sim, server.with_listener(), CoreLimits::default());
        let client = spawn(
            sim,
            Raws::<true>::new(|conn, callback| {
                if *callback == Callback::Event(b"hello".to_vec()) && *conn.state() == 7 {
                    conn.send(b"?");
                }
            }),
            CoreLimits::default(),
        );
        dial(&client, 7);
        dial(&client, 8);
        sim.run_for(Duration::from_secs(1));
        let closed = Callback::Closed(CloseReason::Panicked);
        assert_eq!(server.borrow().app().count(|callback| *callback == closed), 1);
        let counters = server.borrow_mut().cx().counters();
        assert_eq!((counters.panics, counters.slots, counters.pending_bytes), (1, 1, 0));
    });
}
