//! The values of the variables in what a step expects, for people.

use std::cell::RefCell;

use super::{Op, Program, Variable, VariableScope};
use crate::excerpt::Excerpt;

impl Program {
    /// Returns the variables in what the op at `pc` expects, as far as they are known: each as it
    /// is written and with its value, as [`Excerpt::with_values`] takes them.
    pub(crate) fn known_values(&self, pc: u32, scope: VariableScope<'_>) -> Vec<(String, String)> {
        let excerpt = Excerpt::short(self.secrets());
        let found = RefCell::new(Vec::new());
        let note = |variable: &Variable| {
            let mut value = Vec::new();
            if variable.drawn().is_none() {
                variable.write(&mut { scope }, &mut value);
            }
            // What no step has stored is not known.
            if !value.is_empty() {
                let shown =
                    (format!("${{{variable}}}"), excerpt.word(&String::from_utf8_lossy(&value)));
                found.borrow_mut().push(shown);
            }
            false
        };
        match self.op(pc) {
            Op::ExpectBytes { pattern, .. } => self.bytes_pattern(pattern).matcher.uses(note),
            _ => {
                let rule = self.message_rule(pc);
                rule.is_some_and(|rule| rule.pattern.uses(&note))
            }
        };
        found.into_inner()
    }
}

#[cfg(test)]
mod tests {
    use throng_base::Prng;

    use super::*;
    use crate::scenario::Scenario;

    #[test]
    fn variables_are_shown_with_their_values_where_these_are_known() {
        let text = "target: ws://h:1/\nload: [{ramp: {to: 1, over: 1s}}]\nuser:\n  - connect\n  \
                    - send: {json: {body: x}}\n  - expect: {json: {id: \"${user.id}\", \
                    body: \"${sent.body}\", of: \"${base64(user.id)}\"}}\n";
        let scenario = Scenario::parse(text, "test").unwrap_or_else(|wrong| panic!("{wrong}"));
        let program = Program::compile(&scenario);
        let stored = [b"x\n".to_vec()];
        let scope = VariableScope::new(7, Prng::new(0));
        let shown = "${user.id} ${sent.body} ${base64(user.id)} ${other}";
        for (scope, expected) in [
            (VariableScope { stored: &stored, ..scope }, "`7 x\\n Nw== ${other}`"),
            (scope, "`7 ${sent.body} Nw== ${other}`"),
        ] {
            let values = program.known_values(2, scope);
            let excerpt = Excerpt::short(&[]).with_values(&values);
            assert_eq!(excerpt.written(shown.as_bytes()), expected);
            assert_eq!(excerpt.bytes(b"${user.id}"), "`${user.id}`", "a peer has sent it");
        }
    }
}
