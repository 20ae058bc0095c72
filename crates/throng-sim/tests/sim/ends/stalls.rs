//! A server that stalls for the last seconds of a run, with users in every state: what each of them
//! waits for, and for how long, is known exactly.

use throng_load::generator::GeneratorMessage;
use throng_measure::{ErrorKind, Histogram, Operation};
use throng_sim::{Sim, check, check_over_all};

use super::world::{Speaks, Totals, World};

/// Runs 20 users for 10 s; the server stalls for the last four.
fn stalled(sim: &mut Sim, speaks: Speaks, users: &str) -> Totals {
    let load = "load: [{ramp: {to: 20, over: 1s}}, {hold: {for: 9s}}]";
    let world = World::start(sim, speaks, 2, &format!("{load}\n{users}"));
    world.run_to(sim, 6_000);
    world.freeze(sim);
    world.finish(sim)
}

/// Returns how many values of `histogram` are below one second, how many below two, and so on.
fn by_second(histogram: &Histogram) -> [u32; 5] {
    let mut found = [0; 5];
    for (us, n) in histogram.iter() {
        // A cell is a thousandth wide, and its value is its upper bound.
        found[(us.saturating_sub(5_000) / 1_000_000) as usize] += n;
    }
    found
}

#[test]
fn a_connect_without_an_answer_counts_as_waiting() {
    check_over_all(3, |sim| {
        let totals =
            stalled(sim, Speaks::Tcp, "user: [connect: {timeout: 30s}, wait: 100ms, close]");
        let c = &totals.counters;
        // The connections that fit into the accept queue are established; none is accepted any
        // more.
        assert_eq!((c.connects_waiting, c.connects_failed, c.users_cut), (20, 0, 20), "{c:?}");
        assert_eq!((c.users_waiting, c.users_failed), (0, 0));
        assert!(
            totals.times.unanswered[Operation::Connect].percentile(1.0) > 3_000_000,
            "{totals:?}"
        );
        assert!(totals.times[Operation::Connect].max() < 10_000, "every answer was immediate");
        assert!(totals.times.unanswered[Operation::Tcp].is_empty(), "TCP is the connect itself");
    });
}

#[test]
fn an_upgrade_without_an_answer_counts_as_waiting_separately() {
    check(3, |sim| {
        let totals =
            stalled(sim, Speaks::Ws, "user: [connect: {timeout: 30s}, wait: 100ms, close: reset]");
        let c = &totals.counters;
        assert_eq!((c.connects_waiting, c.users_cut), (20, 20), "{c:?}");
        // Four of them were in the accept queue, so that TCP was established; the others waited for
        // TCP.
        assert_eq!(
            (c.upgrades_waiting, totals.times.unanswered[Operation::Tcp].count()),
            (4, 16),
            "{c:?}"
        );
        assert_eq!(totals.times.unanswered[Operation::Connect].count(), 20);
    });
}

#[test]
fn a_join_and_a_push_without_an_answer_count_separately() {
    check_over_all(3, |sim| {
        let user = "user: [connect, repeat: {times: 100, do: [join: {topic: a, timeout: 30s}, \
            leave: {topic: a, timeout: 30s}, wait: 100ms]}]";
        let totals = stalled(sim, Speaks::Phoenix, user);
        let c = &totals.counters;
        assert_eq!((c.joins_waiting, c.users_waiting, c.users_cut), (20, 20, 20), "{c:?}");
        assert_eq!(
            (
                totals.times.unanswered[Operation::Join].count(),
                totals.times.unanswered[Operation::Message].count()
            ),
            (20, 0)
        );
    });
    check_over_all(3, |sim| {
        let user = "user: [connect, join: {topic: a}, every: {period: 1s, do: [push: {topic: a, \
            event: e, timeout: 30s}]}]";
        let totals = stalled(sim, Speaks::Phoenix, user);
        let c = &totals.counters;
        assert_eq!((c.pushes_waiting, c.turns_waiting), (20, 60), "{c:?}");
        // The push that was sent in the fifth second before the end, and the three turns after it.
        assert_eq!(totals.times.unanswered[Operation::Push].count(), 80);
        assert!(
            totals.times.unanswered[Operation::Message].is_empty()
                && totals.times.unanswered[Operation::Join].is_empty()
        );
    });
}

