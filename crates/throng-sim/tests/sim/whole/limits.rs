//! Limits hold, and no connection waits while there is room.

use std::time::Duration;

use throng_server::AcceptTopology;
use throng_sim::{Faults, check_over_all};

use super::pair::{Pair, Shape};

/// Scenario of 100 users who each open a connection and hold it for half a second.
const CROWD: &str = "
load: [{ramp: {to: 100, over: 1s}}, {hold: {for: 10s}}, {ramp: {to: 0, over: 1s}}]
user: [{connect: {timeout: 200s}}, {send: hello}, {expect: {bytes: 5, timeout: 200s}}, \
    {wait: 500ms}, close]
";

#[test]
fn connections_never_exceed_the_permits_and_every_user_gets_one_in_turn() {
    for accept in [AcceptTopology::Reuseport, AcceptTopology::Shared, AcceptTopology::Dispatch] {
        check_over_all(8, |sim| {
            sim.set_faults(Faults { syn_loss: 0.0, ..Faults::rough() });
            let shape = Shape { connections_max: 10, ..Shape::default() };
            let pair = Pair::start(sim, accept, shape, CROWD);
            let mut most = 0;
            sim.run_until(Duration::from_secs(13), |_| {
                most = most.max(pair.open());
                assert!(pair.open() <= 10 && pair.server.permits().in_use() <= 10);
                false
            });
            assert_eq!(most, 10, "{accept:?}: the limit was never reached");
            // Ten at a time, for half a second each, while others wait: an unused permit would
            // show.
            let served = pair.load_counters().messages_answered;
            assert!(served > 120, "{accept:?}: only {served} were served");
            pair.finish(sim, Duration::from_secs(600));
            assert_eq!(pair.server.permits().in_use(), 0);
            assert_eq!(pair.errors(), 0, "{accept:?}: {:?}", pair.core_stats());
        });
    }
}

#[test]
fn full_fd_tables_cause_no_error() {
    for accept in [AcceptTopology::Reuseport, AcceptTopology::Shared, AcceptTopology::Dispatch] {
        check_over_all(8, |sim| {
            sim.set_faults(Faults { syn_loss: 0.0, ..Faults::rough() });
            // Three tables of 15 fds, one in each for the listener; the hash spreads connects
            // unevenly.
            let shape = Shape { fds_max: 15, connections_max: 42, ..Shape::default() };
            let pair = Pair::start(sim, accept, shape, CROWD);
            let mut most = 0;
            sim.run_until(Duration::from_secs(13), |_| {
                most = most.max(pair.open());
                false
            });
            assert!(most >= 40, "{accept:?}: only {most} at a time");
            pair.finish(sim, Duration::from_secs(600));
            assert_eq!(pair.errors(), 0, "{accept:?}: {:?}", pair.core_stats());
            assert_eq!(pair.server.permits().in_use(), 0);
        });
    }
}

#[test]
fn a_silent_connection_is_closed_after_the_idle_timeout() {
    check_over_all(5, |sim| {
        let idle_timeout = Some(Duration::from_secs(2));
        let shape = Shape { idle_timeout, ..Shape::default() };
        let scenario = "
load: [{ramp: {to: 20, over: 1s}}, {hold: {for: 20s}}]
user: [connect, {send: hi}, {expect: hi}, {wait: 1500ms}, {send: hi}, {expect: hi}, stay]
";
        let pair = Pair::start(sim, AcceptTopology::Reuseport, shape, scenario);
        sim.run_for(Duration::from_millis(3_500));
        let server = pair.server_counters(sim);
        assert_eq!((server.accepted, server.idle_timeouts, server.open), (20, 0, 20));
        sim.run_for(Duration::from_millis(1_500));
        let server = pair.server_counters(sim);
        assert_eq!(server.idle_timeouts, 20);
        assert_eq!(server.accepted, server.closed + server.open);
    });
}
