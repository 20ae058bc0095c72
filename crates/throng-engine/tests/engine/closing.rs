//! How connections end.

use std::time::Duration;

use throng_base::Prng;
use throng_driver::Errno;
use throng_engine::{CloseReason, Deadline, Limits};
use throng_sim::{Faults, check};

use crate::scripted::{Heard, Raws, dial, spawn};

/// So much that no window takes it at once.
fn a_lot() -> Vec<u8> {
    let mut bytes = vec![0; 400_000];
    Prng::new(1).fill(&mut bytes);
    bytes
}

/// Small windows, so that sends block, and no delays that make a run long.
fn narrow() -> Faults {
    Faults { window_bytes_min: 1_000, window_bytes_max: 9_000, ..Faults::none() }
}

fn is_closed(heard: &Heard) -> bool {
    matches!(heard, Heard::Closed(_))
}

/// Receives, and closes once the other end has finished.
fn listener() -> Raws<false> {
    Raws::new(|conn, heard| {
        if *heard == Heard::Finished {
            conn.close();
        }
    })
    .listening()
}

#[test]
fn a_close_delivers_what_waits() {
    check(10, |sim| {
        sim.set_faults(narrow());
        let server = spawn(sim, listener(), Limits::default());
        let client = Raws::<true>::new(|conn, heard| {
            if *heard == Heard::Opened {
                conn.send(&a_lot());
                conn.close();
            }
        });
        let client = spawn(sim, client, Limits::default());
        dial(&client, 0);
        sim.run_for(Duration::from_secs(4));
        assert_eq!(server.borrow().app().bytes_of(0), a_lot());
        assert_eq!(
            client.borrow().app().heard_of(0),
            [Heard::Opened, Heard::Closed(CloseReason::Asked)]
        );
        assert_eq!(client.borrow_mut().desk().counters().pending_bytes, 0);
    });
}

#[test]
fn a_finish_follows_what_waits() {
    check(10, |sim| {
        sim.set_faults(narrow());
        let server = spawn(sim, listener(), Limits::default());
        let client = Raws::<true>::new(|conn, heard| match heard {
            Heard::Opened => {
                conn.send(&a_lot());
                conn.finish();
            }
            Heard::Finished => conn.close_because(CloseReason::Finished),
            _ => {}
        });
        let client = spawn(sim, client, Limits::default());
        dial(&client, 0);
        sim.run_for(Duration::from_secs(4));
        assert_eq!(server.borrow().app().bytes_of(0), a_lot());
        let heard = client.borrow().app().heard_of(0);
        let closed = Heard::Closed(CloseReason::Finished);
        assert_eq!(heard, [Heard::Opened, Heard::Drained, Heard::Finished, closed]);
    });
}

#[test]
fn the_end_of_the_other_side_is_told_once() {
    check(10, |sim| {
        sim.set_faults(Faults { spurious: 0.5, ..narrow() });
        // Goes on sending for long after the client has finished, so that many events tell the end again.
        let server = Raws::<false>::new(|conn, heard| {
            if *heard == Heard::Finished {
                conn.send(&a_lot());
                conn.close();
            }
        });
        let client = Raws::<true>::new(|conn, heard| match heard {
            Heard::Opened => conn.finish(),
            Heard::Finished => {
                conn.set_deadline(Deadline::Exact(conn.now() + Duration::from_secs(1)))
            }
            Heard::Deadline => conn.close(),
            _ => {}
        });
        let server = spawn(sim, server.listening(), Limits::default());
        let client = spawn(sim, client, Limits::default());
        dial(&client, 0);
        sim.run_for(Duration::from_secs(10));
        assert_eq!(client.borrow().app().bytes_of(0), a_lot());
        for core in [client.borrow().app().heard_of(0), server.borrow().app().heard_of(0)] {
            let ends = core.iter().filter(|heard| **heard == Heard::Finished).count();
            assert_eq!((ends, core.iter().filter(|heard| is_closed(heard)).count()), (1, 1));
        }
    });
}

#[test]
fn a_half_closed_connection_that_fails_is_closed() {
    check(10, |sim| {
        // The client finishes, and resets a second later; the server only listens.
        let server = spawn(sim, Raws::<false>::new(|_, _| ()).listening(), Limits::default());
        let client = Raws::<true>::new(|conn, heard| match heard {
            Heard::Opened => {
                conn.finish();
                conn.set_deadline(Deadline::Exact(conn.now() + Duration::from_secs(1)));
            }
            Heard::Deadline => conn.reset(),
            _ => {}
        });
        let client = spawn(sim, client, Limits::default());
        dial(&client, 0);
        sim.run_for(Duration::from_secs(10));
        let failed = Heard::Closed(CloseReason::Failed(Errno::PIPE));
        assert_eq!(server.borrow().app().heard_of(0), [Heard::Opened, Heard::Finished, failed]);
    });
}
