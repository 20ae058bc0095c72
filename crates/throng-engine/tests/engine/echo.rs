//! Bytes to an echo server and back, under every mix of faults.

use std::time::Duration;

use crate::scripted::{Callback, Raws, dial, spawn};
use throng_base::Prng;
use throng_engine::{CloseReason, CoreLimits, Deadline};
use throng_sim::{Faults, Sim, check_over_all};

/// Returns an app that sends back the bytes that it receives.
fn echo() -> Raws<false> {
    Raws::new(|conn, callback| match callback {
        Callback::Event(bytes) => conn.send(bytes),
        Callback::Finished => conn.close_because(CloseReason::Finished),
        _ => {}
    })
    .with_listener()
}

/// Returns the bytes that user `id` sends; each user has its own bytes and its own length.
fn stream_of(seed: u64, id: u32) -> Vec<u8> {
    let mut prng = Prng::derive(seed, u64::from(id));
    let mut bytes = vec![0; prng.below(60_000) as usize + 1];
    prng.fill(&mut bytes);
    bytes
}

/// Returns an app that sends its stream in pieces of random sizes at random moments, even if the
/// previous piece still waits.
fn talker(seed: u64) -> Raws<true> {
    let mut prng = Prng::derive(seed, 999);
    let mut sent = std::collections::BTreeMap::new();
    let mut received = std::collections::BTreeMap::<u32, usize>::new();
    Raws::new(move |conn, callback| {
        let id = *conn.state();
        let stream = stream_of(seed, id);
        match callback {
            Callback::Opened | Callback::Deadline => {
                let sent = sent.entry(id).or_insert(0);
                let end = (*sent + prng.below(9_000) as usize).min(stream.len());
                if prng.below(2) == 0 {
                    conn.send(&stream[*sent..end]);
                } else {
                    conn.send_now(&stream[*sent..end]);
                }
                *sent = end;
                if end < stream.len() {
                    let at = conn.now() + Duration::from_micros(prng.below(20_000));
                    conn.set_deadline(if prng.below(2) == 0 {
                        Deadline::Exact(at)
                    } else {
                        Deadline::Coarse(at)
                    });
                }
            }
            Callback::Event(bytes) => {
                let received = received.entry(id).or_insert(0);
                *received += bytes.len();
                if *received == stream.len() {
                    conn.close();
                }
            }
            // The server could not watch the socket, or was cut off.
            Callback::Finished => conn.close_because(CloseReason::Finished),
            _ => {}
        }
    })
}

fn exchange(sim: &mut Sim, faults: Faults, users: u32) {
    let seed = sim.seed();
    sim.set_faults(faults);
    let server = spawn(sim, echo(), CoreLimits::default());
    let receive_bytes = 1 + sim.prng().below(3_000) as usize;
    let client = spawn(sim, talker(seed), CoreLimits { receive_bytes, ..CoreLimits::default() });
    (0..users).for_each(|id| {
        dial(&client, id);
    });
    sim.run_for(Duration::from_secs(300));

    for id in 0..users {
        let core = client.borrow();
        let callback = core.app().callbacks_of(id);
        let closes: Vec<&Callback> =
            callback.iter().filter(|callback| matches!(callback, Callback::Closed(_))).collect();
        assert_eq!(closes.len(), 1, "user {id} was closed {closes:?}");
        let (sent, got) = (stream_of(seed, id), core.app().bytes_of(id));
        assert!(sent.starts_with(&got), "user {id} received other bytes than it sent");
        if *closes[0] == Callback::Closed(CloseReason::Requested) {
            assert_eq!(got.len(), sent.len(), "user {id} closed early");
        }
    }
    for mut core in [client.borrow_mut().cx().counters(), server.borrow_mut().cx().counters()] {
        core.turns = 0;
        assert_eq!((core.slots, core.pending_bytes, core.panics), (0, 0, 0));
    }
    assert_eq!(sim.dropped_sockets(), 0);
    assert_eq!(sim.files(), 1, "only the listener is open");
    assert_eq!(sim.sockets(), 1, "only the listener is left");
}

#[test]
fn bytes_come_back_as_they_were_sent() {
    check_over_all(10, |sim| exchange(sim, Faults::none(), 20));
}

#[test]
fn bytes_come_back_as_they_were_sent_over_a_rough_network() {
    check_over_all(25, |sim| exchange(sim, Faults::rough(), 12));
}

#[test]
fn bytes_that_came_back_before_a_failure_are_those_sent() {
    check_over_all(25, |sim| exchange(sim, Faults::hostile(), 12));
}
