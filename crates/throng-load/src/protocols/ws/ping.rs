//! `ping` and `pong`: control frames of a WebSocket (RFC 6455 section 5.5). A user answers the
//! server's pings without any step.

use throng_base::Instant;
use throng_proto::websocket::WebSocketClient;

use crate::program::{OnError, UnsendablePart};
use crate::scenario::reader::Form;
use crate::scenario::values::read_hex;
use crate::steps::expect::check_steady;
use crate::steps::prelude::*;
use crate::steps::send;
use crate::user::Payload;
use crate::user::named;
use crate::user::outcomes;
use crate::user::record::Sample;
use crate::user::trace::TraceEvent;

pub(crate) const PING: StepKind =
    StepKind::new("ping", "ping", StepForm::OptionalValue(read_ping)).measured(StepMeasure::ByName);

pub(crate) const PONG: StepKind = StepKind::new("pong", "pong", StepForm::OptionalValue(read_pong));

#[derive(Clone, Debug)]
struct Ping {
    /// Payload. Without one, the user sends bytes that differ each time.
    payload: Option<Template>,
    timeout: Duration,
}

#[derive(Clone, Debug)]
struct Pong {
    payload: Template,
}

impl Action for Ping {
    fn check(&self, flow: &mut Flow<'_, '_>) {
        flow.require_connection();
    }

    fn compile(&self, compiler: &mut Compiler<'_>) {
        let facts = OpFacts::of_role(OpRole::Pings);
        compiler.protocol_op(user_op::entry(self.clone()), facts);
    }
}

impl Action for Pong {
    fn check(&self, flow: &mut Flow<'_, '_>) {
        flow.require_connection();
    }

    fn compile(&self, compiler: &mut Compiler<'_>) {
        compiler.protocol_op(user_op::entry(self.clone()), OpFacts::of_role(OpRole::Neutral));
    }
}

fn read_ping(reader: &mut Reader<'_>, value: Option<&Node>) -> Option<Box<dyn Action>> {
    let Some(node) = value else {
        return Some(Box::new(Ping { payload: None, timeout: TIMEOUT_DEFAULT }));
    };
    if node.scalar().is_some() {
        let payload = Some(read_steady(reader, node, read_text)?);
        return Some(Box::new(Ping { payload, timeout: TIMEOUT_DEFAULT }));
    }
    let fields = reader.fields(node, "`ping`", &["text", "binary", "timeout"])?;
    let payload = match fields.get("text").is_some() || fields.get("binary").is_some() {
        true => reader.one_form(&fields, "`ping`", "payload", STEADY).map(Some),
        false => Some(None),
    };
    let timeout = read_timeout(reader, fields.get("timeout"), TIMEOUT_DEFAULT);
    Some(Box::new(Ping { payload: payload?, timeout: timeout? }))
}

fn read_pong(reader: &mut Reader<'_>, value: Option<&Node>) -> Option<Box<dyn Action>> {
    let payload = match value {
        None => Template::from_bytes(Vec::new()),
        Some(node) if node.scalar().is_some() => read_text(reader, node)?,
        Some(node) => {
            let fields = reader.fields(node, "`pong`", &["text", "binary"])?;
            reader.one_form(&fields, "`pong`", "payload", FORMS)?
        }
    };
    Some(Box::new(Pong { payload }))
}

/// Payloads.
const FORMS: &[Form<Template>] = &[("text", read_text), ("binary", read_binary)];

/// Payloads that are the same when the pong is compared.
const STEADY: &[Form<Template>] = &[
    ("text", |reader, node| read_steady(reader, node, read_text)),
    ("binary", |reader, node| read_steady(reader, node, read_binary)),
];

fn read_text(reader: &mut Reader<'_>, node: &Node) -> Option<Template> {
    let text = reader.text(node, "a payload", "a text")?;
    let template = reader.template(node, text)?;
    check_length(reader, node, template)
}

fn read_binary(reader: &mut Reader<'_>, node: &Node) -> Option<Template> {
    let template = read_hex(reader, node, "`binary`")?;
    check_length(reader, node, template)
}

