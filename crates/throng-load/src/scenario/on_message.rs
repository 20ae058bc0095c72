//! `on_message`: what the users of a class do when a certain message comes, whatever step they are
//! in.

use super::node::{Kind, Node};
use super::reader::Reader;
use super::step::Step;
use super::step_list;
use crate::program::MessagePattern;
use crate::protocols::MessageForm;
use crate::protocols::phoenix::receive_event::read_rule_event;
use crate::steps::{of_rule, read_rule_pattern};

/// A rule of a class: the messages that it takes, and the steps that follow each of them.
#[derive(Clone, Debug)]
pub struct MessageRule {
    pub(crate) pattern: MessagePattern,
    pub(crate) steps: Vec<Step>,
    /// Line of the rule in the file, from 1.
    pub(crate) line: u32,
}

/// Reads the rules of a class, after its steps: they may use all that the steps store.
pub(super) fn read(reader: &mut Reader<'_>, node: Option<&Node>) -> Option<Vec<MessageRule>> {
    let Some(node) = node else { return Some(Vec::new()) };
    if !reader.protocol.messages.come_unasked() {
        let title = format!("`protocol: {}` has no `on_message`", reader.protocol.name());
        let label = "only messages of a WebSocket and events of channels have rules";
        reader.error(reader.first_line(&node.span), title, label);
        return None;
    }
    let Kind::List(items) = &node.kind else {
        let example = match reader.protocol.messages {
            MessageForm::Events => "`- {topic: a, event: ask, do: [push: {topic: a, event: say}]}`",
            _ => "`- {text: ping, do: [send: pong]}`",
        };
        reader.wrong_kind(node, WHAT, &format!("a list such as {example}"));
        return None;
    };
    if items.is_empty() || items.len() > RULES_MAX {
        let label = format!("at least one, at most {RULES_MAX}");
        reader.error(node.span.clone(), "`on_message` has too few or too many rules", label);
        return None;
    }
    // What a rule sends is in no latency: a threshold cannot be about it.
    let (kinds, names) = (reader.step_kinds.clone(), reader.limited_actions.clone());
    let rules: Vec<_> = items.iter().map(|item| read_rule(reader, item)).collect();
    (reader.step_kinds, reader.limited_actions) = (kinds, names);
    rules.into_iter().collect()
}

fn read_rule(reader: &mut Reader<'_>, node: &Node) -> Option<MessageRule> {
    let what = "a rule of `on_message`";
    let (fields, pattern) = match reader.protocol.messages {
        MessageForm::Events => read_rule_event(reader, node, what)?,
        _ => read_rule_pattern(reader, node, what)?,
    };
    let steps = reader.value_or(&fields, "do", Vec::new(), |reader, node| {
        step_list::read_connected(reader, node, "`do`", of_rule)
    });
    let line = reader.line_number(node.span.start);
    Some(MessageRule { pattern: pattern?, steps: steps?, line })
}

const WHAT: &str = "`on_message`";

/// The most rules of a class: each message is compared with all of them.
const RULES_MAX: usize = 64;
