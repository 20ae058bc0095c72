//! Walls that are limits of the whole machine. A test lowers one at a time, under a lock, for a few
//! seconds.

use super::stage::Stage;
use super::{Cause, Provoked};

pub(crate) const WALLS: &[Cause] = &[
    Cause {
        name: "conntrack limit",
        what: "nf_conntrack_max of 200 with connection tracking, and 400 connections",
        expected: Some("conntrack_full"),
        says: &[],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: conntrack_limit,
    },
    Cause {
        name: "low epoll watches",
        what: "a limit of 300 epoll watches for a user, and 400 connections",
        expected: Some("epoll_watches_exhausted"),
        says: &[],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: low_epoll_watches,
    },
    Cause {
        name: "small tcp_mem",
        what: "tcp_mem 256 pages above the pages in use, and 25 users with messages of 1 MiB",
        expected: Some("tcp_memory_pressure"),
        says: &[],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: small_tcp_mem,
    },
];

fn conntrack_limit(stage: &mut Stage) -> Provoked {
    stage.at_server(
        "nft 'add table inet tracked'\n\
         nft 'add chain inet tracked input { type filter hook input priority 0; }'\n\
         nft 'add rule inet tracked input ct state new counter accept'",
    )?;
    let addr = stage.serve(&["hold"]);
    let _limited = stage.limit_machine(&[("net/netfilter/nf_conntrack_max", "200")])?;
    stage.run(&format!(
        "target: tcp://{addr}\n\
         load: [{{arrivals: {{rate: 200/s, for: 2s}}}}, {{hold: {{for: 2s}}}}]\n\
         user: [connect, stay]\n"
    ))
}

fn low_epoll_watches(stage: &mut Stage) -> Provoked {
    // The kernel counts the watches of each user by itself. Those of other programs are not this
    // user's, which may still write where root does.
    let caps = ["--inh-caps=+dac_override", "--ambient-caps=+dac_override"];
    let other = ["setpriv", "--reuid=54322", caps[0], caps[1]];
    let addr = stage.serve_by(&other, &["hold"]);
    let _limited = stage.limit_machine(&[("fs/epoll/max_user_watches", "300")])?;
    let scenario = format!(
        "target: tcp://{addr}\n\
         load: [{{arrivals: {{rate: 200/s, for: 2s}}}}, {{hold: {{for: 2s}}}}]\n\
         user: [connect, stay]\n"
    );
    stage.run_by(&other, &scenario, &[])
}

fn small_tcp_mem(stage: &mut Stage) -> Provoked {
    let addr = stage.serve(&["echo"]);
    // Other programs' sockets hold some of the machine's pages already. With those alone, the
    // pressure would begin with the first sockets of the stage, before the run counts it. The other
    // causes have let go of theirs when the shell reads this.
    let held = "$(awk '/^TCP:/ { print $NF }' /proc/net/sockstat)";
    let pages = [128, 192, 256].map(|pages| format!("$(({held} + {pages}))")).join(" ");
    let _limited = stage.limit_machine(&[("net/ipv4/tcp_mem", &pages)])?;
    stage.run(&format!(
        "target: tcp://{addr}\n\
         load: [{{ramp: {{to: 25, over: 2s}}}}, {{hold: {{for: 4s}}}}]\n\
         user: [connect, every: {{rate: 2/s, \
         do: [send: {{random: 1MiB}}, expect: {{bytes: 1MiB}}]}}]\n"
    ))
}
