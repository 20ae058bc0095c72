//! Walls of the queues of a listener.

use std::net::SocketAddr;
use std::thread::sleep;
use std::time::Duration;

use super::flood::flood;
use super::stage::Stage;
use super::{Cause, Provoked};

pub(crate) const WALLS: &[Cause] = &[
    Cause {
        name: "nothing",
        what: "a run within all limits",
        expected: None,
        says: &[],
        // Other programs that use the CPUs are a correct finding.
        is_of_cpus: true,
        stage: Stage::here,
        provoke: nothing,
    },
    Cause {
        name: "small backlog",
        what: "a backlog of 4, and a server that pauses for 0.4 s",
        expected: Some("accept_queue_overflow"),
        says: &[],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: small_backlog,
    },
    Cause {
        name: "clamped backlog",
        what: "somaxconn of 8 below a backlog of 4096, and a server that pauses for 0.4 s",
        expected: Some("backlog_clamped"),
        says: &[],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: clamped_backlog,
    },
    Cause {
        name: "SYN flood",
        what: "2000 SYNs a second from addresses that never answer, without SYN cookies",
        expected: Some("syn_queue_overflow"),
        says: &[],
        is_of_cpus: false,
        stage: Stage::linked,
        provoke: syn_flood,
    },
    Cause {
        name: "small SYN queue",
        what: "tcp_max_syn_backlog of 16, no SYN cookies, SYN-ACKs delayed by tbf",
        expected: Some("syn_queue_overflow"),
        says: &[],
        is_of_cpus: false,
        stage: Stage::linked,
        provoke: small_syn_queue,
    },
    Cause {
        name: "half-open",
        what: "a filter that passes only the SYNs of half the clients",
        expected: Some("half_open"),
        says: &[],
        is_of_cpus: false,
        stage: Stage::linked,
        provoke: half_open,
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
    while_the_server_pauses(stage, addr)
}

fn clamped_backlog(stage: &mut Stage) -> Provoked {
    stage.at_server("echo 8 > /proc/sys/net/core/somaxconn")?;
    let addr = stage.serve(&["hold", "--cores", "1", "--accept", "shared"]);
    while_the_server_pauses(stage, addr)
}

/// Runs five hundred connections a second, while the server pauses and accepts none for a moment.
fn while_the_server_pauses(stage: &mut Stage, addr: SocketAddr) -> Provoked {
    let scenario = format!(
        "target: tcp://{addr}\n\
         load: [{{ramp: {{to: 2500, over: 5s}}}}, {{hold: {{for: 1s}}}}]\n\
         user: [connect, stay]\n"
    );
    let run = stage.start_run(&[], &scenario, &[]);
    run.until("/load/counters/connected", 100);
    stage.last().pause();
    sleep(Duration::from_millis(400));
    stage.last().resume();
    run.finish()
}

fn syn_flood(stage: &mut Stage) -> Provoked {
    stage.at_server(
        "echo 0 > /proc/sys/net/ipv4/tcp_syncookies\n\
         echo 128 > /proc/sys/net/ipv4/tcp_max_syn_backlog\n\
         ip route add 10.0.0.0/8 via 198.18.1.1 dev veth-server",
    )?;
    let addr = stage.serve(&["hold"]);
    let SocketAddr::V4(target) = addr else { return Err("no IPv4".to_owned()) };
    let stop = stage.stop_at_end();
    stage.thread_at_load(move || flood(target, 2_000, &stop));
    stage.run(&format!(
        "target: tcp://{addr}\n\
         load: [{{arrivals: {{rate: 50/s, for: 4s}}}}, {{hold: {{for: 2s}}}}]\n\
         user: [connect, stay]\n"
    ))
}

fn small_syn_queue(stage: &mut Stage) -> Provoked {
    stage.at_server(
        "echo 0 > /proc/sys/net/ipv4/tcp_syncookies\n\
         echo 16 > /proc/sys/net/ipv4/tcp_max_syn_backlog\n\
         tc qdisc add dev veth-server root tbf rate 100kbit burst 200 limit 1000000",
    )?;
    let addr = stage.serve(&["hold", "--cores", "1", "--accept", "shared"]);
    stage.run(&format!(
        "target: tcp://{addr}\n\
         load: [{{arrivals: {{rate: 500/s, for: 2s}}}}, {{hold: {{for: 3s}}}}]\n\
         user: [connect, stay]\n"
    ))
}

fn half_open(stage: &mut Stage) -> Provoked {
    stage.at_server(
        "nft 'add table inet broken'\n\
         nft 'add chain inet broken input { type filter hook input priority 0; }'\n\
         nft 'add rule inet broken input ip saddr 198.18.1.2 tcp flags & syn == 0 drop'",
    )?;
    let addr = stage.serve(&["hold"]);
    let scenario = format!(
        "target: tcp://{addr}\n\
         load: [{{arrivals: {{rate: 100/s, for: 2s}}}}, {{hold: {{for: 3s}}}}]\n\
         user: [connect, stay]\n"
    );
    stage.run_by(&[], &scenario, &["--source", "198.18.1.1", "--source", "198.18.1.2"])
}
