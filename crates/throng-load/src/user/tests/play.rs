//! Plays inputs to a user, and writes down its actions.

use std::sync::Arc;

use throng_base::Instant;
use throng_driver::Errno;
use throng_engine::{Arrival, CloseReason};
use throng_measure::LoadCounters;
use throng_proto::http::{Headers, Response};
use throng_proto::phoenix::client::{self, ChannelEnd, PhoenixClientEvent, PushReply};
use throng_proto::phoenix::{PhoenixPayload, Vsn};
use throng_proto::websocket::{
    ClientEvent, Scratch, ServerEvent, Violation, WebSocketLimits, WebSocketServer,
};
use throng_proto::{HeldBudget, Input as Bytes, Session};

use super::shown::{differences, is_in_counters, shown};
use crate::cues::{CueWaiters, Cues, GroupOpening, ReadyUser};
use crate::generator::trace_format::{TraceFormat, TraceState};
use crate::program::{IncomingMessage, Program, RateLimit};
use crate::protocols::input::Receiver;
use crate::protocols::ws::session::WebSocketEvent;
use crate::protocols::{phoenix, ws};
use crate::scenario::Scenario;
use crate::schedule::RateClock;
use crate::user::{
    ClassTraits, Encoder, Input, Payload, Progress, Record, Rules, Sample, SocketStatus,
    TraceEvent, User, UserAction, UserContext, UserEvent, UserSession, handle,
};

/// A user of a program, and what is around it.
pub(crate) struct Play {
    program: Program,
    classes: Vec<ClassTraits>,
    user: User,
    session: UserSession,
    encoder: Encoder,
    cues: Arc<Cues>,
    waiters: CueWaiters,
    clocks: Vec<RateClock>,
    pub(crate) held: HeldBudget,
    /// Groups that a user of another core has let go.
    opened: Option<Arc<[GroupOpening]>>,
    socket: SocketStatus,
    pub(crate) counters: LoadCounters,
    /// The moments, in milliseconds, at which answered HTTP requests were sent.
    pub(crate) sent_ms: Vec<u64>,
    /// What the user sent last, as text.
    pub(crate) last_sent: String,
    is_scheduled: bool,
    schedule_over_at: Instant,
    port_tries_max: u8,
    /// What the kernel reports of the next input's arrival.
    arrival: Arrival,
    /// Lines of a user that is watched.
    trace: Option<Trace>,
}

/// The lines about a user, and what they depend on.
#[derive(Default)]
struct Trace {
    state: TraceState,
    lines: Vec<String>,
}

/// Checks each row of a table: inputs, each after its moment in milliseconds, and the actions that
/// follow from the last one. `head` is the target and what else stands before the load; `user` has
/// the steps.
#[track_caller]
pub(crate) fn check(head: &str, user: &str, rows: &[(&str, &str)]) {
    let mut play = Play::new(head, user);
    let played: Vec<_> = rows.iter().map(|(input, _)| (*input, play.row(input))).collect();
    let expected: Vec<_> =
        rows.iter().map(|(input, actions)| (*input, (*actions).to_owned())).collect();
    let shown = |rows: &[(&str, String)]| {
        rows.iter().map(|(input, actions)| format!("{input:?}, {actions:?}\n")).collect::<String>()
    };
    assert!(
        played == expected,
        "{user}\nexpected:\n{}played:\n{}",
        shown(&expected),
        shown(&played)
    );
}

/// Plays inputs to a user that is watched, and checks its lines.
#[track_caller]
pub(crate) fn check_trace(head: &str, user: &str, inputs: &[&str], expected: &[&str]) {
    let lines = Play::traced(head, user, inputs);
    assert!(lines == expected, "{user}\nexpected:\n{expected:#?}\nshown:\n{lines:#?}");
}

pub(crate) const TCP: &str = "target: tcp://h:1";
pub(crate) const WS: &str = "target: ws://h:1/";
pub(crate) const HTTP: &str = "target: http://h:1";
pub(crate) const HTTP_CONTINUES: &str = "target: http://h:1\non_error: continue";
pub(crate) const PHOENIX: &str = "target: ws://h:1/\nprotocol: phoenix";

