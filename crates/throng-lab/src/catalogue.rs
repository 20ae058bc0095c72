//! The catalogue of the bundled labs.

use std::cell::Cell;

use throng_base::units::nearest;

use crate::error::LabError;
use crate::lab::Lab;
use crate::machine::LabMachine;
use crate::options::{LabInfo, LabOptions};
use crate::progress::LabProgress;
use crate::report::LabReport;
use crate::test_bed::TestBed;
use crate::{
    connscale, demo, fast_connect, fast_receive, haskell_chat, phoenix_2m, reconnect_storm, rooms,
    simulated_chat, stressgrid_100k,
};

/// The function that runs a lab.
type RunLab = fn(&Lab<'_>, &mut dyn FnMut(LabProgress<'_>)) -> Result<LabReport, LabError>;

/// Every lab and its function, in the order in which a new user should meet them.
const CATALOGUE: &[(LabInfo, RunLab)] = &[
    (demo::INFO, demo::run),
    (stressgrid_100k::INFO, stressgrid_100k::run),
    (fast_connect::INFO, fast_connect::run),
    (fast_receive::INFO, fast_receive::run),
    (connscale::INFO, connscale::run),
    (haskell_chat::INFO, haskell_chat::run),
    (phoenix_2m::INFO, phoenix_2m::run),
    (rooms::ONE_ROOM, rooms::one_room),
    (rooms::MANY_ROOMS, rooms::many_rooms),
    (simulated_chat::INFO, simulated_chat::run),
    (reconnect_storm::INFO, reconnect_storm::run),
];

/// Returns all labs, in the order in which a new user should meet them.
pub fn labs() -> impl Iterator<Item = &'static LabInfo> {
    CATALOGUE.iter().map(|(info, _)| info)
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
    let Some((info, run)) = CATALOGUE.iter().find(|(info, _)| info.name == name) else {
        let nearest = nearest(name, labs().map(|lab| lab.name));
        let labs = labs().map(|lab| lab.name).collect();
        return Err(LabError::Unknown { name: name.to_owned(), nearest, labs });
    };
    if options.rate.is_some() && !info.takes_rate {
        let takes_rate = labs().filter(|lab| lab.takes_rate).map(|lab| lab.name).collect();
        return Err(LabError::NoRate { name: info.name, takes_rate });
    }
    let machine = LabMachine::read(options.isolate);
    let test_bed = TestBed::new(name, options)?;
    let lab = Lab { options, machine, test_bed: &test_bed, is_calibrated: Cell::new(false) };
    let report = run(&lab, progress)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistyped_lab_gets_the_nearest_name() {
        let error = run("conscale", &LabOptions::default(), &mut |_| {}).unwrap_err();
        assert_eq!(error.to_string(), "there is no lab `conscale`; did you mean `connscale`?");
        let error = run("x", &LabOptions::default(), &mut |_| {}).unwrap_err();
        assert!(error.to_string().contains("stressgrid-100k, fast-connect"), "{error}");
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