#[test]
fn a_request_whose_connection_is_not_established_is_one_attempt() {
    check_over_all(3, |sim| {
        let totals =
            stalled(sim, Speaks::Http, "user: [get: {path: /, timeout: 30s}, wait: 100ms, close]");
        let c = &totals.counters;
        assert!(c.http_connects_waiting > 0, "{c:?}");
        assert_eq!(c.http_connects_waiting, c.connects_waiting, "{c:?}");
        assert_eq!((c.http_waiting, c.users_cut), (20, 20), "{c:?}");
    });
}

#[test]
fn a_request_without_an_answer_counts_separately() {
    check_over_all(3, |sim| {
        let user = "user: [get: /, every: {period: 1s, do: [get: {path: /a, timeout: 30s}]}]";
        let totals = stalled(sim, Speaks::Http, user);
        let c = &totals.counters;
        assert_eq!((c.http_waiting, c.users_waiting, c.turns_waiting), (20, 20, 60), "{c:?}");
        assert_eq!(
            (c.http_connects, totals.times.unanswered[Operation::Http].count()),
            (20, 80),
            "{c:?}"
        );
        assert!(totals.times.unanswered[Operation::Message].is_empty());
    });
    check_over_all(3, |sim| {
        let user = "user: [repeat: {times: 100, do: [get: {path: /a, timeout: 2s}, wait: 100ms]}]\n\
            on_error: stop";
        let totals = stalled(sim, Speaks::Http, user);
        let c = &totals.counters;
        assert_eq!((c.http_failed, c.http_waiting, c.users_failed), (20, 0, 20), "{c:?}");
        assert_eq!(totals.errors.get(ErrorKind::HttpTimeout), 20, "{totals:?}");
    });
}

#[test]
fn a_login_before_an_upgrade_is_a_connection_of_its_own() {
    check_over_all(3, |sim| {
        let user = "user: [get: /login, connect, every: {period: 1s, do: [send: hi, \
            expect: {text: hi, timeout: 30s}]}]";
        let totals = stalled(sim, Speaks::Ws, user);
        let c = &totals.counters;
        assert_eq!((c.http_ok, c.http_connects, c.connects_ok), (20, 20, 40), "{c:?}");
        assert_eq!((c.messages_waiting, c.users_waiting), (20, 20), "{c:?}");
    });
}

#[test]
fn a_join_that_times_out_has_failed_and_waited_for_that_long() {
    check_over_all(3, |sim| {
        let user = "user: [connect, repeat: {times: 100, do: [join: {topic: a, timeout: 2s}, \
            leave: {topic: a}, wait: 100ms]}]\n\
            on_error: stop";
        let totals = stalled(sim, Speaks::Phoenix, user);
        let c = &totals.counters;
        assert_eq!((c.joins_failed, c.joins_waiting, c.users_failed), (20, 0, 20), "{c:?}");
        let waits = &totals.times.unanswered[Operation::Join];
        assert_eq!(waits.count(), 20);
        assert!(waits.percentile(0.0) >= 2_000_000 && waits.max() < 2_020_000, "{waits:?}");
    });
}