fn read_steady(
    reader: &mut Reader<'_>,
    node: &Node,
    read: fn(&mut Reader<'_>, &Node) -> Option<Template>,
) -> Option<Template> {
    let template = read(reader, node)?;
    check_steady(reader, node, node.scalar().unwrap_or_default(), &template)?;
    Some(template)
}

fn check_length(reader: &mut Reader<'_>, node: &Node, payload: Template) -> Option<Template> {
    if payload.as_literal().is_some_and(|payload| payload.len() > CONTROL_BYTES_MAX) {
        let label = format!("at most {CONTROL_BYTES_MAX} bytes (RFC 6455 section 5.5)");
        reader.error(node.span.clone(), "this payload is too long for a control frame", label);
        return None;
    }
    Some(payload)
}

impl UserOp for Ping {
    /// Sends a ping and waits for its pong.
    fn begin(&self, cx: &mut UserContext<'_>) -> StepOutcome {
        if let Some(flow) = send_frame(cx, self.payload.as_ref(), "ping", WebSocketClient::ping) {
            return flow;
        }
        cx.user.set_wait(UserWait::Pong);
        cx.wait_until(Deadline::Coarse(cx.now + self.timeout));
        StepOutcome::Wait
    }

    fn timed_out(&self, cx: &mut UserContext<'_>, _: u32) -> StepOutcome {
        timed_out(cx)
    }
}

impl ProtocolOp for Ping {
    fn describe(&self, _: &dyn Fn(&[u8]) -> String) -> String {
        "a pong".to_owned()
    }

    fn timeout(&self) -> Option<Duration> {
        Some(self.timeout)
    }
}

impl UserOp for Pong {
    /// Sends a pong that no ping asked for.
    fn begin(&self, cx: &mut UserContext<'_>) -> StepOutcome {
        if let Some(flow) = send_frame(cx, Some(&self.payload), "pong", WebSocketClient::pong) {
            return flow;
        }
        cx.user.intended = cx.now;
        StepOutcome::Next
    }
}

impl ProtocolOp for Pong {
    fn describe(&self, _: &dyn Fn(&[u8]) -> String) -> String {
        "an open connection".to_owned()
    }

    fn timeout(&self) -> Option<Duration> {
        None
    }
}

/// Sends a control frame by `append`. Returns what follows if the user cannot send it.
fn send_frame(
    cx: &mut UserContext<'_>,
    payload: Option<&Template>,
    name: &'static str,
    append: fn(&WebSocketClient, &[u8], [u8; 4], &mut Vec<u8>),
) -> Option<StepOutcome> {
    let flow = send::check_can_send(cx).or_else(|| render(cx, payload));
    if flow.is_some() {
        return flow;
    }
    let mask = cx.user.mask();
    if let Some(client) = cx.session.client() {
        append(client, &cx.encoder.text, mask, cx.out);
    }
    cx.trace(TraceEvent::Sent(Payload::Control(name)));
    None
}

/// Writes a payload. If it cannot be sent, fails the step.
fn render(cx: &mut UserContext<'_>, payload: Option<&Template>) -> Option<StepOutcome> {
    let program = cx.rules.program;
    let text = &mut cx.encoder.text;
    text.clear();
    let mut fault = None;
    match payload {
        None => text.extend_from_slice(&own_payload(cx.user.intended)),
        Some(template) => cx.user.render(program, |scope| {
            template.render(scope, text);
            fault = scope.fault;
        }),
    }
    let too_long = text.len() > CONTROL_BYTES_MAX;
    let fault = fault.or(too_long.then_some("a payload of more than 125 bytes"))?;
    cx.sample(Sample::Unsendable(&UnsendablePart::Value(fault)));
    Some(failure::fail_step(cx, ErrorKind::BadValue))
}

/// Returns the payload of a ping without one of its own: that of an earlier ping differs.
fn own_payload(intended: Instant) -> [u8; 8] {
    intended.as_nanos().to_be_bytes()
}

/// Handles a pong. One that does not answer the present ping means nothing (RFC 6455 section
/// 5.5.3).
pub(crate) fn pong_received(cx: &mut UserContext<'_>, payload: &[u8]) -> StepOutcome {
    let program = cx.rules.program;
    let (Some(UserWait::Pong), Some(ping)) = (cx.user.wait(), program.op_of::<Ping>(cx.user.pc()))
    else {
        return StepOutcome::Wait;
    };
    let is_answer = match &ping.payload {
        None => *payload == own_payload(cx.user.intended),
        Some(template) => {
            let scope = cx.user.scope_of_answer(program, cx.rules.seed);
            template.is_rendered(payload, scope, &mut cx.encoder.comparison)
        }
    };
    if !is_answer {
        return StepOutcome::Wait;
    }
    let (from, timing) = (cx.user.intended, cx.timing());
    cx.record(Record::Ponged { from, timing });
    named::succeed(cx, Some(from), timing);
    cx.wait_until(Deadline::Never);
    failure::go_on(cx)
}

/// Fails a ping that was not answered in time.
fn timed_out(cx: &mut UserContext<'_>) -> StepOutcome {
    if cx.on_error() != OnError::Continue {
        return failure::fail_step(cx, ErrorKind::PingTimeout);
    }
    // Answers to messages that are outstanding remain so.
    cx.count_error(ErrorKind::PingTimeout);
    outcomes::fail_wait(cx, true);
    cx.user.set_erred();
    cx.wait_until(Deadline::Never);
    failure::go_on(cx)
}

/// Longest payload of a control frame.
const CONTROL_BYTES_MAX: usize = 125;

/// Default time-out of a pong.
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(5);
