//! `setup()` and `teardown()`: what one user does, once.

use throng_load::scenario::Diagnostic;

use crate::source::Span;
use crate::yaml::Yaml;

use super::checked::place_in_answer;
use super::script::{Item, Script};
use super::syntax::{Expression, ExpressionKind, Function, Statement, StatementKind};

impl Script<'_, '_> {
    /// Translates `setup()`. Returns its steps, and what it returns to the other functions.
    pub(super) fn setup(&mut self, statement: &Statement) -> (Vec<Yaml>, Option<Expression>) {
        let StatementKind::Function(_, function) = &statement.kind else {
            return (Vec::new(), None);
        };
        let values = self.values.clone();
        let body = function.statements().map(|statements| match statements.split_last() {
            Some((Statement { kind: StatementKind::Return(result), .. }, body)) => {
                (body, result.as_ref())
            }
            _ => (statements, None),
        });
        let (steps, result) = self.once(statement, "setup", body).unwrap_or_default();
        let within = std::mem::replace(&mut self.values, values);
        self.values.add_of_setup(&within);
        (steps, result)
    }

    /// Translates `teardown(data)`.
    pub(super) fn teardown(
        &mut self,
        statement: &Statement,
        data: Option<&Expression>,
    ) -> Vec<Yaml> {
        let StatementKind::Function(_, function) = &statement.kind else { return Vec::new() };
        let values = self.values.clone();
        self.take_data(function, data);
        let body = function.statements().map(|statements| (statements, None));
        let steps = self.once(statement, "teardown", body);
        self.values = values;
        steps.unwrap_or_default().0
    }

    /// Makes what `setup()` has returned known to a function.
    pub(super) fn take_data(&mut self, function: &Function, data: Option<&Expression>) {
        if let (Some(name), Some(data)) = (function.parameters.first(), data) {
            self.values.define(name, data);
        }
    }

    /// Returns the steps of a function, and what it returns. `None` if it is more than a list of
    /// requests, which is reported.
    fn once(
        &mut self,
        statement: &Statement,
        name: &'static str,
        body: Result<(&[Statement], Option<&Expression>), Diagnostic>,
    ) -> Option<(Vec<Yaml>, Option<Expression>)> {
        let (body, result) = match body {
            Ok(body) => body,
            Err(refusal) => {
                self.not_once(&refusal.span, name);
                return None;
            }
        };
        let (mistakes, entries) = (self.translator.mistakes.len(), self.translator.entries.len());
        let (server, outer) = (self.server.clone(), std::mem::take(&mut self.items));
        self.statements(body);
        let result = result.map(|result| self.returned("value", result)).transpose();
        let items = std::mem::replace(&mut self.items, outer);
        let is_right = self.translator.mistakes.len() == mistakes;
        let read = result.ok().filter(|_| is_right).zip(steps(&items));
        if read.is_none() {
            let refusals = self.translator.mistakes.split_off(mistakes);
            let place = refusals.first().map_or(&statement.span, |refusal| &refusal.span);
            self.translator.entries.truncate(entries);
            self.server = server;
            self.not_once(place, name);
        } else {
            self.translator.translated(&statement.span, name);
        }
        read.map(|(result, steps)| (steps, result))
    }

    /// Reports that a function is left out because of what stands at `place`.
    fn not_once(&mut self, place: &Span, name: &str) {
        let remedy = format!(
            "what stands here is more than a list of requests, and the whole function is left \
             out: write it as `{name}: [...]`"
        );
        self.translator.not_supported(place, format!("{name}()"), remedy);
    }

    /// Returns what `setup()` returns under this name, as the other functions see it.
    fn returned(&mut self, name: &str, result: &Expression) -> Result<Expression, Diagnostic> {
        let span = result.span.clone();
        let kind = match &result.kind {
            ExpressionKind::Object(members) => {
                let mut returned = Vec::new();
                for (key, value) in members {
                    returned.push((key.clone(), self.returned(key, value)?));
                }
                ExpressionKind::Object(returned)
            }
            _ if place_in_answer(result).is_some() => {
                let name = format!("returned {name}");
                self.constant(&name, result)?;
                let stored = Expression { span: span.clone(), kind: ExpressionKind::Name(name) };
                self.values.in_setup(&stored)
            }
            _ => {
                self.values.text(result)?;
                self.values.in_setup(result)
            }
        };
        Ok(Expression { span, kind })
    }
}

/// Returns the steps of requests and think times, without names: nothing of them is measured.
fn steps(items: &[Item]) -> Option<Vec<Yaml>> {
    let mut out = Vec::new();
    for item in items {
        match item {
            Item::Request(request) => {
                let mut request = request.clone();
                request.step.name = None;
                out.push(request.write());
            }
            Item::Step(step) => out.push(step.clone()),
            Item::Group(_, items) => out.extend(steps(items)?),
            Item::Session(_) => return None,
        }
    }
    Some(out)
}
