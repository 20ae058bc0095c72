//! The queues of a listener.

use super::stage::Stage;
use super::{Provoked, Wall};

pub(crate) const WALLS: &[Wall] = &[
    Wall {
        name: "nothing",
        what: "a run that fits",
        expected: None,
        stage: Stage::here,
        provoke: nothing,
    },
    Wall {
        name: "small backlog",
        what: "a backlog of 4, and connections that come at once",
        expected: Some("accept_queue_overflow"),
        stage: Stage::here,
        provoke: small_backlog,
    },
];

fn nothing(stage: &mut Stage) -> Provoked {
    let addr = stage.serve(&["echo"]);
    stage.run(&format!(
        "target: tcp://{addr}\n\
         load: [{{ramp: {{to: 200, over: 2s}}}}, {{hold: {{for: 3s}}}}]\n\
         user: [connect, every: {{rate: 2/s, do: [send: hello, expect: hello]}}]\n"
    ))
}

fn small_backlog(stage: &mut Stage) -> Provoked {
    let addr = stage.serve(&["hold", "--cores", "1", "--accept", "shared", "--backlog", "4"]);
    stage.run(&format!(
        "target: tcp://{addr}\n\
         load: [{{ramp: {{to: 4000, over: 1s}}}}, {{hold: {{for: 3s}}}}]\n\
         user: [connect, stay]\n"
    ))
}
