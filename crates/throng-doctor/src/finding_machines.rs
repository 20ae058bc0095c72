//! The machines of a fleet at which a finding happened.

use throng_report::finding::listed;
use throng_report::{Finding, Side};

use crate::run_view::RunView;

/// Names the machines in a finding that the clients' machines caused or felt, if its evidence tells
/// them. A finding that names its machines keeps them, and one about the server has none.
pub(crate) fn with_machines(run: &RunView<'_>, mut finding: Finding) -> Finding {
    let is_of_clients = matches!(finding.side, Side::Client | Side::Network | Side::Kernel);
    if !is_of_clients || !finding.machines.is_empty() || run.header.machines.len() < 2 {
        return finding;
    }
    let Some(load) = run.samples().iter().rev().find_map(|sample| sample.load()) else {
        return finding;
    };
    let has_any = |troubles: &std::collections::BTreeMap<String, u64>| {
        finding.evidence.iter().any(|evidence| troubles.contains_key(&evidence.counter))
    };
    let machines = load.machines.iter().filter(|machine| has_any(&machine.troubles));
    finding.machines = machines.map(|machine| machine.name.clone()).collect();
    finding
}

/// Returns ` at ` and the machines of a finding, if it names any.
pub(crate) fn at_machines(run: &RunView<'_>, finding: &Finding) -> String {
    let all = run.header.machines.len();
    match finding.machines.len() {
        0 => String::new(),
        some if some == all => format!(", at all {all} machines"),
        1 => format!(", at {}, one of {all} machines", finding.machines[0]),
        some => format!(", at {} ({some} of {all} machines)", listed(&finding.machines)),
    }
}

#[cfg(test)]
mod tests {
    use throng_report::{MachineInterval, RunMachine};

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
}
