//! The order of sends and answers in a program: which answer a message that arrives now can be.

use super::{CloseAction, Op, OpFacts, OpRole, Program};

/// The first send or `expect` that a user at some index of the program comes to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NextAnswer {
    /// True if it sends before it waits for an answer. What arrives before that is not the answer.
    pub sends_first: bool,
    /// Index of the next `expect` or `receive` on this connection; `None` if there is none.
    pub expect: Option<u32>,
    /// True if that waits for what comes unasked, whether or not it came before a send.
    pub is_receive: bool,
}

impl NextAnswer {
    /// Returns what a user comes to that takes one of two ways. What may be expected on one of them
    /// is kept; a way on which nothing is sent or expected needs nothing.
    fn or(self, other: Self) -> Self {
        if self == Self::default() {
            return other;
        }
        if other == Self::default() {
            return self;
        }
        Self {
            sends_first: self.sends_first && other.sends_first,
            expect: self.expect.or(other.expect),
            is_receive: self.is_receive || other.is_receive,
        }
    }
}

/// Precomputed facts for each index of a program.
#[derive(Clone, Debug, Default)]
pub(super) struct Dialogue {
    next: Vec<NextAnswer>,
    /// True for a send if its loop, or its class outside of loops, sends more often than it waits
    /// for an answer.
    sends_exceed: Vec<bool>,
    /// True for a send that no `expect` answers: its section has none, and none follows it before
    /// the next send.
    unanswered: Vec<bool>,
}

impl Dialogue {
    pub(super) fn of(program: &Program) -> Self {
        // The end of a loop leads back to its body, which the first pass has visited.
        let once = next_answers(program, &[]);
        let next = next_answers(program, &once);
        let sections = sections(&program.facts);
        let marked = |is: &dyn Fn(&Section) -> bool| {
            let mut marks = vec![false; program.facts.len()];
            let sends = sections.iter().filter(|section| is(section));
            sends.flat_map(|section| &section.sends).for_each(|send| marks[*send] = true);
            marks
        };
        let leads_to_answer = |pc: usize| {
            next.get(pc)
                .is_some_and(|next| next.expect.is_some() && !next.sends_first && !next.is_receive)
        };
        let is_unanswered = |section: &Section| {
            let after_last = section.sends.last().map_or(0, |send| send + 1);
            section.answers == 0 && !leads_to_answer(after_last) && !leads_to_answer(section.after)
        };
        let mut unanswered = marked(&is_unanswered);
        for (mark, facts) in unanswered.iter_mut().zip(&program.facts) {
            *mark |= facts.role == OpRole::Sends { is_answered: false };
        }
        Self {
            sends_exceed: marked(&|section| section.sends.len() > section.answers),
            unanswered,
            next,
        }
    }
}

impl Program {
    /// Returns what a user at `pc` comes to first.
    pub fn next_answer(&self, pc: u32) -> NextAnswer {
        self.dialogue.next[pc as usize]
    }

    /// Reports whether no `expect` answers the send at `pc`.
    pub fn is_unanswered(&self, pc: u32) -> bool {
        self.dialogue.unanswered[pc as usize]
    }

    /// Reports whether several sends, including the one at `pc`, share one answer. If not, answers
    /// that are outstanding at that send remain outstanding.
    pub fn sends_exceed_answers(&self, pc: u32) -> bool {
        self.dialogue.sends_exceed[pc as usize]
    }
}

fn next_answers(program: &Program, bodies: &[NextAnswer]) -> Vec<NextAnswer> {
    let facts = &program.facts;
    let mut next = vec![NextAnswer::default(); facts.len() + 1];
    for (pc, facts) in facts.iter().enumerate().rev() {
        let after = next[pc + 1];
        next[pc] = match facts.role {
            OpRole::Sends { is_answered: true } => {
                NextAnswer { sends_first: !after.is_receive, ..after }
            }
            OpRole::Expects | OpRole::Receives => NextAnswer {
                sends_first: false,
                expect: Some(pc as u32),
                is_receive: matches!(facts.role, OpRole::Receives),
            },
            OpRole::LoopEnds { index } => {
                let body = bodies.get(program.loop_at(index).body as usize);
                body.copied().filter(|body| *body != NextAnswer::default()).unwrap_or(after)
            }
            OpRole::Branches => match program.op(pc as u32) {
                Op::Branch { otherwise, .. } => after.or(next[otherwise as usize]),
                Op::Jump { to } => next[to as usize],
                Op::Choose { choice } => {
                    let begins = program.choice(choice).begins();
                    let each = begins.map(|begin| next[begin as usize]);
                    each.reduce(NextAnswer::or).unwrap_or(after)
                }
                _ => after,
            },
            OpRole::Sends { is_answered: false }
            | OpRole::Neutral
            | OpRole::Pings
            | OpRole::LoopBegins
            | OpRole::Closes(CloseAction::Half) => after,
            OpRole::Separates
            | OpRole::Asks { .. }
            | OpRole::Closes(CloseAction::Normal | CloseAction::Reset)
            | OpRole::Ends => NextAnswer::default(),
        };
    }
    next.truncate(facts.len());
    next
}

/// The sends of a loop, or of a class outside of its loops, and the number of answers it waits for.
#[derive(Default)]
struct Section {
    sends: Vec<usize>,
    answers: usize,
    /// Index of the op after it.
    after: usize,
}

