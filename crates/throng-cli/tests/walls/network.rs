//! Walls of the network between server and generator.

use super::stage::Stage;
use super::{Cause, Provoked};

pub(crate) const WALLS: &[Cause] = &[
    Cause {
        name: "random loss",
        what: "nftables drops 5 % of the packets to the server",
        expected: Some("retransmits"),
        says: &[],
        is_of_cpus: false,
        stage: Stage::linked,
        provoke: random_loss,
    },
    Cause {
        name: "rate cap",
        what: "tbf limits the server to 1 Mbit/s, and the load needs 3",
        expected: Some("retransmits"),
        says: &[],
        is_of_cpus: false,
        stage: Stage::linked,
        provoke: rate_cap,
    },
    Cause {
        name: "network cut",
        what: "nftables drops all packets to the server from the middle of the run on",
        expected: Some("network_lost"),
        says: &["the server's kernel received nothing"],
        is_of_cpus: false,
        stage: Stage::linked,
        provoke: network_cut,
    },
    Cause {
        name: "answers cut",
        what: "nftables drops all packets from the server from the middle of the run on",
        expected: Some("network_lost"),
        says: &["Packets from the server to the generator were lost"],
        is_of_cpus: false,
        stage: Stage::linked,
        provoke: answers_cut,
    },
    Cause {
        name: "lost route",
        what: "the generator's link is set down in the middle of the run",
        expected: Some("network_lost"),
        says: &["The route to the server was gone"],
        is_of_cpus: false,
        stage: Stage::linked,
        provoke: lost_route,
    },
    Cause {
        name: "large packets dropped",
        what: "nftables drops packets of more than 1,000 bytes from the middle of the run on",
        expected: Some("network_lost"),
        says: &["Large packets between generator and server were lost"],
        is_of_cpus: false,
        stage: Stage::linked,
        provoke: large_packets_dropped,
    },
];

fn random_loss(stage: &mut Stage) -> Provoked {
    stage.at_server(
        "nft 'add table inet lossy'\n\
         nft 'add chain inet lossy input { type filter hook input priority 0; }'\n\
         nft 'add rule inet lossy input tcp dport 1-65535 numgen random mod 100 < 5 drop'",
    )?;
    let addr = stage.serve(&["echo"]);
    stage.run(&format!(
        "target: tcp://{addr}\n\
         load: [{{ramp: {{to: 300, over: 2s}}}}, {{hold: {{for: 4s}}}}]\n\
         user: [connect, every: {{rate: 4/s, do: [send: hello, expect: hello]}}]\n"
    ))
}

fn rate_cap(stage: &mut Stage) -> Provoked {
    stage.at_server("tc qdisc add dev veth-server root tbf rate 1mbit burst 3000 limit 10000")?;
    let addr = stage.serve(&["echo"]);
    stage.run(&format!(
        "target: tcp://{addr}\n\
         load: [{{ramp: {{to: 100, over: 2s}}}}, {{hold: {{for: 4s}}}}]\n\
         user: [connect, every: {{rate: 2/s, \
         do: [send: {{random: 2KiB}}, expect: {{bytes: 2048}}]}}]\n"
    ))
}

fn network_cut(stage: &mut Stage) -> Provoked {
    cut(stage, TURNS, |stage| stage.at_server(&dropping("tcp dport 1-65535")))
}

fn answers_cut(stage: &mut Stage) -> Provoked {
    cut(stage, TURNS, |stage| stage.at_load(&dropping("tcp sport 1-32767")))
}

fn lost_route(stage: &mut Stage) -> Provoked {
    cut(stage, TURNS, |stage| stage.at_load("ip link set veth-load down"))
}

/// Connections begin all the time: their handshakes have small packets.
fn large_packets_dropped(stage: &mut Stage) -> Provoked {
    let arrivals = "load: [{arrivals: {rate: 10/s, for: 7s}}]\n\
                    user: [connect, {repeat: {times: 4, \
                    do: [send: {random: 8KiB}, \
                    expect: {bytes: 8192, timeout: 2s}, wait: 100ms]}}]\n";
    cut(stage, arrivals, |stage| stage.at_server(&dropping("meta length > 1000")))
}

/// Runs a load, and cuts the network when the server has answered for a while.
fn cut(stage: &mut Stage, load: &str, cut: impl FnOnce(&Stage) -> Result<(), String>) -> Provoked {
    let addr = stage.serve(&["echo", "--listen", "198.18.0.1:7900"]);
    let run = stage.start_run(&[], &format!("target: tcp://{addr}\n{load}"), &[]);
    run.until("/load/counters/messages_answered", 60);
    cut(stage)?;
    run.finish()
}

/// Returns lines of shell that drop these incoming packets.
fn dropping(what: &str) -> String {
    format!(
        "nft 'add table inet cut'\n\
         nft 'add chain inet cut input {{ type filter hook input priority 0; }}'\n\
         nft 'add rule inet cut input {what} drop'"
    )
}

const TURNS: &str = "load: [{ramp: {to: 60, over: 500ms}}, {hold: {for: 6s}}]\n\
                     user: [connect, every: {rate: 4/s, do: [send: hello, expect: hello]}]\n";
