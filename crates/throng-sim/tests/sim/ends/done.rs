//! Loads that end with their users, before the time of their last phase.

use std::time::Duration;

use throng_sim::{Sim, check_over_all};

use super::world::{Speaks, Totals, World};

/// Runs ten users of these steps on three cores, and waits for them for 40 minutes at most.
/// Returns how long the run took.
fn run(sim: &mut Sim, arrivals: &str, user: &str) -> (Totals, Duration) {
    let load = format!("load: [{{arrivals: {{{arrivals}}}}}, {{hold: {{for: 40m, until: done}}}}]");
    let world = World::start(sim, Speaks::Tcp, 3, &format!("{load}\nuser: {user}"));
    let totals = world.finish(sim);
    (totals, sim.now() - world.start_at)
}

const AT_ONCE: &str = "rate: 1000/s, for: 10ms, most: 10, spacing: even";

#[test]
fn a_load_ends_with_the_last_user_of_all_cores() {
    check_over_all(3, |sim| {
        let user = "[connect, send: hi, expect: hi, wait: 20s ±50%, close]";
        let (totals, took) = run(sim, AT_ONCE, user);
        let c = &totals.counters;
        assert_eq!((c.users_finished, c.users_cut, c.users_active), (10, 0, 0), "{c:?}");
        assert!((10..32).contains(&took.as_secs()), "{took:?}");
    });
}

#[test]
fn users_that_have_ended_before_the_last_phase_end_the_load_when_it_begins() {
    check_over_all(1, |sim| {
        let arrivals = "rate: 1000/s, for: 5s, most: 10, spacing: even";
        let (totals, took) = run(sim, arrivals, "[connect, close]");
        assert_eq!(totals.counters.users_finished, 10);
        assert_eq!(took.as_secs(), 5);
    });
}

#[test]
fn users_that_never_end_have_the_time_of_the_phase() {
    check_over_all(1, |sim| {
        let (totals, took) = run(sim, AT_ONCE, "[connect, stay]");
        assert_eq!(totals.counters.users_finished, 10);
        assert!((2_400..2_402).contains(&took.as_secs()), "{took:?}");
    });
}
