//! Diseases of the answers to HTTP requests.

use super::stage::Stage;
use super::{Cause, Provoked, servers};

pub(crate) const DISEASES: &[Cause] = &[
    Cause {
        name: "clean HTTP",
        what: "Python, asyncio: a server that answers each HTTP request",
        expected: None,
        says: &["Nothing stopped it: the plan was met"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| ask(stage, "nothing"),
    },
    Cause {
        name: "answers a request twice",
        what: "Python, asyncio: sends every 10th HTTP answer twice",
        expected: Some("answers_unasked"),
        says: &["Failed in part", "bytes that no HTTP request asked for", "HTTP/1.1 200 OK"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| ask(stage, "twice"),
    },
    Cause {
        name: "content-length too large",
        what: "Python, asyncio: names 100 bytes in every 10th HTTP answer, and sends 2 of them",
        expected: Some("answers_incomplete"),
        says: &["Failed in part", "did not end them", "2 of 100 bytes of the body"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| ask(stage, "long"),
    },
    Cause {
        name: "content-length too small",
        what: "Python, asyncio: names 1 byte in every 10th HTTP answer, and sends 2",
        expected: Some("answers_unasked"),
        says: &["Failed in part", "its content-length is too small", "the first: 1 byte: `k`"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| ask(stage, "short"),
    },
];

/// Runs users that send a request five times a second.
fn ask(stage: &mut Stage, disease: &str) -> Provoked {
    let addr = servers::python(stage, "requests.py", &[disease])?;
    stage.run(&format!(
        "target: http://{addr}\n\
         load: [{{ramp: {{to: 40, over: 1s}}}}, {{hold: {{for: 6s}}}}]\n\
         user:\n\
         \x20 - every: {{period: 200ms, do: [get: {{path: /, timeout: 1s}}]}}\n"
    ))
}
