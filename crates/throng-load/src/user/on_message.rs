//! Rules of `on_message`: what a user does with a message that a rule takes, beside its steps.
//!
//! The message is the rule's alone: no step sees it, and no latency has it. The steps of a rule
//! only send and store, so the user stays where it is.

use super::context::{StepOutcome, UserContext};
use super::error::ErrorKind;
use super::{cues, failure};
use crate::program::{IncomingMessage, MessageRule, Op, Program};
use crate::steps::{branch, choose, send, set};

/// Lets the first rule that fits take the message. Returns false if none does.
pub(crate) fn take(cx: &mut UserContext<'_>, message: IncomingMessage<'_>) -> bool {
    if !cx.class().has_rules || cx.user.is_closing_or_stopped() {
        return false;
    }
    let Some(rule) = first_rule(cx, message) else { return false };
    cx.count(|c| c.rules_matched += 1);
    rule.pattern.store_captures(message, |slot, value| cx.user.memory.store(slot, value));
    // The counter is that of the messages that the user's own steps send.
    let counter = cx.user.counter;
    run(cx, rule.entry);
    cx.user.counter = counter;
    true
}

fn first_rule<'a>(
    cx: &mut UserContext<'a>,
    message: IncomingMessage<'_>,
) -> Option<&'a MessageRule> {
    let program: &'a Program = cx.rules.program;
    let scope = cx.user.scope_of_answer(program, cx.rules.seed);
    let comparison = &mut cx.encoder.comparison;
    let mut rules = program.rules_of(cx.user.class.into()).iter();
    rules.find(|rule| rule.pattern.matches(message, scope, comparison))
}

/// Runs the ops of a rule. They have no loops and never wait.
fn run(cx: &mut UserContext<'_>, entry: u32) {
    let mut pc = entry;
    loop {
        let op = cx.rules.program.op(pc);
        if op != Op::End {
            cx.trace_op_at(pc);
        }
        let outcome = match op {
            Op::Send { template, frame } => {
                let is_sent = send_reply(cx, |cx| send::write(cx, template, frame).is_some());
                if !is_sent {
                    failure::fail_beside(cx, ErrorKind::BadValue);
                    return;
                }
                StepOutcome::Next
            }
            Op::SendRandom { bytes } => {
                send_reply(cx, |cx| {
                    send::write_random(cx, bytes as usize);
                    true
                });
                StepOutcome::Next
            }
            Op::OfProtocol { .. } => {
                if let Some(op) = cx.protocol_op_at(pc) {
                    op.send_of_rule(cx);
                }
                StepOutcome::Next
            }
            Op::Set { slot, template } => set::begin(cx, slot, template),
            Op::Signal { cue } => cues::signal(cx, cue),
            Op::Branch { condition, otherwise } => branch::begin(cx, condition, otherwise),
            Op::Choose { choice } => choose::begin(cx, choice),
            Op::Jump { to } => StepOutcome::Go(to),
            _ => return,
        };
        pc = match outcome {
            StepOutcome::Go(to) => to,
            _ => pc + 1,
        };
    }
}

/// Sends a message of a rule, which `write` writes. Returns false if it could not write the
/// message. A server that does not read gets none: the user's output would grow with each of the
/// server's messages.
pub(crate) fn send_reply(
    cx: &mut UserContext<'_>,
    write: impl FnOnce(&mut UserContext<'_>) -> bool,
) -> bool {
    if cx.is_blocked() {
        cx.count(|c| c.rules_blocked += 1);
        return true;
    }
    let is_written = write(cx);
    if is_written {
        cx.count(|c| c.rules_sent += 1);
    }
    is_written
}
