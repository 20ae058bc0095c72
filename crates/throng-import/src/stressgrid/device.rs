//! A script: the steps of a user, statement after statement.

use std::collections::{BTreeMap, BTreeSet};

use throng_base::units::nearest;

use super::elixir::{Call, Expr, ExprKind, Script};
use super::pattern::binds;
use super::rows::CALLS;
use super::value::Binding;
use crate::comments::{Comment, Comments};
use crate::names::Names;
use crate::source::Span;
use crate::step;
use crate::translator::Translator;
use crate::yaml::Yaml;

/// Protocol of a script's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wire {
    Tcp,
    Ws,
    Http,
}

/// The translation of one script.
pub(super) struct Device<'t, 'a> {
    pub(super) translator: &'t mut Translator<'a>,
    pub(super) wire: Wire,
    /// `params`.
    pub(super) params: serde_json::Value,
    pub(super) bindings: BTreeMap<String, Binding>,
    /// Names of stored values.
    pub(super) names: Names,
    comments: Comments,
    /// Whether the WebSocket is open.
    pub(super) is_upgraded: bool,
    /// Whether a message was sent that nothing has answered yet.
    pub(super) has_asked: bool,
    pub(super) loops: usize,
    pub(super) transactions: usize,
    /// Names of transactions.
    pub(super) timings: BTreeSet<String>,
    /// Notes that the report has once.
    pub(super) told: BTreeSet<&'static str>,
}

/// A step that is written when the whole script is read: later statements may add captures to it.
pub(super) type Step = Box<dyn FnOnce() -> Yaml>;

impl<'t, 'a> Device<'t, 'a> {
    pub(super) fn new(
        translator: &'t mut Translator<'a>,
        wire: Wire,
        params: serde_json::Value,
        comments: Vec<Comment>,
    ) -> Self {
        Self {
            translator,
            wire,
            params,
            bindings: BTreeMap::new(),
            names: Names::default(),
            comments: Comments::new(comments),
            is_upgraded: false,
            has_asked: false,
            loops: 0,
            transactions: 0,
            timings: BTreeSet::new(),
            told: BTreeSet::new(),
        }
    }

    /// Returns the steps of the whole script.
    pub(super) fn script(mut self, script: &Script) -> Vec<Yaml> {
        let mut steps = self.list(&script.statements);
        if self.wire == Wire::Tcp {
            steps.insert(0, ready(Yaml::text("connect")));
        }
        match self.wire {
            Wire::Http => steps.push(ready(Yaml::entry("close", Yaml::text("reset")))),
            Wire::Ws if !self.is_upgraded => {}
            Wire::Tcp | Wire::Ws => steps.push(ready(Yaml::text("close"))),
        }
        if steps.is_empty() {
            steps.push(wait("1ms"));
        }
        steps.into_iter().map(|step| step()).collect()
    }

    /// Translates statements. Timings that begin and end among them become transactions.
    pub(super) fn list(&mut self, statements: &[Expr]) -> Vec<Step> {
        let mut steps: Vec<Step> = Vec::new();
        let mut comments = Vec::new();
        let mut at = 0;
        while let Some(statement) = statements.get(at) {
            let above = self.comments.take_to(&self.translator.source, statement.span.start);
            comments.extend(above.into_iter().filter(|text| !text.starts_with("sgcli run")));
            let (mut own, taken) = match self.timing(&statements[at..]) {
                Some(transaction) => transaction,
                None => (self.statement(statement), 1),
            };
            if !own.is_empty() && !comments.is_empty() {
                let text = std::mem::take(&mut comments).join("\n");
                let first = own.remove(0);
                own.insert(0, Box::new(move || first().comment(&text)));
            }
            steps.extend(own);
            at += taken;
        }
        steps
    }