impl Play {
    /// Creates a user that takes these steps.
    pub(crate) fn new(head: &str, user: &str) -> Self {
        let load = "load: [{ramp: {to: 9, over: 1s}}]";
        let text = format!("{head}\n{load}\nuser: {user}\n");
        let scenario = Scenario::parse(&text, "test").unwrap_or_else(|wrong| panic!("{wrong}"));
        let program = Program::compile(&scenario);
        let cues = Arc::new(Cues::new(program.cues()));
        let clock = |limit: &RateLimit| RateClock::new(limit.per_second, Instant::ZERO);
        let clocks = program.limits().iter().map(clock).collect();
        Self {
            classes: ClassTraits::of(&program, &scenario.load),
            waiters: CueWaiters::new(Arc::clone(&cues)),
            clocks,
            held: HeldBudget::default(),
            cues,
            opened: None,
            program,
            user: User::new(0, 0, 1, Instant::ZERO),
            session: UserSession::Unconnected,
            encoder: Encoder::new(),
            socket: SocketStatus::Absent,
            counters: LoadCounters::default(),
            sent_ms: Vec::new(),
            last_sent: String::new(),
            is_scheduled: true,
            schedule_over_at: Instant::FAR,
            port_tries_max: 0,
            trace: None,
            arrival: Arrival::Unknown,
        }
    }

    /// Plays inputs to a user that is watched. Returns its lines.
    pub(crate) fn traced(head: &str, user: &str, inputs: &[&str]) -> Vec<String> {
        let mut play = Self::new(head, user);
        play.trace = Some(Trace::default());
        inputs.iter().for_each(|input| _ = play.row(input));
        play.trace.take().unwrap_or_default().lines
    }

    /// Reports whether the user owns memory of its HTTP requests.
    pub(crate) fn remembers_requests(&mut self) -> bool {
        self.user.memory.known_http().is_some()
    }

    /// Plays the inputs of one row. Returns the actions that follow from the last one.
    pub(crate) fn row(&mut self, row: &str) -> String {
        row.split("; ").map(|input| self.play(input)).last().unwrap_or_default()
    }

