//! Limits of a process and of a namespace.

use super::stage::Stage;
use super::{Provoked, Wall};

pub(crate) const WALLS: &[Wall] = &[
    Wall {
        name: "low nofile, server",
        what: "a server with room for 150 fds, and 400 connections",
        expected: Some("fds_exhausted"),
        stage: Stage::here,
        provoke: low_nofile_of_the_server,
    },
    Wall {
        name: "low nofile, generator",
        what: "a generator with room for 150 fds, and 400 connections",
        expected: Some("fds_exhausted"),
        stage: Stage::here,
        provoke: low_nofile_of_the_generator,
    },
    Wall {
        name: "narrow port range",
        what: "300 ephemeral ports, and 400 connections",
        expected: Some("ports_exhausted"),
        stage: Stage::here,
        provoke: narrow_port_range,
    },
    Wall {
        name: "few TIME-WAIT buckets",
        what: "tcp_max_tw_buckets of 50, connections that are opened and closed, and ports for few of them",
        expected: Some("time_wait_exhausted"),
        stage: Stage::here,
        provoke: few_time_wait_buckets,
    },
];

fn low_nofile_of_the_server(stage: &mut Stage) -> Provoked {
    let addr = stage.serve_by(&["prlimit", "--nofile=150:150"], &["hold", "--cores", "1"]);
    stage.run(&arriving(&addr.to_string(), 400))
}

fn low_nofile_of_the_generator(stage: &mut Stage) -> Provoked {
    let addr = stage.serve(&["hold"]);
    let scenario = arriving(&addr.to_string(), 400);
    stage.run_by(&["prlimit", "--nofile=150:150"], &scenario, &["--cores", "1"])
}

fn narrow_port_range(stage: &mut Stage) -> Provoked {
    stage.at_load("echo 40000 40299 > /proc/sys/net/ipv4/ip_local_port_range")?;
    let addr = stage.serve(&["hold"]);
    stage.run(&arriving(&addr.to_string(), 400))
}

fn few_time_wait_buckets(stage: &mut Stage) -> Provoked {
    stage.at_load("echo 50 > /proc/sys/net/ipv4/tcp_max_tw_buckets")?;
    let addr = stage.serve(&["ok"]);
    stage.run(&format!(
        "target: tcp://{addr}\n\
         load: [{{arrivals: {{rate: 300/s, for: 4s}}}}, {{hold: {{for: 1s}}}}]\n\
         user: [connect, send: hello, expect: ok, close]\n"
    ))
}

/// Users who come, are not asked how many they may be, and stay.
fn arriving(addr: &str, users: u32) -> String {
    format!(
        "target: tcp://{addr}\n\
         load: [{{arrivals: {{rate: {}/s, for: 2s}}}}, {{hold: {{for: 2s}}}}]\n\
         user: [connect, stay]\n",
        users / 2
    )
}
