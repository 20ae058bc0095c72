//! Exchanges of errors: for the first error of each kind, where it occurred, what was expected and
//! what arrived.

use throng_base::Prng;
use throng_base::units::plural;
use throng_driver::Errno;
use throng_measure::ErrorExchange;
use throng_proto::http::{HttpResponse, PartialResponse};
use throng_proto::phoenix::PhoenixPayload;

use super::error_log::has_room;
use super::error_name::ErrorName;
use super::upgrade_answer::describe_answer;
use crate::excerpt::Excerpt;
use crate::program::{IncomingMessage, Op, Program, VariableScope};
use crate::protocols::TCP_CONNECTION;
use crate::protocols::http::request::{HttpDifference, HttpRequest, message_of};
use crate::user::{ConnectFailure, ErrorKind, Sample, is_step_timeout};

/// Samples of one core: the first error of each kind.
#[derive(Debug, Default)]
pub(super) struct ErrorSamples {
    sampled: Vec<ErrorName>,
    /// Messages that the `expect` of each op has skipped.
    skipped: Vec<SkippedMessages>,
}

/// Messages that the users of a core have skipped in one step.
#[derive(Clone, Debug, Default)]
struct SkippedMessages {
    count: u64,
    /// The first one, and why it does not match; empty if there is none.
    first: String,
}

/// The user that an error belongs to.
#[derive(Clone, Copy, Debug)]
pub(super) struct ErrorPlace<'a> {
    pub(super) program: &'a Program,
    pub(super) class: u16,
    pub(super) pc: u32,
    pub(super) user: u64,
}

impl ErrorSamples {
    /// Returns an exchange if it is the first of its kind. Does not call `describe` otherwise,
    /// which returns what was expected and what arrived.
    pub(super) fn first(
        &mut self,
        name: ErrorName,
        place: ErrorPlace<'_>,
        describe: impl FnOnce(&Self) -> (String, String),
    ) -> Option<ErrorExchange> {
        if self.sampled.contains(&name) || !has_room(self.sampled.iter().copied(), name) {
            return None;
        }
        self.sampled.push(name);
        let (expected, got) = describe(self);
        let ErrorPlace { program, class, pc, user } = place;
        let origin = program.origin(pc);
        Some(ErrorExchange {
            kind: name.to_string(),
            class: program.classes()[usize::from(class)].name.clone(),
            step: origin.number.to_string(),
            step_kind: origin.kind.to_owned(),
            line: origin.line.into(),
            user: Some(user),
            expected,
            got,
            ..ErrorExchange::default()
        })
    }

    /// Returns how many messages the `expect` at `pc` has skipped.
    pub(super) fn skipped_count(&self, pc: u32) -> u64 {
        self.skipped.get(pc as usize).map_or(0, |skipped| skipped.count)
    }

    /// Counts a message that the `expect` at `pc` skips, and keeps the first one.
    pub(super) fn note_skipped(
        &mut self,
        program: &Program,
        pc: u32,
        message: IncomingMessage<'_>,
    ) {
        let index = pc as usize;
        if self.skipped.len() <= index {
            self.skipped.resize_with(index + 1, SkippedMessages::default);
        }
        let skipped = &mut self.skipped[index];
        skipped.count += 1;
        if skipped.count == 1 {
            let excerpt = Excerpt::short(program.secrets());
            skipped.first = excerpt.bytes(message.bytes());
            if let Op::ExpectMessage { pattern, .. } = program.op(pc) {
                let why = program.pattern(pattern).difference(message, excerpt);
                skipped.first += &format!(" ({why})");
            }
        }
    }

    /// Describes what came in place of an answer that timed out.
    fn describe_missing(&self, pc: u32, matched: u32) -> String {
        match (matched, self.skipped.get(pc as usize)) {
            (0, Some(SkippedMessages { count: 1, first })) => {
                format!("others, one message: {first}")
            }
            (0, Some(SkippedMessages { count: count @ 2.., first })) => {
                format!("others, the first of {count} in this step of all users: {first}")
            }
            (0, _) => "nothing".to_owned(),
            (1, _) => "the first byte of it".to_owned(),
            (bytes, _) => format!("the first {bytes} bytes of it"),
        }
    }
}

