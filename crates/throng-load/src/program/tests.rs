mod transactions;

use std::time::Duration;

use throng_base::Prng;

use super::*;
use crate::scenario::Scenario;

fn compile(rest: &str) -> Program {
    let text = format!("target: tcp://h:1\nload: [ramp: {{to: 1, over: 1s}}]\n{rest}");
    Program::compile(
        &Scenario::parse(&text, "test.yaml").unwrap_or_else(|mistakes| panic!("{mistakes}")),
    )
}

#[test]
fn steps_become_ops_in_their_order() {
    let program = compile(
        "user:
  - connect: {timeout: 1s}
  - send: hello
  - expect: {text: ok, timeout: 2s}
  - send: {random: 1KiB}
  - wait: 1s ±10%
  - close: reset
",
    );
    let expected = [
        Op::Connect { timeout_ns: 1_000_000_000, handshake: 0 },
        Op::Send { template: 0, frame: Frame::Raw },
        Op::ExpectBytes { pattern: 0, timeout_ns: 2_000_000_000 },
        Op::SendRandom { bytes: 1_024 },
        Op::Wait { span_ns: 1_000_000_000, jitter: 0.1 },
        Op::Close { how: CloseAction::Reset },
        Op::End,
    ];
    assert_eq!(program.ops(), expected);
    assert_eq!(program.template(0).as_literal(), Some(&b"hello"[..]));
}

#[test]
fn loops_know_their_counter_and_their_ends() {
    let program = compile(
        "user:
  - connect
  - repeat: {times: 2, do: [{every: {period: 1s, for: 10s, do: [send: a, expect: b]}}]}
  - every: {rate: 2/s, do: [send: a]}
",
    );
    let [outer, inner, last] = [0, 1, 2].map(|index| *program.loop_at(index));
    assert_eq!((outer.slot, inner.slot, last.slot), (0, 1, 0));
    for (index, of) in [(0, outer), (1, inner), (2, last)] {
        assert_eq!(program.op(of.body - 1), Op::LoopBegin { index });
        assert_eq!(program.op(of.after - 1), Op::LoopEnd { index });
    }
    assert!(matches!(inner.turns, Turns::Every { turns: 10, .. }));
    assert!(matches!(last.turns, Turns::Every { turns: u64::MAX, .. }));
    assert_eq!(program.op(last.after), Op::End);
    // The two equal messages share one template.
    assert_eq!(
        program
            .ops()
            .iter()
            .filter(|op| matches!(op, Op::Send { template: 0, frame: Frame::Raw }))
            .count(),
        2
    );
}

#[test]
fn turns_begin_when_they_are_due() {
    let second = 1_000_000_000;
    let program = compile(
        "user:
  - connect
  - every: {period: 1s, for: 3s, do: [send: a]}
  - repeat: {times: 2, do: [send: a]}
  - repeat: {for: 2s, do: [send: a]}
",
    );
    let begins = |index, turn, passed| program.loop_at(index).turn_begin_ns(turn, passed);
    assert_eq!(begins(0, 0, 0), Some(0));
    // The turn is late: its answer counts from one second, not from five.
    assert_eq!(begins(0, 1, 5 * second), Some(second));
    assert_eq!(begins(0, 2, second), Some(2 * second));
    assert_eq!(begins(0, 3, second), None);
    assert_eq!(begins(1, 1, 77), Some(77));
    assert_eq!(begins(1, 2, 77), None);
    assert_eq!(begins(2, 0, 9 * second), Some(9 * second), "a loop takes at least one turn");
    assert_eq!(begins(2, 5, 2 * second - 1), Some(2 * second - 1));
    assert_eq!(begins(2, 5, 2 * second), None);
}