#[test]
fn every_turn_that_came_due_while_its_user_waited_counts_with_its_own_age() {
    for speaks in [Speaks::Tcp, Speaks::Ws] {
        check_over_all(3, |sim| {
            // Turns are due at whole seconds after the connect, and users begin within the first
            // second.
            let totals = stalled(
                sim,
                speaks,
                "user: [connect, every: {period: 1s, do: [send: hi, expect: {text: hi, \
                 timeout: 30s}]}]",
            );
            let c = &totals.counters;
            assert_eq!(
                (c.messages_waiting, c.users_waiting, c.turns_waiting),
                (20, 20, 60),
                "{c:?}"
            );
            // User k began after k/20 s: ten turns each came due in ten seconds.
            assert_eq!((c.turns_intended, c.turns_started, c.turns_failed), (200, 140, 0), "{c:?}");
            assert_eq!(totals.times.unanswered[Operation::Message].count(), 80);
            assert_eq!(
                by_second(&totals.times.unanswered[Operation::Message]),
                [20, 20, 20, 20, 0]
            );
            assert_eq!(c.messages_answered + c.messages_waiting, 140);
            let late = totals.times.unanswered[Operation::Message].max();
            assert!((3_900_000..4_010_000).contains(&late), "{late}");
        });
    }
}

#[test]
fn a_time_out_that_restarts_its_user_costs_the_turns_that_came_due_meanwhile() {
    check(3, |sim| {
        let load = "load: [{ramp: {to: 10, over: 100ms}}, {hold: {for: 8900ms}}]";
        let user = "user: [connect: {timeout: 30s}, every: {period: 500ms, do: [send: hi, \
            expect: {text: hi, timeout: 2s}]}]";
        let world = World::start(sim, Speaks::Tcp, 1, &format!("{load}\n{user}"));
        world.run_to(sim, 4_250);
        world.freeze(sim);
        let totals = world.finish(sim);
        let c = &totals.counters;
        // The turn at 4.5 s times out at 6.5 s; those at 5, 5.5, 6 and 6.5 s never begin.
        assert_eq!(
            (totals.errors.get(ErrorKind::ExpectTimeout), c.turns_failed),
            (10, 40),
            "{totals:?}"
        );
        assert_eq!((c.messages_failed, c.users_failed), (10, 10));
        let ages = &totals.times.unanswered[Operation::Message];
        let times_out = ages.iter().filter(|(us, _)| (1_990_000..2_020_000).contains(us));
        assert_eq!(times_out.map(|(_, n)| n).sum::<u32>(), 10, "{totals:?}");
        // They pause and connect again: four fit into the accept queue, and wait for their first
        // answer.
        assert_eq!((c.connects_waiting, c.messages_waiting), (6, 4), "{c:?}");
        assert_eq!((c.turns_started, c.turns_intended), (104, 104 + 40 + c.turns_waiting), "{c:?}");
    });
}

#[test]
fn a_time_out_that_continues_begins_the_late_turns_and_loses_none() {
    check_over_all(3, |sim| {
        let load = "load: [{ramp: {to: 10, over: 100ms}}, {hold: {for: 9900ms}}]";
        let user = "user: [connect, every: {period: 500ms, do: [send: hi, expect: {text: hi, \
            timeout: 2s}]}]\n\
            on_error: continue";
        let world = World::start(sim, Speaks::Tcp, 1, &format!("{load}\n{user}"));
        world.run_to(sim, 4_250);
        world.freeze(sim);
        let totals = world.finish(sim);
        let c = &totals.counters;
        // Turns at 4.5, 6.5 and 8.5 s; two of them time out.
        assert_eq!((c.messages_failed, c.messages_waiting), (20, 10), "{c:?}");
        assert_eq!((c.turns_intended, c.turns_failed), (200, 0), "{c:?}");
        assert_eq!((c.turns_started, c.turns_waiting), (120, 80), "{c:?}");
        assert_eq!((c.users_failed, c.users_cut), (10, 0), "the errors were before the end");
    });
}

#[test]
fn a_user_whose_peer_does_not_read_is_counted_and_timed() {
    check_over_all(3, |sim| {
        let user = "user: [connect, every: {rate: 10/s, do: [send: {random: 100KiB}]}]";
        let totals = stalled(sim, Speaks::Tcp, user);
        let c = &totals.counters;
        assert_eq!((c.sends_waiting, c.messages_waiting, c.users_cut), (20, 0, 20), "{c:?}");
        assert_eq!(c.turns_started, c.messages_sent + c.sends_waiting, "a turn is a message");
        assert_eq!(
            totals.times.unanswered[Operation::Message].count(),
            c.sends_waiting + c.turns_waiting
        );
        assert!(totals.times.unanswered[Operation::Message].max() > 3_000_000, "{totals:?}");
    });
}

