//! The lines that show a user: its steps, what it sends and receives, and what becomes of it.

use throng_base::Instant;
use throng_base::units::{brief_micros, plural};
use throng_engine::Deadline;
use throng_measure::Operation;

use super::error_name::ErrorName;
use super::error_samples::{
    ErrorPlace, describe_connect_failure, describe_error, describe_http, describe_part,
};
use crate::excerpt::Excerpt;
use crate::program::{IncomingMessage, Op, Program, VariableScope};
use crate::user::{
    ConnectFailure, ErrorKind, IterationEnd, Payload, Record, Sample, TraceEvent, UserAction,
};

/// Formatter of one user's lines.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TraceFormat<'a> {
    pub(crate) program: &'a Program,
    /// Moment from which the times count.
    pub(crate) began: Instant,
    /// True to show whole messages.
    pub(crate) is_full: bool,
    /// Class of the user, and its number.
    pub(crate) class: u16,
    pub(crate) user: u64,
}

/// What the lines of a user depend on.
#[derive(Clone, Debug, Default)]
pub(crate) struct TraceState {
    /// Op of the last line about a step: an op that begins twice is shown once.
    last_op: Option<u32>,
    /// The variables in what the op expects, each as it is written and with its value.
    values: Vec<(String, String)>,
}

impl TraceFormat<'_> {
    /// Returns the lines about an action, each with its time; almost all actions have at most one.
    pub(crate) fn lines(
        &self,
        state: &mut TraceState,
        now: Instant,
        action: &UserAction<'_>,
    ) -> Vec<String> {
        let lines = match action {
            UserAction::Record(pc, record) => self.record(state, *pc, record, now),
            UserAction::Trace(pc, TraceEvent::OpBegun(scope)) => self.op(state, *pc, *scope),
            UserAction::Trace(_, event) => self.event(event),
            UserAction::WaitUntil(Deadline::Exact(at)) if *at > now => {
                one(format!("  waits {}", micros(now, *at)))
            }
            UserAction::Close => one("  closes the connection"),
            UserAction::CloseFinished => one("  < the end of the connection (FIN)"),
            UserAction::Reset => one("  resets the connection (RST)"),
            UserAction::HalfClose => one("  ends what it sends (FIN)"),
            UserAction::Remove => one("leaves"),
            UserAction::Connect { .. } | UserAction::WaitUntil(_) | UserAction::Count(_) => {
                Vec::new()
            }
        };
        let seconds = now.micros_since(self.began) as f64 / 1e6;
        lines.into_iter().map(|line| format!("{seconds:11.6}  {line}")).collect()
    }

    fn excerpt(&self) -> Excerpt<'_> {
        let secrets = self.program.secrets();
        if self.is_full { Excerpt::full(secrets) } else { Excerpt::short(secrets) }
    }

    fn place(&self, pc: u32) -> ErrorPlace<'_> {
        ErrorPlace { program: self.program, class: self.class, pc, user: self.user }
    }

    fn op(&self, state: &mut TraceState, pc: u32, scope: VariableScope<'_>) -> Vec<String> {
        // A request renders its variables when it is sent, which is later.
        state.values = match self.program.op(pc) {
            Op::ExpectBytes { .. } | Op::ExpectMessage { .. } => {
                self.program.known_values(pc, scope)
            }
            _ => Vec::new(),
        };
        if state.last_op.replace(pc) == Some(pc) {
            return Vec::new();
        }
        match self.program.op(pc) {
            Op::End => return one("end of the steps"),
            Op::LoopEnd { .. } | Op::Jump { .. } => return Vec::new(),
            _ => {}
        }
        let origin = self.program.origin(pc);
        let excerpt = self.excerpt().with_values(&state.values);
        let what = match self.program.describe_op(pc, excerpt).as_str() {
            "" => String::new(),
            what => format!(": {what}"),
        };
        one(format!("step {} {} (line {}){what}", origin.number, origin.kind, origin.line))
    }

    fn event(&self, event: &TraceEvent<'_>) -> Vec<String> {
        match event {
            TraceEvent::OpBegun(_) | TraceEvent::Stored(_) => Vec::new(),
            TraceEvent::Sent(payload) => self.payload('>', payload),
            TraceEvent::Received(payload) => self.payload('<', payload),
            TraceEvent::Kept => one("  kept for the next expect: no step waits for it yet"),
            TraceEvent::Discarded => one("  discarded: it answers nothing"),
            TraceEvent::TakenFromKept(message) => {
                one(format!("  kept before: {}", self.message(*message)))
            }
            TraceEvent::CookieRefused(name, refusal) => {
                let name = name.map_or_else(String::new, |name| {
                    format!(" {}", self.excerpt().bytes(name.as_bytes()))
                });
                one(format!("  cookie{name} {refusal}"))
            }
            TraceEvent::IdleEnded => one("  status 408: the server ends an idle connection"),
            TraceEvent::AnsweredEarly => {
                one("  answered before the whole request was sent: the rest of it is not sent")
            }
            TraceEvent::SetAside => {
                one("  set aside: it may be the late answer to an earlier message")
            }
        }
    }

    fn payload(&self, direction: char, payload: &Payload<'_>) -> Vec<String> {
        let text = match payload {
            Payload::Bytes(bytes) => {
                let (n, shown) = (bytes.len() as u64, self.excerpt().bytes(bytes));
                format!("{n} {}: {shown}", plural(n, "byte", "bytes"))
            }
            Payload::Body(bytes, length) if bytes.len() as u64 == *length => {
                let (unit, shown) = (plural(*length, "byte", "bytes"), self.excerpt().bytes(bytes));
                format!("{length} {unit}: {shown}")
            }
            Payload::Body(bytes, length) => {
                let (kept, excerpt) = (bytes.len(), self.excerpt().bytes(bytes));
                format!("{length} bytes; the first {kept}: {excerpt}")
            }
            Payload::Message(message) => self.message(*message),
            Payload::Head(head) => {
                let lines = self.excerpt().head_lines(head);
                return lines.iter().map(|line| format!("  {direction} {line}")).collect();
            }
            Payload::Control(what) => (*what).to_owned(),
            Payload::Deflate(agreed) => agreed.to_string(),
            Payload::CloseFrame => "close frame with 1000".to_owned(),
        };
        one(format!("  {direction} {text}"))
    }

    fn message(&self, message: IncomingMessage<'_>) -> String {
        let kind = match message {
            IncomingMessage::Text(_) => "text",
            IncomingMessage::Binary(_) => "binary",
        };
        let bytes = message.bytes();
        let (n, shown) = (bytes.len() as u64, self.excerpt().bytes(bytes));
        format!("{kind}, {n} {}: {shown}", plural(n, "byte", "bytes"))
    }

    fn record(
        &self,
        state: &TraceState,
        pc: u32,
        record: &Record<'_>,
        now: Instant,
    ) -> Vec<String> {
        match record {
            Record::Begin => one("begins"),
            Record::End(IterationEnd::Finished) => one("finished: no step failed"),
            Record::End(IterationEnd::Failed) => one("failed"),
            Record::End(IterationEnd::Cut) => one("cut off before its last step"),
            Record::Connected { from, .. } => {
                one(format!("  ok: connected, after {}", micros(*from, now)))
            }
            Record::Done { operation: Operation::Tcp, from, .. }
            | Record::RequestConnected { from, .. } => {
                one(format!("  TCP is established, after {}", micros(*from, now)))
            }
            Record::Done { operation: Operation::Tls, from, .. } => {
                one(format!("  TLS is established, after {}", micros(*from, now)))
            }
            Record::HttpAnswered { difference: None, status, from, .. } => {
                one(format!("  ok: status {status}, after {}", micros(*from, now)))
            }
            Record::HttpAnswered { difference: Some(_), .. } => Vec::new(),
            Record::ConnectFailed { why, is_upgrade } => {
                one(self.connect_failure(pc, *why, *is_upgrade))
            }
            Record::PeerClosed { code, reason } => {
                let code = code.map_or_else(|| "no code".to_owned(), |code| code.to_string());
                let reason = match *reason {
                    "" => String::new(),
                    reason => format!(": {}", self.excerpt().bytes(reason.as_bytes())),
                };
                one(format!("  < close frame with {code}{reason}"))
            }
            Record::Answered { from: Some(from), .. } => {
                one(format!("  ok: matches, after {}", micros(*from, now)))
            }
            Record::Answered { from: None, .. } => one("  ok: matches"),
            Record::Replied { from, .. } => {
                one(format!("  reply to its request, after {}", micros(*from, now)))
            }
            Record::Ponged { from, .. } => one(format!("  ok: pong, after {}", micros(*from, now))),
            Record::Done { operation, .. } => one(format!("  ok: {}", operation.done())),
            Record::Skipped(message) | Record::SkippedKept(message) => {
                let excerpt = self.excerpt().with_values(&state.values);
                one(format!("  skipped: {}", self.difference(pc, *message, excerpt)))
            }
            Record::Error(kind) => one(self.error(pc, *kind)),
            Record::Sample(sample, scope) => {
                let values = self.program.known_values(pc, *scope);
                self.sample(pc, sample, self.excerpt().with_values(&values))
            }
            Record::RestBegun => one("rests, and begins again"),
            Record::ConnectRefused
            | Record::ConnectionLost
            | Record::HandshakeCut { .. }
            | Record::ChannelsLost(_)
            | Record::Unanswered { .. }
            | Record::StepDone { .. }
            | Record::StepFailed(_)
            | Record::StepCut(_)
            | Record::StepUnanswered { .. }
            | Record::MissedTurns(_)
            | Record::TurnsDue(_)
            | Record::Late(_)
            | Record::CueWaitBegun { .. }
            | Record::CueWaitEnded { .. }
            | Record::CueWaitCut { .. }
            | Record::CueOpened { .. }
            | Record::TurnGiven { .. }
            | Record::RestOver => Vec::new(),
        }
    }

    fn error(&self, pc: u32, kind: ErrorKind) -> String {
        let name = ErrorName::Kind(kind);
        let is_probe = kind == ErrorKind::ProbeRefused;
        let is_of_answer = kind.got().is_empty() && !is_probe;
        if is_of_answer || matches!(kind, ErrorKind::ExpectTimeout | ErrorKind::BadValue) {
            // A line before it says more.
            return format!("  error {name}");
        }
        let (expected, got) = describe_error(self.place(pc), kind);
        format!("  error {name}: expected {expected}, received {got}")
    }

    fn connect_failure(&self, pc: u32, why: ConnectFailure, is_upgrade: bool) -> String {
        let name = ErrorName::Connect(why);
        match why {
            ConnectFailure::Violation | ConnectFailure::BadValue => format!("  error {name}"),
            _ => {
                let (expected, got) = describe_connect_failure(self.place(pc), why, is_upgrade);
                format!("  error {name}: expected {expected}, received {got}")
            }
        }
    }

    fn difference(&self, pc: u32, message: IncomingMessage<'_>, excerpt: Excerpt<'_>) -> String {
        match self.program.op(pc) {
            Op::ExpectMessage { pattern, .. } => {
                self.program.pattern(pattern).difference(message, excerpt)
            }
            _ => {
                let missing = self.program.missing_capture(pc, message.bytes());
                format!(
                    "expected {}, received {}{}",
                    self.program.describe_expected(pc, excerpt),
                    excerpt.bytes(message.bytes()),
                    missing.map(|missing| format!(": {missing}")).unwrap_or_default()
                )
            }
        }
    }

    fn sample(&self, pc: u32, sample: &Sample<'_>, excerpt: Excerpt<'_>) -> Vec<String> {
        match sample {
            Sample::Mismatch { got, .. } => {
                one(format!("  no match: {}", self.difference(pc, *got, excerpt)))
            }
            Sample::Timeout { matched } => {
                let part = match matched {
                    0 => String::new(),
                    bytes => format!(", only its first {bytes} bytes"),
                };
                let expected = self.program.describe_awaited(pc, excerpt);
                one(format!("  time-out: no match came{part}; expected {expected}"))
            }
            Sample::Violation(violation) => {
                one(format!("  violation of the WebSocket protocol: {}", violation.description()))
            }
            Sample::TlsFailure(_, text) => one(format!("  TLS: {}", excerpt.word(text))),
            Sample::UpgradeViolation(violation, head) => {
                let is_http = head.starts_with(b"HTTP/");
                let mut lines = match is_http {
                    true => self.payload('<', &Payload::Head(head)),
                    false => self.payload('<', &Payload::Bytes(head)),
                };
                let what = if is_http { "not an upgrade" } else { "not HTTP" };
                lines.push(format!("  no match: {what}: {}", violation.description()));
                lines
            }
            Sample::UpgradeRefused(answer, _) => {
                self.payload('<', &Payload::Head(answer.head().as_bytes()))
            }
            Sample::BadMessage(_) => one("  no match: this is no message of Phoenix Channels"),
            Sample::Refusal(_, reply) => {
                let status = excerpt.word(&reply.status);
                one(format!("  no match: the status is {status}, expected ok"))
            }
            Sample::HttpResponse(_, difference, answer) => {
                let expected = self.program.describe_expected(pc, excerpt);
                let got = describe_http(self.place(pc), *difference, answer, excerpt);
                one(format!("  no match: expected {expected}, received {got}"))
            }
            Sample::HttpViolation(_, error, head) => {
                one(format!("  no match: {error}: {}", excerpt.head(head)))
            }
            Sample::HttpPart(_, part) => {
                let mut lines = match part.head {
                    Some(head) => self.payload('<', &Payload::Head(head.head().as_bytes())),
                    None => self.payload('<', &Payload::Head(part.bytes)),
                };
                if part.body_bytes > 0 {
                    let body = Payload::Body(part.bytes, part.body_bytes);
                    lines.extend(self.payload('<', &body));
                }
                let got = describe_part(part, excerpt);
                lines.push(format!("  no match: received only {got}"));
                lines
            }
            Sample::Unsendable(part) => one(format!("  not sent: {}", part.describe(excerpt))),
            Sample::HttpUnasked(bytes) => {
                let (n, bytes) = (bytes.len() as u64, excerpt.head(bytes));
                let unit = plural(n, "byte", "bytes");
                one(format!("  no match: {n} {unit} that no request asked for: {bytes}"))
            }
        }
    }
}

fn one(line: impl Into<String>) -> Vec<String> {
    vec![line.into()]
}

fn micros(from: Instant, to: Instant) -> String {
    brief_micros(to.micros_since(from))
}