    /// Plays one input: a moment, its name, and what belongs to it.
    fn play(&mut self, text: &str) -> String {
        // Each input is a turn of its own.
        self.encoder.end_turn();
        let mut words = text.splitn(3, ' ');
        let ms: u64 = words.next().unwrap().parse().expect("a row begins with its moment");
        let (name, rest) = (words.next().unwrap(), words.next().unwrap_or(""));
        let now = Instant::from_nanos(ms * 1_000_000);
        let reply = reply_to(rest);
        let end = channel_end(rest);
        let number = || -> u32 { rest.split(' ').next().unwrap().parse().unwrap() };
        let input = match name {
            "begin" => Input::Begin,
            "cancel" => Input::Cancel,
            "opened" => {
                self.socket = SocketStatus::Open;
                Input::Opened
            }
            "self-connected" => {
                self.socket = SocketStatus::Open;
                Input::SelfConnected
            }
            "upgraded" => ws::input::Answer::Upgraded(None).into(),
            "refused" => {
                let answer = Response { status: number() as u16, headers: Headers::new("") };
                ws::input::Answer::Refused(answer, &[]).into()
            }
            "violated" => ws::input::violation(Violation::ResponseInvalid, Some(rest.as_bytes())),
            "http" | "received" => return self.received(now, response(rest)),
            name if name.starts_with("http-of-") => {
                let ms: u64 = name["http-of-".len()..].parse().expect("the moment of the arrival");
                let at = Instant::from_nanos(ms * 1_000_000);
                self.arrival = Arrival::At(at);
                let actions = self.received(now, response(rest));
                self.arrival = Arrival::Unknown;
                return actions;
            }
            "bytes" => Input::Bytes(rest.as_bytes()),
            "text" => Input::Message(IncomingMessage::Text(rest)),
            "binary" | "pong-hex" => {
                let bytes = rest.split(' ').map(|byte| u8::from_str_radix(byte, 16).unwrap());
                let bytes: Vec<_> = bytes.collect();
                let input = match name {
                    "binary" => Input::Message(IncomingMessage::Binary(&bytes)),
                    _ => ws::input::Answer::Pong(&bytes).into(),
                };
                return self.input(now, input);
            }
            "pong" => ws::input::Answer::Pong(rest.as_bytes()).into(),
            "bad" => phoenix::input::bad_message(rest.as_bytes()),
            "reply" => phoenix::input::reply(number(), &reply),
            "channel-end" => {
                phoenix::input::channel_end(end.as_ref().expect("a frame that ends a channel"))
            }
            "peer-closed" => ws::input::Unasked::Closed(Some(number() as u16), "").into(),
            "fin" => Input::PeerFinished,
            "heartbeat" => ws::input::Unasked::HeartbeatDue.into(),
            "blocked" => {
                self.socket = SocketStatus::Blocked;
                return String::new();
            }
            "drained" => {
                self.socket = SocketStatus::Open;
                Input::Drained
            }
            "flood" => return self.input(now, Input::Bytes(&vec![0; number() as usize])),
            "flood-text" => {
                let text = "x".repeat(number() as usize);
                return self.input(now, Input::Message(IncomingMessage::Text(&text)));
            }
            "deadline" => Input::Deadline,
            "closed" => {
                self.socket = SocketStatus::Absent;
                Input::Closed(close_reason(rest), None)
            }
            "another-comes" => {
                self.waiters.arrive(0, OWN_INDEX + 1, now);
                return self.go_on(now);
            }
            "another-core-opens" => {
                let mut other = CueWaiters::new(Arc::clone(&self.cues));
                other.arrive(0, OWN_INDEX, now);
                self.opened = other.take_opened();
                return String::new();
            }
            "another-core-tells" => {
                let opened = self.opened.take().unwrap_or_else(|| [].into());
                opened.iter().for_each(|group| self.waiters.open(*group));
                return self.go_on(now);
            }
            "signal" => {
                self.waiters.raise(0, now);
                return self.go_on(now);
            }
            "stop" => Input::Stop,
            "leave" => Input::Leave,
            "schedule-over" => {
                (self.is_scheduled, self.schedule_over_at) = (false, now);
                return String::new();
            }
            "open-model" => {
                self.classes[0].begins_again = false;
                return String::new();
            }
            "ports" => {
                self.port_tries_max = number() as u8;
                return String::new();
            }
            other => panic!("no input is called {other}"),
        };
        self.input(now, input)
    }

    /// Lets the user go on, if what it waits for has happened.
    fn go_on(&mut self, now: Instant) -> String {
        let ready = std::iter::from_fn(|| self.waiters.next_ready(Instant::FAR));
        let own = ready.filter(|ready| ready.index == OWN_INDEX).last();
        own.map_or_else(String::new, |ReadyUser { ticket, at, .. }| {
            self.input(now, Input::CueOpened { ticket, at })
        })
    }

    /// Plays bytes that the session reads.
    pub(crate) fn received(&mut self, now: Instant, mut bytes: Vec<u8>) -> String {
        let (mut input, mut scratch) = (Bytes::new(&mut bytes), Scratch::default());
        let event = self.session.next(now, &mut input, &mut scratch, &mut Vec::new());
        let mut receiver = PlayReceiver { play: self, now, actions: String::new() };
        if let Some(event) = event {
            event.receive(&mut receiver);
        }
        receiver.actions
    }