fn sections(facts: &[OpFacts]) -> Vec<Section> {
    let (mut complete, mut open) = (Vec::new(), vec![Section::default()]);
    for (pc, facts) in facts.iter().enumerate() {
        let Some(section) = open.last_mut() else { break };
        match facts.role {
            OpRole::Sends { is_answered: true } => section.sends.push(pc),
            OpRole::Expects => section.answers += 1,
            OpRole::LoopBegins => open.push(Section::default()),
            role @ (OpRole::LoopEnds { .. } | OpRole::Ends) => {
                complete.extend(open.pop().map(|section| Section { after: pc + 1, ..section }));
                if role == OpRole::Ends {
                    open.push(Section::default());
                }
            }
            OpRole::Sends { is_answered: false }
            | OpRole::Neutral
            | OpRole::Pings
            | OpRole::Branches
            | OpRole::Receives
            | OpRole::Asks { .. }
            | OpRole::Separates
            | OpRole::Closes(_) => {}
        }
    }
    complete
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;

    fn compile(user: &str) -> Program {
        let text = format!("target: tcp://h:1\nload: [ramp: {{to: 1, over: 1s}}]\nuser: {user}\n");
        Program::compile(
            &Scenario::parse(&text, "test.yaml").unwrap_or_else(|mistakes| panic!("{mistakes}")),
        )
    }

    /// For each index: `s` if the user sends first, `-` if not, and the index of its next `expect`.
    #[track_caller]
    fn check(user: &str, expected: &str) {
        let program = compile(user);
        let shown = (0..program.ops().len() as u32).map(|pc| {
            let NextAnswer { sends_first, expect, .. } = program.next_answer(pc);
            let index = expect.map_or_else(|| "_".to_owned(), |expect| expect.to_string());
            format!("{}{index}", if sends_first { 's' } else { '-' })
        });
        assert_eq!(shown.collect::<Vec<_>>().join(" "), expected, "{user}");
    }

    #[test]
    fn what_comes_next_is_known_at_every_place() {
        // connect, expect, wait, send, wait, expect, close, end
        check(
            "[connect, expect: hi, wait: 1s, send: a, wait: 1s, expect: b, close]",
            "-_ -1 s5 s5 -5 -5 -_ -_",
        );
        check("[connect, send: a, stay]", "-_ s_ -_ -_");
    }

    #[test]
    fn the_end_of_a_loop_leads_back_to_its_body() {
        // connect, loop, send, expect, end of the loop, expect, end
        check(
            "[connect, repeat: {times: 3, do: [send: a, expect: b]}, expect: c]",
            "-_ s3 s3 -3 s3 -5 -_",
        );
        // A loop that neither sends nor expects is transparent.
        check("[connect, repeat: {times: 3, do: [wait: 1s]}, expect: c]", "-_ -4 -4 -4 -4 -_");
    }

    #[test]
    fn a_way_without_messages_keeps_nothing_for_the_other() {
        // connect, loop, choose, send, expect, jump, wait, jump, end of the loop, end
        check(
            "[connect, repeat: {times: 3, do: [choose: [{do: [send: a, expect: b]}, \
             {do: [wait: 1s]}]]}]",
            "-_ s4 s4 s4 -4 s4 s4 s4 s4 -_",
        );
    }

    #[test]
    fn a_send_that_no_expect_answers_is_known() {
        let unanswered = |user: &str| {
            let program = compile(user);
            let ops = program.ops().iter().enumerate();
            let sends = ops.filter(|(_, op)| matches!(op, Op::Send { .. }));
            sends.map(|(pc, _)| program.is_unanswered(pc as u32)).collect::<Vec<_>>()
        };
        for (user, expected) in [
            ("[connect, send: a, expect: b]", &[false][..]),
            ("[connect, send: a, stay]", &[true]),
            ("[connect, send: in, repeat: {times: 2, do: [send: a, expect: b]}]", &[true, false]),
            (
                "[connect, send: a, send: b, every: {period: 1s, do: [send: c, expect: d]}]",
                &[true, true, false],
            ),
            ("[connect, send: all, repeat: {times: 2, do: [expect: b]}]", &[false]),
            ("[connect, repeat: {times: 2, do: [send: part]}, expect: all]", &[false]),
            (
                "[connect, repeat: {times: 2, do: [send: part]}, send: end, expect: all]",
                &[true, false],
            ),
            ("[connect, send: a, receive: b, send: c, expect: d]", &[false, false]),
            ("[connect, send: a, receive: b, stay]", &[true]),
            ("[connect, send: {text: a, reply: false}, send: c, expect: d]", &[true, false]),
        ] {
            assert_eq!(unanswered(user), expected, "{user}");
        }
    }

    #[test]
    fn a_message_in_two_parts_is_told_from_two_messages() {
        let exceed = |user: &str| {
            let program = compile(user);
            let ops = program.ops().iter().enumerate();
            let sends = ops.filter(|(_, op)| matches!(op, Op::Send { .. }));
            sends.map(|(pc, _)| program.sends_exceed_answers(pc as u32)).collect::<Vec<_>>()
        };
        assert_eq!(exceed("[connect, send: a, send: b, expect: c]"), [true, true]);
        assert_eq!(exceed("[connect, send: a, send: b, expect: c, expect: d]"), [false, false]);
        assert_eq!(
            exceed("[connect, send: login, repeat: {times: 2, do: [send: a, expect: b]}]"),
            [true, false]
        );
    }
}