/// Describes an error whose data is known: what was expected, with the values of these variables,
/// and what arrived.
pub(super) fn describe_sample(
    samples: &ErrorSamples,
    place: ErrorPlace<'_>,
    sample: &Sample<'_>,
    values: &[(String, String)],
) -> (String, String) {
    let ErrorPlace { program, pc, .. } = place;
    let excerpt = Excerpt::short(program.secrets()).with_values(values);
    let expected = program.describe_expected(pc, excerpt);
    match sample {
        Sample::Mismatch { got, .. } => {
            let mut text = excerpt.bytes(got.bytes());
            if let Some(rule) = program.message_rule(pc) {
                text += &format!(": {}", rule.difference(*got, excerpt));
            }
            if let Some(missing) = program.missing_capture(pc, got.bytes()) {
                text += &format!(": {missing}");
            }
            (expected, text)
        }
        Sample::Timeout { matched } => {
            (program.describe_awaited(pc, excerpt), samples.describe_missing(pc, *matched))
        }
        Sample::Violation(violation) => {
            let expected = match violation.is_too_large() {
                true => "a message that the user may hold",
                false => "a WebSocket",
            };
            (expected.to_owned(), violation.description().to_owned())
        }
        Sample::TlsFailure(kind, text) => {
            let expected = match kind {
                ErrorKind::TransportFailed => expected,
                _ => TLS_HANDSHAKE.to_owned(),
            };
            (expected, format!("{} ({})", kind.got(), excerpt.word(text)))
        }
        Sample::UpgradeViolation(violation, head) => {
            (expected, format!("{}: {}", excerpt.head(head), violation.description()))
        }
        Sample::UpgradeRefused(answer, body) => (expected, describe_answer(answer, body, excerpt)),
        Sample::BadMessage(message) => {
            ("a message of Phoenix Channels".to_owned(), excerpt.bytes(message))
        }
        Sample::Refusal(_, reply) => {
            let response = match &reply.response {
                PhoenixPayload::Json(text) => excerpt.bytes(text.as_bytes()),
                PhoenixPayload::Binary(bytes) => excerpt.bytes(bytes),
            };
            (expected, format!("{} {response}", excerpt.word(&reply.status)))
        }
        Sample::HttpResponse(_, difference, answer) => {
            (expected, describe_http(place, *difference, answer, excerpt))
        }
        Sample::HttpViolation(_, error, head) => {
            (expected, format!("{}: {error}", excerpt.head(head)))
        }
        Sample::HttpPart(kind, part) => {
            let expected = match is_step_timeout(*kind) {
                true => program.describe_awaited(pc, excerpt),
                false => expected,
            };
            (expected, describe_part(part, excerpt))
        }
        Sample::HttpUnasked(bytes) => {
            let (n, shown) = (bytes.len() as u64, excerpt.head(bytes));
            let got = format!("{n} {}: {shown}", plural(n, "byte", "bytes"));
            ("only answers to requests".to_owned(), got)
        }
        Sample::Unsendable(part) => (SENDABLE.to_owned(), part.describe(excerpt)),
    }
}

/// Describes an answer to an HTTP request, and why it is not the expected one.
pub(super) fn describe_http(
    place: ErrorPlace<'_>,
    difference: HttpDifference,
    answer: &HttpResponse<'_>,
    excerpt: Excerpt<'_>,
) -> String {
    let Some(request) = place.program.op_of::<HttpRequest>(place.pc) else { return String::new() };
    let expected = &request.expected;
    match difference {
        HttpDifference::Status => {
            let text = describe_answer(&answer.head, answer.body, excerpt);
            let is_page = answer.body.trim_ascii_start().starts_with(b"<");
            match answer.body.is_empty() || is_page {
                true => text,
                false => format!("{text} with {}", excerpt.bytes(answer.body)),
            }
        }
        HttpDifference::Body => {
            let message = message_of(answer.body);
            let differs = || expected.body.as_ref().map(|rule| rule.difference(message, excerpt));
            let why = describe_coding(answer, excerpt).or_else(differs);
            format!("{}: {}", excerpt.bytes(answer.body), why.unwrap_or_default())
        }
        HttpDifference::Field(index) => {
            let missing = expected.fields.get(index).map(|field| field.describe_missing());
            let text = describe_answer(&answer.head, b"", excerpt);
            format!("{text}: {}", missing.unwrap_or_default())
        }
    }
}

