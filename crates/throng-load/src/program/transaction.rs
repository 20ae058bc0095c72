//! Steps with a name, and transactions: where a program has them.

use super::{Loop, OpRole, Program};

/// Index of the name of a step or transaction among [`Program::step_names`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepIndex(u8);

impl StepIndex {
    /// Returns the index of name number `number`. A scenario has at most
    /// [`STEP_NAMES_MAX`](throng_report::STEP_NAMES_MAX) of them.
    pub(super) fn new(number: u32) -> Self {
        Self(u8::try_from(number).expect("the reader has counted the names"))
    }

    /// Returns the number.
    pub fn get(self) -> usize {
        self.0.into()
    }
}

/// Steps of a class that are measured together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// Index of its beginning among those that a user keeps: its depth, from 0.
    pub slot: u8,
    /// Name of the transaction.
    pub step: StepIndex,
    /// Index of the first op of its body.
    pub body: u32,
    /// Index of the op after its `TransactionEnd`.
    pub after: u32,
}

impl Transaction {
    /// Reports whether the op at `pc` is in the transaction's body or is its `TransactionEnd`.
    pub fn contains(&self, pc: u32) -> bool {
        (self.body..self.after).contains(&pc)
    }
}

impl Program {
    /// Returns the names of steps and transactions, in the order of the scenario.
    pub fn step_names(&self) -> &[String] {
        &self.step_names
    }

    /// Returns the name of the step at `pc`, if it has one.
    pub fn step_at(&self, pc: u32) -> Option<StepIndex> {
        self.facts[pc as usize].step
    }

    /// Returns the transaction of an [`Op::TransactionBegin`](super::Op::TransactionBegin) or
    /// [`Op::TransactionEnd`](super::Op::TransactionEnd).
    pub fn transaction(&self, index: u32) -> &Transaction {
        &self.transactions[index as usize]
    }

    /// Returns the transactions around the op at `pc`, the outermost first.
    pub fn transactions_around(&self, pc: u32) -> impl Iterator<Item = &Transaction> {
        self.transactions.iter().filter(move |transaction| transaction.contains(pc))
    }

    /// Returns what the first latency of a turn belongs to: its step, if that has a name, and the
    /// transactions in the loop around it.
    pub(crate) fn steps_of_turn(&self, looping: &Loop) -> impl Iterator<Item = StepIndex> {
        let measures = |pc: &u32| {
            let facts = self.facts[*pc as usize];
            facts.latency.is_some() && facts.role != OpRole::Sends
        };
        let first = (looping.body..looping.after).find(measures);
        let body = looping.body;
        let around = first.into_iter().flat_map(|pc| self.transactions_around(pc));
        let around = around.filter(move |transaction| transaction.body > body);
        around.map(|transaction| transaction.step).chain(first.and_then(|pc| self.step_at(pc)))
    }
}

/// Maximum depth of nested transactions: a user keeps this many beginnings.
pub const TRANSACTIONS_MAX: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::Op;
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
        let expected: [&[_]; 9] = [
            &[],
            &[],
            &[outer],
            &[outer],
            &[outer, inner],
            &[outer, inner],
            &[outer],
            &[outer],
            &[],
        ];
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
}
