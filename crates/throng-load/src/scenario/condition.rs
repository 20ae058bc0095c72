//! Reading a condition: `${count} < 10`.

use super::node::Node;
use super::reader::Reader;
use crate::program::{Condition, Relation};

/// Reads a condition: two texts with variables and a relation between them, or one text.
pub(crate) fn read_condition(reader: &mut Reader<'_>, node: &Node) -> Option<Condition> {
    let text = reader.text(node, "a condition", "a comparison such as ${count} < 10")?;
    if text.trim().is_empty() {
        reader.error(node.span.clone(), "the condition is empty", "for example ${count} < 10");
        return None;
    }
    let Some((at, sign, relation)) = find_relation(text) else {
        return reader.template(node, text.trim()).map(Condition::truth);
    };
    let (left, right) = (text[..at].trim(), text[at + sign.len()..].trim());
    if left.is_empty() || right.is_empty() || find_relation(right).is_some() {
        let span = reader.inner_span(node, at..at + sign.len());
        let title = format!("`{sign}` stands between two values");
        reader.error(span, title, "for example ${count} < 10");
        return None;
    }
    let left = reader.template(node, left)?;
    let right = reader.template(node, right)?;
    Some(Condition::comparison(left, relation, right))
}

/// Finds the first relation outside of variables.
fn find_relation(text: &str) -> Option<(usize, &'static str, Relation)> {
    let mut depth = 0_usize;
    for (at, letter) in text.char_indices() {
        match letter {
            '{' if text[..at].ends_with('$') => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ if depth == 0 => {
                let known = Relation::ALL.into_iter();
                let found = known.into_iter().find(|(sign, _)| text[at..].starts_with(sign));
                if let Some((sign, relation)) = found {
                    return Some((at, sign, relation));
                }
            }
            _ => {}
        }
    }
    None
}
