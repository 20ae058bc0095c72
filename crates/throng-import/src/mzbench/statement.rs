//! The statements of a pool: the steps of a user.

use std::ops::Range;
use std::time::Duration;

use throng_base::units::nearest;

use super::context::Context;
use super::loops;
use super::message;
use super::rows;
use super::tree::{Call, Expr, ExprKind};
use super::value::{Amount, seconds_text};
use crate::step;
use crate::yaml::Yaml;

/// The translation of one user, statement after statement.
#[derive(Default)]
pub(super) struct UserSteps {
    link: Link,
    /// Whether the worker connects by itself before a request.
    connects_itself: bool,
    /// Times that the statements take, one after another.
    times: Vec<Amount>,
    /// Whether something follows a request that may have failed.
    pub(super) goes_on: bool,
    /// Whether the statement is in a paced loop.
    pub(super) is_paced: bool,
    /// Whether another statement than a request follows in the same list.
    is_followed: bool,
}

/// Connection of the user before a statement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Link {
    #[default]
    Closed,
    /// The next request connects.
    Due,
    Open,
}

impl UserSteps {
    /// Translates statements, which are in `depth` loops.
    pub(super) fn list(
        &mut self,
        cx: &mut Context<'_, '_>,
        body: &[Expr],
        depth: usize,
    ) -> Vec<Yaml> {
        let mut steps: Vec<Yaml> = Vec::new();
        let mut comments = Vec::new();
        for (index, expr) in body.iter().enumerate() {
            let next = body.get(index + 1).and_then(Expr::call);
            self.is_followed =
                next.is_some_and(|call| !["request", "wait_finish"].contains(&&*call.name));
            comments.extend(cx.comments_to(expr.span.start));
            let mut own = self.statement(cx, expr, depth);
            if !own.is_empty() {
                Yaml::comment_first(&mut own, std::mem::take(&mut comments));
            }
            steps.extend(own);
        }
        steps
    }

    /// Ends the steps of the user.
    pub(super) fn finish(&mut self, steps: &mut Vec<Yaml>) {
        if self.link == Link::Open {
            steps.push(Yaml::text("close"));
        }
        if steps.is_empty() {
            steps.push(step::wait("1ms"));
        }
    }

    /// Returns the time that the steps take, beside that of answers.
    pub(super) fn length(&self) -> Amount {
        let value = self.times.iter().map(|time| time.value).sum();
        let text = match &self.times[..] {
            [only] => only.text.clone(),
            _ => seconds_text(value),
        };
        Amount { value, text }
    }

