//! Limits of the whole machine: connection tracking, and epoll watches. The tests lower them under
//! a lock, and restore them.

use crate::bench::{Bench, enter_namespace};
use crate::machinewide::Machinewide;

#[test]
fn connection_tracking_holds_exactly_what_the_preflight_says() {
    let track = "nft 'add table inet tracked'\n\
                 nft 'add chain inet tracked input { type filter hook input priority 0; }'\n\
                 nft 'add rule inet tracked input ct state new counter accept'";
    if !enter_namespace(track) {
        return;
    }
    let mut bench = Bench::changing(&[]);
    bench.serve("127.0.0.1:5555", &[]);
    let _limited = match Machinewide::set(&[("net/netfilter/nf_conntrack_max", "300")]) {
        Ok(limited) => limited,
        Err(why) => return println!("skipped: {why}"),
    };
    let said = bench.preflight(400);
    let conntrack =
        said["checks"].as_array().unwrap().iter().find(|check| check["id"] == "conntrack");
    let conntrack = conntrack.unwrap_or_else(|| panic!("{said}"));
    assert_eq!(conntrack["state"], "short", "{said}");
    let command = conntrack["remedy"]["command"].as_str().unwrap();
    assert!(command.starts_with("sysctl -w net.netfilter.nf_conntrack_max=4"), "{command}");
    // The entries of closed connections stay for a while, so each run has less room than the one
    // before.
    let holds = said["holds"].as_u64().unwrap();
    assert!((290..300).contains(&holds), "{said}");
    let refused = bench.run(holds + 1, &[]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("nf_conntrack_max"), "{}", refused.stderr);
    // A datagram shows whether connections are tracked, and has its own entry; one entry is
    // reserved for it.
    let came = bench.run(holds - 1, &[]);
    came.ran();
    assert_eq!(came.established(), holds - 1, "{}", came.stderr);
    bench.fails_when_forced(holds, "");
}

#[test]
fn epoll_watches_of_a_user_hold_exactly_what_the_preflight_says() {
    // The kernel counts the watches of each user separately.
    let other = ["setpriv", "--reuid=54321", "--regid=54321", "--clear-groups"];
    let mut bench = Bench::changing(&other);
    if !bench.throng(&["--version"]).output().is_ok_and(|output| output.status.success()) {
        return println!("skipped: only root becomes another user");
    }
    bench.serve("127.0.0.1:0", &[]);
    let _limited = match Machinewide::set(&[("fs/epoll/max_user_watches", "3000")]) {
        Ok(limited) => limited,
        Err(why) => return println!("skipped: {why}"),
    };
    assert_eq!(bench.is_exact("epoll_watches"), (3_000 - 1_024) / 2);
    bench.fails_when_forced(2_000, "ENOSPC");
}