    fn input(&mut self, now: Instant, mut input: Input<'_>) -> String {
        let received = match input {
            Input::Bytes(bytes) => Some(Payload::Bytes(bytes)),
            Input::Message(message) => Some(Payload::Message(message)),
            _ => None,
        };
        if let (Some(payload), Some(trace)) = (received, &mut self.trace) {
            let event = TraceEvent::Received(payload);
            trace.note(&self.program, now, &UserAction::Trace(self.user.pc(), event));
        }
        let mut notes = Vec::new();
        loop {
            let mut out = Vec::new();
            let before = self.counters.clone();
            let mut actions = Vec::new();
            let (counters, sent_ms) = (&mut self.counters, &mut self.sent_ms);
            let (program, is_traced) = (&self.program, self.trace.is_some());
            let trace = &mut self.trace;
            let mut act = |action: UserAction<'_>| {
                if let Some(trace) = trace {
                    trace.note(program, now, &action);
                }
                if let UserAction::Record(_, Record::HttpAnswered { sent, .. }) = action {
                    sent_ms.push(sent.micros_since(Instant::ZERO) / 1000);
                }
                if let UserAction::Count(count) = action {
                    count(counters);
                } else if !is_in_counters(&action) {
                    let is_opened = matches!(
                        action,
                        UserAction::Record(
                            _,
                            Record::Connected { .. } | Record::RequestConnected { .. }
                        )
                    );
                    if is_opened {
                        counters.connected += 1;
                    }
                    actions.push(shown(&action, now));
                }
            };
            let mut cx = UserContext {
                user: &mut self.user,
                now,
                arrival: self.arrival,
                socket: self.socket,
                session: &mut self.session,
                out: &mut out,
                rules: Rules {
                    program: &self.program,
                    classes: &self.classes,
                    seed: 1,
                    is_scheduled: self.is_scheduled,
                    schedule_over_at: self.schedule_over_at,
                    port_tries_max: self.port_tries_max,
                },
                encoder: &mut self.encoder,
                clocks: &mut self.clocks,
                cues: &mut self.waiters,
                held: &self.held,
                index: OWN_INDEX,
                is_traced,
                actions: &mut act,
            };
            let progress = handle(&mut cx, input);
            if actions.iter().any(|action| action == "connect") {
                self.socket = SocketStatus::Busy;
            }
            notes.append(&mut actions);
            notes.dedup();
            notes.extend(self.sent(now, &out));
            notes.extend(differences(&before, &self.counters));
            match progress {
                Progress::Waits => break,
                Progress::Flush { ops_left } => input = Input::Flushed { ops_left },
            }
            notes.push("flush".to_owned());
        }
        notes.join(", ")
    }

    /// Describes what the user sent. Answers the request of an upgrade.
    fn sent(&mut self, now: Instant, out: &[u8]) -> Option<String> {
        if out.is_empty() {
            return None;
        }
        self.last_sent = String::from_utf8_lossy(out).into_owned();
        if self.session.client().is_some_and(|client| client.is_in_handshake()) {
            let mut answer = accept(out);
            let mut input = Bytes::new(&mut answer);
            let mut scratch = Scratch::default();
            let event = self.session.next(now, &mut input, &mut scratch, &mut Vec::new());
            assert!(
                matches!(
                    event,
                    Some(UserEvent::Ws(WebSocketEvent::Client(ClientEvent::Opened { .. })))
                ),
                "{event:?}"
            );
            return Some("sent the upgrade".to_owned());
        }
        if let UserSession::Http(_) = self.session {
            return Some(format!("sent {}", request_line(out)));
        }
        Some(match self.session {
            UserSession::Ws(_) if out[0] & 0xf == 8 => "sent a close frame".to_owned(),
            UserSession::Ws(_) if out[0] & 0xf == 9 => "sent a ping".to_owned(),
            UserSession::Ws(_) if out[0] & 0xf == 10 => "sent a pong".to_owned(),
            UserSession::Ws(_) => "sent a frame".to_owned(),
            _ if out.len() > 20 => format!("sent {} bytes", out.len()),
            _ => format!("sent {}", str::from_utf8(out).unwrap()),
        })
    }
}

/// A user that receives what its session has read.
struct PlayReceiver<'a> {
    play: &'a mut Play,
    now: Instant,
    /// What the user did.
    actions: String,
}