/// Describes the coding of a body that nothing here decodes (RFC 9110 section 8.4), if it has one:
/// no check of its content can succeed.
fn describe_coding(answer: &HttpResponse<'_>, excerpt: Excerpt<'_>) -> Option<String> {
    let coding = answer.head.headers.get("content-encoding")?;
    let is_coded = !coding.trim().is_empty() && !coding.trim().eq_ignore_ascii_case("identity");
    is_coded.then(|| {
        format!(
            "the body is compressed (`content-encoding: {}`), and throng does not decompress it; \
             remove `accept-encoding` from the request",
            excerpt.word(coding)
        )
    })
}

/// Describes what has arrived of an answer to an HTTP request.
pub(super) fn describe_part(part: &PartialResponse<'_>, excerpt: Excerpt<'_>) -> String {
    let Some(head) = &part.head else {
        let interim = match part.interim {
            0 => String::new(),
            1 => "an interim answer (1xx)".to_owned(),
            count => format!("{count} interim answers (1xx)"),
        };
        return match (part.bytes.len(), part.interim) {
            (0, 0) => "no complete answer".to_owned(),
            (0, _) => format!("{interim}, and no other"),
            (_, 0) => format!("{}, and not the end of the head", excerpt.head(part.bytes)),
            _ => {
                format!("{interim}, then {}, and not the end of the head", excerpt.head(part.bytes))
            }
        };
    };
    let head = describe_answer(head, b"", excerpt);
    match part.declared_bytes {
        Some(declared) => format!("{head}, {} of {declared} bytes of the body", part.body_bytes),
        None => format!("{head}, {} bytes of the body, and not its end", part.body_bytes),
    }
}

/// Reports whether another `expect` of the program waits for a message that the one at `pc` does
/// not match. Those with variables are left out: the values of the user are not known here. Those
/// that most messages match, and those that wait for what comes unasked, show no order of answers.
pub(super) fn other_expect(program: &Program, pc: u32, got: IncomingMessage<'_>) -> bool {
    let (scope, scratch) = (VariableScope::new(0, Prng::new(0)), &mut Vec::new());
    let mut others =
        (0..).zip(program.ops()).filter(|(at, _)| *at != pc && !program.is_receive(*at));
    others.any(|(_, op)| match (*op, program.op(pc)) {
        (Op::ExpectMessage { pattern, .. }, Op::ExpectMessage { .. }) => {
            let rule = &program.pattern(pattern).pattern;
            rule.is_of_content() && !rule.uses(&|_| true) && rule.matches(got, scope, scratch)
        }
        (Op::ExpectBytes { pattern, .. }, Op::ExpectBytes { .. }) => {
            let expected = program.bytes_pattern(pattern).matcher.literal_text();
            expected.is_some_and(|expected| got.bytes().starts_with(expected))
        }
        _ => false,
    })
}

/// Describes an error of an established connection of which only the kind is known.
pub(super) fn describe_error(place: ErrorPlace<'_>, kind: ErrorKind) -> (String, String) {
    let ErrorPlace { program, pc, .. } = place;
    let excerpt = Excerpt::short(program.secrets());
    let expected = match is_step_timeout(kind) || kind == ErrorKind::CueTimeout {
        true => program.describe_awaited(pc, excerpt),
        false => program.describe_expected(pc, excerpt),
    };
    let got = match kind.got() {
        "" => "something else",
        got => got,
    };
    let expected = match kind {
        ErrorKind::HeartbeatTimeout => "a reply to the last heartbeat".to_owned(),
        ErrorKind::BadValue => SENDABLE.to_owned(),
        _ => expected,
    };
    (expected, got.to_owned())
}

