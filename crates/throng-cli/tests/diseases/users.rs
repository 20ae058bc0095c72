//! Diseases that concern some users, some answers, or each user by itself.

use super::stage::Stage;
use super::{Cause, Provoked, servers};

pub(crate) const DISEASES: &[Cause] = &[
    Cause {
        name: "clean, own answers",
        what: "Python, asyncio: answers each user with its own message",
        expected: None,
        says: &["Nothing stopped it: the plan was met"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| echo(stage, "right"),
    },
    Cause {
        name: "clean, five a second",
        what: "Python, asyncio: answers each message of users that send five a second",
        expected: None,
        says: &["Nothing stopped it: the plan was met"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| ask(stage, "nothing", "200ms"),
    },
    Cause {
        name: "answer of another user",
        what: "Python, asyncio: gives one of twenty the answer to another user",
        expected: Some("wrong_answers"),
        says: &[", the answer to user ", "what requests share"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| echo(stage, "swapped"),
    },
    Cause {
        name: "answer of one turn before",
        what: "Python, asyncio: answers one of twenty with what the user sent before",
        expected: Some("wrong_answers"),
        says: &["itself got one turn before", "what a user has just written"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| echo(stage, "stale"),
    },
    Cause {
        name: "late answers, not stale",
        what: "Python, asyncio: 20 ms an answer, one at a time; 200 a second are asked for",
        expected: Some("server_at_capacity"),
        says: &["it serves one at a time, 2"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| echo(stage, "late"),
    },
    Cause {
        name: "tries again after 1 s",
        what: "Python, asyncio: takes 1 s for one of twenty answers, and hardly any for others",
        expected: Some("slow_instance"),
        says: &["answers took 1.0", "a time-out or wait of 1.0"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| ask(stage, "retries", "200ms"),
    },
    Cause {
        name: "a throttle for each user",
        what: "Python, asyncio: one answer in 500 ms to each of 100 users that send five a second",
        expected: Some("server_slow"),
        says: &["Slowed down", "gives each user one answer in 50", "the limit for each user"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| ask(stage, "throttled", "200ms"),
    },
    Cause {
        name: "loses answers from 4 s on",
        what: "Python, asyncio: loses one of ten messages, but none in its first 4 s",
        expected: Some("answers_missing"),
        says: &["s on and hardly any before", "look for what began at"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| ask(stage, "loses_late", "200ms"),
    },
];

/// Runs a hundred users that send a message in each period, and wait a second for each answer.
fn ask(stage: &mut Stage, disease: &str, period: &str) -> Provoked {
    let addr = servers::python(stage, "answers.py", &[disease])?;
    stage.run(&format!(
        "target: tcp://{addr}\n\
         on_error: continue\n\
         load: [{{ramp: {{to: 100, over: 1s}}}}, {{hold: {{for: 7s}}}}]\n\
         user:\n\
         \x20 - connect\n\
         \x20 - every: {{period: {period}, do: [send: hello, expect: {{text: ok, timeout: 2s}}]}}\n"
    ))
}

/// Runs a hundred users that each send their own number and that of their turn.
fn echo(stage: &mut Stage, disease: &str) -> Provoked {
    let addr = servers::python(stage, "owners.py", &[disease])?;
    let message = "\"turn ${counter + 500} of user ${user.id}\\n\"";
    stage.run(&format!(
        "target: tcp://{addr}\n\
         on_error: continue\n\
         load: [{{ramp: {{to: 100, over: 1s}}}}, {{hold: {{for: 6s}}}}]\n\
         user:\n\
         \x20 - connect\n\
         \x20 - every:\n\
         \x20     period: 500ms\n\
         \x20     do: [send: {message}, expect: {{text: {message}, timeout: 2s}}]\n"
    ))
}
