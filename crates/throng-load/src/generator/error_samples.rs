//! Samples of errors: for the first error of each kind, what was expected and what arrived.

use std::fmt::Write as _;

use throng_base::Prng;

use crate::program::{IncomingMessage, MatchProgress, Op, Program, VariableScope};

/// A sample of one error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorSample {
    /// Kind of the error, as in the counters.
    pub kind: String,
    /// Expected data.
    pub expected: String,
    /// Actual data.
    pub got: String,
}

/// Samples of one core: the first error of each kind.
#[derive(Debug, Default)]
pub(super) struct ErrorSamples {
    sampled_kinds: Vec<String>,
    /// The first message that an `expect` skipped.
    pub(super) first_skipped: Option<String>,
}

impl ErrorSamples {
    /// Returns a sample if it is the first of its kind. Calls neither closure otherwise.
    pub(super) fn first(
        &mut self,
        kind: &str,
        expected: impl FnOnce() -> String,
        got: impl FnOnce() -> String,
    ) -> Option<ErrorSample> {
        if self.sampled_kinds.len() == KINDS_MAX
            || self.sampled_kinds.iter().any(|shown| shown == kind)
        {
            return None;
        }
        self.sampled_kinds.push(kind.to_owned());
        Some(ErrorSample { kind: kind.to_owned(), expected: expected(), got: got() })
    }

    /// Keeps a skipped message, if it is the first.
    pub(super) fn note_skipped(&mut self, message: &[u8]) {
        self.first_skipped.get_or_insert_with(|| printable(message));
    }
}

/// Describes what the step at `pc` expects.
pub(super) fn describe_expected(program: &Program, pc: u32) -> String {
    match program.op(pc) {
        Op::ExpectBytes { matcher, .. } => program.matcher(matcher).describe(printable),
        Op::ExpectMessage { pattern, .. } => program.pattern(pattern).describe(printable),
        Op::Request { request } => match &program.request(request).response {
            Some(rule) => rule.describe(printable),
            None => "a reply".to_owned(),
        },
        _ => "an answer".to_owned(),
    }
}

/// Reports whether another `expect` of the program waits for these bytes, and the step at `pc` for
/// something else.
pub(super) fn other_expect(program: &Program, pc: u32, got: &[u8]) -> bool {
    // The step's own rule does not match. Rules with variables are left out: the values of the user
    // are not known here.
    let (scope, scratch) = (VariableScope::new(0, Prng::new(0)), &mut Vec::new());
    program.ops().iter().any(|op| match (*op, program.op(pc)) {
        (Op::ExpectMessage { pattern, .. }, Op::ExpectMessage { .. }) => {
            let message = std::str::from_utf8(got)
                .map_or(IncomingMessage::Binary(got), IncomingMessage::Text);
            let rule = &program.pattern(pattern).pattern;
            !rule.uses(&|_| true) && rule.matches(message, scope, scratch)
        }
        (Op::ExpectBytes { matcher, .. }, Op::ExpectBytes { .. }) => {
            let progress = program.matcher(matcher).feed(&mut 0, got, scope, scratch);
            matches!(progress, MatchProgress::Matched { .. })
        }
        _ => false,
    })
}

/// Formats bytes for people: as text in backticks with control characters escaped, otherwise in
/// hexadecimal. Shows at most [`PRINTED_BYTES_MAX`] of them.
pub(super) fn printable(bytes: &[u8]) -> String {
    let cut = &bytes[..bytes.len().min(PRINTED_BYTES_MAX)];
    let text = match std::str::from_utf8(cut) {
        Ok(text) => Some(text),
        // The cut may have split a character.
        Err(error) if error.error_len().is_none() && cut.len() < bytes.len() => {
            std::str::from_utf8(&cut[..error.valid_up_to()]).ok()
        }
        Err(_) => None,
    };
    let is_readable = |text: &&str| {
        let hidden = text.chars().filter(|c| c.is_control() && !c.is_whitespace()).count();
        hidden * 4 <= text.len()
    };
    let mut out = match text.filter(is_readable) {
        Some(text) => format!(
            "`{}`",
            text.escape_debug().to_string().replace("\\\"", "\"").replace("\\'", "'")
        ),
        None => cut[..cut.len().min(HEX_BYTES_MAX)]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect::<Vec<_>>()
            .join(" "),
    };
    let length = bytes.len();
    if length > PRINTED_BYTES_MAX || (text.filter(is_readable).is_none() && length > HEX_BYTES_MAX)
    {
        _ = write!(out, "… ({length} bytes)");
    }
    out
}

/// The expected answer to an upgrade.
pub(super) const EXPECTED_CONSENT: &str = "101 Switching Protocols";

/// An upper bound of the number of kinds.
const KINDS_MAX: usize = 64;

/// Bytes of a message that are shown.
const PRINTED_BYTES_MAX: usize = 200;

/// Bytes that are shown in hexadecimal.
const HEX_BYTES_MAX: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_shown_as_text_where_they_are_text() {
        assert_eq!(printable(b"hello"), "`hello`");
        assert_eq!(printable(b"+OK\r\n"), "`+OK\\r\\n`");
        assert_eq!(printable(br#"{"type":"it's"}"#), r#"`{"type":"it's"}`"#);
        assert_eq!(printable(&[0x97, 0x9a, 0x93]), "97 9a 93");
        assert_eq!(printable(&[0, 1, 2, 3]), "00 01 02 03");
        assert_eq!(printable(b""), "``");
        // Control sequences do not reach the terminal.
        assert_eq!(printable(b"abc\x1b[2Jabcdef"), "`abc\\u{1b}[2Jabcdef`");
    }

    #[test]
    fn long_messages_are_cut_and_say_so() {
        let long = "ä".repeat(150);
        let cut = printable(long.as_bytes());
        assert!(cut.starts_with("`ää") && cut.ends_with("ä`… (300 bytes)"), "{cut}");
        let bytes = printable(&[0xff; 4_000]);
        assert!(bytes.ends_with("ff… (4000 bytes)") && bytes.len() < 130, "{bytes}");
    }

    #[test]
    fn each_kind_is_shown_once() {
        let mut samples = ErrorSamples::default();
        let one = |samples: &mut ErrorSamples, kind: &str| {
            samples.first(kind, || "a".into(), || "b".into()).map(|sample| sample.kind)
        };
        assert_eq!(one(&mut samples, "expect_mismatch").as_deref(), Some("expect_mismatch"));
        assert_eq!(one(&mut samples, "expect_mismatch"), None);
        assert_eq!(one(&mut samples, "join_refused").as_deref(), Some("join_refused"));
    }
}
