//! The catalogue of the bundled labs.

use std::cell::Cell;
use std::net::Ipv4Addr;
use std::sync::LazyLock;

use throng_base::units::nearest;
use throng_run::test_bed::TestBed;

use crate::error::LabError;
use crate::experiment::Experiment;
use crate::lab::Lab;
use crate::machine::LabMachine;
use crate::options::{LabInfo, LabOptions};
use crate::progress::LabProgress;
use crate::report::LabReport;
use crate::{demo, experiment, fast_receive, stressgrid_100k};

/// The function that runs a lab.
type RunLab = fn(
    &Lab<'_>,
    &'static Experiment,
    &mut dyn FnMut(LabProgress<'_>),
) -> Result<LabReport, LabError>;

/// A lab's file, by the lab's name.
macro_rules! file {
    ($name:literal) => {
        ($name, include_str!(concat!("../../../labs/", $name, ".yaml")))
    };
}

/// Every lab's name, file and function, in the order in which a new user should meet them.
const FILES: &[((&str, &str), RunLab)] = &[
    (file!("demo"), demo::run),
    (file!("stressgrid-100k"), stressgrid_100k::run),
    (file!("fast-connect"), experiment::run),
    (file!("fast-receive"), fast_receive::run),
    (file!("connscale"), experiment::run),
    (file!("haskell-chat"), experiment::run),
    (file!("phoenix-2m"), experiment::run),
    (file!("one-room"), experiment::run),
    (file!("many-rooms"), experiment::run),
    (file!("simulated-chat"), experiment::run),
    (file!("reconnect-storm"), experiment::run),
    (file!("two-nodes"), experiment::run),
];

/// Every lab, in the same order. A lab that is like another one comes after it.
static CATALOGUE: LazyLock<Vec<(Experiment, RunLab)>> = LazyLock::new(|| {
    let mut labs: Vec<(Experiment, RunLab)> = Vec::new();
    for ((name, yaml), run) in FILES {
        let lab = Experiment::new(name, yaml);
        let model = labs.iter().find(|(model, _)| lab.is_like(model.info.name));
        let lab = match model {
            Some((model, _)) => lab.like(model),
            None => lab,
        };
        labs.push((lab, *run));
    }
    labs
});

/// Returns all labs, in the order in which a new user should meet them.
pub fn labs() -> impl Iterator<Item = &'static LabInfo> {
    CATALOGUE.iter().map(|(experiment, _)| &experiment.info)
}

/// Returns the lab `name` and its function.
pub(crate) fn find(name: &str) -> Option<(&'static Experiment, RunLab)> {
    let (experiment, run) = CATALOGUE.iter().find(|(lab, _)| lab.info.name == name)?;
    Some((experiment, *run))
}

