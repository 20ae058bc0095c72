//! Tests of all labs that are files, without a run.

use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};
use throng_load::scenario::{Params, Quantity};
use throng_measure::ErrorKind;
use throng_measure::runfile::{RunFile, RunHeader};
use throng_report::Summary;

use super::*;
use crate::catalogue::{find, labs};
use crate::run_watch::ServerHistory;

/// A machine with two CPUs, with this throughput and these options.
fn known(does: (f64, f64), users: Option<u64>, seconds: Option<u64>, rate: Option<u64>) -> Params {
    let asked =
        |n: Option<u64>, of: fn(f64) -> Quantity| n.map_or(Quantity::Unknown, |n| of(n as f64));
    let known = [
        ("cpus", Quantity::number(2.0)),
        ("fits", Quantity::number(3e6)),
        ("places", Quantity::number(20_000.0)),
        ("seconds", Quantity::seconds(30.0)),
        ("asked.users", asked(users, Quantity::number)),
        ("asked.seconds", asked(seconds, Quantity::seconds)),
        ("asked.rate", asked(rate, Quantity::per_second)),
        ("connects", Quantity::per_second(does.0)),
        ("messages", Quantity::per_second(does.1)),
    ];
    known.map(|(name, value)| (name.to_owned(), value)).into()
}

fn size(lab: &str, known: Params) -> SizedScenario {
    let (experiment, _) = find(lab).unwrap();
    experiment.size(known).unwrap_or_else(|error| panic!("{lab}: {error}"))
}

fn sized(lab: &str, does: (f64, f64), users: u64, rate: Option<u64>) -> SizedScenario {
    size(lab, known(does, Some(users), None, rate))
}

/// Returns what the lab measures in a run without an interval.
fn nothing(lab: &str) -> (&'static Experiment, Measurements) {
    let (experiment, _) = find(lab).unwrap();
    let sized = sized(lab, (20_000.0, 80_000.0), 1_000, None);
    let run = RunFile {
        header: RunHeader::default(),
        intervals: Vec::new(),
        end: None,
        lines_torn: 0,
        warnings: Vec::new(),
    };
    let (summary, server) = (Summary::default(), ServerHistory::default());
    let facts = RunFacts { run: &run, summary: &summary, sized: &sized, server: &server };
    let found = experiment.measure(&facts).unwrap_or_else(|error| panic!("{error}"));
    (experiment, found)
}

/// Returns the sentences of `lab` for a run that measured the fields of `row`, and nothing else.
pub(crate) fn verdict(lab: &str, row: &impl Serialize) -> String {
    let (experiment, mut found) = nothing(lab);
    let Value::Object(fields) = serde_json::to_value(row).unwrap() else { panic!("no row") };
    for (name, value) in fields {
        let is_of_row = found.row.contains_key(&name);
        let all = if is_of_row { &mut found.row } else { &mut found.hidden };
        all.insert(name, value);
    }
    Experiment::sentences(&experiment.spec.verdict, &found).unwrap().join("\n")
}

#[test]
fn every_lab_is_a_scenario_at_any_size() {
    for lab in labs() {
        for users in [1, 2, 3, 7, 60, 1_500, 25_000, 300_001, 999_999] {
            for does in [(90.0, 500.0), (20_000.0, 80_000.0), (1e6, 9e6)] {
                for seconds in [None, Some(1), Some(3), Some(600)] {
                    let known = known(does, Some(users), seconds, None);
                    assert!(size(lab.name, known).seconds() >= 1, "{}", lab.name);
                }
            }
        }
        let by_default = size(lab.name, known((20_000.0, 80_000.0), None, None, None));
        assert!(by_default.seconds() >= 20, "{}", lab.name);
    }
}

#[test]
fn every_cell_and_every_sentence_is_known_without_a_run() {
    for lab in labs() {
        let (experiment, found) = nothing(lab.name);
        let tables = experiment.tables(&found).unwrap_or_else(|e| panic!("{}: {e}", lab.name));
        assert!(tables.iter().all(|table| !table.rows.is_empty()), "{}", lab.name);
        let find = |name: &str| found.find(name);
        let spec = &experiment.spec;
        let claims = spec.verdict.iter().chain(&spec.notes).flatten();
        for Claim { when, say } in claims {
            let when = evaluate(when.as_deref().unwrap_or("1"), &find);
            when.unwrap_or_else(|error| panic!("{}: {error}", lab.name));
            sentence(say, &find).unwrap_or_else(|error| panic!("{}: {say}: {error}", lab.name));
        }
        sentence(&spec.setup, &find).unwrap_or_else(|error| panic!("{}: {error}", lab.name));
        assert!(lab.article.len() > 10 && lab.summary.len() > 10, "{}", lab.name);
    }
}

