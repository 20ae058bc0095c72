//! What a plan rests on.

use throng_report::render::count;

use super::{CostSource, Costs, Fleet, FleetSpec};

/// All assumptions, the weakest first: that on which the number of servers hangs and which was tried least.
pub(super) fn of(ask: &FleetSpec, costs: &Costs, servers: &Fleet) -> Vec<String> {
    let mut found: Vec<(u32, String)> = Vec::new();
    let mut add = |weakness: u32, text: String| found.push((weakness, text));
    let decided = |by: &str| if servers.decided_by == by { DECIDES } else { 0 };
    let has_work =
        ask.connects_per_s.is_some() || ask.messages_per_s > 0.0 || ask.broadcast_every_s.is_some();

    if costs.weakest_source(ask) == CostSource::Documented {
        let text = "costs are those of docs/numbers.md, another machine's, as far as none were measured here \
                    (--measure, or --from a run file)";
        add(40 + decided("memory").max(decided("CPU")) / 2, text.to_owned());
    }
    if has_work {
        let factor = (ask.machine.cores / costs.cpus as f64).max(1.0);
        let text = format!(
            "CPU times are of loopback, where the kernel's work of receiving is charged to whoever sends, and of {} CPUs: {} are \
             taken to do {} times as much",
            costs.cpus,
            count(ask.machine.cores),
            count(ask.machine.cores / costs.cpus as f64),
        );
        add(10 + factor.min(20.0) as u32 + decided("CPU"), text);
    }
    if !ask.machine.nic_is_known {
        let text =
            "no --nic was given: 10 Gbit/s are assumed, and that it takes as many packets as come";
        add(20 + decided("the network"), text.to_owned());
    } else {
        let text = "the network interface takes as many packets as come: its limit of packets a second is not known here";
        add(10 + decided("the network"), text.to_owned());
    }
    add(
        25 + decided("memory"),
        "connections are idle: what waits in a socket's buffers comes on top of its memory"
            .to_owned(),
    );
    add(
        15 + decided("epoll watches"),
        "every limit that a command can raise has been raised, all but epoll watches: \
         `throng doctor --for N` says which these are"
            .to_owned(),
    );
    add(5, "every machine has the same share of the connections".to_owned());
    found.sort_by_key(|(weakness, _)| std::cmp::Reverse(*weakness));
    found.into_iter().map(|(_, text)| text).collect()
}

/// How much weaker an assumption is that decides how many machines there are.
const DECIDES: u32 = 50;