impl Receiver for PlayReceiver<'_> {
    fn user(&mut self) -> &User {
        &self.play.user
    }

    fn program(&self) -> &Program {
        &self.play.program
    }

    fn step(&mut self, input: Input<'_>) {
        self.actions = self.play.input(self.now, input);
    }

    fn trace(&mut self, event: TraceEvent<'_>) {
        let Play { trace, program, user, .. } = &mut *self.play;
        if let Some(trace) = trace {
            trace.note(program, self.now, &UserAction::Trace(user.pc(), event));
        }
    }

    fn count(&mut self, count: fn(&mut LoadCounters)) {
        count(&mut self.play.counters);
    }

    fn takes_probe(&mut self, _: &[u8]) -> bool {
        false
    }

    fn takes_probe_answer(&mut self, _: u32, _: Option<Sample<'_>>) -> bool {
        false
    }

    fn awaits_messages(&mut self) -> bool {
        true
    }
}

impl Trace {
    fn note(&mut self, program: &Program, now: Instant, action: &UserAction<'_>) {
        let began = Instant::ZERO;
        let format = TraceFormat { program, began, is_full: false, class: 0, user: 0 };
        self.lines.extend(format.lines(&mut self.state, now, action));
    }
}

/// The user's index among those that wait for others.
const OWN_INDEX: u32 = 0;

/// Returns the bytes of a response, in which `|` stands for the end of a line.
fn response(text: &str) -> Vec<u8> {
    text.replace('|', "\r\n").into_bytes()
}

/// Returns the first line of a request, with its cookies and its body.
fn request_line(request: &[u8]) -> String {
    let text = str::from_utf8(request).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let mut lines = head.split("\r\n");
    let line = lines.next().unwrap().trim_end_matches(" HTTP/1.1");
    let cookies = lines.filter_map(|line| line.strip_prefix("cookie: "));
    let cookies = cookies.map(|cookies| format!(" with {cookies}")).collect::<String>();
    let body = if body.is_empty() { String::new() } else { format!(" {body}") };
    format!("{line}{cookies}{body}")
}

/// Returns the answer of a server that accepts an upgrade.
fn accept(request: &[u8]) -> Vec<u8> {
    let mut server = WebSocketServer::new(Instant::ZERO, &WebSocketLimits::default());
    let (mut request, mut out) = (request.to_vec(), Vec::new());
    let mut scratch = Scratch::default();
    let mut input = Bytes::new(&mut request);
    let event = server.next(Instant::ZERO, &mut input, &mut scratch, &mut out);
    let Some(ServerEvent::Request(request)) = event else { panic!("{event:?}") };
    let upgrade = server.check_upgrade(&request).unwrap();
    server.accept(&upgrade, None, &[], false, &mut out);
    out
}

fn reply_to(rest: &str) -> PushReply<'_> {
    let mut words = rest.splitn(3, ' ').skip(1);
    let status = words.next().unwrap_or("ok");
    let response = words.next().unwrap_or("{}");
    PushReply {
        join_ref: None,
        r#ref: None,
        topic: "a".into(),
        status: status.into(),
        response: PhoenixPayload::Json(response),
    }
}

fn channel_end(frame: &str) -> Option<ChannelEnd<'_>> {
    let vsn = if frame.starts_with('{') { Vsn::V1 } else { Vsn::V2 };
    match client::decode_text(vsn, frame) {
        Ok(PhoenixClientEvent::ChannelEnd(end)) => Some(end),
        _ => None,
    }
}

fn close_reason(name: &str) -> CloseReason {
    match name {
        "requested" => CloseReason::Requested,
        "finished" => CloseReason::Finished,
        "reset" => CloseReason::Failed(Errno::CONN_RESET),
        "refused" => CloseReason::ConnectFailed(Errno::CONN_REFUSED),
        "port-taken" => CloseReason::ConnectFailed(Errno::ADDR_NOT_AVAILABLE),
        "overflow" => CloseReason::Overflow,
        "panicked" => CloseReason::Panicked,
        other => panic!("no reason is called {other}"),
    }
}