    fn statement(&mut self, statement: &Expr) -> Vec<Step> {
        match &statement.kind {
            ExprKind::Match(pattern, value) => self.matched(pattern, value),
            ExprKind::Call(call) => self.call(statement, call, None),
            ExprKind::Other(word) => {
                if !self.translator.has_row(&statement.span, CALLS, word) {
                    let remedy = "write its steps by hand: `if` and `choose` are steps";
                    self.translator.not_supported(&statement.span, word, remedy);
                }
                Vec::new()
            }
            ExprKind::Name(name) if !self.bindings.contains_key(name) => {
                self.call(statement, &Call { name: name.clone(), ..Call::default() }, None)
            }
            _ => self.translator.skip(&statement.span, "value", "it is not used"),
        }
    }

    /// Translates `pattern = value`.
    fn matched(&mut self, pattern: &Expr, value: &Expr) -> Vec<Step> {
        self.report_names_bound_again(pattern);
        if let Some(call) = value.call().filter(|call| makes_traffic(call)) {
            return self.call(value, call, Some(pattern));
        }
        if !binds(pattern) && !value.any(&|part| part.call().is_some_and(makes_traffic)) {
            let remedy = "a check of a value: write it as `expect` of the step that it comes from";
            self.translator.not_checked(&pattern.span, "pattern", remedy);
            return Vec::new();
        }
        let ExprKind::Name(name) = &pattern.kind else {
            let remedy = "write it as a name alone, or the value in its place";
            return self.translator.omit(&pattern.span, "pattern", remedy);
        };
        let (binding, steps) = self.binding(name, value);
        self.bindings.insert(name.clone(), binding);
        steps
    }

    /// Returns what a name stands for, and the step that stores it, if it needs one.
    fn binding(&mut self, name: &str, value: &Expr) -> (Binding, Vec<Step>) {
        if let ExprKind::Access(from, key) = &value.kind
            && let Some(part) = self.answer_part(from, key)
        {
            self.translator.translated(&value.span, "match");
            return (Binding::Answer(part), Vec::new());
        }
        if matches!(value.kind, ExprKind::List(_) | ExprKind::Map(_) | ExprKind::Bytes(_))
            || matches!(value.kind, ExprKind::Operation("..", ..))
            || is_random_message(value)
        {
            self.translator.translated(&value.span, "match");
            return (Binding::Literal(value.clone()), Vec::new());
        }
        match self.value(value) {
            Ok(value_of) if value_of.varies() => {
                self.translator.translated(&value.span, "match");
                let name = self.names.another(name);
                let set = step::set(&*name, value_of.text);
                let stored = super::value::Value { text: format!("${{{name}}}"), is_number: false };
                (Binding::Value(stored), vec![ready(set)])
            }
            Ok(value_of) => {
                self.translator.translated(&value.span, "match");
                (Binding::Value(value_of), Vec::new())
            }
            Err(remedy) => {
                self.translator.not_supported(&value.span, format!("`{name}`"), remedy);
                (Binding::Unknown("this value"), Vec::new())
            }
        }
    }

    /// Translates a call. Its result is matched with `pattern`.
    fn call(&mut self, expr: &Expr, call: &Call, pattern: Option<&Expr>) -> Vec<Step> {
        let span = &expr.span;
        let arguments = &call.arguments[..];
        match &*call.name {
            "delay" | "Process.sleep" | ":timer.sleep" => self.delay(span, arguments),
            "Enum.each" => self.turns(span, call),
            "get" | "head" | "post" | "put" | "patch" | "delete" | "options" => {
                self.http(span, call, pattern)
            }
            "send" | "recv" if self.wire == Wire::Tcp => self.tcp(span, call, pattern),
            name if name.starts_with("ws_") && FUNCTIONS.contains(&name) => {
                self.web_socket(span, call, pattern)
            }
            name => {
                if !self.translator.has_row(span, CALLS, name) {
                    self.unknown(span, name);
                }
                Vec::new()
            }
        }
    }

