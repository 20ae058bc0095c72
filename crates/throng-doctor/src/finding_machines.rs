//! The machines of a fleet at which a finding happened.

use throng_measure::finding::listed;
use throng_measure::{Finding, MachineInterval, Side};

use crate::kernels;
use crate::run_view::RunView;

/// Names the machines in a finding that their users or their kernels caused or felt, unless its
/// rule knows them. Leaves out the server's findings. If clients and server share a kernel, a
/// finding about it names no machine by the kernel's counters; failed connects still do.
pub(crate) fn with_machines(run: &RunView<'_>, mut finding: Finding) -> Finding {
    let is_shared = kernels::is_shared(run);
    let tells = |counter: &str| match finding.side {
        Side::Client | Side::Network => true,
        Side::Kernel => !is_shared || counter.starts_with("connect_failed."),
        Side::Server => false,
    };
    let load = run.samples().iter().rev().find_map(|sample| sample.load());
    if let Some(load) = load.filter(|load| load.machines.len() > 1 && finding.machines.is_empty()) {
        let counters = || finding.evidence.iter().map(|evidence| &evidence.counter);
        let is_there = |machine: &&MachineInterval| {
            counters().any(|counter| tells(counter) && machine.troubles.contains_key(counter))
        };
        let there = load.machines.iter().filter(is_there);
        finding.machines = there.map(|machine| machine.name.clone()).collect();
    }
    finding
}

/// Returns `, at ` and the machines of a finding, unless it has none or its first sentence names
/// them.
pub(crate) fn at_machines(run: &RunView<'_>, finding: &Finding) -> String {
    let all = run.header.machines.len();
    if finding.says_machines() {
        return String::new();
    }
    match finding.machines.len() {
        0 => String::new(),
        some if some == all => format!(", at all {all} machines"),
        1 => format!(", at {}, one of {all} machines", finding.machines[0]),
        some => format!(", at {} ({some} of {all} machines)", listed(&finding.machines)),
    }
}

#[cfg(test)]
mod tests {
    use throng_measure::{Metric, RunMachine};

    use super::*;
    use crate::rules::fixture::Run;

    /// A run of three machines, of which the first so many had no fd left.
    fn fleet(without_fds: usize) -> Run {
        let names = ["eu-1", "eu-2", "eu-3"];
        let machine = |name: &str| RunMachine { name: name.into(), ..RunMachine::default() };
        let mut run = Run::quiet();
        run.header.machines = names.map(machine).into();
        run.loaded(move |load, second| {
            let failed = 3 * second;
            load.connect_failed.add("EMFILE", failed * without_fds as u64);
            let machine = |(at, name): (usize, &str)| {
                let mut machine =
                    MachineInterval { name: name.into(), ..MachineInterval::default() };
                machine.troubles.insert(Metric::TCPEXT_LISTEN_OVERFLOWS.to_string(), 1);
                if at < without_fds && failed > 0 {
                    machine.troubles.insert("connect_failed.EMFILE".into(), failed);
                }
                machine
            };
            load.machines = names.into_iter().enumerate().map(machine).collect();
        })
    }

    #[test]
    fn a_finding_of_clients_names_their_machines() {
        let check = |without_fds: usize, named: &[&str], words: &str| {
            let (history, summary) = fleet(without_fds).whole();
            let diagnosis = crate::diagnose(&history, &summary, &[]);
            let found = diagnosis.findings.iter().find(|found| found.id == "fds_exhausted");
            assert_eq!(found.unwrap().machines, named);
            assert!(diagnosis.verdict.contains(words), "{}", diagnosis.verdict);
        };
        check(1, &["eu-1"], ", at eu-1, one of 3 machines; do: ");
        check(2, &["eu-1", "eu-2"], ", at eu-1 and eu-2 (2 of 3 machines); do: ");
        check(3, &["eu-1", "eu-2", "eu-3"], ", at all 3 machines; do: ");
    }

    #[test]
    fn counters_of_a_kernel_name_machines_unless_the_server_shares_it() {
        let check = |run: &Run, of_kernel: usize| {
            let (history, summary) = run.whole();
            let view = RunView::new(&history, &summary);
            let machines = |side: Side, counter: &str| {
                let finding = Finding::new("x", side, "X.").shown_by(counter, 0.0, 3.0, 1_000);
                with_machines(&view, finding).machines.len()
            };
            let overflows = Metric::TCPEXT_LISTEN_OVERFLOWS.to_string();
            assert_eq!(machines(Side::Client, &overflows), 3);
            assert_eq!(machines(Side::Kernel, &overflows), of_kernel);
            assert_eq!(machines(Side::Kernel, "connect_failed.EMFILE"), 2);
            assert_eq!(machines(Side::Server, "connect_failed.EMFILE"), 0);
        };
        check(&fleet(2), 0);
        let observed = fleet(2).changed(|interval, _| {
            interval.server_kernel.set(Metric::TCPEXT_LISTEN_OVERFLOWS, 0);
        });
        check(&observed, 3);
        let mut unobserved = fleet(2);
        unobserved.header.target_is_here = false;
        check(&unobserved, 3);
    }
}
