//! Joins, pushes and leaves, and all answers of a server to them.

use std::time::Duration;
use throng_measure::{ErrorKind, Operation};

use throng_sim::{Sim, check_over_all};

use super::server::Script;
use super::world::{Totals, World};

fn run_with(sim: &mut Sim, script: Script, rest: &str) -> Totals {
    let load = "load: [{arrivals: {rate: 10/s, for: 1s, spacing: even}}, {hold: {for: 20s}}]\n";
    let world = World::start(sim, script, &format!("{load}{rest}"));
    world.finish(sim, Duration::from_secs(300))
}

fn run(sim: &mut Sim, rest: &str) -> Totals {
    run_with(sim, Script::default(), rest)
}

#[test]
fn a_reply_is_known_by_its_ref_while_broadcasts_and_other_replies_come_between() {
    for vsn in ["1.0.0", "2.0.0"] {
        check_over_all(5, |sim| {
            let totals = run(
                sim,
                &format!(
                    "user: [connect: {{vsn: {vsn}, deflate: true}}, join: {{topic: a}}, \
                     repeat: {{times: 5, do: [push: {{topic: a, event: echo, \
                     payload: {{n: \"${{counter}}\"}}}}]}}, leave: {{topic: a}}, close]"
                ),
            );
            assert_eq!(totals.errors.total(), 0, "{totals:?}");
            let counters = &totals.counters;
            assert_eq!((counters.joins_ok, counters.pushes_sent, counters.pushes_ok), (10, 50, 50));
            assert_eq!(counters.users_finished, 10);
            // Ten times: the answer to the join, three times five messages, the answer to the
            // leave, and the close of the channel.
            assert_eq!(counters.messages_received, 10 * (1 + 15 + 2));
            assert_eq!(
                (totals.times[Operation::Join].count(), totals.times[Operation::Push].count()),
                (10, 50)
            );
        });
    }
}

#[test]
fn each_fault_is_its_own_kind_of_error() {
    for (steps, kind) in [
        ("join: {topic: \"private:1\"}", ErrorKind::JoinRefused.name()),
        ("join: {topic: \"silent:1\", timeout: 2s}", ErrorKind::JoinTimeout.name()),
        ("join: {topic: a}, push: {topic: a, event: refuse}", ErrorKind::PushRefused.name()),
        (
            "join: {topic: a}, push: {topic: a, event: silent, timeout: 2s}",
            ErrorKind::PushTimeout.name(),
        ),
        ("join: {topic: a}, push: {topic: a, event: crash}", ErrorKind::ChannelError.name()),
        ("join: {topic: a}, push: {topic: a, event: end}", ErrorKind::ChannelClosed.name()),
        ("join: {topic: a}, push: {topic: a, event: garbage}", ErrorKind::BadMessage.name()),
        ("join: {topic: a}, push: {topic: a, event: close}", "close Some(1011)"),
        (
            "join: {topic: a}, push: {topic: a, event: crash, reply: false}, stay",
            ErrorKind::ChannelError.name(),
        ),
    ] {
        check_over_all(2, |sim| {
            let totals = run(sim, &format!("user: [connect, {steps}]\non_error: stop"));
            assert_eq!(totals.errors.get(kind), 10, "{steps}: {totals:?}");
            assert_eq!(totals.errors.total(), 10, "{steps}: {totals:?}");
            assert_eq!(totals.counters.users_failed, 10, "{steps}");
        });
    }
}

#[test]
fn a_refused_upgrade_is_a_failed_connect_with_its_status() {
    for (policy, attempts) in [("stop", 10..=10), ("restart", 150..=230), ("continue", 10..=10)] {
        check_over_all(2, |sim| {
            let script = Script { status: Some(403), ..Script::default() };
            let totals =
                run_with(sim, script, &format!("user: [connect, close]\non_error: {policy}"));
            assert!(
                attempts.contains(&totals.errors.get(ErrorKind::UpgradeStatus.with(403))),
                "{policy}: {totals:?}"
            );
            assert_eq!(totals.errors.total(), totals.counters.connects_failed, "{policy}");
            assert_eq!(
                (totals.counters.connects_ok, totals.times[Operation::Connect].count()),
                (0, 0)
            );
        });
    }
}

#[test]
fn a_user_that_continues_after_a_crash_has_no_channel() {
    check_over_all(3, |sim| {
        let totals = run(
            sim,
            "user: [connect, join: {topic: a}, join: {topic: b}, push: {topic: a, event: crash}, \
             push: {topic: a, event: echo}, push: {topic: b, event: echo}, wait: 1s, \
             push: {topic: b, event: end, reply: false}, wait: 1s, push: {topic: b, event: echo}, \
             close]\non_error: continue",
        );
        let errors = &totals.errors;
        assert_eq!(
            (errors.get(ErrorKind::ChannelError), errors.get(ErrorKind::ChannelClosed)),
            (10, 10),
            "{totals:?}"
        );
        assert_eq!((errors.get(ErrorKind::NotJoined), errors.total()), (20, 40), "{totals:?}");
        assert_eq!((totals.counters.pushes_sent, totals.counters.pushes_ok), (30, 10));
        assert_eq!(totals.counters.users_failed, 10, "once each");
    });
}

#[test]
fn a_user_that_begins_again_has_no_channel_from_before() {
    check_over_all(3, |sim| {
        let totals = run(
            sim,
            "user: [connect, join: {topic: a}, push: {topic: a, event: echo}, push: {topic: a, \
             event: close}]\non_error: restart",
        );
        let counters = &totals.counters;
        assert!(counters.iterations > 100, "{counters:?}");
        assert_eq!(
            (counters.joins_ok, counters.pushes_ok),
            (counters.iterations, counters.iterations)
        );
        assert_eq!(totals.errors.get("close Some(1011)"), counters.iterations);
    });
}
