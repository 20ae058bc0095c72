//! A scenario compiled for the hot path: one flat list of small ops, with everything parsed.
//!
//! A user is an index into this list and a few counters. Payloads, patterns and loops are in side
//! tables that all users of a core share; no op allocates.

mod bytes_pattern;
mod capture;
mod choice;
mod compile;
pub(crate) mod compiler;
mod condition;
mod cue;
mod describe;
mod dialogue;
mod difference;
mod json_pattern;
mod json_place;
mod known_values;
mod limit;
mod loops;
mod matcher;
mod message;
mod message_rule;
mod message_sum;
mod op;
mod protocol_op;
mod step_index;
mod step_origin;
mod table_index;
mod think_time;
mod transaction;
mod trial;
mod unread;
mod unsendable;

pub use crate::scenario::{
    Broadcast, DataTable, OnError, Probe, Protocol, Template, Variable, VariableScope,
};
pub use bytes_pattern::BytesPattern;
pub use capture::{Capture, CapturePlace, SentPart};
pub use choice::Choice;
pub use condition::{Condition, Relation};
pub use cue::{Cue, CueKind};
pub use dialogue::NextAnswer;
pub use json_pattern::{JsonOrder, JsonPattern, JsonTest};
pub use json_place::JsonPlace;
pub use limit::{LimitScope, LimitedAction, RateLimit};
pub use loops::{Loop, Turns};
pub use matcher::{MatchProgress, Matcher};
pub use message::{IncomingMessage, MessagePart, MessagePattern, Pattern};
pub(crate) use message_rule::MessageRule;
pub use op::{CloseAction, Frame, Op, Traffic};
pub(crate) use op::{OpFacts, OpRole, OpSum};
pub(crate) use protocol_op::{ProtocolOp, ProtocolOpEntry};
pub use step_index::StepIndex;
pub use step_origin::StepOrigin;
pub use think_time::{ThinkLaw, ThinkTime};
use throng_measure::Operation;
pub use transaction::{TRANSACTIONS_MAX, Transaction};
pub use trial::STAY_SPAN;
pub use unread::UnreadMessages;
pub(crate) use unsendable::UnsendablePart;

use std::any::Any;
use std::ops::Range;
use std::time::Duration;

use throng_base::Prng;
pub(crate) use throng_base::time::nanos;

use crate::protocols::phoenix::channel_request::TopicTemplate;
use crate::protocols::ws::handshake::Handshake;
use crate::schedule::UserNumbers;
use dialogue::Dialogue;

/// A compiled scenario: the ops of all classes and their side tables.
#[derive(Clone, Debug)]
pub struct Program {
    ops: Vec<Op>,
    /// Facts of each op.
    facts: Vec<OpFacts>,
    /// Step of each op.
    origins: Vec<StepOrigin>,
    templates: Vec<Template>,
    bytes_patterns: Vec<BytesPattern>,
    loops: Vec<Loop>,
    transactions: Vec<Transaction>,
    step_names: Vec<String>,
    think_times: Vec<ThinkTime>,
    conditions: Vec<Condition>,
    choices: Vec<Choice>,
    cues: Vec<Cue>,
    limits: Vec<RateLimit>,
    held_bytes_max: Option<u64>,
    protocol: Protocol,
    handshakes: Vec<Handshake>,
    patterns: Vec<MessagePattern>,
    /// Rules of all classes, class after class.
    rules: Vec<MessageRule>,
    topics: Vec<TopicTemplate>,
    protocol_ops: Vec<ProtocolOpEntry>,
    probe: Option<Probe>,
    tables: Vec<DataTable>,
    sent_parts: Vec<SentPart>,
    classes: Vec<ProgramClass>,
    weight_total: u64,
    /// Numbers of the users, if each class has a load of its own.
    numbers: Option<UserNumbers>,
    /// Coprime to `weight_total`, so that its multiples visit every residue once.
    stride: u64,
    dialogue: Dialogue,
    /// Texts that no report and no trace shows.
    secrets: Vec<String>,
    /// Place of `verify: none` in the scenario, if the target is over TLS.
    unverified_at: Option<Range<usize>>,
}

