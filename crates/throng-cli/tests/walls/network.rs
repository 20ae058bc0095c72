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
