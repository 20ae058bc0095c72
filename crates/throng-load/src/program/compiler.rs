//! What the compiler of a step may do: append ops, and put what they refer to into the tables.

use std::time::Duration;

use super::table_index::TableIndexes;
use super::{
    BytesPattern, Choice, Condition, LimitedAction, Loop, MessagePattern, Op, OpFacts, OpRole,
    OpSum, Program, Protocol, ProtocolOpEntry, StepIndex, StepOrigin, Template, ThinkTime,
    Transaction, Turns,
};
use crate::protocols::phoenix::channel_request::TopicTemplate;
use crate::protocols::ws::handshake::Handshake;
use crate::protocols::ws::upgrade::UpgradeOptions;
use crate::scenario::Target;

/// The program so far, and what the steps of a class have in common.
pub(crate) struct Compiler<'a> {
    program: &'a mut Program,
    tables: &'a mut TableIndexes,
    target: &'a Target,
    /// Index of the class's first op.
    entry: u32,
    /// Number of loops around the next op.
    depth: u8,
    /// Number of transactions around the next op.
    transactions: u8,
    /// Name of the present step, until an op has it.
    step: Option<StepIndex>,
    /// Step that is compiled.
    pub(super) origin: StepOrigin,
    /// True for the ops of a rule, which are no part of the dialogue that is measured.
    pub(super) is_in_rule: bool,
    /// Sum of the ops so far, in the loop that is compiled.
    pub(super) sum: OpSum,
}

impl<'a> Compiler<'a> {
    pub(super) fn new(
        program: &'a mut Program,
        tables: &'a mut TableIndexes,
        target: &'a Target,
    ) -> Self {
        let (entry, origin) = (program.ops.len() as u32, StepOrigin::default());
        let (depth, transactions, step, sum) = (0, 0, None, OpSum::NONE);
        let is_in_rule = false;
        Self { program, tables, target, entry, depth, transactions, step, origin, is_in_rule, sum }
    }

    /// Begins a step: its name belongs to the first of its ops that waits for the server.
    pub(crate) fn begin_step(&mut self, name: Option<&str>) {
        self.step = name.map(|name| self.step_index(name));
    }

    /// Returns the index of the name of a step or transaction.
    fn step_index(&mut self, name: &str) -> StepIndex {
        StepIndex::new(
            self.tables.step_names.index_of(&mut self.program.step_names, name.to_owned()),
        )
    }

    /// Appends an op.
    pub(crate) fn push(&mut self, op: Op, mut facts: OpFacts) {
        if self.is_in_rule {
            let role = match facts.role {
                OpRole::Branches => OpRole::Branches,
                _ => OpRole::Neutral,
            };
            facts = OpFacts { role, latency: None, ..facts };
        }
        let receives = matches!(facts.role, OpRole::Receives | OpRole::Pings);
        let step = if facts.latency.is_some() || receives { self.step.take() } else { None };
        let facts = OpFacts { step, ..facts };
        self.program.ops.push(op);
        self.program.facts.push(facts);
        self.program.origins.push(self.origin.clone());
        self.sum = self.sum.then(facts.into());
    }

    /// Appends the ops of step `number` of its list, which `compile` appends.
    pub(crate) fn step(
        &mut self,
        number: usize,
        kind: &'static str,
        line: u32,
        compile: impl FnOnce(&mut Self),
    ) {
        let origin = self.origin.inner(number, kind, line);
        let outer = std::mem::replace(&mut self.origin, origin);
        compile(self);
        self.origin = outer;
    }

    /// Appends a loop around the ops that `body` appends. `time_min` returns the shortest time of
    /// the loop from that of a turn.
    pub(crate) fn repeat(
        &mut self,
        turns: Turns,
        time_min: impl FnOnce(Option<Duration>) -> Option<Duration>,
        body: impl FnOnce(&mut Self),
    ) {
        let before = std::mem::replace(&mut self.sum, OpSum::NONE);
        let at = self.program.loops.len();
        let index = at as u32;
        let begin = self.next_pc();
        self.program.loops.push(Loop { slot: self.depth, body: begin + 1, after: 0, turns });
        self.push(Op::LoopBegin { index }, OpFacts::of_role(OpRole::LoopBegins));
        self.depth += 1;
        body(self);
        self.depth -= 1;
        self.push(Op::LoopEnd { index }, OpFacts::of_role(OpRole::LoopEnds { index }));
        self.program.loops[at].after = self.next_pc();
        let messages = self.sum.messages.repeated(&turns, self.sum.time_min);
        let time_min = time_min(self.sum.time_min);
        self.sum = before.then(OpSum { time_min, messages, ..self.sum });
    }

    /// Appends a transaction around the ops that `body` appends.
    pub(crate) fn transaction(&mut self, name: &str, body: impl FnOnce(&mut Self)) {
        let step = self.step_index(name);
        let (at, begin) = (self.program.transactions.len(), self.next_pc());
        let (index, slot) = (at as u32, self.transactions);
        self.program.transactions.push(Transaction { slot, step, body: begin + 1, after: 0 });
        self.push(Op::TransactionBegin { index }, OpFacts::of_role(OpRole::Neutral));
        self.transactions += 1;
        body(self);
        self.transactions -= 1;
        self.push(Op::TransactionEnd { index }, OpFacts::of_role(OpRole::Neutral));
        self.program.transactions[at].after = self.next_pc();
    }

