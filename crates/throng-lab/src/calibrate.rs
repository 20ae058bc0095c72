//! Measures how many connections per second this machine takes now, with server and generator on
//! it.
//!
//! A rate from another machine or another hour gives a lab the wrong size. With too much load every
//! row measures the generator; with too little load all rows are alike. So a lab that compares
//! rates first lets a fixed number of users reconnect as fast as they can, which neither builds up
//! a backlog nor leaves a CPU idle. The rate sizes the lab's rows.

use throng_report::render::rate as show_rate;

use crate::error::LabError;
use crate::lab::Lab;
use crate::measure::{Window, rate_within};
use crate::progress::{LabProgress, without_events};
use crate::test_bed::{LoadSpec, NextStep, ServerSpec};

/// The calibration's length in seconds.
pub(crate) const SECONDS: u64 = 3;

/// The result of a calibration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct CalibrationOutcome {
    /// Connections per second; none without connections.
    pub(crate) rate: Option<f64>,
    /// True when the user ended the calibration early.
    pub(crate) interrupted: bool,
}

/// Lets users repeat `user`, the steps of a scenario, against `throng serve ok`.
pub(crate) fn calibrate(
    lab: &Lab<'_>,
    user: &str,
    rows: usize,
    progress: &mut dyn FnMut(LabProgress<'_>),
) -> Result<CalibrationOutcome, LabError> {
    progress(LabProgress::Row { name: ROW, number: 1, of: rows, seconds: SECONDS });
    let users = USERS_PER_CPU * lab.machine.cpus;
    let text = scenario(users, user);
    let cores = lab.machine.cpus;
    let spec = ServerSpec::new(ROW, "ok", cores);
    let server = lab.test_bed.serve(spec)?;
    let spec = LoadSpec::tcp(ROW, &text, SECONDS);
    let run = lab
        .test_bed
        .load(&spec, &server.endpoint, &mut without_events(progress), |_| NextStep::Continue)?;
    server.stop();
    // This load is as fast as it can be, so its lag says nothing about the lab's own rows.
    lab.test_bed.drop_diagnosis(ROW);
    let rate = rate_within(&run.file.intervals, WHOLE_SECONDS, |counters| counters.connects_ok);
    let found = CalibrationOutcome { rate, interrupted: run.interrupted };
    if let Some(found) = found.rate {
        progress(LabProgress::Note(&format!(
            "with server and generator on it, this machine takes {} now",
            show_rate(found)
        )));
    }
    Ok(found)
}

fn scenario(users: u64, user: &str) -> String {
    format!(
        "target: tcp://127.0.0.1:5555
load:
  - ramp: {{to: {users}, over: 500ms}}
  - hold: {{for: {}ms}}
user:
{user}on_error: restart
",
        1000 * SECONDS - 500
    )
}

const ROW: &str = "calibration";
/// The users: enough to keep server and generator busy, few enough for short queues.
const USERS_PER_CPU: u64 = 500;
/// The whole seconds after the first, in which the users arrive.
const WHOLE_SECONDS: Window = Window { from_ms: 900, until_ms: u64::MAX, span_ms_least: 500 };

#[cfg(test)]
mod tests {
    use throng_load::scenario::Scenario;

    use super::*;

    #[test]
    fn the_calibration_is_a_scenario() {
        Scenario::parse(&scenario(1000, "  - connect\n  - close\n"), "calibration").unwrap();
    }
}