/// A class of users in a program.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgramClass {
    /// The class's name in the scenario.
    pub name: String,
    /// Index of its first op.
    pub entry: u32,
    /// Policy after an error.
    pub on_error: OnError,
    /// Its place among the classes that a threshold is about.
    pub(crate) judged: Option<usize>,
    /// Its rules for messages, among those of the program.
    rules: Range<usize>,
    /// Sum of the weights up to and including this class.
    weight_end: u64,
    /// Sum of its ops.
    pub(crate) sum: OpSum,
}

impl Program {
    /// Returns the op at `pc`.
    pub fn op(&self, pc: u32) -> Op {
        self.ops[pc as usize]
    }

    /// Returns all ops, class after class.
    pub fn ops(&self) -> &[Op] {
        &self.ops
    }

    /// Returns the step of the scenario to which the op at `pc` belongs.
    pub fn origin(&self, pc: u32) -> &StepOrigin {
        &self.origins[pc as usize]
    }

    /// Returns the texts that no report and no trace shows.
    pub(crate) fn secrets(&self) -> &[String] {
        &self.secrets
    }

    /// Returns the message of an [`Op::Send`].
    pub fn template(&self, index: u32) -> &Template {
        &self.templates[index as usize]
    }

    /// Returns the rule of an [`Op::ExpectBytes`].
    pub fn bytes_pattern(&self, index: u32) -> &BytesPattern {
        &self.bytes_patterns[index as usize]
    }

    /// Returns the think time of an [`Op::Think`].
    pub fn think_time(&self, index: u32) -> &ThinkTime {
        &self.think_times[index as usize]
    }

    /// Returns the loop of an [`Op::LoopBegin`] or [`Op::LoopEnd`].
    pub fn loop_at(&self, index: u32) -> &Loop {
        &self.loops[index as usize]
    }

    /// Returns a condition.
    pub fn condition(&self, index: u32) -> &Condition {
        &self.conditions[index as usize]
    }

    /// Returns the choice of an [`Op::Choose`].
    pub fn choice(&self, index: u32) -> &Choice {
        &self.choices[index as usize]
    }

    /// Returns a range of loop indexes that includes all loops that [contain](Loop::contains) `pc`.
    pub fn loops_near(&self, pc: u32) -> Range<u32> {
        // Loops are sorted by their bodies; an inner loop follows the one that contains it.
        let end = self.loops.partition_point(|looping| looping.body <= pc);
        let outermost = self.loops[..end].iter().rposition(|looping| looping.slot == 0);
        outermost.unwrap_or(end) as u32..end as u32
    }

    /// Returns the latency that a wait at `pc` belongs to.
    pub fn latency_kind_at(&self, pc: u32) -> Option<Operation> {
        self.facts[pc as usize].latency
    }

    /// Returns the first latency that a turn of loop `index` measures.
    pub fn latency_kind_of_turn(&self, index: u32) -> Option<Operation> {
        let looping = self.loop_at(index);
        (looping.body..looping.after).find_map(|pc| self.latency_kind_at(pc))
    }

    /// Returns the names of steps and transactions, in the order of the scenario.
    pub fn step_names(&self) -> &[String] {
        &self.step_names
    }

    /// Returns the name of the step at `pc`, if it has one.
    pub fn step_at(&self, pc: u32) -> Option<StepIndex> {
        self.facts[pc as usize].step
    }