#[test]
fn arrivals_that_the_end_cuts_off_are_neither_finished_nor_failed() {
    check(3, |sim| {
        let scenario = "load: [{arrivals: {rate: 10/s, for: 5s, spacing: even}}]\n\
            user: [connect: {timeout: 60s}, send: hi, expect: {text: hi, timeout: 60s}, close]";
        let world = World::start(sim, Speaks::Tcp, 3, scenario);
        world.run_to(sim, 2_950);
        world.freeze(sim);
        let totals = world.finish(sim);
        let c = &totals.counters;
        assert_eq!((c.iterations, c.users_finished, c.users_failed), (50, 30, 0), "{c:?}");
        assert_eq!((c.users_cut, c.connects_waiting + c.messages_waiting), (20, 20), "{c:?}");
        // They had ten seconds after the last phase.
        let waited = totals.times.unanswered[Operation::Connect]
            .max()
            .max(totals.times.unanswered[Operation::Message].max());
        assert!((11_900_000..12_100_000).contains(&waited), "{waited}");
    });
}

#[test]
fn a_loop_without_an_end_takes_no_turn_after_the_schedule_and_its_users_finish() {
    check_over_all(3, |sim| {
        let scenario = "load: [{arrivals: {rate: 20/s, for: 1s, spacing: even}}, \
            {hold: {for: 4s}}]\n\
            user: [connect, every: {period: 700ms, do: [send: hi, expect: hi]}]";
        let world = World::start(sim, Speaks::Tcp, 2, scenario);
        let totals = world.finish(sim);
        let c = &totals.counters;
        assert_eq!((c.users_finished, c.users_cut, c.users_failed), (20, 0, 0), "{c:?}");
        assert_eq!((c.turns_waiting, c.turns_started), (0, c.turns_intended));
        // Turns that were due within the five seconds, counted user by user.
        let due: u64 = (0..20).map(|user| (4_999_800 - 50_000 * user) / 700_000 + 1).sum();
        assert_eq!(c.turns_started, due, "{c:?}");
        let took = (sim.now() - world.start_at).as_millis();
        assert!((5_000..6_100).contains(&took), "no user is busy between two turns: {took} ms");
    });
}

#[test]
fn turns_that_were_due_before_the_end_of_the_schedule_count_though_their_user_went_on() {
    check_over_all(3, |sim| {
        let scenario = "load: [{arrivals: {rate: 10/s, for: 1s, spacing: even}}, \
            {hold: {for: 4s}}]\n\
            user: [connect, every: {period: 1s, do: [send: hi, expect: {text: hi, \
            timeout: 60s}]}]";
        let world = World::start(sim, Speaks::Tcp, 2, scenario);
        world.run_to(sim, 2_950);
        world.freeze(sim);
        world.run_to(sim, 8_000);
        world.thaw(sim);
        let totals = world.finish(sim);
        let c = &totals.counters;
        // The answers arrive at eight seconds; the turns due by five had waited since then.
        assert_eq!((c.messages_waiting, c.users_finished, c.users_cut), (0, 10, 0), "{c:?}");
        assert_eq!(
            (c.turns_intended, c.turns_started, c.turns_waiting),
            (50, 30 + c.turns_started - 30, c.turns_waiting)
        );
        assert!(c.turns_waiting >= 10, "{c:?}");
        assert!(totals.times.unanswered[Operation::Message].max() > 3_000_000, "{totals:?}");
    });
}