    /// Returns what the user does after an error.
    pub(super) fn on_error(&self) -> &'static str {
        if self.goes_on { "continue" } else { "stop" }
    }

    /// Adds to the time that the steps take.
    pub(super) fn takes(&mut self, time: Amount, depth: usize) {
        if depth == 0 && time.value > 0.0 {
            self.times.push(time);
        }
    }

    fn statement(&mut self, cx: &mut Context<'_, '_>, expr: &Expr, depth: usize) -> Vec<Yaml> {
        let span = &expr.span;
        let Some(call) = expr.call() else {
            let label = format!("expected a call, found {}", expr.describe());
            return cx.translator.fail(span, "this is not a statement", label);
        };
        if !call.options.is_empty() && call.name != "loop" {
            let title = format!("`{}` takes values without names", call.name);
            return cx.translator.fail(&call.options[0].span, title, "remove the name");
        }
        if let Some(first) = call.body.first().filter(|_| !BLOCKS.contains(&&*call.name)) {
            let title = format!("this line is indented, but `{}` takes no statements", call.name);
            cx.translator.mistake(&first.span, title, "expected it below the one above");
        }
        match (&*call.name, &call.arguments[..]) {
            ("connect", [host, port]) => self.connect(cx, span, (host, port), false),
            ("connect_sync", [host, port]) => self.connect(cx, span, (host, port), true),
            ("request" | "request_sync", [] | [_]) => self.request(cx, span, call),
            ("send", [message]) => self.send(cx, span, message),
            (name @ ("wait_finish" | "disconnect"), []) => {
                cx.translator.translated(span, name);
                let closed = self.link_when_closed();
                let was_open = std::mem::replace(&mut self.link, closed);
                if was_open == Link::Open { vec![Yaml::text("close")] } else { Vec::new() }
            }
            ("wait", [time]) => self.wait(cx, time, depth),
            ("loop", []) => loops::translate(self, cx, expr, call, depth),
            (name, _) if cx.translator.has_row(span, rows::STATEMENTS, name) => Vec::new(),
            (name, _) => {
                unknown(cx, span, name);
                Vec::new()
            }
        }
    }

    fn link_when_closed(&self) -> Link {
        if self.connects_itself { Link::Due } else { Link::Closed }
    }

    fn connect(
        &mut self,
        cx: &mut Context<'_, '_>,
        span: &Range<usize>,
        server: (&Expr, &Expr),
        at_once: bool,
    ) -> Vec<Yaml> {
        server_of(cx, span, server);
        let mut steps = Vec::new();
        if self.link == Link::Open {
            steps.push(Yaml::text("close"));
        }
        self.connects_itself = !at_once;
        if at_once {
            cx.translator.translated(span, "connect_sync");
            steps.push(Yaml::text("connect"));
            self.link = Link::Open;
        } else {
            cx.translator.translated(span, "connect");
            self.link = Link::Due;
        }
        steps
    }

    /// Returns the step that connects, where the next request would.
    pub(super) fn connect_if_due(&mut self) -> Option<Yaml> {
        (self.link == Link::Due).then(|| {
            self.link = Link::Open;
            Yaml::text("connect")
        })
    }

    /// Prepares for a loop. Its turns must begin and end with the same connection.
    pub(super) fn enter_loop(&mut self, body: &[Expr]) -> Option<Yaml> {
        if body.iter().any(changes_link) {
            let closed = self.link_when_closed();
            let before = std::mem::replace(&mut self.link, closed);
            return (before == Link::Open).then(|| Yaml::text("close"));
        }
        if body.iter().any(requests) { self.connect_if_due() } else { None }
    }

    /// Returns the step at the end of a turn.
    pub(super) fn leave_turn(&mut self, body: &[Expr]) -> Option<Yaml> {
        if self.link != Link::Open || !body.iter().any(changes_link) {
            return None;
        }
        self.link = self.link_when_closed();
        Some(Yaml::text("close"))
    }

    /// Returns the steps that connect before the statement `name`, if the user is not connected.
    fn connected(
        &mut self,
        cx: &mut Context<'_, '_>,
        span: &Range<usize>,
        name: &str,
    ) -> Vec<Yaml> {
        let steps = self.connect_if_due().into_iter().collect();
        if self.link == Link::Closed {
            let label = "add `connect(host, port)` or `connect_sync(host, port)` before it";
            cx.translator.mistake(span, format!("`{name}` needs a connection"), label);
            self.link = Link::Open;
        }
        steps
    }

    /// Translates `send`, which waits for no answer.
    fn send(&mut self, cx: &mut Context<'_, '_>, span: &Range<usize>, message: &Expr) -> Vec<Yaml> {
        let mut steps = self.connected(cx, span, "send");
        cx.translator.translated(span, "send");
        steps.push(step::send(("text", message::send(cx, Some(message))), false));
        steps
    }

    fn request(&mut self, cx: &mut Context<'_, '_>, span: &Range<usize>, call: &Call) -> Vec<Yaml> {
        let mut steps = self.connected(cx, span, &call.name);
        let has_told = std::mem::replace(&mut cx.has_told_answers, true);
        let is_sync = call.name == "request_sync";
        let notes = [
            (is_sync && self.is_paced).then_some(FROM_DUE),
            (!is_sync && self.is_followed).then_some(NOT_AWAITED),
            (!has_told).then_some(ANY_ANSWER),
        ];
        let notes: Vec<&str> = notes.into_iter().flatten().collect();
        match notes.is_empty() {
            true => cx.translator.translated(span, &*call.name),
            false => cx.translator.approximated(span, &*call.name, notes.join("; ")),
        }
        let message = message::send(cx, call.arguments.first());
        steps.push(Yaml::entry("send", message));
        let any = ("bytes", Yaml::plain(1));
        steps.push(step::await_message("expect", any, &[], Duration::from_secs(5)));
        steps
    }

    fn wait(&mut self, cx: &mut Context<'_, '_>, time: &Expr, depth: usize) -> Vec<Yaml> {
        if let ExprKind::Quantity(number, _) = &time.kind
            && number.call().is_some_and(|call| !["var", "numvar"].contains(&&*call.name))
        {
            let remedy = "write the time, for example `wait: uniform(1s, 5s)`";
            return cx.translator.omit(&time.span, "wait", remedy);
        }
        let Some(amount) = cx.time(time, "the time of `wait`") else { return Vec::new() };
        cx.translator.translated(&time.span, "wait");
        self.takes(amount.clone(), depth);
        vec![step::wait(amount.text)]
    }
}

