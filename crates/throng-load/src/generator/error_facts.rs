//! Facts of an exchange that ended in an error, for the rules of the diagnosis.

use throng_measure::{AnswerFault, AnswerPart, ErrorExchange, SpokenProtocol};
use throng_proto::http::{PartialResponse, ResponseError};
use throng_proto::websocket::Violation;

use super::error_samples::{ErrorPlace, ErrorSamples, other_expect};
use crate::user::{ErrorKind, Sample};

/// Returns an exchange with the facts that its sample has.
pub(super) fn with_facts(
    exchange: ErrorExchange,
    place: ErrorPlace<'_>,
    sample: &Sample<'_>,
    samples: &ErrorSamples,
) -> ErrorExchange {
    match sample {
        Sample::Mismatch { got, came_first, .. } => ErrorExchange {
            awaited_elsewhere: other_expect(place.program, place.pc, *got),
            came_first: *came_first,
            ..exchange
        },
        Sample::Timeout { .. } => {
            ErrorExchange { skipped: Some(samples.skipped_count(place.pc)), ..exchange }
        }
        Sample::UpgradeViolation(violation, first_bytes) => ErrorExchange {
            answer_fault: Some(Box::new(upgrade_fault(*violation, first_bytes))),
            ..exchange
        },
        Sample::HttpPart(_, part) => {
            ErrorExchange { answer_part: answer_part(part).map(Box::new), ..exchange }
        }
        Sample::HttpViolation(_, error, first_bytes) => ErrorExchange {
            answer_fault: Some(Box::new(answer_fault(*error, first_bytes))),
            ..exchange
        },
        _ => exchange,
    }
}

/// Returns the line of the step that reads the next message and skips none, where an error of this
/// kind says that no step has read for too long; else 0. In front of a step that skips others, a
/// single message was too large.
pub(super) fn reader_line(place: ErrorPlace<'_>, kind: ErrorKind) -> u64 {
    let ErrorPlace { program, pc, .. } = place;
    let reader = program
        .next_answer(pc)
        .expect
        .filter(|reader| kind == ErrorKind::InboxOverflow && program.skips_none(*reader));
    reader.map_or(0, |reader| program.origin(reader).line.into())
}

/// Returns what arrived of an answer, if it has begun. An interim response is no part of it.
fn answer_part(part: &PartialResponse<'_>) -> Option<AnswerPart> {
    part.has_begun().then(|| AnswerPart {
        status: part.head.map(|head| head.status),
        body_bytes: part.body_bytes,
        declared_bytes: part.declared_bytes,
    })
}

fn answer_fault(error: ResponseError, first_bytes: &[u8]) -> AnswerFault {
    AnswerFault {
        is_http: is_http(first_bytes),
        field: error.field().map(str::to_owned),
        reason: error.to_string(),
        protocol: SpokenProtocol::of(first_bytes),
    }
}

fn upgrade_fault(violation: Violation, first_bytes: &[u8]) -> AnswerFault {
    AnswerFault {
        // Any other violation is found in an answer that could be read.
        is_http: violation != Violation::ResponseInvalid || is_http(first_bytes),
        field: violation.field().map(str::to_owned),
        reason: violation.description().to_owned(),
        protocol: SpokenProtocol::of(first_bytes),
    }
}

