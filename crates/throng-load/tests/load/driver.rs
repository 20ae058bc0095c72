//! The generator on a driver that is not of this workspace's crates: see `memory_driver.rs`.

use throng_load::run::{LoadDriver, LoadOptions, LoadPlan};
use throng_load::source::SourcePlan;
use throng_measure::{ErrorKind, Operation};

use crate::memory_driver::{CONNECTIONS_EACH, Memory, Peer};
use crate::run::{parsed, run_with};

/// Options of runs on two cores against `peer`.
fn to(peer: Peer) -> LoadOptions {
    LoadOptions { cores: Some(2), driver: LoadDriver::new(Memory(peer)), ..LoadOptions::default() }
}

#[test]
fn a_scenario_runs_on_a_driver_of_clients_alone() {
    let upper = |bytes: &[u8]| Some(bytes.to_ascii_uppercase());
    let run = run_with(
        NOWHERE.parse().unwrap(),
        "load: [{arrivals: {rate: 50/s, for: 1s, spacing: even}}]\n\
         user: [connect, {repeat: {times: 3, do: [{send: \"hi ${user.id}\"}, {expect: HI}]}}, \
         {wait: 100ms}, close]\n",
        &to(upper),
    );
    let counters = &run.last.counters;
    assert_eq!((counters.users_started, counters.connects_ok), (50, 50), "{counters:?}");
    assert_eq!(counters.messages_answered, 150, "{counters:?}");
    let count = |operation| run.times[operation].count();
    assert_eq!([Operation::Connect, Operation::Message].map(count), [50, 150]);
    assert_eq!(run.last.errors.total(), 0, "{:?}", run.last.errors);
}

#[test]
fn a_peer_in_memory_may_finish_first() {
    let run = run_with(
        NOWHERE.parse().unwrap(),
        "load: [{arrivals: {rate: 10/s, for: 1s, spacing: even}}]\n\
         user: [connect, {send: bye}, {expect: never}]\n\
         on_error: stop\n",
        &to(|_| None),
    );
    assert_eq!(run.last.counters.connects_ok, 10);
    assert_eq!(run.last.errors.get(ErrorKind::ClosedByPeer), 10, "{:?}", run.last.errors);
}

#[test]
fn the_driver_answers_for_the_capacity_of_a_plan() {
    let plan = |users: u64| {
        let text = format!(
            "target: tcp://{NOWHERE}\nload: [{{ramp: {{to: {users}, over: 1s}}}}]\n\
             user: [connect, {{wait: 1s}}, close]\n"
        );
        let options = LoadOptions { cores: None, ..to(|_| None) };
        LoadPlan::new(&parsed(&text), &options).unwrap()
    };
    let many = plan(CONNECTIONS_EACH * 200);
    assert!(many.capacity.cores >= 200, "{:?}", many.capacity);
    assert_eq!(many.capacity.connections(), many.capacity.cores as u64 * CONNECTIONS_EACH);
    assert_eq!((many.sources, many.capacity.port_range), (SourcePlan::Any, None));
    assert!(!many.capacity.driver.private_fds());
}

/// Target of connections that never leave this process. No program listens there.
const NOWHERE: &str = "127.0.0.1:1";
