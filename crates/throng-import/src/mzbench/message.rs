//! What a request sends: a text, or the value of a variable.

use super::context::Context;
use super::tree::{Expr, ExprKind};
use crate::text::escape;
use crate::yaml::Yaml;

/// What the article's tcp_worker sends if the scenario says nothing else.
pub(super) const PAYLOAD: &str = "I'm requesting the service";

/// Returns the value of `send` for a message. Reports what cannot be translated, and sends the
/// worker's own text in its place.
pub(super) fn send(cx: &mut Context<'_, '_>, message: Option<&Expr>) -> Yaml {
    let Some(message) = message else { return Yaml::text(PAYLOAD) };
    // It was a mistake.
    let Some(variable) = cx.variable(message) else { return Yaml::text(PAYLOAD) };
    let value = variable.map_or_else(|| message.clone(), |(_, value)| value);
    match &value.kind {
        ExprKind::Text(text) | ExprKind::Word(text) if text.is_empty() => {
            let label = "expected at least one byte";
            cx.translator.mistake(&message.span, "an empty message cannot be sent", label);
        }
        ExprKind::Text(text) | ExprKind::Word(text) => return Yaml::text(escape(text)),
        ExprKind::Number(number) => return Yaml::text(number.to_string()),
        _ => {
            let construct = value.call().map_or("message", |call| &*call.name).to_owned();
            let remedy = "write the text that it stands for, with `${random(1,9)}` or \
                          `${choice('a', 'b')}` in it, or `send: {random: 1kb}`";
            cx.translator.not_supported(&message.span, construct, remedy);
        }
    }
    Yaml::text(PAYLOAD)
}
