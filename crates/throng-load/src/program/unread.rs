//! Steps in which a user would leave messages unread, if the server sends what no step asks for.

use std::ops::Range;
use std::time::Duration;

use super::{Op, OpRole, Program, StepOrigin, Turns, nanos};
use crate::protocols::MessageForm;
use crate::scenario::{Diagnostic, Diagnostics, foreign_variable};

/// A step in which a user waits for something else than messages, while all that come are kept for
/// a later step that skips none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnreadMessages<'a> {
    /// The step that waits.
    pub waits: &'a StepOrigin,
    /// The `expect` or `receive` that reads next.
    pub reader: &'a StepOrigin,
}

impl Program {
    /// Returns the warnings about the scenario `source` of the program: steps in which messages
    /// would be left unread, variables as other tools write them, and certificates that nothing
    /// verifies.
    pub fn warnings(&self, name: &str, source: &str) -> Diagnostics {
        let unread = self.unread_messages();
        let unread = unread.iter().map(|unread| unread.warning(source));
        let unverified = self.unverified_at().map(|span| {
            let title = "the server's certificate is not verified";
            Diagnostic::new(span, title, "any server is taken for the right one")
                .help("name its authority instead: `ca: FILE`")
        });
        let warnings = unverified.into_iter().chain(unread);
        let warnings = warnings.chain(foreign_variable::warnings(source));
        Diagnostics::warnings(name, source, warnings.collect())
    }

    /// Returns the place of `verify: none` in the scenario, if the target is over TLS.
    pub(crate) fn unverified_at(&self) -> Option<Range<usize>> {
        self.unverified_at.clone()
    }

    /// Returns the first step in front of each `expect` and `receive` in which messages would be
    /// left unread for so long that they fill the user's inbox.
    pub fn unread_messages(&self) -> Vec<UnreadMessages<'_>> {
        let mut found: Vec<UnreadMessages<'_>> = Vec::new();
        // A stream has no messages, and on a channel other events are never kept.
        if self.protocol().messages != MessageForm::Messages {
            return found;
        }
        for pc in 0..self.ops().len() as u32 {
            let Some(reader) = self.reader_without_skip(pc).filter(|_| self.lasts(pc)) else {
                continue;
            };
            let unread = UnreadMessages { waits: self.origin(pc), reader: self.origin(reader) };
            if found.iter().all(|other| other.reader != unread.reader) {
                found.push(unread);
            }
        }
        found
    }

    /// Returns the next step that reads, if it skips no message, and all that come to a user at
    /// `pc` are kept for it: what comes before a send is discarded.
    fn reader_without_skip(&self, pc: u32) -> Option<u32> {
        let next = self.next_answer(pc);
        next.expect.filter(|reader| !next.sends_first && self.skips_none(*reader))
    }

    /// Reports whether the op at `reader` reads one message, and skips none before it.
    pub(crate) fn skips_none(&self, reader: u32) -> bool {
        self.pattern_of(reader).is_some_and(|pattern| !pattern.skips_others())
    }

    /// Reports whether a user can spend long in the op at `pc`, or some time in each turn of a loop
    /// that reads and never sends.
    fn lasts(&self, pc: u32) -> bool {
        let long_ns = nanos(LONG);
        match self.op(pc) {
            Op::Wait { span_ns, jitter } => {
                let most_ns = (span_ns as f64 * f64::from(1.0 + jitter)) as u64;
                most_ns >= long_ns || span_ns > 0 && self.only_reads_around(pc)
            }
            // They have long tails.
            Op::Think { .. } | Op::AwaitTurn { .. } => true,
            Op::AwaitCue { timeout_ns, .. } => timeout_ns >= long_ns,
            Op::LoopEnd { index } => matches!(self.loop_at(index).turns, Turns::Every { .. }),
            _ => false,
        }
    }

    /// Reports whether a loop around the op at `pc` sends nothing.
    fn only_reads_around(&self, pc: u32) -> bool {
        let mut loops = self.loops_near(pc).map(|index| self.loop_at(index));
        loops.any(|looping| {
            let body = &self.facts[looping.body as usize..looping.after as usize];
            looping.contains(pc)
                && !body.iter().any(|facts| matches!(facts.role, OpRole::Sends { .. }))
        })
    }
}

impl UnreadMessages<'_> {
    /// Returns the warning, at the line of the step that waits.
    fn warning(&self, source: &str) -> Diagnostic {
        let (waits, reader) = (self.waits, self.reader);
        let title = format!(
            "line {} may leave messages unread: if the server sends what no step asks for, it \
             piles up here",
            reader.line
        );
        let label = format!(
            "`{}` in line {} reads one message and skips none; more than 64 KiB end the connection",
            reader.kind, reader.line
        );
        let help = format!(
            "add `skip_others: true` in line {}, or a `receive` for what comes unasked; if the \
             server only answers, all is well",
            reader.line
        );
        Diagnostic::new(place_in(source, waits), title, label).help(help)
    }
}