fn is_http(first_bytes: &[u8]) -> bool {
    first_bytes.starts_with(b"HTTP/1")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::{IncomingMessage, Program};
    use crate::scenario::Scenario;

    fn facts(sample: &Sample<'_>, samples: &ErrorSamples) -> ErrorExchange {
        let text = "target: ws://h:1/\nload: [{ramp: {to: 1, over: 1s}}]\n\
                    user: [connect, {send: a}, {expect: b}, {send: c}, {expect: d}]\n";
        let program = Program::compile(&Scenario::parse(text, "test").unwrap());
        let place = ErrorPlace { program: &program, class: 0, pc: PC, user: 0 };
        with_facts(ErrorExchange::default(), place, sample, samples)
    }

    /// The place of the first `expect`.
    const PC: u32 = 2;

    #[test]
    fn an_answer_to_another_question_and_a_first_message_are_known() {
        let mismatch = |got, came_first| {
            let kind = ErrorKind::ExpectMismatch;
            let sample = Sample::Mismatch { kind, got: IncomingMessage::Text(got), came_first };
            let found = facts(&sample, &ErrorSamples::default());
            (found.awaited_elsewhere, found.came_first)
        };
        assert_eq!(mismatch("d", false), (true, false));
        assert_eq!(mismatch("hello", true), (false, true));
    }

    #[test]
    fn an_answer_to_an_upgrade_that_is_no_http_names_its_protocol() {
        let fault = |violation, first_bytes: &[u8]| {
            let sample = Sample::UpgradeViolation(violation, first_bytes);
            let found = facts(&sample, &ErrorSamples::default()).answer_fault.unwrap();
            (found.is_http, found.protocol)
        };
        let invalid = Violation::ResponseInvalid;
        assert_eq!(fault(invalid, b"+OK redis\r\n"), (false, Some(SpokenProtocol::StatusLines)));
        assert_eq!(fault(invalid, b"garbage"), (false, None));
        assert_eq!(fault(invalid, b"HTTP/1.1 200 OK"), (true, None));
        let too_long = Violation::ResponseHeadTooLong;
        assert_eq!(fault(too_long, b"x8: yyyy"), (true, None), "it is a later piece of a head");
        assert_eq!(fault(Violation::ResponseKey, b"HTTP/1.1 101"), (true, None));
    }

    #[test]
    fn a_time_out_knows_how_many_messages_were_skipped() {
        let text = "target: ws://h:1/\nload: [{ramp: {to: 1, over: 1s}}]\n\
                    user: [connect, {expect: {text: a, skip_others: true}}]\n";
        let program = Program::compile(&Scenario::parse(text, "test").unwrap());
        let mut samples = ErrorSamples::default();
        let timeout = Sample::Timeout { matched: 0 };
        assert_eq!(facts(&timeout, &samples).skipped, Some(0));
        samples.note_skipped(&program, PC, IncomingMessage::Text("b"));
        samples.note_skipped(&program, PC, IncomingMessage::Text("c"));
        assert_eq!(facts(&timeout, &samples).skipped, Some(2));
    }

    #[test]
    fn only_a_reader_that_skips_nothing_leaves_messages_unread() {
        let line = |target: &str, expect: &str, kind| {
            let text = format!(
                "target: {target}\nload: [{{ramp: {{to: 1, over: 1s}}}}]\nuser:\n  - connect\n  \
                 - send: a\n  - wait: 2s\n  - expect: {expect}\n"
            );
            let program = Program::compile(&Scenario::parse(&text, "test").unwrap());
            reader_line(ErrorPlace { program: &program, class: 0, pc: PC, user: 0 }, kind)
        };
        let (ws, overflow) = ("ws://h:1/", ErrorKind::InboxOverflow);
        assert_eq!(line(ws, "b", overflow), 7);
        assert_eq!(line(ws, "{text: b, skip_others: true}", overflow), 0, "one was too large");
        assert_eq!(line(ws, "b", ErrorKind::ExpectTimeout), 0);
        assert_eq!(line("tcp://h:1", "b", overflow), 0, "a stream has no messages");
    }

    #[test]
    fn a_part_of_an_answer_counts_from_its_first_byte() {
        let nothing = PartialResponse {
            head: None,
            bytes: b"",
            body_bytes: 0,
            declared_bytes: None,
            interim: 1,
        };
        let part = |part| {
            let sample = Sample::HttpPart(ErrorKind::HttpTimeout, part);
            facts(&sample, &ErrorSamples::default()).answer_part
        };
        assert_eq!(part(nothing), None);
        let begun = PartialResponse { bytes: b"HTTP/1", ..nothing };
        assert_eq!(part(begun), Some(Box::default()));
    }

    #[test]
    fn an_answer_that_is_not_text_may_still_be_one_of_http() {
        let fault = |first_bytes: &[u8]| {
            let (kind, error) = (ErrorKind::HttpViolation, ResponseError::TransferEncoding);
            let sample = Sample::HttpViolation(kind, error, first_bytes);
            facts(&sample, &ErrorSamples::default()).answer_fault.unwrap()
        };
        let latin1 = fault(b"HTTP/1.1 200 OK\r\nserver: Caf\xe9\r\n");
        assert!(latin1.is_http);
        assert_eq!(latin1.field.as_deref(), Some("transfer-encoding"));
        assert_eq!(latin1.reason, ResponseError::TransferEncoding.to_string());
        assert!(!fault(b"ICY 200 OK").is_http);
    }
}
