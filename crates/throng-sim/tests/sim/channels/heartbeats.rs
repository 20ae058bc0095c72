//! Heartbeats, in the way of phoenix.js.

use std::time::Duration;
use throng_measure::ErrorKind;

use throng_sim::check_over_all;

use super::server::Script;
use super::world::World;

const LIMIT: Duration = Duration::from_secs(600);

fn scenario(user: &str) -> String {
    format!(
        "load: [{{arrivals: {{rate: 10/s, for: 1s, spacing: even}}}}, \
         {{hold: {{for: 99s}}}}]\nuser: {user}\non_error: stop\n"
    )
}

#[test]
fn heartbeats_go_on_in_every_step_and_keep_the_phases_of_the_connects() {
    for user in [
        "[connect, join: {topic: a}, stay]",
        "[connect, join: {topic: a}, wait: 95s, close]",
        "[connect, join: {topic: a}, every: {period: 7s, for: 90s, do: [push: {topic: a, \
         event: echo}]}, close]",
    ] {
        check_over_all(2, |sim| {
            let world = World::start(sim, Script::default(), &scenario(user));
            let totals = world.finish(sim, LIMIT);
            assert_eq!(totals.errors.total(), 0, "{totals:?}");
            let counters = &totals.counters;
            // At about 30, 60 and 90 s of each connection, if it lasts that long.
            assert!((20..=30).contains(&counters.heartbeats_sent), "{user}: {counters:?}");
            assert_eq!(counters.heartbeats_answered, counters.heartbeats_sent, "{user}");
            let server = world.server.borrow();
            let moments = &server.app().heartbeats;
            assert_eq!(moments.len() as u64, counters.heartbeats_sent);
            // The connects were spread over a second, and so are the first ten heartbeats.
            let spread = moments[9].since(moments[0]);
            assert!(spread > Duration::from_millis(700), "{user}: {spread:?}");
            assert_eq!(
                server.app().goodbyes,
                [Some(1000); 10],
                "{user}: every user closes with 1000"
            );
        });
    }
}

#[test]
fn a_heartbeat_that_is_not_answered_ends_the_connection_when_the_next_is_due() {
    check_over_all(5, |sim| {
        let script = Script { heartbeats_answered: 1, ..Script::default() };
        let world = World::start(sim, script, &scenario("[connect, join: {topic: a}, stay]"));
        sim.run_for(Duration::from_secs(85));
        // The heartbeat at 30 s is answered; the one at 60 s is not.
        assert_eq!(world.totals().counters.heartbeats_sent, 20);
        assert_eq!(world.totals().counters.connected, 10);
        sim.run_for(Duration::from_secs(10));
        let totals = world.totals();
        assert_eq!(totals.errors.get(ErrorKind::HeartbeatTimeout), 10, "{totals:?}");
        assert_eq!((totals.counters.connected, totals.counters.joined), (0, 0));
        let totals = world.finish(sim, LIMIT);
        assert_eq!((totals.errors.total(), totals.counters.heartbeats_missed), (10, 10));
        assert_eq!(totals.counters.users_failed, 10);
    });
}

#[test]
fn the_time_between_heartbeats_can_be_set() {
    check_over_all(2, |sim| {
        let user = "[connect: {heartbeat: 5s}, wait: 48s, close]";
        let world = World::start(sim, Script::default(), &scenario(user));
        let totals = world.finish(sim, LIMIT);
        assert_eq!(totals.counters.heartbeats_sent, 90, "nine each");
    });
}
