//! Several machines that share a run do what one machine does.

use std::time::Duration;

use throng_measure::LoadCounters;
use throng_server::AcceptTopology;
use throng_sim::{Faults, Sim, check_over_all};

use super::pair::{LoadCore, Pair, Shape};

/// Runs `scenario` on machines with so many cores each. Returns the generator's counters, and the
/// bytes that it has sent.
fn counters(sim: &mut Sim, machines: &[usize], scenario: &str) -> (LoadCounters, u64) {
    sim.set_faults(Faults::none());
    let shape = Shape { load_cores: machines.to_vec(), ..Shape::default() };
    let pair = Pair::start(sim, AcceptTopology::Reuseport, shape, scenario);
    pair.finish(sim, Duration::from_secs(300));
    assert_eq!(pair.errors(), 0);
    let sent = |core: &LoadCore| core.borrow_mut().cx().counters().bytes_sent;
    (pair.load_counters(), pair.load_cores.iter().map(sent).sum())
}

/// Asserts that the counters of a scenario do not depend on how its cores are dealt to machines.
#[track_caller]
fn check_scenario(scenario: &str) {
    check_over_all(3, |sim| {
        let of = |machines: &[usize]| counters(&mut Sim::new(sim.seed()), machines, scenario);
        let alone = of(&[6]);
        assert!(alone.0.messages_answered >= 100 && alone.1 >= 100, "{alone:?}");
        for machines in [&[1, 2, 3][..], &[2, 2, 2], &[1; 6]] {
            assert_eq!(of(machines), alone, "{machines:?}");
        }
    });
}

#[test]
fn users_of_the_closed_model_are_those_of_one_machine() {
    check_scenario(
        "
load: [{ramp: {to: 61, over: 1s}}, {hold: {for: 2s}}, {ramp: {to: 0, over: 1s}}]
user:
  - connect
  - every: {period: 500ms, do: [{send: 'user ${user.id} asks?'}, {expect: {until: '?'}}]}
",
    );
}

#[test]
fn classes_with_loads_of_their_own_are_those_of_one_machine() {
    check_scenario(
        "
users:
  stays:
    load: [{ramp: {to: 31, over: 1s}}, {hold: {for: 1s}}]
    user: [connect, {send: 'user ${user.id} asks?'}, {expect: {until: '?'}}, stay]
  comes:
    load: [{arrivals: {rate: 60/s, for: 3s}}]
    user: [connect, {send: 'user ${user.id} asks?'}, {expect: {until: '?'}}, close]
  returns:
    load: [{ramp: {to: 13, over: 2s}}, {hold: {for: 3s}}]
    user:
      - connect
      - every: {period: 500ms, do: [{send: 'user ${user.id} asks?'}, {expect: {until: '?'}}]}
",
    );
}

#[test]
fn arrivals_are_those_of_one_machine() {
    for spacing in ["even", "poisson"] {
        check_scenario(&format!(
            "
load: [{{arrivals: {{rate: {{from: 20/s, to: 100/s}}, for: 3s, spacing: {spacing}}}}}]
user: [connect, {{send: 'user ${{user.id}} asks?'}}, {{expect: {{until: '?'}}}}, close]
"
        ));
    }
}

#[test]
fn rows_of_data_and_what_users_draw_are_those_of_one_machine() {
    // Rows and numbers have many lengths, so the bytes show which of them were sent.
    let path = std::env::temp_dir().join(format!("throng-rows-{}.csv", std::process::id()));
    let rows = (0..97).map(|row| format!("{}\n", "x".repeat(1 + row * row % 89)));
    std::fs::write(&path, format!("text\n{}", rows.collect::<String>())).unwrap();
    for order in ["in_turn", "random"] {
        check_scenario(&format!(
            "
data: {{file: {}, order: {order}}}
load: [{{arrivals: {{rate: 60/s, for: 3s}}}}]
user:
  - connect
  - repeat:
      times: 2
      do:
        - choose:
            - {{weight: 2, do: [{{send: '${{row.text}} ${{random(1,1000000)}}?'}}]}}
            - {{do: [{{send: \"${{choice('a', 'bb', 'ccc')}}?\"}}]}}
        - expect: {{until: '?'}}
  - close
",
            path.display()
        ));
    }
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn a_limit_holds_over_all_machines() {
    check_scenario(
        "
load: [{ramp: {to: 40, over: 100ms}}, {hold: {for: 4s}}]
limits: {all: {send: 50/s}}
user:
  - connect
  - repeat: {for: 1h, do: [{send: '?'}, {expect: {until: '?'}}]}
",
    );
}

#[test]
fn users_of_all_machines_wait_for_one_another() {
    check_over_all(5, |sim| {
        for machines in [&[1, 2, 3][..], &[2, 2, 2]] {
            let mut sim = Sim::new(sim.seed());
            sim.set_faults(Faults::none());
            let shape = Shape { load_cores: machines.to_vec(), ..Shape::default() };
            let scenario = "
load: [{ramp: {to: 60, over: 1s}}, {hold: {for: 5s}}]
user:
  - connect
  - barrier: {name: start, users: 20}
  - send: '?'
  - expect: {until: '?'}
  - if: {condition: '${user.id} == 7', do: [{wait: 500ms}, {signal: go}], else: [{wait_for: go}]}
  - send: '?'
  - expect: {until: '?'}
  - stay
";
            let pair = Pair::start(&mut sim, AcceptTopology::Reuseport, shape, scenario);
            pair.finish(&mut sim, Duration::from_secs(300));
            assert_eq!(pair.errors(), 0, "{machines:?}");
            let counters = pair.load_counters();
            assert_eq!(counters.messages_answered, 120, "{machines:?}: {counters:?}");
            assert_eq!(pair.cues_opened(), [3, 1], "{machines:?}");
        }
    });
}
