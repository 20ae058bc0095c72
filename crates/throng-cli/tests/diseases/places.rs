//! Diseases of servers that have too few places for connections, or too few fds.

use super::stage::Stage;
use super::{Cause, Provoked, servers};

pub(crate) const DISEASES: &[Cause] = &[
    Cause {
        name: "clean, a thread each",
        what: "Python: a thread for each connection, and no limit",
        expected: None,
        says: &["Nothing stopped it: the plan was met"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| ask(stage, &["nothing"], 80),
    },
    Cause {
        name: "20 threads for 40",
        what: "Python: accepts each connection, and has 20 threads that serve one each",
        expected: Some("serves_only_some"),
        says: &[
            "Failed in part",
            "serves 20 connections at a time: 20 of 40 users",
            "reads nothing",
        ],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| ask(stage, &["threads", "20"], 40),
    },
    Cause {
        name: "5 threads, keep-alive",
        what: "Python: 5 threads, each accepts a connection and serves it until it ends",
        expected: Some("serves_only_some"),
        says: &["serves 5 connections at a time: 5 of 40 users", "in its accept queue"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| ask(stage, &["limit", "5"], 40),
    },
    Cause {
        name: "limit of 40 connections",
        what: "Python: accepts no connection while 40 are open",
        expected: Some("serves_only_some"),
        says: &["serves 40 connections at a time: 40 of 80 users", "though it is idle", "maxconn"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| ask(stage, &["limit", "40"], 80),
    },
    Cause {
        name: "20 places inside",
        what: "Python: reads each request, and answers on 20 connections at a time",
        expected: Some("serves_only_some"),
        says: &["serves 20 connections at a time", "wait inside"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| ask(stage, &["inside", "20"], 40),
    },
    Cause {
        name: "closes all but 30",
        what: "Python: closes each connection at once while 30 others are open, as nginx does",
        expected: Some("serves_only_some"),
        says: &[
            "serves 30 connections at a time: 30 of 60 users",
            "closes each other connection before the first answer",
            "worker_connections",
        ],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| ask(stage, &["closes-others", "30"], 60),
    },
    Cause {
        name: "clean, 100 places for 60",
        what: "Python: the same server, which closes nothing until 100 are open",
        expected: None,
        says: &["Nothing stopped it: the plan was met"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| ask(stage, &["closes-others", "100"], 60),
    },
    Cause {
        name: "one of four listeners",
        what: "Python: four listening sockets of one port, and one from which nothing is accepted",
        expected: Some("serves_only_some"),
        says: &["1 of the server's 4 listening sockets accepts nothing", "`ss -ltnp`"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| ask(stage, &["listeners", "3"], 40),
    },
    Cause {
        name: "clean, four listeners",
        what: "Python: four listening sockets of one port",
        expected: None,
        says: &["Nothing stopped it: the plan was met"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| ask(stage, &["listeners", "4"], 40),
    },
    Cause {
        name: "one mute worker of four",
        what: "Python: four listening sockets, and no answer on the connections of one of them",
        expected: Some("serves_only_some"),
        says: &["never answers on", "gives every answer on the others", "`ss -tnp`"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| ask(stage, &["mute"], 60),
    },
    Cause {
        name: "one slow worker of four",
        what: "Python: four listening sockets, and 400 ms an answer on the connections of one",
        expected: Some("slow_instance"),
        says: &["answers took 40", "or the workers of the server"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| ask(stage, &["slow", "400"], 60),
    },
    Cause {
        name: "pool of 4, users give up",
        what: "Python: works on 4 requests at a time, 80 ms each; its users give up after 2 s",
        expected: Some("server_at_capacity"),
        says: &["it serves 4 at a time, 8", "waits were given up"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| give_up(stage, "4"),
    },
    Cause {
        name: "clean, pool of 100",
        what: "Python: the same server, which works on 100 requests at a time",
        expected: None,
        says: &["Nothing stopped it: the plan was met"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| give_up(stage, "100"),
    },
    Cause {
        name: "sleeps between accepts",
        what: "Python: sleeps for 30 ms after each connection that it accepts; 60 a second arrive",
        expected: Some("accepts_slowly"),
        says: &["arrived: its accept queue grew by"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| arrive(stage, "30"),
    },
    Cause {
        name: "clean, accepts at once",
        what: "Python: the same server, which sleeps for 2 ms; 60 a second arrive",
        expected: None,
        says: &["Nothing stopped it: the plan was met"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| arrive(stage, "2"),
    },
    Cause {
        name: "leaks files",
        what: "Python: may have 150 fds, opens a file for each request, and does not close it",
        expected: Some("fds_exhausted"),
        says: &["all of its 150 fds", "of /etc/passwd", "close /etc/passwd after use"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| come(stage, "files", 150, "500ms"),
    },
    Cause {
        name: "clean, closes its files",
        what: "Python: may have 150 fds, opens a file for each request, and closes it",
        expected: None,
        says: &["Nothing stopped it: the plan was met"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| come(stage, "files-closed", 150, "500ms"),
    },
    Cause {
        name: "leaks sockets",
        what: "Python: may have 100 fds, and closes no socket that its client has closed",
        expected: Some("fds_exhausted"),
        says: &["all of its 100 fds", "in CLOSE_WAIT", "close each socket when its peer"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| leave(stage, "closes"),
    },
    Cause {
        name: "clean, closes its sockets",
        what: "Python: may have 100 fds, and closes each socket that its client has closed",
        expected: None,
        says: &["Nothing stopped it: the plan was met"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| leave(stage, "closes-all"),
    },
];

/// Runs users that come within a second, stay, and send a request twice a second.
fn ask(stage: &mut Stage, args: &[&str], users: u32) -> Provoked {
    run(stage, args, &format!("{{to: {users}, over: 1s}}"), "500ms")
}

/// Runs users that come one after the other and stay.
fn come(stage: &mut Stage, disease: &str, fds: u32, period: &str) -> Provoked {
    run(stage, &[disease, &fds.to_string()], "{to: 60, over: 4s}", period)
}

fn run(stage: &mut Stage, args: &[&str], ramp: &str, period: &str) -> Provoked {
    let addr = servers::python(stage, "places.py", args)?;
    stage.run(&format!(
        "target: http://{addr}\n\
         load: [{{ramp: {ramp}}}, {{hold: {{for: 6s}}}}]\n\
         user:\n\
         \x20 - every: {{period: {period}, do: [get: {{path: /, timeout: 1s}}]}}\n"
    ))
}

/// Runs 150 users that send a request twice a second, and wait two seconds for each answer.
fn give_up(stage: &mut Stage, places: &str) -> Provoked {
    let addr = servers::python(stage, "places.py", &["pool", places])?;
    stage.run(&format!(
        "target: http://{addr}\n\
         load: [{{ramp: {{to: 150, over: 1s}}}}, {{hold: {{for: 6s}}}}]\n\
         user:\n\
         \x20 - every: {{period: 500ms, do: [get: {{path: /, timeout: 2s}}]}}\n"
    ))
}

/// Runs users that arrive, send one request and leave.
fn arrive(stage: &mut Stage, sleep_ms: &str) -> Provoked {
    let addr = servers::python(stage, "places.py", &["sleeps", sleep_ms])?;
    stage.run(&format!(
        "target: http://{addr}\n\
         load: [arrivals: {{rate: 60/s, for: 7s}}]\n\
         user: [get: {{path: /, timeout: 5s}}]\n"
    ))
}

/// Runs users that connect, ask, leave, and come again.
fn leave(stage: &mut Stage, disease: &str) -> Provoked {
    let addr = servers::python(stage, "places.py", &[disease, "100"])?;
    stage.run(&format!(
        "target: tcp://{addr}\n\
         load: [{{ramp: {{to: 20, over: 1s}}}}, {{hold: {{for: 7s}}}}]\n\
         user:\n\
         \x20 - connect\n\
         \x20 - send: \"GET / HTTP/1.1\\r\\n\\r\\n\"\n\
         \x20 - expect: {{bytes: 40, timeout: 1s}}\n\
         \x20 - wait: 500ms\n\
         \x20 - close\n"
    ))
}