#[test]
fn users_that_are_stopped_by_hand_or_by_the_schedule_are_cut_as_well() {
    check_over_all(3, |sim| {
        let scenario = "load: [{ramp: {to: 20, over: 1s}}, {hold: {for: 4s}}, {ramp: {to: 10, \
            over: 1s}}, \
            {hold: {for: 3s}}]\n\
            user: [connect: {timeout: 60s}, stay]";
        let world = World::start(sim, Speaks::Ws, 2, scenario);
        world.freeze(sim);
        world.run_to(sim, 3_000);
        world.send_to_all(|| GeneratorMessage::StopUsers(3));
        world.run_to(sim, 3_100);
        assert_eq!(world.totals().counters.users_cut, 6, "three of each core");
        world.run_to(sim, 7_000);
        let c = world.totals().counters;
        assert_eq!(c.users_cut, 10, "the schedule stops the newest ten, six of whom are gone");
        assert_eq!((c.connects_waiting, c.users_waiting), (10, 0), "{c:?}");
        let totals = world.finish(sim);
        assert_eq!(totals.counters.users_cut, 20, "{totals:?}");
    });
}

#[test]
fn a_user_who_stays_or_whose_last_loop_has_no_end_has_finished_when_the_run_ends() {
    check_over_all(3, |sim| {
        let load = "load: [{ramp: {to: 30, over: 1s}}, {hold: {for: 4s}}]";
        let users = "users: {stays: {user: [connect, stay]}, thinks: {user: [connect, wait: 1h]}, \
            paced: {user: [connect, every: {period: 3s, do: [send: hi, expect: hi]}]}}";
        let world = World::start(sim, Speaks::Tcp, 2, &format!("{load}\n{users}"));
        let totals = world.finish(sim);
        let of = |class: usize| {
            let class = &totals.classes[class];
            (class.users_started, class.users_finished, class.users_cut)
        };
        // A user who thinks has a step left: the end of the program.
        assert_eq!([of(0), of(1), of(2)], [(10, 10, 0), (10, 0, 10), (10, 10, 0)], "{totals:?}");
    });
}

#[test]
fn a_fast_loop_that_missed_millions_of_turns_counts_all_of_them() {
    check_over_all(1, |sim| {
        let scenario = "load: [{ramp: {to: 1, over: 100ms}}, {hold: {for: 59900ms}}]\n\
            user: [connect, every: {rate: 1M/s, do: [send: x, expect: {text: x, timeout: 1h}]}]";
        let world = World::start(sim, Speaks::Tcp, 1, scenario);
        world.run_to(sim, 10);
        world.freeze(sim);
        let before = world.turns_and_events();
        world.run_to(sim, 30_000);
        world.thaw(sim);
        world.run_to(sim, 30_001);
        let c = world.totals().counters;
        assert!(c.turns_intended > 29_900_000, "{c:?}");
        world.freeze(sim);
        let totals = world.finish(sim);
        let c = &totals.counters;
        assert!((59_900_000..=60_000_000).contains(&c.turns_intended), "{c:?}");
        assert_eq!(
            totals.times.unanswered[Operation::Message].count(),
            c.turns_waiting + c.messages_waiting
        );
        // No turn of the core for each of the thirty million turns that were missed, twice.
        let handled = world.turns_and_events() - before;
        assert!(handled < 100_000, "{handled}");
    });
}

#[test]
fn a_connect_after_a_rest_counts_from_the_end_of_the_rest() {
    check_over_all(3, |sim| {
        let scenario = "load: [{ramp: {to: 50, over: 1s}}, {hold: {for: 20s}}]\n\
            user: [connect, send: hi, expect: no, close]";
        let world = World::start(sim, Speaks::Tcp, 2, scenario);
        let totals = world.finish(sim);
        assert!(totals.errors.get(ErrorKind::ExpectMismatch) > 500, "{totals:?}");
        // 100 us there and back; a coarse timer would add up to 8.4 ms.
        assert!(totals.times[Operation::Connect].max() < 1_000, "{totals:?}");
        assert!(totals.lag.max() < 1_000, "{totals:?}");
        assert!(totals.lag.count() > 500, "the end of a rest is the generator's own");
    });
}