    /// Returns the transaction of an [`Op::TransactionBegin`] or
    /// [`Op::TransactionEnd`].
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
            facts.latency.is_some() && !matches!(facts.role, OpRole::Sends { .. })
        };
        let first = (looping.body..looping.after).find(measures);
        let body = looping.body;
        let around = first.into_iter().flat_map(|pc| self.transactions_around(pc));
        let around = around.filter(move |transaction| transaction.body > body);
        around.map(|transaction| transaction.step).chain(first.and_then(|pc| self.step_at(pc)))
    }

    /// Returns the protocol of all connections.
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Returns the upgrade request of an [`Op::Connect`].
    pub(crate) fn handshake(&self, index: u32) -> &Handshake {
        &self.handshakes[index as usize]
    }

    /// Returns the most bytes that a connection keeps of its compressed messages, because later
    /// ones may refer to them.
    pub fn context_bytes(&self) -> u64 {
        self.handshakes.iter().map(Handshake::context_bytes).max().unwrap_or(0)
    }

    /// Returns the shortest heartbeat interval of all handshakes, if users send heartbeats.
    pub fn heartbeat(&self) -> Option<Duration> {
        self.handshakes.iter().filter_map(|handshake| handshake.heartbeat).min()
    }

    /// Returns the pattern of an [`Op::ExpectMessage`].
    pub fn pattern(&self, index: u32) -> &MessagePattern {
        &self.patterns[index as usize]
    }

    /// Returns the rules for messages of class `class`.
    pub(crate) fn rules_of(&self, class: usize) -> &[MessageRule] {
        &self.rules[self.classes[class].rules.clone()]
    }

    /// Returns what the op at `pc` waits for, if that is a message.
    pub(crate) fn pattern_of(&self, pc: u32) -> Option<&MessagePattern> {
        let Op::ExpectMessage { pattern, .. } = self.op(pc) else { return None };
        Some(self.pattern(pattern))
    }

    /// Returns the rule for the message or the response that the op at `pc` waits for.
    pub(crate) fn message_rule(&self, pc: u32) -> Option<&MessagePattern> {
        match self.op(pc) {
            Op::ExpectMessage { pattern, .. } => Some(self.pattern(pattern)),
            _ => self.protocol_op(pc)?.response(),
        }
    }

    /// Describes the first part of an answer on a stream that the op at `pc` keeps and that
    /// `answer` lacks.
    pub(crate) fn missing_capture(&self, pc: u32, answer: &[u8]) -> Option<String> {
        let Op::ExpectBytes { pattern, .. } = self.op(pc) else { return None };
        self.bytes_pattern(pattern).missing_capture(answer)
    }

    /// Returns the op at `pc`, if it is one of a protocol.
    pub(crate) fn protocol_op(&self, pc: u32) -> Option<&dyn ProtocolOp> {
        let Op::OfProtocol { index } = self.op(pc) else { return None };
        Some(&*self.protocol_ops[index as usize].described)
    }

    /// Returns what a user does in the op at `pc`, if it is one of a protocol.
    pub(crate) fn done_by_user(&self, pc: u32) -> Option<&dyn Any> {
        let Op::OfProtocol { index } = self.op(pc) else { return None };
        Some(&*self.protocol_ops[index as usize].done_by_user)
    }

    /// Returns the op at `pc`, if it is of this type of a protocol.
    pub(crate) fn op_of<T: ProtocolOp>(&self, pc: u32) -> Option<&T> {
        (self.protocol_op(pc)? as &dyn Any).downcast_ref()
    }

    /// Reports whether the op at `pc` opens a connection for its request, if there is none.
    pub(crate) fn opens_connection(&self, pc: u32) -> bool {
        matches!(self.facts[pc as usize].role, OpRole::Asks { .. })
    }

    /// Returns the topic of a request of Phoenix Channels.
    pub(crate) fn topic(&self, index: u16) -> &TopicTemplate {
        &self.topics[usize::from(index)]
    }

    /// Returns the probe, if the scenario has one.
    pub fn probe(&self) -> Option<&Probe> {
        self.probe.as_ref()
    }

    /// Reports whether the op at `pc` waits for what comes unasked.
    pub fn is_receive(&self, pc: u32) -> bool {
        matches!(self.facts[pc as usize].role, OpRole::Receives)
    }

    /// Returns the data files.
    pub fn tables(&self) -> &[DataTable] {
        &self.tables
    }

    /// Replaces the data files by others with the same names and columns.
    pub(crate) fn set_tables(&mut self, tables: Vec<DataTable>) {
        self.tables = tables;
    }

    /// Returns the parts of a sent message that its user stores.
    pub fn sent_parts(&self) -> &[SentPart] {
        &self.sent_parts
    }

    /// Returns the classes in the order of the scenario.
    pub fn classes(&self) -> &[ProgramClass] {
        &self.classes
    }

    /// Returns the names of the classes that a threshold is about, in the order of their places.
    pub fn judged_classes(&self) -> impl Iterator<Item = &str> {
        let judged = self.classes.iter().filter(|class| class.judged.is_some());
        judged.map(|class| class.name.as_str())
    }

    /// Returns the mean of a number that a user of each class has.
    pub(crate) fn mean_of_users(&self, of: impl Fn(OpSum) -> f64) -> f64 {
        let mut before = 0;
        let weighted = self.classes.iter().map(|class| {
            let weight = class.weight_end - std::mem::replace(&mut before, class.weight_end);
            weight as f64 * of(class.sum)
        });
        weighted.sum::<f64>() / self.weight_total as f64
    }

    /// Returns the messages of the class that has most of them.
    pub fn traffic(&self) -> Traffic {
        self.classes.iter().map(|class| class.sum.traffic).max().unwrap_or_default()
    }

    /// Reports whether class `class` has an `expect` or a `receive` step.
    pub fn expects(&self, class: usize) -> bool {
        let waits = |role| matches!(role, OpRole::Expects | OpRole::Receives);
        self.roles_of(class).any(waits)
    }

    /// Reports whether users of class `class` close their connections by RST and never in another
    /// way.
    pub fn resets(&self, class: usize) -> bool {
        let mut closes = self.roles_of(class).filter_map(|role| match role {
            OpRole::Closes(how) => Some(how),
            _ => None,
        });
        closes.next() == Some(CloseAction::Reset) && closes.all(|how| how == CloseAction::Reset)
    }

    fn roles_of(&self, class: usize) -> impl Iterator<Item = OpRole> {
        let entry = self.classes[class].entry as usize;
        let roles = self.facts[entry..].iter().map(|facts| facts.role);
        roles.take_while(|role| *role != OpRole::Ends)
    }

    /// Returns an upper bound of the message size over all classes, in bytes.
    pub fn message_bytes_max(&self) -> usize {
        self.facts.iter().map(|facts| facts.bytes_max).max().unwrap_or(0)
    }

    /// Returns the bytes that the scenario lets the users of a core hold of what the target sent.
    pub fn held_bytes_max(&self) -> Option<u64> {
        self.held_bytes_max
    }

    /// Returns the limits that the scenario sets, in the order of their indexes.
    pub fn limits(&self) -> &[RateLimit] {
        &self.limits
    }

    /// Returns the barriers and signals, in the order of their indexes.
    pub fn cues(&self) -> &[Cue] {
        &self.cues
    }

    /// Returns how many of the first `users` users are of one of these classes.
    pub(crate) fn users_of_classes(&self, classes: &[usize], users: u64) -> u64 {
        let (blocks, rest) = (users / self.weight_total, users % self.weight_total);
        let is_own = |user: &u64| classes.contains(&self.class_of(*user));
        let count = |users: Range<u64>| users.filter(is_own).count() as u64;
        let in_block = if blocks > 0 { count(0..self.weight_total) } else { 0 };
        blocks * in_block + count(users - rest..users)
    }

    /// Returns the index of the class of user `user`: that in whose load it is, if each class has
    /// one. Otherwise, and for users that were requested by hand: in every block of as many users
    /// as the sum of the weights, each class has exactly its weight, and the classes are mixed
    /// rather than one after another.
    pub fn class_of(&self, user: u64) -> usize {
        let place = self.numbers.as_ref().and_then(|numbers| numbers.place(user));
        if let Some((class, _)) = place {
            return class;
        }
        let (block, turn) = (user / self.weight_total, user % self.weight_total);
        let begin = Prng::derive(0, block).below(self.weight_total);
        let position = u128::from(turn) * u128::from(self.stride) + u128::from(begin);
        let position = (position % u128::from(self.weight_total)) as u64;
        self.classes.partition_point(|class| class.weight_end <= position)
    }
}

/// Varies a span by the share `jitter` either way, evenly distributed.
pub fn jittered(span_ns: u64, jitter: f32, prng: &mut Prng) -> u64 {
    if jitter == 0.0 {
        return span_ns;
    }
    let factor = 1.0 + f64::from(jitter) * (2.0 * prng.unit() - 1.0);
    (span_ns as f64 * factor) as u64
}

/// Maximum depth of nested loops: a user has this many counters.
pub const LOOPS_MAX: usize = 4;

#[cfg(test)]
mod tests;
