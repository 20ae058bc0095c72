//! The assumptions of a plan.

use throng_report::render::count;

use super::{CostSource, Costs, Fleet, FleetSpec};

/// Returns all assumptions, the weakest first: those that decide the number of servers and were
/// tested least.
pub(super) fn of(spec: &FleetSpec, costs: &Costs, servers: &Fleet) -> Vec<String> {
    let mut found: Vec<(u32, String)> = Vec::new();
    let mut add = |weakness: u32, text: String| found.push((weakness, text));
    let decided = |by: &str| if servers.decided_by == by { DECIDES } else { 0 };
    let has_work = spec.connects_per_s.is_some()
        || spec.messages_per_s > 0.0
        || spec.broadcast_every_s.is_some();

    if costs.weakest_source(spec) == CostSource::Documented {
        let text = "costs not measured here are those of another machine, from docs/numbers.md \
                    (measure them with --measure, or take them from a run file with --from)";
        add(40 + decided("memory").max(decided("CPU")) / 2, text.to_owned());
    }
    let borrowed = costs.borrowed();
    if !borrowed.is_empty() {
        let text = format!(
            "the server of the run is not known to be throng's, and the run does not tell {} of \
             it: throng's own costs stand there",
            borrowed.join(", ")
        );
        add(60 + decided("memory").max(decided("CPU")), text);
    }
    if has_work {
        let factor = (spec.machine.cores / costs.cpus as f64).max(1.0);
        let text = format!(
            "CPU times are from loopback, where the kernel charges the work of receiving to the \
             sender, and from {} CPUs: {} CPUs are assumed to do {} times as much",
            costs.cpus,
            count(spec.machine.cores),
            count(spec.machine.cores / costs.cpus as f64),
        );
        add(10 + factor.min(20.0) as u32 + decided("CPU"), text);
    }
    if !spec.machine.nic_is_known {
        let text = "no --nic was given: 10 Gbit/s are assumed, without a limit of packets a second";
        add(20 + decided("the network"), text.to_owned());
    } else {
        let text = "the network interface has no limit of packets a second: its real limit is not \
                    known here";
        add(10 + decided("the network"), text.to_owned());
    }
    add(
        25 + decided("memory"),
        "connections are idle: data in a socket's buffers needs memory on top".to_owned(),
    );
    add(
        15 + decided("epoll watches"),
        "every limit that a command can raise has been raised, except epoll watches: `throng \
         doctor --for N` lists these limits"
            .to_owned(),
    );
    add(5, "every machine has the same share of the connections".to_owned());
    found.sort_by_key(|(weakness, _)| std::cmp::Reverse(*weakness));
    found.into_iter().map(|(_, text)| text).collect()
}

/// The extra weakness of an assumption that decides the number of machines.
const DECIDES: u32 = 50;
