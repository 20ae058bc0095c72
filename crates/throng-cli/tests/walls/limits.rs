//! Walls that are limits of a process or of a namespace.

use std::net::{TcpListener, TcpStream};

use super::stage::Stage;
use super::{Cause, Provoked};

pub(crate) const WALLS: &[Cause] = &[
    Cause {
        name: "low nofile, server",
        what: "a server with a limit of 150 fds, and 400 connections",
        expected: Some("fds_exhausted"),
        says: &[],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: low_nofile_of_the_server,
    },
    Cause {
        name: "low nofile, generator",
        what: "a generator with a limit of 150 fds, and 400 connections",
        expected: Some("fds_exhausted"),
        says: &[],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: low_nofile_of_the_generator,
    },
    Cause {
        name: "narrow port range",
        what: "300 ephemeral ports, 200 of them in use, and 250 connections",
        expected: Some("ports_exhausted"),
        says: &[],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: narrow_port_range,
    },
    Cause {
        name: "port conflict",
        what: "300 assigned source ports, 100 of them with listeners",
        expected: Some("port_conflict"),
        says: &[],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: port_conflict,
    },
    Cause {
        name: "few TIME-WAIT buckets",
        what: "tcp_max_tw_buckets of 50, and 300 connections a second that are opened and closed",
        expected: Some("time_wait_exhausted"),
        says: &[],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: few_time_wait_buckets,
    },
];

fn low_nofile_of_the_server(stage: &mut Stage) -> Provoked {
    let addr = stage.serve(&["hold", "--cores", "1"]);
    stage.last().limit_fds(150);
    stage.run(&arriving(&addr.to_string(), 400))
}

fn low_nofile_of_the_generator(stage: &mut Stage) -> Provoked {
    let addr = stage.serve(&["hold"]);
    let run = stage.start_run(&[], &arriving(&addr.to_string(), 400), &["--cores", "1"]);
    run.until("/load/counters/connected", 1);
    run.process().limit_fds(150);
    run.finish()
}

/// The generator counts the free ports before it begins, but not those that other programs use
/// later.
fn narrow_port_range(stage: &mut Stage) -> Provoked {
    stage.at_load("echo 40000 40299 > /proc/sys/net/ipv4/ip_local_port_range")?;
    let addr = stage.serve(&["hold"]);
    let others: Vec<_> = (0..200).map(|_| TcpStream::connect(addr).unwrap()).collect();
    stage.keep(others);
    stage.run_by(&[], &arriving(&addr.to_string(), 250), &["--source", "127.0.0.1"])
}

fn port_conflict(stage: &mut Stage) -> Provoked {
    // The server gets a port that is none of the listeners'.
    stage.at_load("echo 45000 60999 > /proc/sys/net/ipv4/ip_local_port_range")?;
    let addr = stage.serve(&["hold"]);
    let listeners: Vec<_> =
        (40_050..40_150).map(|port| TcpListener::bind(("127.0.0.1", port)).unwrap()).collect();
    stage.keep(listeners);
    let flags = ["--source", "127.0.0.1", "--source-ports", "40000-40299"];
    stage.run_by(&[], &arriving(&addr.to_string(), 120), &flags)
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

/// Returns a scenario of users that arrive at a fixed rate, without a declared maximum, and stay.
fn arriving(addr: &str, users: u32) -> String {
    format!(
        "target: tcp://{addr}\n\
         load: [{{arrivals: {{rate: {}/s, for: 4s}}}}, {{hold: {{for: 1s}}}}]\n\
         user: [connect, stay]\n",
        users / 4
    )
}
