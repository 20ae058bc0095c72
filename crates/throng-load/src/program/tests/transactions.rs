//! Steps with a name, and transactions, in a compiled program.

use crate::program::{Op, Program, StepIndex};
use crate::scenario::Scenario;

fn compile(user: &str) -> Program {
    let text = format!("target: tcp://h:1\nload: [ramp: {{to: 1, over: 1s}}]\nuser: {user}\n");
    Program::compile(
        &Scenario::parse(&text, "test.yaml").unwrap_or_else(|mistakes| panic!("{mistakes}")),
    )
}

#[test]
fn a_name_belongs_to_the_op_that_waits() {
    let program = compile(
        "[connect: {name: login}, send: a, expect: {text: b, name: greeting}, \
         repeat: {times: 2, do: [send: a, expect: b, expect: {text: c, name: greeting}]}]",
    );
    assert_eq!(program.step_names(), ["login", "greeting"]);
    let pcs = 0..program.ops().len() as u32;
    let named: Vec<_> = pcs.map(|pc| program.step_at(pc).map(StepIndex::get)).collect();
    // connect, send, expect, loop, send, expect, expect, end of the loop, end
    let (login, greeting) = (Some(0), Some(1));
    assert_eq!(named, [login, None, greeting, None, None, None, greeting, None, None]);
}

#[test]
fn the_transactions_around_an_op_are_known() {
    let program = compile(
        "[connect, transaction: {name: outer, do: [send: a, \
         transaction: {name: inner, do: [expect: b]}, wait: 1s]}, send: c]",
    );
    let around = |pc: u32| {
        let around = program.transactions_around(pc);
        around.map(|of| (of.step.get(), of.slot)).collect::<Vec<_>>()
    };
    assert!(matches!(program.op(1), Op::TransactionBegin { index: 0 }));
    let (outer, inner) = ((0, 0), (1, 1));
    // connect, outer, send, inner, expect, end of inner, wait, end of outer, send
    let expected: [&[_]; 9] =
        [&[], &[], &[outer], &[outer], &[outer, inner], &[outer, inner], &[outer], &[outer], &[]];
    assert_eq!((0..9).map(around).collect::<Vec<_>>(), expected);
}

#[test]
fn a_turn_that_never_begins_belongs_to_its_first_latency() {
    let of_turn = |user: &str| {
        let program = compile(user);
        let steps: Vec<_> = program.steps_of_turn(program.loop_at(0)).collect();
        let names = steps.iter().map(|step| program.step_names()[step.get()].as_str());
        names.collect::<Vec<_>>().join(" ")
    };
    let every = |body: &str| format!("every: {{period: 1s, for: 9s, do: [{body}]}}");
    let named = "send: a, expect: {text: b, name: first}, expect: {text: c, name: second}";
    assert_eq!(of_turn(&format!("[connect, {}]", every(named))), "first");
    let shop = format!("transaction: {{name: shop, do: [{named}]}}");
    assert_eq!(of_turn(&format!("[connect, {}]", every(&shop))), "shop first");
    let around = format!("transaction: {{name: around, do: [{}]}}", every(named));
    assert_eq!(of_turn(&format!("[connect, {around}]")), "first");
    assert_eq!(of_turn(&format!("[connect, {}]", every("send: a, wait: 1ms"))), "");
}