    fn unknown(&mut self, span: &Span, name: &str) {
        if ["send", "recv"].contains(&name) {
            let label = "expected `--target-protocol tcp`, or a target tcp://";
            return self.translator.mistake(span, format!("`{name}` is for TCP"), label);
        }
        if let Some(near) = nearest(name, FUNCTIONS.iter().copied()).filter(|_| !name.contains('.'))
        {
            let title = format!("Stressgrid has no function `{name}`");
            return self.translator.mistake(span, title, format!("did you mean `{near}`?"));
        }
        let remedy = "the scenario has no such function: write what it does as steps";
        self.translator.not_supported(span, name, remedy);
    }

    /// Translates `delay(ms, ratio)`.
    fn delay(&mut self, span: &Span, arguments: &[Expr]) -> Vec<Step> {
        let number = |device: &mut Self, expr: &Expr| {
            device.value(expr).ok().and_then(|value| value.text.parse::<f64>().ok())
        };
        let (ms, ratio) = match arguments {
            [ms] => (number(self, ms), Some(0.0)),
            [ms, ratio] => (number(self, ms), number(self, ratio)),
            _ => (None, None),
        };
        let varies = |device: &mut Self, expr: &Expr| match device.value(expr) {
            Ok(value) => value.text.contains("${"),
            Err(_) => !matches!(expr.kind, ExprKind::Text(_)),
        };
        if (1..=2).contains(&arguments.len()) && arguments.iter().any(|it| varies(self, it)) {
            let remedy = "a think time is known before the run: write it, or `uniform(1s, 2s)`";
            return self.translator.omit(span, "delay", remedy);
        }
        let (Some(ms), Some(ratio)) = (ms, ratio) else {
            let label = "expected milliseconds, and a share from 0 to 1: `delay(1000, 0.1)`";
            return self.translator.fail(span, "this delay cannot be read", label);
        };
        if !(0.0..=DELAY_MAX_MS).contains(&ms) || !(0.0..=1.0).contains(&ratio) {
            let label = "expected at most a year of milliseconds, and a share from 0 to 1";
            return self.translator.fail(span, "this delay is not possible", label);
        }
        self.translator.translated(span, "delay");
        let time = super::load::millis(ms);
        let percent = format!("{:.6}", ratio * 100.0);
        let percent = percent.trim_end_matches('0').trim_end_matches('.');
        if percent == "0" { vec![wait(&time)] } else { vec![wait(&format!("{time} ±{percent}%"))] }
    }
}

/// Reports whether a call does more than to return a value.
fn makes_traffic(call: &Call) -> bool {
    FUNCTIONS.contains(&&*call.name) && !VALUES.contains(&&*call.name)
}

/// Reports whether a value is a message of random bytes.
fn is_random_message(value: &Expr) -> bool {
    value.call().is_some_and(|call| call.name == "random_bytes")
}

/// Returns a step that nothing changes any more.
pub(super) fn ready(step: Yaml) -> Step {
    Box::new(move || step)
}

/// Returns a think time.
pub(super) fn wait(time: &str) -> Step {
    ready(step::wait(time))
}

/// Functions of Stressgrid, and of Elixir where they have statements.
pub(super) const FUNCTIONS: &[&str] = words![
    "delay" "start_timing" "stop_timing" "stop_start_timing" "inc_counter" "random_bits"
    "random_bytes" "get" "head" "options" "delete" "post" "put" "patch" "ws_upgrade" "ws_send"
    "ws_send_text" "ws_send_binary" "ws_send_json" "ws_receive" "ws_receive_text"
    "ws_receive_binary" "ws_receive_json" "ws_fetch" "ws_fetch_text" "ws_fetch_binary"
    "ws_fetch_json" "init_second_connection" "send" "recv" "Enum.each"
];

/// Functions that only have a value.
const VALUES: [&str; 2] = ["random_bits", "random_bytes"];

/// Longest delay: a year.
const DELAY_MAX_MS: f64 = 366.0 * 86_400_000.0;
