//! What the compiler of a step may do: append ops, and put what they refer to into the tables.

use std::time::Duration;

use super::handshake::Handshake;
use super::{
    ChannelRequest, LatencyKind, Loop, Matcher, MessagePattern, Op, OpFacts, OpRole, OpSum,
    Program, StepOrigin, Template, TopicTemplate, Turns,
};
use crate::scenario::Target;
use crate::steps::connect::upgrade::UpgradeOptions;

/// The program so far, and what the steps of a class have in common.
pub(crate) struct Compiler<'a> {
    program: &'a mut Program,
    target: &'a Target,
    /// Number of loops around the next op.
    depth: u8,
    /// Step that is compiled.
    origin: StepOrigin,
    /// Sum of the ops so far, in the loop that is compiled.
    pub(super) sum: OpSum,
}

impl<'a> Compiler<'a> {
    pub(super) fn new(program: &'a mut Program, target: &'a Target) -> Self {
        Self { program, target, depth: 0, origin: StepOrigin::default(), sum: OpSum::NONE }
    }

    /// Appends an op.
    pub(crate) fn push(&mut self, op: Op, facts: OpFacts) {
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
        self.sum = before.then(OpSum { time_min: time_min(self.sum.time_min), ..self.sum });
    }

    /// Appends a request of a channel. Its reply is found by its ref, so it is no answer to a
    /// `send`.
    pub(crate) fn request(&mut self, request: ChannelRequest, latency: Option<LatencyKind>) {
        let topic = &self.program.topic(request.topic).name;
        let texts = [topic, &request.event, &request.payload];
        let bytes_max = texts.map(Template::bytes_max).iter().sum();
        let request = index_of(&mut self.program.requests, request);
        let facts = OpFacts { latency, bytes_max, ..OpFacts::of_role(OpRole::Neutral) };
        self.push(Op::Request { request }, facts);
    }

    /// Returns the index of a message.
    pub(crate) fn template(&mut self, template: &Template) -> u32 {
        index_of(&mut self.program.templates, template.clone())
    }

    /// Returns the index of a rule for bytes.
    pub(crate) fn matcher(&mut self, matcher: &Matcher) -> u32 {
        index_of(&mut self.program.matchers, matcher.clone())
    }

    /// Returns the index of a rule for a message.
    pub(crate) fn pattern(&mut self, pattern: MessagePattern) -> u32 {
        index_of(&mut self.program.patterns, pattern)
    }

    /// Returns the index of an upgrade request to the scenario's target.
    pub(crate) fn handshake(&mut self, upgrade: &UpgradeOptions) -> u32 {
        let handshake = Handshake::new(self.target, self.program.protocol, upgrade);
        index_of(&mut self.program.handshakes, handshake)
    }

    /// Returns the index of a topic. All steps that name it share one.
    pub(crate) fn topic(&mut self, name: &Template) -> u16 {
        let topic = TopicTemplate::new(name.clone(), self.program.probe.as_ref());
        u16::try_from(index_of(&mut self.program.topics, topic))
            .expect("a scenario with 65,536 topics was read from a text")
    }

    pub(super) fn next_pc(&self) -> u32 {
        u32::try_from(self.program.ops.len())
            .expect("a scenario of four thousand million steps was read from a text")
    }
}

/// Returns the index of `value` in the table. Equal values share one.
fn index_of<T: PartialEq>(table: &mut Vec<T>, value: T) -> u32 {
    let index = table.iter().position(|other| *other == value).unwrap_or_else(|| {
        table.push(value);
        table.len() - 1
    });
    index as u32
}
