//! Compiling steps to ops.

use super::{
    ChannelRequest, ChannelRequestKind, Dialogue, Frame, Handshake, Loop, Matcher, MessagePattern,
    Op, Program, ProgramClass, Template, TopicTemplate, Turns, nanos,
};
use crate::scenario::{Action, Class, Expectation, Repeat, Scenario, SendPayload, Step, Target};
use crate::schedule::PacedTurns;

impl Program {
    /// Compiles the classes of a scenario. The reader has checked that loops are not nested deeper
    /// than [`LOOPS_MAX`](super::LOOPS_MAX).
    ///
    /// # Panics
    /// When there is no class, or all weights are 0.
    pub fn compile(scenario: &Scenario) -> Self {
        let mut program = Self {
            ops: Vec::new(),
            templates: Vec::new(),
            matchers: Vec::new(),
            loops: Vec::new(),
            protocol: scenario.protocol,
            handshakes: Vec::new(),
            patterns: Vec::new(),
            topics: Vec::new(),
            requests: Vec::new(),
            probe: scenario.probe.clone(),
            classes: Vec::new(),
            weight_total: 0,
            stride: 0,
            dialogue: Dialogue::default(),
        };
        for class in &scenario.classes {
            program.compile_class(class, &scenario.target);
        }
        assert!(program.weight_total > 0, "a scenario has users");
        program.stride = stride(program.weight_total);
        program.dialogue = Dialogue::of(&program);
        program
    }

    fn compile_class(&mut self, class: &Class, target: &Target) {
        self.weight_total += u64::from(class.weight);
        let entry = self.next_pc();
        self.compile_steps(&class.steps, target, 0);
        self.ops.push(Op::End);
        self.classes.push(ProgramClass {
            name: class.name.clone(),
            entry,
            on_error: class.on_error,
            weight_end: self.weight_total,
        });
    }

    fn compile_steps(&mut self, steps: &[Step], target: &Target, depth: u8) {
        for step in steps {
            self.compile_step(&step.action, target, depth);
        }
    }

    fn compile_step(&mut self, action: &Action, target: &Target, depth: u8) {
        let op = match action {
            Action::Connect { timeout, upgrade } => {
                let handshake = upgrade.as_ref().map_or(0, |upgrade| {
                    let handshake = Handshake::new(target, self.protocol, upgrade);
                    index_of(&mut self.handshakes, handshake)
                });
                Op::Connect { timeout_ns: nanos(*timeout), handshake }
            }
            Action::Send(SendPayload::Random(bytes)) => Op::SendRandom { bytes: *bytes },
            Action::Send(SendPayload::Template(template)) => self.send_op(template, Frame::Raw),
            Action::Send(SendPayload::Text(template)) => self.send_op(template, Frame::Text),
            Action::Send(SendPayload::Binary(template)) => self.send_op(template, Frame::Binary),
            Action::ExpectMessage { pattern, skip_others, timeout } => {
                let pattern = MessagePattern::new(pattern.clone(), *skip_others);
                Op::ExpectMessage {
                    pattern: index_of(&mut self.patterns, pattern),
                    timeout_ns: nanos(*timeout),
                }
            }
            Action::Join { topic, payload, timeout } => {
                let request =
                    ChannelRequest::join(self.topic_index(topic), payload.clone(), *timeout);
                Op::Request { request: index_of(&mut self.requests, request) }
            }
            Action::Push { topic, event, payload, reply, timeout } => {
                let request = ChannelRequest {
                    kind: ChannelRequestKind::Push,
                    topic: self.topic_index(topic),
                    event: event.clone(),
                    payload: payload.clone(),
                    awaits_reply: *reply,
                    timeout: *timeout,
                };
                Op::Request { request: index_of(&mut self.requests, request) }
            }
            Action::Leave { topic, timeout } => {
                let request = ChannelRequest::leave(self.topic_index(topic), *timeout);
                Op::Request { request: index_of(&mut self.requests, request) }
            }
            Action::ExpectBytes { expected, timeout } => {
                let matcher = match expected {
                    Expectation::Literal(bytes) => Matcher::literal(bytes),
                    Expectation::Bytes(bytes) => Matcher::bytes(*bytes),
                    Expectation::Until(pattern) => Matcher::until(pattern),
                };
                Op::ExpectBytes {
                    matcher: index_of(&mut self.matchers, matcher),
                    timeout_ns: nanos(*timeout),
                }
            }
            Action::Wait { span, jitter } => {
                Op::Wait { span_ns: nanos(*span), jitter: *jitter as f32 }
            }
            Action::Stay => Op::Stay,
            Action::Close(how) => Op::Close { how: *how },
            Action::Every { pace, span, steps } => {
                let pace = PacedTurns::new(*pace);
                let turns = span.map_or(u64::MAX, |span| pace.turns_in(span));
                return self.compile_loop(Turns::Every { pace, turns }, steps, target, depth);
            }
            Action::Repeat { until, steps } => {
                let turns = match until {
                    Repeat::Times(times) => Turns::Times(*times),
                    Repeat::For(span) => Turns::For { span_ns: nanos(*span) },
                };
                return self.compile_loop(turns, steps, target, depth);
            }
        };
        self.ops.push(op);
    }

    fn send_op(&mut self, template: &Template, frame: Frame) -> Op {
        Op::Send { template: index_of(&mut self.templates, template.clone()), frame }
    }

    /// Returns the index of a topic. All steps that name it share one.
    fn topic_index(&mut self, name: &Template) -> u16 {
        let topic = TopicTemplate::new(name.clone(), self.probe.as_ref());
        u16::try_from(index_of(&mut self.topics, topic))
            .expect("a scenario with 65,536 topics was read from a text")
    }

    fn compile_loop(&mut self, turns: Turns, steps: &[Step], target: &Target, depth: u8) {
        let index = self.loops.len();
        let body = self.next_pc() + 1;
        self.loops.push(Loop { slot: depth, body, after: 0, turns });
        self.ops.push(Op::LoopBegin { index: index as u32 });
        self.compile_steps(steps, target, depth + 1);
        self.ops.push(Op::LoopEnd { index: index as u32 });
        self.loops[index].after = self.next_pc();
    }

    fn next_pc(&self) -> u32 {
        u32::try_from(self.ops.len())
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

/// Returns a number coprime to `total` near its golden section, so that its multiples spread
/// evenly.
fn stride(total: u64) -> u64 {
    let golden = (total as f64 * 0.618_033_988_75) as u64;
    (golden.max(1)..).find(|&stride| gcd(stride, total) == 1).unwrap_or(1)
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
