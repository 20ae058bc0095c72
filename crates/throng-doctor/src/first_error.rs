//! The first error of a kind: what was expected and what came.

use throng_measure::{AnswerFault, AnswerPart, RunEventKind};

use crate::outages::events;
use crate::run_view::RunView;

/// The first error of a kind, as the generator saw it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FirstError<'a> {
    /// What a step expected, for people.
    pub(crate) expected: &'a str,
    /// What came, for people: quoted between backticks and escaped, or in hexadecimal.
    pub(crate) got: &'a str,
    /// Messages that the step skipped before it timed out.
    pub(crate) skipped: Option<u64>,
    /// The part of the HTTP answer that arrived.
    pub(crate) answer_part: Option<&'a AnswerPart>,
    /// Why the HTTP answer cannot be read.
    pub(crate) answer_fault: Option<&'a AnswerFault>,
    /// The time at which it occurred.
    pub(crate) at_ms: u64,
    /// The number of the user.
    pub(crate) user: Option<u64>,
    /// True if another `expect` waits for what came.
    pub(crate) awaited_elsewhere: bool,
    /// True if nothing came before on its connection.
    pub(crate) came_first: bool,
    /// Line of the step that reads next, where messages were left unread; 0 if unknown.
    pub(crate) reader_line: u64,
    /// The kind of the step in which the error occurred: `wait`; empty if unknown.
    pub(crate) step_kind: &'a str,
    /// Line of the step in which the error occurred; 0 if unknown.
    pub(crate) line: u64,
    /// Reason in the server's close frame, quoted.
    pub(crate) close_reason: Option<&'a str>,
}

impl<'a> FirstError<'a> {
    /// Returns the first error of this kind, if the run file has one.
    pub(crate) fn of(run: &RunView<'a>, name: impl AsRef<str>) -> Option<Self> {
        let name = name.as_ref();
        events(run).find_map(|(at_ms, event)| match event {
            RunEventKind::FirstError(first) if first.kind == name => Some(Self {
                expected: &first.expected,
                got: &first.got,
                skipped: first.skipped,
                answer_part: first.answer_part.as_deref(),
                answer_fault: first.answer_fault.as_deref(),
                at_ms,
                user: first.user,
                awaited_elsewhere: first.awaited_elsewhere,
                came_first: first.came_first,
                reader_line: first.reader_line,
                step_kind: &first.step_kind,
                line: first.line,
                close_reason: first.close_reason.as_deref(),
            }),
            _ => None,
        })
    }

    /// Reports whether messages arrived in place of the one that the step waited for.
    pub(crate) fn has_skipped(&self) -> bool {
        self.skipped.is_some_and(|skipped| skipped > 0)
    }

    /// Returns a field of an HTTP answer: `location`.
    pub(crate) fn field(&self, name: &str) -> Option<&'a str> {
        let head = self.got.strip_prefix('`')?;
        let head = head.rsplit_once('`').map_or(head, |(head, _)| head);
        let mut lines = head.split(LINE_END).skip(1);
        lines.find_map(|line| {
            let (own, value) = line.split_once(": ")?;
            own.eq_ignore_ascii_case(name).then_some(value.trim())
        })
    }
}

/// Cuts a text so that it fits into a sentence. The head says what it is, and the end often says
/// why: the middle is left out.
pub(crate) fn cut(text: &str) -> String {
    if text.chars().count() <= SHOWN_CHARS_MAX {
        return text.to_owned();
    }
    // What follows a quotation explains it, and has no room here.
    let chars: Vec<char> = quoted(text).chars().collect();
    if chars.len() <= SHOWN_CHARS_MAX {
        return chars.into_iter().collect();
    }
    let (head, tail) = (&chars[..HEAD_CHARS], &chars[chars.len() - TAIL_CHARS..]);
    [head, &['…'], tail].into_iter().flatten().collect()
}

/// Returns the quotation at the beginning of a text, or all of it.
pub(crate) fn quoted(text: &str) -> &str {
    let is_quotation = text.starts_with('`');
    text.find("`: ").filter(|_| is_quotation).map_or(text, |end| &text[..=end])
}

/// The end of a line in an escaped text.
const LINE_END: &str = "\\r\\n";

/// The most characters of an answer in a sentence, and those of a longer one: its beginning and its
/// end.
const SHOWN_CHARS_MAX: usize = 60;
const HEAD_CHARS: usize = 27;
const TAIL_CHARS: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_answer_keeps_its_beginning_and_its_end() {
        let error = "`error: connection to server at \"127.0.0.1\", port 5432 failed: \
                     FATAL:  sorry, too many clients already`";
        assert_eq!(cut(error), "`error: connection to serve…sorry, too many clients already`");
        let others =
            "others, the first: `{\"type\":\"message\",\"room\":\"room-7\",\"body\":\"hello\"}`";
        let shown = cut(others);
        assert!(shown.ends_with("\"body\":\"hello\"}`"), "{shown}");
        assert_eq!((shown.matches('`').count(), shown.chars().count()), (2, SHOWN_CHARS_MAX));
        let explained = format!("`{}`: the accept value does not match", "x".repeat(40));
        assert_eq!(cut(&explained), format!("`{}`", "x".repeat(40)));
    }

    #[test]
    fn the_fields_of_an_answer_are_found_by_name() {
        let got = "`HTTP/1.1 302\\r\\nlocation: /login\\r\\nServer: a: b`";
        let first = FirstError { got, ..FirstError::default() };
        assert_eq!(
            (first.field("location"), first.field("server")),
            (Some("/login"), Some("a: b"))
        );
        assert_eq!(first.field("http/1.1 302"), None);
        for (at, _) in got.char_indices() {
            FirstError { got: &got[..at], ..first }.field("location");
        }
        let cut = "`HTTP/1.1 302\\r\\nlocation: /log`… (300 bytes)";
        assert_eq!(FirstError { got: cut, ..first }.field("location"), Some("/log"));
    }
}