#[test]
fn classes_have_exactly_their_weights_and_are_mixed() {
    let program = compile(
        "users:
  reader: {weight: 90, user: [connect, stay]}
  writer: {weight: 9, user: [connect, send: x], on_error: stop}
  admin: {user: [connect]}
",
    );
    let mut counts = [0; 3];
    let mut run = 0;
    let mut longest = 0;
    for user in 5_000..5_100 {
        let class = program.class_of(user);
        counts[class] += 1;
        run = if class == 0 { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    assert_eq!(counts, [90, 9, 1]);
    assert!(longest < 20, "{longest} readers in a row");
    assert_eq!(program.classes()[1].on_error, OnError::Stop);
    assert_eq!(
        program.op(program.classes()[1].entry + 1),
        Op::Send { template: 0, frame: Frame::Raw }
    );
}

#[test]
fn every_core_has_its_share_of_every_class() {
    let program = compile("users: {a: {user: [connect, stay]}, b: {user: [connect]}}");
    for (cores, core) in [(2, 0), (2, 1), (4, 3), (6, 1)] {
        let of_core = (0..1_000).map(|place| core + place * cores);
        let first = of_core.filter(|&user| program.class_of(user) == 0).count();
        assert!((400..600).contains(&first), "{first} of 1000 on core {core} of {cores}");
    }
}

#[test]
fn the_longest_message_is_known() {
    let program =
        compile("user: [connect, {send: 'to ${user.id}'}, {send: {random: 100}}, {send: a}]");
    assert_eq!(program.message_bytes_max(), 100);
    assert_eq!(compile("user: [connect, {send: 'to ${user.id}'}]").message_bytes_max(), 43);
}

#[test]
fn a_single_class_takes_all_users() {
    let program = compile("user: [connect, stay]");
    assert!((0..10).all(|user| program.class_of(user) == 0));
}

#[test]
fn jitter_stays_in_its_range_and_uses_it() {
    let mut prng = Prng::new(3);
    let spans: Vec<_> = (0..10_000).map(|_| jittered(1_000_000, 0.1, &mut prng)).collect();
    let (low, high) = (*spans.iter().min().unwrap(), *spans.iter().max().unwrap());
    assert!(
        (900_000..901_000).contains(&low) && (1_099_000..=1_100_000).contains(&high),
        "{low} to {high}"
    );
    let mean = spans.iter().sum::<u64>() / 10_000;
    assert!((998_000..1_002_000).contains(&mean), "{mean}");
    assert_eq!(jittered(7, 0.0, &mut prng), 7);
}

#[test]
fn the_paces_of_a_scenario_are_those_of_the_schedule() {
    let program = compile(
        "user: [connect, every: {rate: {from: 1/s, to: 10/s, over: 10s}, for: 5s, do: [send: a]}]",
    );
    let Turns::Every { pace, turns } = program.loop_at(0).turns else { panic!("not paced") };
    assert_eq!(turns, 17);
    assert_eq!(pace.due(0), Duration::ZERO);
}

#[test]
fn the_loops_around_a_step_are_those_that_it_is_in() {
    let program = compile(
        "user: [connect, repeat: {times: 2, do: [repeat: {times: 2, do: [send: a]}, send: b, \
          every: {period: 1s, for: 9s, do: [repeat: {times: 3, do: [send: c]}, send: d]}]}, \
          send: e, \
          repeat: {times: 1, do: [send: f]}]",
    );
    let around = |text: &str| -> Vec<u8> {
        let is_it = |op: &Op| {
            matches!(op, Op::Send { template, .. }
                if program.template(*template).as_literal() == Some(text.as_bytes()))
        };
        let pc = program.ops().iter().position(is_it).unwrap() as u32;
        let near = program.loops_near(pc).map(|index| program.loop_at(index));
        near.filter(|looping| looping.contains(pc)).map(|looping| looping.slot).collect()
    };
    assert_eq!(
        ["a", "b", "c", "d", "e", "f"].map(around),
        [vec![0, 1], vec![0], vec![0, 1, 2], vec![0, 1], vec![], vec![0],]
    );
    assert_eq!(program.loops_near(0).count(), 0);
}

#[test]
fn the_most_that_a_class_sends_is_the_traffic_of_its_program() {
    for (user, traffic) in [
        ("user: [connect, {wait: 1s}, close]", Traffic::Silent),
        ("user: [connect, {send: a}, close]", Traffic::Sent),
        ("user: [connect, {send: a}, {expect: b}, close]", Traffic::Answered),
        (
            "user: [connect, {repeat: {times: 2, do: [{send: a}, {expect: b}]}}, stay]",
            Traffic::Answered,
        ),
        ("users: {one: {user: [connect, stay]}, two: {user: [connect, {send: a}]}}", Traffic::Sent),
    ] {
        assert_eq!(compile(user).traffic(), traffic, "{user}");
    }
}