#[track_caller]
fn check(sized: &SizedScenario, params: &[(&str, f64)]) {
    for (name, value) in params {
        assert_eq!(sized.param(name), *value, "{name} in {:?}", sized.params);
    }
}

#[test]
fn connections_come_and_ping_at_a_pace_that_is_easy_for_the_machine() {
    let does = (20_000.0, 80_000.0);
    let pace = |users, rate| sized("connscale", does, users, rate);
    check(&pace(200, None), &[("ramp", 1.0), ("interval", 5.0)]);
    check(&pace(210_000, None), &[("ramp", 30.0), ("interval", 17.0)]);
    check(&pace(1_000_000, None), &[("ramp", 250.0), ("interval", 166.0)]);
    check(&pace(210_000, Some(10_000)), &[("ramp", 21.0)]);
    let slow = sized("connscale", (200.0, 800.0), 7_000, None);
    check(&slow, &[("ramp", 100.0), ("interval", 58.0)]);
}

#[test]
fn sizes_of_the_chat_keep_their_proportion_and_each_has_two_messages() {
    let chat = sized("haskell-chat", (16_000.0, 80_000.0), 1_000, None);
    check(&chat, &[("small", 200.0), ("middle", 512.0), ("users", 1_000.0)]);
    let (probe, one) = (chat.param("probe"), chat.param("one"));
    let mut at = 0.0;
    for size in 1..=3 {
        let ramp = (at, at + chat.param(&format!("ramp{size}")));
        at = ramp.1 + chat.param(&format!("hold{size}"));
        let due: Vec<_> = (1..=6).map(|k| f64::from(k) * probe).collect();
        let here = due.iter().filter(|due| (ramp.1..at).contains(*due)).count();
        assert_eq!(here, 2, "{ramp:?}..{at}");
        assert!(due.iter().all(|due| due + one <= ramp.0 + 1e-9 || *due >= ramp.1), "{ramp:?}");
    }
    assert_eq!(chat.seconds(), at as u64);
}

/// The throughput of two CPUs, as once measured.
const DOES: (f64, f64) = (14_000.0, 80_000.0);

#[test]
fn broadcasts_do_not_overlap_and_two_reach_all_users() {
    let pace = |lobby: &SizedScenario, values: [f64; 4]| {
        let names = ["pace", "arrive", "hold", "probe"];
        check(lobby, &names.into_iter().zip(values).collect::<Vec<_>>());
        assert_eq!(lobby.scenario.load.shared().len(), 2);
    };
    let few = size("phoenix-2m", known(DOES, Some(500), Some(3), None));
    pace(&few, [4_900.0, 1.0, 3.0, 1.0]);
    pace(&sized("phoenix-2m", DOES, 8_000, None), [4_900.0, 2.0, 35.0, 1.0]);
    pace(&sized("phoenix-2m", DOES, 8_000, Some(100)), [100.0, 80.0, 35.0, 8.0]);
}

#[test]
fn many_users_arrive_in_stages_without_arrivals_during_a_broadcast() {
    let pace = |lobby: &SizedScenario, values: [f64; 4]| {
        let names = ["pace", "arrive", "pause", "probe"];
        check(lobby, &names.into_iter().zip(values).collect::<Vec<_>>());
        assert_eq!(lobby.scenario.load.shared().len(), 8);
    };
    pace(&sized("phoenix-2m", DOES, 100_000, None), [4_900.0, 10.0, 6.0, 10.0]);
    pace(&sized("phoenix-2m", DOES, 100_000, Some(2_666)), [2_666.0, 14.0, 6.0, 14.0]);
    pace(&sized("phoenix-2m", (140.0, 800.0), 1_225, None), [49.0, 11.0, 6.0, 11.0]);
    let lobby = sized("phoenix-2m", DOES, 1_000_000, None);
    check(&lobby, &[("arrive", 121.0), ("pause", 42.0), ("probe", 121.0), ("hold", 163.0)]);
    check(&lobby, &[("heartbeat", 36.0), ("timeout", 60.0)]);
    assert_eq!((lobby.scenario.load.shared().len(), lobby.seconds()), (8, 647));
    let all: f64 = (1..=4).map(|stage| lobby.param(&format!("stage{stage}"))).sum();
    assert_eq!(all, 1_000_000.0);
    let more = sized("phoenix-2m", DOES, 2_500_000, None);
    check(&more, &[("heartbeat", 90.0), ("pause", 106.0), ("timeout", 106.0)]);
    assert!(more.param("hold") > more.param("heartbeat"), "every user sends one");
}