    /// Appends two parts: the first runs where `condition` holds, the second where it does not.
    pub(crate) fn branch(&mut self, condition: &Condition, bodies: &[impl Fn(&mut Self); 2]) {
        let condition = self.condition(condition);
        let head = self.next_pc() as usize;
        self.push(Op::Branch { condition, otherwise: 0 }, OpFacts::of_role(OpRole::Branches));
        let begins = self.parts(bodies);
        self.program.ops[head] = Op::Branch { condition, otherwise: begins[1] };
    }

    /// Appends parts of which one runs, at random by the weights.
    pub(crate) fn choose(&mut self, weights: &[u32], bodies: &[impl Fn(&mut Self)]) {
        let index = self.program.choices.len();
        self.program.choices.push(Choice::default());
        let op = Op::Choose { choice: index as u32 };
        self.push(op, OpFacts::of_role(OpRole::Branches));
        let begins = self.parts(bodies);
        for (weight, begin) in weights.iter().zip(begins) {
            self.program.choices[index].push(*weight, begin);
        }
    }

    /// Appends parts of which one runs. Returns the indexes of their first ops.
    fn parts(&mut self, bodies: &[impl Fn(&mut Self)]) -> Vec<u32> {
        let before = std::mem::replace(&mut self.sum, OpSum::NONE);
        let (mut begins, mut jumps, mut sum) = (Vec::new(), Vec::new(), None::<OpSum>);
        for body in bodies {
            begins.push(self.next_pc());
            self.sum = OpSum::NONE;
            body(self);
            jumps.push(self.next_pc() as usize);
            self.push(Op::Jump { to: 0 }, OpFacts::of_role(OpRole::Branches));
            sum = Some(sum.map_or(self.sum, |sum| sum.or(self.sum)));
        }
        let to = self.next_pc();
        jumps.into_iter().for_each(|jump| self.program.ops[jump] = Op::Jump { to });
        self.sum = before.then(sum.unwrap_or(OpSum::NONE));
        begins
    }

    /// Returns the index of a condition.
    pub(crate) fn condition(&mut self, condition: &Condition) -> u32 {
        self.tables.conditions.index_of(&mut self.program.conditions, condition.clone())
    }

    /// Appends an op of a protocol.
    pub(crate) fn protocol_op(&mut self, op: ProtocolOpEntry, facts: OpFacts) {
        let index = self.program.protocol_ops.len() as u32;
        self.program.protocol_ops.push(op);
        self.push(Op::OfProtocol { index }, facts);
    }

    /// Returns the index of a message.
    pub(crate) fn template(&mut self, template: &Template) -> u32 {
        self.tables.templates.index_of(&mut self.program.templates, template.clone())
    }

    /// Returns the messages that the class has sent so far.
    pub(crate) fn sent_messages(&self) -> impl Iterator<Item = &Template> {
        self.program.ops[self.entry as usize..].iter().filter_map(|op| match op {
            Op::Send { template, .. } => Some(self.program.template(*template)),
            _ => None,
        })
    }

    /// Returns the index of a rule for bytes.
    pub(crate) fn bytes_pattern(&mut self, rule: BytesPattern) -> u32 {
        self.program.bytes_patterns.push(rule);
        self.program.bytes_patterns.len() as u32 - 1
    }

    /// Returns the index of a think time.
    pub(crate) fn think_time(&mut self, think_time: ThinkTime) -> u32 {
        self.tables.think_times.index_of(&mut self.program.think_times, think_time)
    }

    /// Appends the waits for the turns that limits give to a step that does this. In a scenario
    /// without limits there are none, and none in a rule, which never waits.
    pub(crate) fn limit(&mut self, action: LimitedAction) {
        if self.is_in_rule {
            return;
        }
        for (index, limit) in self.program.limits.clone().iter().enumerate() {
            if limit.action == action {
                let op = Op::AwaitTurn { limit: index as u16 };
                self.push(op, OpFacts::of_role(OpRole::Neutral));
            }
        }
    }

    /// Returns the index of a barrier or cue, which the scenario has.
    pub(crate) fn cue(&self, name: &str) -> u16 {
        let found = self.program.cues.iter().position(|cue| cue.name == name);
        found.expect("the reader has all names of cues") as u16
    }

    /// Returns the index of a rule for a message.
    pub(crate) fn pattern(&mut self, pattern: MessagePattern) -> u32 {
        self.program.patterns.push(pattern);
        self.program.patterns.len() as u32 - 1
    }

    /// Returns the index of an upgrade request to the scenario's target.
    pub(crate) fn handshake(&mut self, upgrade: &UpgradeOptions) -> u32 {
        let handshake = Handshake::new(self.target, self.program.protocol, upgrade);
        self.tables.handshakes.index_of(&mut self.program.handshakes, handshake)
    }

    /// Returns the protocol of the scenario.
    pub(crate) fn protocol(&self) -> Protocol {
        self.program.protocol
    }

    /// Returns the target of the scenario.
    pub(crate) fn target(&self) -> &'a Target {
        self.target
    }

    /// Returns the index of a topic. All steps that name it share one.
    pub(crate) fn topic(&mut self, name: &Template) -> u16 {
        let topic = TopicTemplate::new(name.clone(), self.program.probe.as_ref());
        let index = self.tables.topics.index_of(&mut self.program.topics, topic);
        u16::try_from(index).expect("a scenario with 65,536 topics was read from a text")
    }

    /// Returns the name of a topic.
    pub(crate) fn topic_name(&self, index: u16) -> &Template {
        &self.program.topic(index).name
    }

    pub(super) fn next_pc(&self) -> u32 {
        u32::try_from(self.program.ops.len())
            .expect("a scenario of four thousand million steps was read from a text")
    }
}