/// Describes a failed connect; `is_upgrade` if TCP was established.
pub(super) fn describe_connect_failure(
    place: ErrorPlace<'_>,
    why: ConnectFailure,
    is_upgrade: bool,
) -> (String, String) {
    let ErrorPlace { program, pc, .. } = place;
    let within = match why {
        ConnectFailure::Timeout | ConnectFailure::Tls(ErrorKind::TlsTimeout) => {
            program.describe_timeout(pc)
        }
        _ => String::new(),
    };
    let handshake = program.protocol().handshake.filter(|_| is_upgrade);
    let expected = match why {
        ConnectFailure::Tls(_) => TLS_HANDSHAKE,
        _ => handshake.unwrap_or(TCP_CONNECTION),
    };
    let got = match why {
        ConnectFailure::Timeout if is_upgrade => {
            "nothing: TCP is established, and no byte of an answer came".to_owned()
        }
        ConnectFailure::Timeout => "nothing: TCP was not established".to_owned(),
        ConnectFailure::Errno(Errno::CONN_REFUSED) => {
            "a reset: no process listens on that port (ECONNREFUSED)".to_owned()
        }
        ConnectFailure::Errno(errno) => errno.to_string(),
        ConnectFailure::Http(status) => format!("status {status}"),
        ConnectFailure::Violation => "something else".to_owned(),
        ConnectFailure::Closed => "the end of the connection before an answer".to_owned(),
        ConnectFailure::SelfConnected => {
            "the socket itself: no process listens on that port".to_owned()
        }
        ConnectFailure::BadValue => "a value that cannot be sent".to_owned(),
        ConnectFailure::Tls(kind) => kind.got().to_owned(),
        ConnectFailure::Internal => "a fault of throng itself".to_owned(),
    };
    (format!("{expected}{within}"), got)
}

/// What is expected of TLS.
const TLS_HANDSHAKE: &str = "a handshake of TLS";

/// What is expected of a value.
const SENDABLE: &str = "a value that can be sent";

/// Describes a close frame of the server.
pub(super) fn describe_close(
    place: ErrorPlace<'_>,
    code: Option<u16>,
    reason: &str,
) -> (String, String) {
    let ErrorPlace { program, pc, .. } = place;
    let excerpt = Excerpt::short(program.secrets());
    let code = code.map_or_else(|| "no code".to_owned(), |code| code.to_string());
    let reason = describe_reason(place, reason);
    let reason = reason.map_or_else(String::new, |reason| format!(", {reason}"));
    (program.describe_expected(pc, excerpt), format!("a close frame with {code}{reason}"))
}

