//! Walls that are faulty servers.

use std::time::Duration;

use super::stage::{Stage, established, until};
use super::{Cause, Provoked, foreign};

pub(crate) const WALLS: &[Cause] = &[
    Cause {
        name: "nobody listens",
        what: "a port without a listener",
        expected: Some("server_lost"),
        says: &[],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: nobody_listens,
    },
    Cause {
        name: "server killed",
        what: "the server is killed in the middle of the run",
        expected: Some("server_lost"),
        says: &[],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: server_killed,
    },
    Cause {
        name: "answers 503",
        what: "a foreign server that responds to each upgrade with 503",
        expected: Some("handshakes_refused"),
        says: &[],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: answers_503,
    },
    Cause {
        name: "closes at once",
        what: "a foreign server that closes every connection that it accepts",
        expected: Some("server_closes_early"),
        says: &[],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: closes_at_once,
    },
    Cause {
        name: "slow handler",
        what: "a foreign server that sleeps for 800 ms before each answer",
        expected: Some("server_slow"),
        says: &[],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: slow_handler,
    },
    Cause {
        name: "readers that stop",
        what: "a chat with some paused clients, which do not read",
        expected: Some("slow_consumers"),
        says: &[],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: readers_that_stop,
    },
];

fn nobody_listens(stage: &mut Stage) -> Provoked {
    stage.run(
        "target: tcp://127.0.0.1:5555\n\
         load: [{ramp: {to: 100, over: 2s}}, {hold: {for: 2s}}]\n\
         user: [connect, stay]\n",
    )
}

fn server_killed(stage: &mut Stage) -> Provoked {
    let addr = stage.serve(&["echo"]);
    let run = stage.start_run(&[], &talkers(&format!("tcp://{addr}"), 200, "hello", "hello"), &[]);
    run.until("/load/counters/messages_answered", 1);
    run.until("/at_ms", 2_500);
    stage.last().kill();
    run.finish()
}

fn answers_503(stage: &mut Stage) -> Provoked {
    let addr = foreign::server(foreign::refuses("503 Service Unavailable"));
    stage.run(&format!(
        "target: ws://{addr}/chat\n\
         load: [{{ramp: {{to: 100, over: 2s}}}}, {{hold: {{for: 2s}}}}]\n\
         user: [connect, stay]\n"
    ))
}

fn closes_at_once(stage: &mut Stage) -> Provoked {
    let addr = foreign::server(foreign::closes());
    stage.run(&talkers(&format!("tcp://{addr}"), 100, "hello", "hello"))
}

fn slow_handler(stage: &mut Stage) -> Provoked {
    let addr = foreign::server(foreign::answers_after(Duration::from_millis(800)));
    stage.run(&talkers(&format!("tcp://{addr}"), 100, "hello", "ok"))
}

fn readers_that_stop(stage: &mut Stage) -> Provoked {
    let policy = ["--policy", "drop-newest", "--queue", "64KiB", "--sndbuf", "16KiB"];
    let addr = stage.serve(&[&["chat"][..], &policy].concat());
    stage.another_run(&format!(
        "target: ws://{addr}/\n\
         load: [{{ramp: {{to: 50, over: 500ms}}}}, {{hold: {{for: 60s}}}}]\n\
         user: [connect, stay]\n"
    ));
    until("all receivers are connected", || established(addr.port()) == 50);
    stage.last().pause();
    stage.run(&format!(
        "target: ws://{addr}/\n\
         load: [{{ramp: {{to: 20, over: 1s}}}}, {{hold: {{for: 5s}}}}]\n\
         user: [connect, every: {{rate: 2/s, do: [send: {{random: 8KiB}}]}}]\n"
    ))
}

/// Returns a scenario whose users each send a request twice a second, for some seconds.
fn talkers(target: &str, users: u32, question: &str, answer: &str) -> String {
    format!(
        "target: {target}\n\
         load: [{{ramp: {{to: {users}, over: 2s}}}}, {{hold: {{for: 4s}}}}]\n\
         user: [connect, every: {{rate: 2/s, do: [send: {question}, expect: {answer}]}}]\n"
    )
}