/// Returns the bytes of a step's first line, from the name of its kind on.
fn place_in(source: &str, step: &StepOrigin) -> Range<usize> {
    let mut lines = source.split_inclusive('\n');
    let before = lines.by_ref().take(step.line.saturating_sub(1) as usize);
    let begin: usize = before.map(str::len).sum();
    let line = lines.next().unwrap_or_default().trim_end();
    let at = line.find(step.kind).unwrap_or(0);
    begin + at..begin + line.len()
}

/// The shortest wait that counts: in less, no usual server sends a user as much as it keeps.
const LONG: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;

    /// Checks at which lines of these steps, from 1, messages are left unread by which others.
    #[track_caller]
    fn check(target: &str, steps: &[&str], expected: &[(u32, u32)]) {
        let list: String = steps.iter().map(|step| format!("  - {step}\n")).collect();
        let text = format!("target: {target}\nload: [ramp: {{to: 1, over: 1s}}]\nuser:\n{list}");
        let scenario = Scenario::parse(&text, "test").unwrap_or_else(|error| panic!("{error}"));
        let program = Program::compile(&scenario);
        let found = program.unread_messages();
        let found: Vec<_> =
            found.iter().map(|unread| (unread.waits.line - 3, unread.reader.line - 3)).collect();
        assert_eq!(found, expected, "{steps:?}");
    }

    const WS: &str = "ws://h:1/";

    #[test]
    fn a_wait_between_a_question_and_an_expect_that_skips_nothing_leaves_messages_unread() {
        let with = |wait: &str, expect: &str, expected: &[(u32, u32)]| {
            check(WS, &["connect", "send: a", wait, expect], expected);
        };
        with("wait: 2s", "expect: a", &[(3, 4)]);
        with("wait: 700ms ±50%", "expect: a", &[(3, 4)]);
        with("wait: exponential(100ms)", "expect: a", &[(3, 4)]);
        with("barrier: all", "expect: a", &[(3, 4)]);
        with("barrier: {name: all, timeout: 500ms}", "expect: a", &[]);
        with("wait: 500ms", "expect: a", &[]);
        with("wait: 2s", "expect: {text: a, skip_others: true}", &[]);
        check("tcp://h:1", &["connect", "send: a", "wait: 2s", "expect: a"], &[]);
    }

    #[test]
    fn what_comes_before_a_send_is_discarded_and_no_warning() {
        check(WS, &["connect", "wait: 9s", "send: a", "expect: a", "wait: 9s"], &[]);
        check(WS, &["connect", "every: {period: 9s, do: [send: a, expect: a]}"], &[]);
        check(WS, &["connect", "repeat: {times: 9, do: [send: a, expect: a, wait: 9s]}"], &[]);
        check(WS, &["connect", "receive: hi", "stay"], &[]);
    }

    #[test]
    fn a_loop_that_only_reads_leaves_unread_what_comes_faster() {
        check(WS, &["connect", "every: {period: 100ms, do: [receive: a]}"], &[(2, 2)]);
        check(WS, &["connect", "repeat: {for: 1h, do: [receive: a, wait: 10ms]}"], &[(2, 2)]);
        // A `receive` takes what came before the send, too.
        check(WS, &["connect", "every: {period: 9s, do: [send: a, receive: a]}"], &[(2, 2)]);
        check(WS, &["connect", "repeat: {for: 1h, do: [receive: a]}"], &[]);
    }

    #[test]
    fn each_expect_has_one_warning_in_the_order_of_the_file() {
        let steps =
            ["connect", "send: a", "wait: 2s", "wait: 3s", "expect: a", "wait: 1s", "expect: b"];
        check(WS, &steps, &[(3, 5), (6, 7)]);
    }

    #[test]
    fn a_warning_shows_the_line_that_waits_and_a_way_out() {
        let source = "target: ws://h:1/\nload: [ramp: {to: 1, over: 1s}]\nuser:\n  - connect\n  \
                      - send: hello\n  - wait: 2s\n  - expect: hello\n";
        let program = Program::compile(&Scenario::parse(source, "pile.yaml").unwrap());
        let warnings = program.warnings("pile.yaml", source);
        let text = warnings.render(false);
        for part in [
            "warning: line 7 may leave messages unread",
            "--> pile.yaml:6:",
            "- wait: 2s",
            "`expect` in line 7 reads one message",
            "help: add `skip_others: true` in line 7",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