/// Quotes the reason in a close frame, if it has one.
pub(super) fn describe_reason(place: ErrorPlace<'_>, reason: &str) -> Option<String> {
    let excerpt = Excerpt::short(place.program.secrets());
    (!reason.is_empty()).then(|| excerpt.bytes(reason.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::super::error_log::STATUSES_MAX;
    use super::*;
    use crate::scenario::Scenario;

    fn program(user: &str) -> Program {
        let head = "target: ws://h:1/\nload: [{ramp: {to: 1, over: 1s}}]\nuser:\n";
        let text = format!("{head}{user}");
        let scenario = Scenario::parse(&text, "test").unwrap_or_else(|wrong| panic!("{wrong}"));
        Program::compile(&scenario)
    }

    fn place(program: &Program, pc: u32) -> ErrorPlace<'_> {
        ErrorPlace { program, class: 0, pc, user: 7 }
    }

    #[test]
    fn the_first_of_each_kind_has_its_step_and_its_line() {
        let program = program(
            "  - connect\n  - repeat:\n      times: 2\n      do:\n        - send: a\n        \
             - expect: {json: {type: hello}}\n",
        );
        let mut samples = ErrorSamples::default();
        let mut first = |pc, got| {
            let place = place(&program, pc);
            let (kind, got) = (ErrorKind::ExpectMismatch, IncomingMessage::Text(got));
            let sample = Sample::Mismatch { kind, got, came_first: false };
            let name = ErrorName::Kind(kind);
            samples.first(name, place, |samples| describe_sample(samples, place, &sample, &[]))
        };
        // connect, loop, send, expect
        let shown = first(3, r#"{"type":"helo"}"#).unwrap();
        assert_eq!(
            shown.to_string(),
            "first expect_mismatch: expected JSON with `{\"type\":\"hello\"}`, received \
             `{\"type\":\"helo\"}`: `type` is `\"helo\"`, expected `\"hello\"`; step 2.2 `expect` \
             (line 9), user 7"
        );
        assert_eq!(first(3, "again"), None);
    }

    #[test]
    fn what_the_server_sent_is_shown_as_it_came() {
        let program = program("  - connect\n  - expect: {json: {id: \"${user.id}\"}}\n");
        let place = place(&program, 1);
        let got = IncomingMessage::Text(r#"{"id":"${user.id}"}"#);
        let kind = ErrorKind::ExpectMismatch;
        let sample = Sample::Mismatch { kind, got, came_first: false };
        let values = program.known_values(1, VariableScope::new(7, Prng::new(0)));
        let shown = describe_sample(&ErrorSamples::default(), place, &sample, &values);
        let expected = r#"JSON with `{"id":"7"}`"#;
        let got = r#"`{"id":"${user.id}"}`: `id` is `"${user.id}"`, expected `"7"`"#;
        assert_eq!(shown, (expected.to_owned(), got.to_owned()));
    }

    #[test]
    fn an_answer_that_another_expect_waits_for_is_noted_and_no_other() {
        let check = |scheme: &str, user: &str, pc: u32, got: &str, is_anothers: bool| {
            let head = format!("target: {scheme}://h:1\nload: [{{ramp: {{to: 1, over: 1s}}}}]\n");
            let scenario = Scenario::parse(&format!("{head}user: [connect, {user}]\n"), "test");
            let program = Program::compile(&scenario.unwrap_or_else(|wrong| panic!("{wrong}")));
            let got = IncomingMessage::Text(got);
            assert_eq!(other_expect(&program, pc, got), is_anothers, "{scheme}: {user}: {got:?}");
        };
        for scheme in ["tcp", "ws"] {
            let check = |user, pc, got, is_anothers| check(scheme, user, pc, got, is_anothers);
            let two = "send: a, expect: one, send: b, expect: two";
            check(two, 2, "two", true);
            check(two, 2, "three", false);
            // The value is not known here.
            check("send: a, expect: '${sent.body}'", 2, "b", false);
            check("send: a, expect: one, send: b, expect: '${sent.body}'", 2, "b", false);
            // Any answer matches these.
            check("send: a, expect: one, send: b, expect: {bytes: 2}", 2, "xx", false);
            check("send: a, expect: one, send: b, receive: two", 2, "two", false);
        }
        let captured = "send: a, expect: {until: '\n', capture: {id: {regex: 'id=(.)'}}}";
        check("tcp", captured, 2, "none\n", false);
    }

    #[test]
    fn some_statuses_have_an_answer_and_other_errors_still_have_theirs() {
        let program = program("  - connect\n  - expect: a\n");
        let mut samples = ErrorSamples::default();
        let mut first =
            |name| samples.first(name, place(&program, 1), |_| (String::new(), String::new()));
        let statuses: Vec<_> =
            (400..430).filter_map(|status| first(ErrorName::HttpStatus(status))).collect();
        assert_eq!(statuses.len(), STATUSES_MAX);
        assert_eq!(statuses[1].kind, ErrorKind::HttpStatus.with(401));
        assert!(first(ErrorName::HttpStatus(400)).is_none(), "it has one");
        assert!(first(ErrorName::Kind(ErrorKind::HttpTimeout)).is_some());
    }

    #[test]
    fn a_time_out_says_what_came_instead() {
        let program = program("  - connect\n  - expect: {text: a, skip_others: true}\n");
        let mut samples = ErrorSamples::default();
        assert_eq!(samples.describe_missing(1, 0), "nothing");
        samples.note_skipped(&program, 1, IncomingMessage::Text("b"));
        assert_eq!(
            samples.describe_missing(1, 0),
            "others, one message: `b` (at byte 0 comes `b`, expected `a`)"
        );
        samples.note_skipped(&program, 1, IncomingMessage::Text("c"));
        assert_eq!(
            samples.describe_missing(1, 0),
            "others, the first of 2 in this step of all users: `b` (at byte 0 comes `b`, expected \
             `a`)"
        );
        assert_eq!(samples.describe_missing(0, 0), "nothing");
        assert_eq!(samples.describe_missing(0, 3), "the first 3 bytes of it");
    }

    #[test]
    fn every_kind_of_error_has_an_exchange() {
        let program = program("  - connect\n  - expect: a\n");
        for kind in ErrorKind::OF_USERS {
            let (expected, got) = describe_error(place(&program, 1), kind);
            assert!(!expected.is_empty() && !got.is_empty(), "{kind:?}");
        }
        let (expected, got) =
            describe_connect_failure(place(&program, 0), ConnectFailure::Timeout, true);
        assert_eq!(expected, "101 Switching Protocols within 5s");
        assert_eq!(got, "nothing: TCP is established, and no byte of an answer came");
        let (_, got) = describe_close(place(&program, 1), Some(1011), "overloaded");
        assert_eq!(got, "a close frame with 1011, `overloaded`");
    }
}
