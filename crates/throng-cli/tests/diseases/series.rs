//! Diseases that only the course of a run shows.

use std::net::SocketAddr;

use super::stage::Stage;
use super::{Cause, Provoked, machine, servers};

pub(crate) const DISEASES: &[Cause] = &[
    Cause {
        name: "clean TCP",
        what: "Python, asyncio: a server that answers each message",
        expected: None,
        says: &["Nothing stopped it: the plan was met"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| talk(stage, "answers.py", &["nothing"], 100),
    },
    Cause {
        name: "clean, 30 ms an answer",
        what: "Python, asyncio: a server that takes 30 ms for each answer, at any load",
        expected: None,
        says: &["Nothing stopped it: the plan was met"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| talk(stage, "answers.py", &["steady"], 100),
    },
    Cause {
        name: "clean rooms",
        what: "Node, `ws`: a chat of rooms",
        expected: None,
        says: &["Nothing stopped it: the plan was met"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| chat(stage, "clean", "500ms"),
    },
    Cause {
        name: "stall",
        what: "Python, asyncio: sleeps for 2 s once, with its only thread",
        expected: Some("server_stalled"),
        says: &["Slowed down", "answered no user and used ", "CPU"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| talk(stage, "answers.py", &["stall"], 100),
    },
    Cause {
        name: "deadlock",
        what: "Python, asyncio: never answers again after 3 s; its users give up after 1 s",
        expected: Some("server_stalled"),
        says: &["did nothing from ", "s to the end: it answered no user"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: deadlock,
    },
    Cause {
        name: "knee",
        what: "Python, asyncio: 5 ms of CPU for each HTTP request; 400 a second arrive for 4 s",
        expected: Some("hot_core"),
        says: &["One thread of the server was busy"],
        is_of_cpus: true,
        stage: Stage::here,
        provoke: knee,
    },
    Cause {
        name: "cold start",
        what: "Python, asyncio: takes 400 ms an answer for 4 s, and 2 ms from then on",
        expected: Some("latency_steps"),
        says: &["Slowed down", "was slow until ", "and fast from then on, at the same load"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| talk(stage, "answers.py", &["cold"], 60),
    },
    Cause {
        name: "short cold start",
        what: "Python, asyncio: takes 500 ms an answer for 0.8 s, and 2 ms from then on",
        expected: Some("latency_steps"),
        says: &["Slowed down", "was slow until ", "fast from then on", "It starts slowly"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| talk(stage, "answers.py", &["warms_up"], 60),
    },
    Cause {
        name: "newest first",
        what: "Python, asyncio: 10 ms a job, the newest first, and 110 jobs arrive a second",
        expected: Some("newest_first"),
        says: &["answered the newest messages first"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: newest_first,
    },
    Cause {
        name: "drops, rooms",
        what: "Node, `ws`: loses every 19th message to a member of a room",
        expected: Some("answers_missing"),
        says: &["of the server's messages never arrive", "deliveries of probes ("],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: drops,
    },
    Cause {
        name: "collector's pauses",
        what: "Python, asyncio: sleeps for 0.3 s every 1.2 s, as a collector that stops the world",
        expected: Some("server_stalled"),
        says: &["Slowed down", "times, for up to 3", "about every 1.2"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| talk(stage, "answers.py", &["pauses"], 100),
    },
    Cause {
        name: "blocked loop",
        what: "Python, asyncio: computes for 0.3 s every 1.2 s, in the thread of its event loop",
        expected: Some("server_stalled"),
        says: &["computed"],
        is_of_cpus: true,
        stage: Stage::here,
        provoke: |stage| talk(stage, "answers.py", &["blocks"], 100),
    },
    Cause {
        name: "blocked loop, rooms",
        what: "Node, `ws`: computes for 300 ms at every 100th message, in its only loop",
        expected: Some("server_stalled"),
        says: &["computed"],
        is_of_cpus: true,
        stage: Stage::here,
        provoke: |stage| chat(stage, "blocks", "1s"),
    },
    Cause {
        name: "one blocked of two",
        what: "Python: a balancer before two instances, one of which computes for 0.3 s at a time",
        expected: Some("server_slow"),
        says: &["Slowed down", "computed for up to"],
        is_of_cpus: true,
        stage: Stage::here,
        provoke: |stage| talk(stage, "between.py", &["balancer", "nothing", "blocks"], 100),
    },
    Cause {
        name: "slower and slower",
        what: "Python, asyncio: takes 0.25 ms longer for each answer than for the one before",
        expected: Some("latency_grows"),
        says: &["Slowed down", "at a constant load"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| talk(stage, "answers.py", &["slower"], 100),
    },
    Cause {
        name: "longer to search",
        what: "Python, asyncio: keeps each message, and computes longer for each that it keeps",
        expected: Some("latency_grows"),
        says: &["Slowed down", "at a constant load", "computes more for each message"],
        is_of_cpus: true,
        stage: Stage::here,
        provoke: |stage| talk(stage, "answers.py", &["searches"], 80),
    },
    Cause {
        name: "leak",
        what: "Python, asyncio: keeps 32 KiB of each message",
        expected: Some("memory_grows"),
        says: &["memory grew by", "at a constant load", "a message"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| talk(stage, "answers.py", &["leak"], 150),
    },
    Cause {
        name: "leak, arrivals",
        what: "Python, asyncio: the same, of users that arrive, send a message and leave",
        expected: Some("memory_grows"),
        says: &["memory grew by", "at a constant load of", "/s messages"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| arrive(stage, "leak", "300/s"),
    },
    Cause {
        name: "leak, rooms",
        what: "Node, `ws`: keeps 40 KiB of each message",
        expected: Some("memory_grows"),
        says: &["at a constant load", "a message"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| chat(stage, "leak", "500ms"),
    },
    Cause {
        name: "one lock",
        what: "Python, asyncio: holds a lock for 20 ms for each answer",
        expected: Some("server_at_capacity"),
        says: &["Slowed down", "one at a time"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| more_and_more(stage, "lock"),
    },
    Cause {
        name: "pool of 4",
        what: "Python, asyncio: needs one of four database connections for 100 ms an answer",
        expected: Some("server_at_capacity"),
        says: &["Slowed down", "4 at a time"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| more_and_more(stage, "pool"),
    },
    Cause {
        name: "pool of 4, constant load",
        what: "Python, asyncio: the same pool, and 100 users that want 50 answers a second of 40",
        expected: Some("server_at_capacity"),
        says: &["Slowed down", "4 at a time"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| talk_each(stage, "pool", "2s"),
    },
    Cause {
        name: "limiter that delays",
        what: "Python, asyncio: lets 40 messages a second through, evenly, however many wait",
        expected: Some("server_at_capacity"),
        says: &["Slowed down", "/s messages, however many waited", "a rate limiter that delays"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| talk(stage, "answers.py", &["paced"], 100),
    },
    Cause {
        name: "slower than the period",
        what: "Python, asyncio: takes 2 s for each answer; its users send each second",
        expected: Some("server_slow"),
        says: &["Slowed down", "messages took 2.0", "from when they were sent", "were due"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| talk_each(stage, "two_seconds", "1s"),
    },
    Cause {
        name: "short accept queue",
        what: "Python: a backlog of 5, and a server that accepts 50 connections a second",
        expected: Some("accept_queue_overflow"),
        says: &["accept queue, which holds 6, overflowed", "passes to listen(2)", "somaxconn"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| talk(stage, "accepts.py", &["5"], 200),
    },
    Cause {
        name: "queue that fills",
        what: "Python, asyncio: one worker with 20 ms a job, and 75 jobs arrive a second",
        expected: Some("server_at_capacity"),
        says: &["Slowed down", "one at a time", "more wait each second"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: queue_that_fills,
    },
    Cause {
        name: "one slow instance",
        what: "Python: a balancer before three instances, one of which takes 400 ms an answer",
        expected: Some("slow_instance"),
        says: &["Slowed down", "one in 3"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| {
            talk(stage, "between.py", &["balancer", "nothing", "nothing", "slow_instance"], 60)
        },
    },
    Cause {
        name: "proxy at its end",
        what: "Python: a proxy with one thread before an idle server, 4 ms of CPU for each message",
        expected: Some("proxy_saturated"),
        says: &["Slowed down", "passes"],
        is_of_cpus: true,
        stage: Stage::here,
        provoke: |stage| {
            machine::needs_two_cpus()?;
            talk(stage, "between.py", &["proxy", "nothing"], 200)
        },
    },
    Cause {
        name: "deploy",
        what: "Python: a supervisor replaces its server in the middle of the run",
        expected: Some("server_restarted"),
        says: &["Failed in part", "was away from", "then python3"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| talk(stage, "deploy.py", &[], 100),
    },
    Cause {
        name: "delays all",
        what: "Node, `ws`: delays each message by 2.00 s",
        expected: Some("server_slow"),
        says: &["Slowed down", "messages took 2.0"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| chat(stage, "delays", "2500ms"),
    },
];

/// Runs users against a script of Python that send a message every half second.
fn talk(stage: &mut Stage, script: &str, args: &[&str], users: u32) -> Provoked {
    let addr = servers::python(stage, script, args)?;
    stage
        .run(&talkers(addr, &format!("{{ramp: {{to: {users}, over: 1s}}}}, {{hold: {{for: 7s}}}}")))
}

/// Runs a hundred users against a disease of `answers.py` that send a message in each period.
fn talk_each(stage: &mut Stage, disease: &str, period: &str) -> Provoked {
    let addr = servers::python(stage, "answers.py", &[disease])?;
    let talkers = talkers(addr, "{ramp: {to: 100, over: 1s}}, {hold: {for: 7s}}");
    assert!(talkers.contains("rate: 2/s"));
    stage.run(&talkers.replace("rate: 2/s", &format!("period: {period}")))
}

/// Runs users that become more and more, as those of most runs do.
fn more_and_more(stage: &mut Stage, disease: &str) -> Provoked {
    let addr = servers::python(stage, "answers.py", &[disease])?;
    stage.run(&talkers(addr, "{ramp: {to: 120, over: 5s}}, {hold: {for: 3s}}"))
}

/// Returns a scenario whose users each send a message twice a second, evenly.
fn talkers(addr: SocketAddr, load: &str) -> String {
    format!(
        "target: tcp://{addr}\n\
         load: [{load}]\n\
         user:\n\
         \x20 - connect\n\
         \x20 - every: {{rate: 2/s, do: [send: hello, expect: ok]}}\n"
    )
}

/// Runs users that give up after a second and try again.
fn deadlock(stage: &mut Stage) -> Provoked {
    let addr = servers::python(stage, "answers.py", &["deadlock"])?;
    let talkers = talkers(addr, "{ramp: {to: 100, over: 1s}}, {hold: {for: 7s}}");
    let talkers = talkers.replace("expect: ok", "expect: {text: ok, timeout: 1s}");
    stage.run(&format!("on_error: continue\n{talkers}"))
}

/// Runs an HTTP server beyond its knee, whose clients at last wait for TCP's second SYN.
fn knee(stage: &mut Stage) -> Provoked {
    machine::needs_two_cpus()?;
    let addr = servers::python(stage, "requests.py", &["busy"])?;
    stage.run(&format!(
        "target: http://{addr}\n\
         load: [{{arrivals: {{rate: 400/s, for: 4s}}}}]\n\
         user: [get: {{path: /, timeout: 10s}}]\n"
    ))
}

/// Runs users that arrive by the clock, send a message and leave with its answer.
fn arrive(stage: &mut Stage, disease: &str, rate: &str) -> Provoked {
    let addr = servers::python(stage, "answers.py", &[disease])?;
    stage.run(&format!(
        "target: tcp://{addr}\n\
         load: [{{arrivals: {{rate: {rate}, for: 7s, spacing: even}}}}]\n\
         user: [connect, send: hello, expect: ok, close]\n"
    ))
}

/// Users arrive a little faster than they are served, and give up after 2 s.
fn newest_first(stage: &mut Stage) -> Provoked {
    let addr = servers::python(stage, "answers.py", &["newest"])?;
    stage.run(&format!(
        "target: tcp://{addr}\n\
         load: [{{arrivals: {{rate: 110/s, for: 7s}}}}]\n\
         user: [connect, send: hello, expect: {{text: ok, timeout: 2s}}, close]\n"
    ))
}

/// Runs a room of users that each wait for their own messages, and a probe.
fn drops(stage: &mut Stage) -> Provoked {
    let addr = servers::node(stage, "rooms.js", &["drops"])?;
    let message = "{json: {type: msg, from: \"${user.id}\"}}";
    let own = "{json: {type: msg, from: \"${user.id}\"}, timeout: 1s, skip_others: true}";
    stage.run(&format!(
        "target: ws://{addr}/\n\
         on_error: continue\n\
         load: [{{ramp: {{to: 30, over: 1s}}}}, {{hold: {{for: 7s}}}}]\n\
         probe: [{{every: 300ms, timeout: 2s, broadcast: {{json: {{type: msg, body: probe}}}}}}]\n\
         user:\n\
         \x20 - connect\n\
         \x20 - send: {{json: {{type: join, room: all}}}}\n\
         \x20 - expect: {{json: {{type: joined}}, skip_others: true}}\n\
         \x20 - every: {{period: 500ms, do: [send: {message}, expect: {own}]}}\n"
    ))
}

/// Runs users in rooms of their own: each answer is the user's own message.
fn chat(stage: &mut Stage, disease: &str, each: &str) -> Provoked {
    let addr = servers::node(stage, "rooms.js", &[disease])?;
    let message = "{json: {type: msg, body: hello}}";
    stage.run(&format!(
        "target: ws://{addr}/\n\
         load: [{{ramp: {{to: 100, over: 1s}}}}, {{hold: {{for: 7s}}}}]\n\
         user:\n\
         \x20 - connect\n\
         \x20 - send: {{json: {{type: join, room: \"${{user.id}}\"}}}}\n\
         \x20 - expect: {{json: {{type: joined}}}}\n\
         \x20 - every: {{period: {each}, do: [send: {message}, expect: {message}]}}\n"
    ))
}

/// Users arrive by the clock, whether or not earlier ones were answered.
fn queue_that_fills(stage: &mut Stage) -> Provoked {
    let addr = servers::python(stage, "answers.py", &["lock"])?;
    stage.run(&format!(
        "target: tcp://{addr}\n\
         load:\n\
         \x20 - arrivals: {{rate: {{from: 10/s, to: 75/s}}, for: 2s, spacing: even}}\n\
         \x20 - arrivals: {{rate: 75/s, for: 5s, spacing: even}}\n\
         user: [connect, send: hello, expect: ok, close]\n"
    ))
}