#[test]
fn messages_grow_and_talkers_are_users() {
    for (users, rooms) in [(1, 1), (2, 1), (500, 1), (1_500, 2), (1_000_000, 1_000)] {
        for does in [(90.0, 500.0), (1e6, 9e6)] {
            let plan = sized("many-rooms", does, users, None);
            assert!(plan.param("talkers") <= users as f64, "{:?}", plan.params);
            assert!(plan.param("from") < plan.param("to"), "{:?}", plan.params);
            assert_eq!(plan.param("rooms"), f64::from(rooms));
            assert_eq!(sized("one-room", does, users, None).param("rooms"), 1.0);
        }
    }
}

#[test]
fn the_arrivals_give_the_planned_users() {
    let plan = size("simulated-chat", known(DOES, Some(7_000), Some(70), None));
    check(&plan, &[("think", 5.0), ("arrivals", 200.0), ("rooms", 140.0), ("warm", 70.0)]);
    assert_eq!(plan.scenario.load.shared()[0].length(), Duration::from_secs(140));
}

/// What `connscale` says about 1,000 users.
fn held(connected_most: u64, errors: &[(&str, u64)], more: Value) -> String {
    let worst = errors.iter().max_by_key(|(_, n)| *n);
    let total: u64 = errors.iter().map(|(_, n)| n).sum();
    let worst = worst.map(|(kind, n)| json!({"kind": kind, "n": n, "total": total}));
    let mut row = json!({
        "users": 1000,
        "connected_most": connected_most,
        "worst": worst.unwrap_or_else(|| json!({"kind": null, "n": 0, "total": 0})),
        "reconciled": {"seconds": 9, "half_open_most": 0, "unknown_to_client_most": 0},
    });
    let Value::Object(more) = more else { panic!("no fields") };
    more.into_iter().for_each(|(name, value)| row[name] = value);
    verdict("connscale", &row)
}

#[track_caller]
fn check_held(sentences: &str, says: &[&str], never: &[&str]) {
    for text in says {
        assert!(sentences.contains(text), "no {text:?} in:\n{sentences}");
    }
    for text in never {
        assert!(!sentences.contains(text), "{text:?} in:\n{sentences}");
    }
}

#[test]
fn a_clean_run_says_so() {
    let says =
        ["All 1000 connections were held, without an error", "counts agree in all 9 seconds"];
    check_held(&held(1000, &[], json!({})), &says, &["Most frequent", "dropped"]);
}

#[test]
fn failed_handshakes_are_named_with_the_remedy() {
    let found = json!({"text": "498 connections were half-open.", "remedy": "raise --backlog"});
    let half_open = held(1000, &[], json!({"handshakes": found}));
    check_held(
        &half_open,
        &["498 connections were half-open. Remedy: raise --backlog."],
        &["counts agree"],
    );
}

#[test]
fn the_most_frequent_error_is_explained() {
    for (kind, says) in [
        ("connect EMFILE", "ulimit -n"),
        ("connect EADDRNOTAVAIL", "ip_local_port_range"),
        ("connect ENOSPC", "max_user_watches"),
        (ErrorKind::ExpectTimeout.name(), "Pong did not arrive"),
        (ErrorKind::ResetByPeer.name(), "half-open"),
        ("moon", "Most frequent: moon, 9 times."),
    ] {
        let sentences = held(900, &[(kind, 9), ("other", 3)], json!({}));
        check_held(&sentences, &["900 of 1000", "12 errors", says], &[]);
    }
}

#[test]
fn a_run_that_was_steered_did_not_fall_short() {
    check_held(
        &held(500, &[], json!({"steered": true})),
        &["At most 500 of the 1000 planned", "steered the run"],
        &["500 of 1000"],
    );
}

#[test]
fn without_the_server_s_count_nothing_is_claimed() {
    let alone = held(1000, &[], json!({"reconciled": null}));
    check_held(&alone, &["could not be compared"], &["no connection was half-open"]);
}
