//! A rule of `on_message`, compiled.

use super::compiler::Compiler;
use super::{MessagePattern, Op, OpFacts, OpRole, StepOrigin};
use crate::scenario;
use crate::scenario::compile_steps;

/// The messages that a rule takes, and the ops that follow each of them.
#[derive(Clone, Debug)]
pub(crate) struct MessageRule {
    pub(crate) pattern: MessagePattern,
    /// Index of its first op; [`Op::End`] ends them.
    pub(crate) entry: u32,
}

impl Compiler<'_> {
    /// Appends the ops of the rules of a class, behind those of its steps. No op leads to them.
    pub(super) fn rules(&mut self, rules: &[scenario::MessageRule]) -> Vec<MessageRule> {
        self.is_in_rule = true;
        let compile = |(index, rule): (usize, &scenario::MessageRule)| {
            let entry = self.next_pc();
            self.origin = StepOrigin::rule(index + 1, rule.line);
            compile_steps(&rule.steps, self);
            self.push(Op::End, OpFacts::of_role(OpRole::Neutral));
            MessageRule { pattern: rule.pattern.clone(), entry }
        };
        rules.iter().enumerate().map(compile).collect()
    }
}
