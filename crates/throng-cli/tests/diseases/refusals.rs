//! Diseases of what a target answers, refuses or closes.

use super::stage::Stage;
use super::{Cause, Provoked, servers};

pub(crate) const DISEASES: &[Cause] = &[
    Cause {
        name: "closes with a code",
        what: "Node, `ws`: closes with 1011 at every 10th message",
        expected: Some("server_closes_early"),
        says: &["Failed in part", "with code 1011 (an internal error", "reason `oops`"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| {
            let addr = servers::node(stage, "refusals.js", &["closes"])?;
            stage.run(&talkers(&addr.to_string()))
        },
    },
    Cause {
        name: "closes when idle",
        what: "Python: closes connections that sent nothing for 2 s",
        expected: Some("server_closes_early"),
        says: &["Failed in part", "each after 2.", "without a message", "heartbeat"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: idle,
    },
    Cause {
        name: "closes at an age",
        what: "Python: closes each connection 3 s after it was opened, with 1001",
        expected: Some("server_closes_early"),
        says: &["with code 1001 (it goes away)", "each 3.", "after it was opened"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| talk(stage, "age"),
    },
    Cause {
        name: "closes young",
        what: "Python: closes each connection 1.5 s after it was opened; users send each second",
        expected: Some("server_closes_early"),
        says: &["Failed in part", "each 1.5", "after it was opened; do: find the limit"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| talk_each(stage, "young", "1s"),
    },
    Cause {
        name: "wrong answers",
        what: "Python: answers every 20th message with an error",
        expected: Some("wrong_answers"),
        says: &["Failed in part", "%)", "got `{\"type\":\"error\",\"reason\":\"no such room\"}`"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| talk(stage, "wrong"),
    },
    Cause {
        name: "accepts nothing",
        what: "Python: listens, and never calls accept()",
        expected: Some("never_accepts"),
        says: &["never accepts", "wait in its accept queue"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| talk(stage, "never accepts"),
    },
    Cause {
        name: "answers nothing",
        what: "Python: accepts, reads, and never answers",
        expected: Some("never_answers"),
        says: &["accepts connections and never answers", "an upgrade"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| talk(stage, "silent"),
    },
    Cause {
        name: "not HTTP",
        what: "Python: answers each upgrade as Redis does",
        expected: Some("not_http"),
        says: &["is not HTTP: it answered `+OK hello redis\\r\\n`"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| talk(stage, "not HTTP"),
    },
    Cause {
        name: "ordinary page",
        what: "Node, `http`: a web server without a WebSocket",
        expected: Some("handshakes_refused"),
        says: &["200 (an ordinary page", "Welcome to nginx!", "no WebSocket at /ws"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| {
            let addr = servers::node(stage, "refusals.js", &["page"])?;
            stage.run(&talkers(&addr.to_string()))
        },
    },
    Cause {
        name: "redirect",
        what: "Python: redirects each upgrade to another host",
        expected: Some("handshakes_refused"),
        says: &[
            "301 (a redirect to http://chat.example.com",
            "--target ws://chat.example.com/live/ws",
        ],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| talk(stage, "redirect"),
    },
    Cause {
        name: "login page",
        what: "Python: answers each upgrade with a page that asks for a password",
        expected: Some("handshakes_refused"),
        says: &["200 (a login page", "Sign in - Example", "connect: {headers, query}"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| talk(stage, "login page"),
    },
    Cause {
        name: "rate limit, 429",
        what: "Python: lets in 20 connects a second, and refuses the others with 429",
        expected: Some("rate_limited"),
        says: &["429 Too Many Requests (Retry-After: 30 s)", "and let in about "],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| talk(stage, "429"),
    },
    Cause {
        name: "rate limit, silent",
        what: "Python: answers 30 messages a second, and drops the others",
        expected: Some("rate_limited"),
        says: &["/s messages at most and drops the rest without a word"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: drops,
    },
    Cause {
        name: "loses answers",
        what: "Python: does not answer every 10th message",
        expected: Some("answers_missing"),
        says: &["Failed in part", "never answered", "answered the others at once"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| talk(stage, "loses"),
    },
    Cause {
        name: "loses some answers",
        what: "Python: does not answer a twentieth of the messages, chosen at random",
        expected: Some("answers_missing"),
        says: &[
            "Failed in part",
            "never answered",
            "spread evenly over the run, and answered the others",
        ],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: loses_some,
    },
    Cause {
        name: "answers out of order",
        what: "Python: swaps two answers, in two of five pairs",
        expected: Some("answers_disordered"),
        says: &["in another order than it is asked", "expected `one`, got `two`"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: out_of_order,
    },
    Cause {
        name: "answers twice",
        what: "Python: sends each answer twice",
        expected: Some("answers_repeated"),
        says: &["sends answers more than once", "the same to the byte"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| talk(stage, "twice"),
    },
    Cause {
        name: "one dead address",
        what: "a name with two addresses; Python listens at one of them",
        expected: Some("address_fails"),
        says: &["has 2 addresses, and 127.0.0.2:", "does not work", "ECONNREFUSED"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: one_dead_address,
    },
    Cause {
        name: "mark of probes lost",
        what: "Python: broadcasts a JSON object of its own in place of the one that came",
        expected: Some("deliveries_missing"),
        says: &["does not pass on the mark of the probes (throng_probe)"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: mark_lost,
    },
];

/// Runs users against a disease of `refusals.py` that send a message five times a second.
fn talk(stage: &mut Stage, disease: &str) -> Provoked {
    let addr = servers::python(stage, "refusals.py", &[disease])?;
    stage.run(&talkers(&addr.to_string()))
}

/// The same with another period.
fn talk_each(stage: &mut Stage, disease: &str, period: &str) -> Provoked {
    let addr = servers::python(stage, "refusals.py", &[disease])?;
    let (talkers, usual) = (talkers(&addr.to_string()), "period: 200ms");
    assert!(talkers.contains(usual));
    stage.run(&talkers.replace(usual, &format!("period: {period}")))
}

/// Users think between their messages: they ask a little less where they wait for lost answers.
fn loses_some(stage: &mut Stage) -> Provoked {
    let addr = servers::python(stage, "refusals.py", &["loses some"])?;
    stage.run(&scenario(
        &addr.to_string(),
        "[{ramp: {to: 60, over: 1s}}, {hold: {for: 6s}}]",
        "\x20 - connect\n\
         \x20 - repeat: {for: 1m, do: [send: {text: hi}, expect: {text: hi, timeout: 1s}, \
         wait: 200ms ±50%]}\n",
    ))
}

/// Returns a scenario whose users each send a message five times a second, and answer for each.
fn talkers(address: &str) -> String {
    scenario(
        address,
        "[{ramp: {to: 40, over: 1s}}, {hold: {for: 6s}}]",
        "\x20 - connect: {timeout: 2s}\n\
         \x20 - every: {period: 200ms, do: [send: {json: {type: msg, n: \"${counter}\"}}, \
         expect: {json: {type: msg}, timeout: 1s}]}\n",
    )
}

fn scenario(address: &str, load: &str, user: &str) -> String {
    format!("target: ws://{address}/ws\nload: {load}\nuser:\n{user}")
}

/// Users send at two moments, and then nothing: their ages differ, their idle times do not.
fn idle(stage: &mut Stage) -> Provoked {
    let addr = servers::python(stage, "refusals.py", &["idle"])?;
    stage.run(&scenario(
        &addr.to_string(),
        "[{ramp: {to: 60, over: 3s}}, {hold: {for: 5s}}]",
        "\x20 - connect\n\x20 - send: {text: hi}\n\x20 - expect: {text: hi}\n\
         \x20 - wait: 500ms ±80%\n\x20 - send: {text: hi}\n\x20 - expect: {text: hi}\n\
         \x20 - stay\n",
    ))
}

/// More users come each second, from far below the limit to twice the limit. They would ask for
/// more if they did not wait for a second for each answer that was dropped.
fn drops(stage: &mut Stage) -> Provoked {
    let addr = servers::python(stage, "refusals.py", &["drops"])?;
    let talkers = talkers(&addr.to_string());
    let load = "[{ramp: {to: 40, over: 1s}}, {hold: {for: 6s}}]";
    assert!(talkers.contains(load));
    stage.run(&talkers.replace(load, "[{ramp: {to: 40, over: 10s}}]"))
}

/// Users send two messages at once, and wait for their answers in order.
fn out_of_order(stage: &mut Stage) -> Provoked {
    let addr = servers::python(stage, "refusals.py", &["out of order"])?;
    stage.run(&scenario(
        &addr.to_string(),
        "[{ramp: {to: 40, over: 1s}}, {hold: {for: 6s}}]",
        "\x20 - connect\n\
         \x20 - every: {period: 300ms, do: [send: {text: one}, send: {text: two}, \
         expect: {text: one, timeout: 1s}, expect: {text: two, timeout: 1s}]}\n",
    ))
}

/// The name is in a file of hosts that only the run sees, in a mount namespace of its own.
fn one_dead_address(stage: &mut Stage) -> Provoked {
    let addr = servers::python(stage, "refusals.py", &["nothing"])?;
    let hosts = stage.path("hosts");
    std::fs::write(&hosts, "127.0.0.1 chat.test\n127.0.0.2 chat.test\n").unwrap();
    let mount = format!("mount --bind {} /etc/hosts && exec \"$@\"", hosts.display());
    let prefix = ["unshare", "--mount", "sh", "-c", &mount, "sh"];
    stage.run_by(&prefix, &talkers(&format!("chat.test:{}", addr.port())), &[])
}

/// Probes go to users that only listen.
fn mark_lost(stage: &mut Stage) -> Provoked {
    let addr = servers::python(stage, "refusals.py", &["no mark"])?;
    let text = scenario(
        &addr.to_string(),
        "[{ramp: {to: 30, over: 1s}}, {hold: {for: 5s}}]",
        "\x20 - connect\n\x20 - stay\n",
    );
    let probe = "{every: 500ms, broadcast: {json: {type: msg, body: hi}}, timeout: 2s}";
    stage.run(&format!("{text}probe:\n\x20 - {probe}\n"))
}
