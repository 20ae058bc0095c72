//! Diseases of servers of several processes, and of what a thread computes beside its requests.

use super::stage::Stage;
use super::{Cause, Provoked, machine, servers};

pub(crate) const DISEASES: &[Cause] = &[
    Cause {
        name: "all in one worker",
        what: "Python: four workers, and a balancer that gives all connections to one of them",
        expected: Some("hot_core"),
        says: &[
            "One of the server's 4 worker processes was busy",
            "3 were idle: the connections are not spread",
        ],
        is_of_cpus: true,
        stage: Stage::here,
        provoke: |stage| compute(stage, "sticky"),
    },
    Cause {
        name: "clean, four workers",
        what: "Python: four workers that accept connections in turn, at the same load",
        expected: None,
        says: &["Nothing stopped it: the plan was met"],
        is_of_cpus: true,
        stage: Stage::here,
        provoke: |stage| compute(stage, "spread"),
    },
    Cause {
        name: "workers die",
        what: "Python: a supervisor with four workers, one of which is killed every 1.3 s",
        expected: Some("server_restarted"),
        says: &[
            "worker processes of the server ended",
            "while its listener stayed: no connect was refused",
            "dmesg",
        ],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| talk(stage, "workers.py", "crashes", USUAL, TALKS),
    },
    Cause {
        name: "clean, supervised workers",
        what: "Python: the same supervisor and workers, none of which ends",
        expected: None,
        says: &["Nothing stopped it: the plan was met"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| talk(stage, "workers.py", "recycled", USUAL, TALKS),
    },
    Cause {
        name: "polls closed sockets",
        what: "Python: a loop that polls the sockets that its clients have closed, and never waits",
        expected: Some("hot_core"),
        says: &["at any load", "does not follow the load", "epoll_wait returns at once"],
        is_of_cpus: true,
        stage: Stage::here,
        provoke: |stage| poll(stage, "keeps"),
    },
    Cause {
        name: "clean, closes and polls",
        what: "Python: the same loop, which closes them",
        expected: None,
        says: &["Nothing stopped it: the plan was met"],
        is_of_cpus: true,
        stage: Stage::here,
        provoke: |stage| poll(stage, "closes"),
    },
];

const USUAL: &str = "{ramp: {to: 100, over: 1s}}, {hold: {for: 7s}}";

const TALKS: &str = "connect, every: {period: 1s, do: [send: hello, expect: ok]}";

/// Users ask for 1.2 CPUs.
fn compute(stage: &mut Stage, disease: &str) -> Provoked {
    machine::needs_two_cpus()?;
    let load = "{ramp: {to: 150, over: 1s}}, {hold: {for: 7s}}";
    let user = "connect, every: {period: 500ms, do: [send: hello, expect: ok]}";
    talk(stage, "workers.py", disease, load, user)
}

/// Few users, and then many, each of whom connects twice.
fn poll(stage: &mut Stage, disease: &str) -> Provoked {
    machine::needs_two_cpus()?;
    let load = "{ramp: {to: 5, over: 500ms}}, {hold: {for: 3500ms}}, {ramp: {to: 60, over: 1s}}, \
                {hold: {for: 3s}}";
    let user = "connect, send: hello, expect: ok, close, connect, \
                every: {period: 500ms, do: [send: hello, expect: ok]}";
    talk(stage, "polls.py", disease, load, user)
}

fn talk(stage: &mut Stage, script: &str, disease: &str, load: &str, user: &str) -> Provoked {
    let addr = servers::python(stage, script, &[disease])?;
    stage.run(&format!("target: tcp://{addr}\nload: [{load}]\nuser: [{user}]\n"))
}