/// Runs the lab `name` and calls `progress` on this thread.
///
/// # Errors
/// [`LabError`]. Stopping a lab early is no error: its report says so.
pub fn run(
    name: &str,
    options: &LabOptions,
    progress: &mut dyn FnMut(LabProgress<'_>),
) -> Result<LabReport, LabError> {
    let Some((experiment, run)) = find(name) else {
        let nearest = nearest(name, labs().map(|lab| lab.name));
        let labs = labs().map(|lab| lab.name).collect();
        return Err(LabError::Unknown { name: name.to_owned(), nearest, labs });
    };
    check(&experiment.info, options)?;
    let machine = LabMachine::read(options.isolate, options.agents.is_some());
    let test_bed = TestBed::new(name, &options.test_bed())?;
    let lab = Lab {
        options,
        machine,
        nodes: experiment.info.nodes,
        test_bed: &test_bed,
        is_calibrated: Cell::new(false),
    };
    let report = run(&lab, experiment, progress)?;
    let setup = match test_bed.network_note() {
        Some(note) => format!("{}; {note}", report.setup),
        None => report.setup,
    };
    Ok(LabReport {
        diagnoses: test_bed.diagnoses(),
        setup,
        kept: options.keep_files.clone(),
        ..report
    })
}

/// Refuses options that the lab does not have.
fn check(lab: &LabInfo, options: &LabOptions) -> Result<(), LabError> {
    let name = lab.name;
    if options.rate.is_some() && !lab.takes_rate {
        let takes_rate = labs().filter(|lab| lab.takes_rate).map(|lab| lab.name).collect();
        return Err(LabError::NoRate { name, takes_rate });
    }
    if options.agents.is_some() && !lab.takes_agents {
        let takes_agents = labs().filter(|lab| lab.takes_agents).map(|lab| lab.name).collect();
        return Err(LabError::NoAgents { name, takes_agents });
    }
    if options.over_tls && !lab.takes_tls {
        let takes_tls = labs().filter(|lab| lab.takes_tls).map(|lab| lab.name).collect();
        return Err(LabError::NoTls { name, takes_tls });
    }
    if options.bus.is_none() {
        let which = [("servers", lab.nodes > 1), ("agents", options.agents.is_some())];
        if let Some((which, _)) = which.iter().find(|(_, needs_bus)| *needs_bus) {
            return Err(LabError::NoBus { name, which });
        }
    }
    if lab.nodes > 1 {
        let is_elsewhere = options.listen.is_some_and(|listen| listen != Ipv4Addr::LOCALHOST);
        let flags = [("--isolate", options.isolate), ("--listen", is_elsewhere)];
        if let Some((flag, _)) = flags.iter().find(|(_, is_used)| *is_used) {
            return Err(LabError::OnLoopback { name, flag });
        }
    }
    match options.listen.filter(|listen| options.agents.is_some() && listen.is_unspecified()) {
        Some(listen) => Err(LabError::Listen(listen)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_run::test_bed::BusAccess;

    #[test]
    fn a_mistyped_lab_gets_the_nearest_name() {
        let error = run("conscale", &LabOptions::default(), &mut |_| {}).unwrap_err();
        assert_eq!(error.to_string(), "there is no lab `conscale`; did you mean `connscale`?");
        let error = run("x", &LabOptions::default(), &mut |_| {}).unwrap_err();
        assert!(error.to_string().contains("stressgrid-100k, fast-connect"), "{error}");
    }

    #[test]
    fn agents_and_a_bus_are_for_some_labs() {
        let options = LabOptions { agents: Some("all".into()), ..LabOptions::default() };
        let error = run("stressgrid-100k", &options, &mut |_| {}).unwrap_err().to_string();
        assert!(error.contains("--agents is for fast-connect, connscale, "), "{error}");
        let error = run("two-nodes", &options, &mut |_| {}).unwrap_err().to_string();
        assert!(error.contains("--agents is for fast-connect, connscale, "), "{error}");
        let error = run("connscale", &options, &mut |_| {}).unwrap_err().to_string();
        assert!(error.contains("the agents of the lab connscale meet over a bus"), "{error}");
        let error = run("two-nodes", &LabOptions::default(), &mut |_| {}).unwrap_err().to_string();
        assert!(error.contains("pass --bus nats://"), "{error}");
    }

    #[test]
    fn options_that_can_have_no_effect_are_refused() {
        let bus = || Some(BusAccess::default());
        let refusal = |name: &str, options: LabOptions| {
            run(name, &options, &mut |_| {}).unwrap_err().to_string()
        };
        let isolate = LabOptions { bus: bus(), isolate: true, ..LabOptions::default() };
        let error = refusal("two-nodes", isolate);
        assert!(error.contains("--isolate cannot be used with the lab two-nodes"), "{error}");
        let listen = |address: &str| Some(address.parse().unwrap());
        let elsewhere =
            LabOptions { bus: bus(), listen: listen("10.0.0.2"), ..LabOptions::default() };
        let error = refusal("two-nodes", elsewhere);
        assert!(error.contains("--listen cannot be used with the lab two-nodes"), "{error}");
        for any in ["0.0.0.0", "::"] {
            let agents = Some("all".to_owned());
            let options =
                LabOptions { bus: bus(), agents, listen: listen(any), ..LabOptions::default() };
            let error = refusal("connscale", options);
            assert!(error.contains(&format!("--listen {any}: agents cannot connect")), "{error}");
        }
    }

    #[test]
    fn a_rate_is_refused_where_users_have_none() {
        let options = LabOptions { rate: Some(9), ..LabOptions::default() };
        let error = run("stressgrid-100k", &options, &mut |_| {}).unwrap_err().to_string();
        assert!(
            error.contains("--rate is for connscale, ") && error.contains("phoenix-2m"),
            "{error}"
        );
    }
}
