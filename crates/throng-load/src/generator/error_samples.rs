//! One error of each kind, as it was: what was to come, and what came.

use std::fmt::Write as _;

use throng_driver::Driver;
use throng_engine::Conn;

use super::core_stats::close_name;
use super::{ErrorKind, Generator, GeneratorMessage};
use crate::program::{Op, Program};

/// What a core shows of one error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorSample {
    /// The kind, as it is counted.
    pub kind: String,
    /// What was to come.
    pub expected: String,
    /// What came.
    pub got: String,
}

/// The samples of one core: the first error of each kind, and none after it.
#[derive(Debug, Default)]
pub(super) struct ErrorSamples {
    shown: Vec<String>,
    /// The first message that was passed over because another was waited for.
    pub(super) passed_over: Option<String>,
}

impl ErrorSamples {
    /// Returns a sample, if it is the first of its kind. Nothing is made of any other.
    pub(super) fn first(
        &mut self,
        kind: &str,
        expected: impl FnOnce() -> String,
        got: impl FnOnce() -> String,
    ) -> Option<ErrorSample> {
        if self.shown.len() == KINDS_MAX || self.shown.iter().any(|shown| shown == kind) {
            return None;
        }
        self.shown.push(kind.to_owned());
        Some(ErrorSample { kind: kind.to_owned(), expected: expected(), got: got() })
    }

    /// Keeps a message that was passed over, if it is the first.
    pub(super) fn pass_over(&mut self, message: &[u8]) {
        self.passed_over.get_or_insert_with(|| shown(message));
    }
}

impl Generator {
    /// Shows an error, if it is the first of its kind on this core.
    pub(super) fn show(
        &mut self,
        kind: &str,
        expected: impl FnOnce() -> String,
        got: impl FnOnce() -> String,
    ) {
        let sample = self.samples.first(kind, expected, got);
        self.stats.samples.extend(sample);
    }

    /// Shows how the server closed a WebSocket of which more was wanted.
    pub(super) fn show_close(&mut self, code: Option<u16>, reason: &str) {
        let got = || {
            let code = code.map_or_else(|| "no code".to_owned(), |code| code.to_string());
            match reason {
                "" => format!("a close with {code}"),
                reason => format!("a close with {code}, {}", shown(reason.as_bytes())),
            }
        };
        self.show(&close_name(code), || "an open connection".to_owned(), got);
    }

    /// Shows what came in place of what the user's present step waits for.
    pub(super) fn show_mismatch<D: Driver<Mail = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
        got: &[u8],
    ) {
        let sample = self.samples.first(
            ErrorKind::ExpectMismatch.name(),
            || awaited(&self.config.program, conn.state().pc),
            || shown(got),
        );
        self.stats.samples.extend(sample);
    }

    /// Shows what the user's present step has waited for in vain.
    pub(super) fn show_time_out<D: Driver<Mail = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
    ) {
        let passed_over = self.samples.passed_over.clone();
        let matched = conn.state().awaited;
        let sample = self.samples.first(
            ErrorKind::ExpectTimeout.name(),
            || awaited(&self.config.program, conn.state().pc),
            || match (matched, passed_over) {
                (0, None) => "nothing".to_owned(),
                (0, Some(first)) => format!("others, the first: {first}"),
                (bytes, _) => format!("the first {bytes} bytes of it"),
            },
        );
        self.stats.samples.extend(sample);
    }
}

/// What the step at `pc` waits for, in words.
fn awaited(program: &Program, pc: u32) -> String {
    match program.op(pc) {
        Op::Expect { matcher, .. } => program.matcher(matcher).describe(shown),
        Op::Await { pattern, .. } => program.pattern(pattern).describe(shown),
        _ => "an answer".to_owned(),
    }
}

/// Bytes for people: text between backticks with what is not printed escaped, or else the bytes in hexadecimal; at most
/// [`SHOWN_BYTES_MAX`] of them.
pub(super) fn shown(bytes: &[u8]) -> String {
    let cut = &bytes[..bytes.len().min(SHOWN_BYTES_MAX)];
    let text = match std::str::from_utf8(cut) {
        Ok(text) => Some(text),
        // The cut may have gone through a letter.
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
    if length > SHOWN_BYTES_MAX || (text.filter(is_readable).is_none() && length > HEX_BYTES_MAX) {
        _ = write!(out, "… ({length} bytes)");
    }
    out
}

/// More kinds than there are.
const KINDS_MAX: usize = 64;

/// Bytes of a message that are shown.
const SHOWN_BYTES_MAX: usize = 200;

/// Bytes that are shown as numbers.
const HEX_BYTES_MAX: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_shown_as_text_where_they_are_text() {
        assert_eq!(shown(b"hello"), "`hello`");
        assert_eq!(shown(b"+OK\r\n"), "`+OK\\r\\n`");
        assert_eq!(shown(br#"{"type":"it's"}"#), r#"`{"type":"it's"}`"#);
        assert_eq!(shown(&[0x97, 0x9a, 0x93]), "97 9a 93");
        assert_eq!(shown(&[0, 1, 2, 3]), "00 01 02 03");
        assert_eq!(shown(b""), "``");
        // What could steer a terminal does not reach it.
        assert_eq!(shown(b"abc\x1b[2Jabcdef"), "`abc\\u{1b}[2Jabcdef`");
    }

    #[test]
    fn long_messages_are_cut_and_say_so() {
        let long = "ä".repeat(150);
        let cut = shown(long.as_bytes());
        assert!(cut.starts_with("`ää") && cut.ends_with("ä`… (300 bytes)"), "{cut}");
        let bytes = shown(&[0xff; 4_000]);
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