/// Reports whether a statement opens or closes the connection.
fn changes_link(expr: &Expr) -> bool {
    let Some(call) = expr.call() else { return false };
    ["connect", "connect_sync", "disconnect", "wait_finish"].contains(&&*call.name)
        || call.body.iter().chain(&call.arguments).any(changes_link)
}

/// Reports whether a statement sends a request.
pub(super) fn requests(expr: &Expr) -> bool {
    let Some(call) = expr.call() else { return false };
    ["request", "request_sync", "send"].contains(&&*call.name)
        || call.body.iter().chain(&call.arguments).any(requests)
}

/// Keeps the server of a connection. There is one target.
fn server_of(cx: &mut Context<'_, '_>, span: &Range<usize>, (host, port): (&Expr, &Expr)) {
    let Some(host_value) = cx.variable(host) else { return };
    let host_value = host_value.map_or_else(|| host.clone(), |(_, value)| value);
    let Some(name) = host_value.text().map(str::to_owned) else {
        let remedy = "write one host; a name with several addresses spreads the users over them";
        return cx.translator.not_supported(&host.span, "host", remedy);
    };
    let Some(number) = cx.plain_number(port, "the port") else { return };
    let number =
        (number.fract() == 0.0 && (1.0..65536.0).contains(&number)).then_some(number as u16);
    let Some(number) = number else {
        let label = "expected a whole number from 1 to 65535";
        return cx.translator.mistake(&port.span, "this is not a port", label);
    };
    match &cx.server {
        None => cx.server = Some((host.span.start..port.span.end, name, number)),
        Some((_, known, known_port)) if *known == name && *known_port == number => {}
        Some((_, known, known_port)) => {
            let remedy = format!(
                "a scenario has one target: this connects to {known}:{known_port}, too; run a \
                 scenario of its own for {name}:{number}"
            );
            cx.translator.not_supported(span, "connect", remedy);
        }
    }
}

/// Reports a statement that neither MZBench nor the tcp_worker has.
fn unknown(cx: &mut Context<'_, '_>, span: &Range<usize>, name: &str) {
    let Some(near) = nearest(name, STEPS.iter().copied()) else {
        let remedy = "the code of this function is not here: write what it sends and expects as \
                      steps";
        return cx.translator.not_supported(span, name, remedy);
    };
    if near == name {
        let title = format!("`{name}` takes other values");
        let label = "for example `connect(\"localhost\", 4444)`, `wait(1 sec)`, `request()`";
        return cx.translator.mistake(span, title, label);
    }
    let title = format!("the tcp_worker has no `{name}`");
    cx.translator.mistake(span, title, format!("did you mean `{near}`?"));
}

const FROM_DUE: &str = "request_sync counts a latency from the moment of its sending, so a slow \
    server hides delays (coordinated omission); the scenario counts it from the moment at which \
    the turn was due";

const NOT_AWAITED: &str = "request does not wait for its answer, and the scenario does: what \
    follows begins later by that time";

const ANY_ANSWER: &str = "tcp_worker takes any data for the answer, and so does the scenario: it \
    waits for one byte and ignores the rest; if you know the answer, write `expect: ok`";

/// Statements that become steps.
const STEPS: &[&str] = words![
    "connect" "connect_sync" "disconnect" "loop" "request" "request_sync" "send" "wait"
    "wait_finish"
];

/// Statements that have others in them.
const BLOCKS: [&str; 3] = ["ignore_failure", "loop", "parallel"];
