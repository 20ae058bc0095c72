//! The order of sends and answers in a program: which answer a message that arrives now can be.

use super::{CloseAction, OpFacts, OpRole, Program};

/// The first send or `expect` that a user at some index of the program comes to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NextAnswer {
    /// True if it sends before it waits for an answer. What arrives before that is not the answer.
    pub sends_first: bool,
    /// Index of the next `expect` on this connection; `None` if there is none.
    pub expect: Option<u32>,
}

/// Precomputed facts for each index of a program.
#[derive(Clone, Debug, Default)]
pub(super) struct Dialogue {
    next: Vec<NextAnswer>,
    /// True for a send if its loop, or its class outside of loops, sends more often than it waits
    /// for an answer.
    sends_exceed: Vec<bool>,
}

impl Dialogue {
    pub(super) fn of(program: &Program) -> Self {
        // The end of a loop leads back to its body, which the first pass has visited.
        let once = next_answers(program, &[]);
        Self { next: next_answers(program, &once), sends_exceed: mark_excess_sends(&program.facts) }
    }
}

impl Program {
    /// Returns what a user at `pc` comes to first.
    pub fn next_answer(&self, pc: u32) -> NextAnswer {
        self.dialogue.next[pc as usize]
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
            OpRole::Sends => NextAnswer { sends_first: true, ..after },
            OpRole::Expects { .. } => NextAnswer { sends_first: false, expect: Some(pc as u32) },
            OpRole::LoopEnds { index } => {
                let body = bodies.get(program.loop_at(index).body as usize);
                body.copied().filter(|body| *body != NextAnswer::default()).unwrap_or(after)
            }
            OpRole::Neutral | OpRole::LoopBegins | OpRole::Closes(CloseAction::Half) => after,
            OpRole::Separates
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
}

fn mark_excess_sends(facts: &[OpFacts]) -> Vec<bool> {
    let mut exceed = vec![false; facts.len()];
    let mut sections = vec![Section::default()];
    for (pc, facts) in facts.iter().enumerate() {
        let Some(section) = sections.last_mut() else { break };
        match facts.role {
            OpRole::Sends => section.sends.push(pc),
            OpRole::Expects { .. } => section.answers += 1,
            OpRole::LoopBegins => sections.push(Section::default()),
            role @ (OpRole::LoopEnds { .. } | OpRole::Ends) => {
                if let Some(section) = sections.pop() {
                    let exceeds = section.sends.len() > section.answers;
                    section.sends.iter().for_each(|send| exceed[*send] = exceeds);
                }
                if role == OpRole::Ends {
                    sections.push(Section::default());
                }
            }
            OpRole::Neutral | OpRole::Separates | OpRole::Closes(_) => {}
        }
    }
    exceed
}

#[cfg(test)]
mod tests {
    use super::super::Op;
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
            let NextAnswer { sends_first, expect } = program.next_answer(pc);
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
