//! How connections end.

use std::time::Duration;

use throng_base::Prng;
use throng_engine::{CloseReason, Limits};
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
