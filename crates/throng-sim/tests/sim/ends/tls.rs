//! Handshakes below the protocol: how they end, and that their sums close.

use throng_load::generator::ErrorKind;
use throng_measure::Operation;
use throng_sim::{Sim, ToyTransport, check};

use super::world::{Speaks, World};

const LOAD: &str = "load: [{ramp: {to: 20, over: 200ms}}, {hold: {for: 3s}}]\n";

fn world(sim: &mut Sim, speaks: Speaks, user: &str) -> World {
    sim.set_transport(ToyTransport::factory());
    World::start(sim, speaks, 2, &format!("{LOAD}user: {user}\n"))
}

#[test]
fn each_connection_has_one_handshake_whose_time_is_a_part_of_the_connect() {
    for (speaks, user) in [
        (Speaks::Tcp, "[connect, {send: a}, {expect: a}, wait: 50ms, close]"),
        (Speaks::Ws, "[connect, {send: a}, {expect: a}, wait: 50ms, close]"),
        (Speaks::Http, "[{get: /a}, wait: 100ms]"),
    ] {
        check(3, |sim| {
            let totals = world(sim, speaks, user).finish(sim);
            let c = &totals.counters;
            assert!(c.tls_ok > 0 && c.tls_failed == 0, "{c:?}");
            // What is cut off may wait for TCP.
            assert!(c.tls_ok == c.connects_ok && c.tls_started <= c.connects_started, "{c:?}");
            let [tcp, tls, connect] = [Operation::Tcp, Operation::Tls, Operation::Connect]
                .map(|operation| totals.times[operation].percentile(50.0));
            assert!(tls > 0 && tcp + tls <= connect + connect / 50, "{tcp} {tls} {connect}");
        });
    }
}

#[test]
fn a_handshake_without_an_answer_waits_or_fails_by_the_time_out_of_its_step() {
    for (timeout, fails) in [("30s", false), ("500ms", true)] {
        check(3, |sim| {
            let user = format!("[connect: {{timeout: {timeout}}}, wait: 100ms, close]");
            let world = world(sim, Speaks::Tcp, &user);
            world.run_to(sim, 50);
            world.freeze(sim);
            world.run_to(sim, 3_500);
            world.thaw(sim);
            let totals = world.finish(sim);
            let c = &totals.counters;
            assert_eq!(c.tls_failed > 0, fails, "{c:?}");
            assert_eq!(totals.failed.get(ErrorKind::TlsTimeout.name()), c.tls_failed);
            let unanswered = totals.times.unanswered[Operation::Tls].count();
            assert_eq!(unanswered, c.tls_failed + c.tls_waiting, "{c:?}");
            assert!(unanswered > 0, "{c:?}");
        });
    }
}

#[test]
fn a_plain_connection_has_no_handshake() {
    check(3, |sim| {
        let user = format!("{LOAD}user: [connect, close]\n");
        let totals = World::start(sim, Speaks::Tcp, 1, &user).finish(sim);
        assert_eq!(totals.counters.tls_started, 0);
        assert!(totals.times[Operation::Tls].is_empty() && totals.times[Operation::Tcp].is_empty());
    });
}
