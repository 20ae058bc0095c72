//! How many connections a second this machine takes right now, with both ends on it.
//!
//! A rate that was measured elsewhere, or at another hour, sizes a lab wrongly: with too much offered
//! every row measures the generator, with too little none is told apart from the others. So a lab that
//! compares rates first lets a fixed number of users come back as fast as they can, which
//! neither builds up a backlog nor leaves a CPU idle, and sizes its rows by what that comes to.

use throng_report::Interval;
use throng_report::render::rate;

use crate::ends::{Go, LoadSpec, ServerSpec};
use crate::lab::{Lab, LabError, LabProgress};
use crate::measure::steps;

/// How long it takes, in seconds.
pub(crate) const SECONDS: u64 = 3;

/// What a calibration came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Calibrated {
    /// Connections per second; none when there were none.
    pub(crate) rate: Option<f64>,
    /// Whether the user ended it early.
    pub(crate) interrupted: bool,
}

/// Lets users do `user`, the steps of a scenario, again and again against `throng serve ok`.
pub(crate) fn calibrate(
    lab: &Lab<'_>,
    user: &str,
    rows: usize,
    progress: &mut dyn FnMut(LabProgress<'_>),
) -> Result<Calibrated, LabError> {
    progress(LabProgress::Row { name: ROW, number: 1, of: rows, seconds: SECONDS });
    let users = USERS_PER_CPU * lab.machine.cpus;
    let text = scenario(users, user);
    let cores = lab.machine.cpus;
    let spec = ServerSpec::new(ROW, "ok", cores);
    let server = lab.stage.serve(spec)?;
    let spec = LoadSpec::tcp(ROW, &text, SECONDS);
    let run = lab.stage.load(&spec, &server.at, progress, |_| Go::On)?;
    server.stop();
    let found = Calibrated { rate: steady(&run.file.intervals), interrupted: run.interrupted };
    if let Some(found) = found.rate {
        progress(LabProgress::Note(&format!(
            "with both ends on it, this machine takes {} right now",
            rate(found)
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

/// Connections per second over the whole seconds after the first, in which everybody arrives.
fn steady(intervals: &[Interval]) -> Option<f64> {
    let (mut connects, mut seconds) = (0, 0.0);
    for (interval, before, now, span) in steps(intervals) {
        if interval.at_ms - interval.span_ms >= 900 && span >= 0.5 && !now.is_leaving() {
            connects += now.counters.since(&before.counters).connects_ok;
            seconds += span;
        }
    }
    (connects > 0).then(|| connects as f64 / seconds)
}

const ROW: &str = "calibration";
/// Enough to keep both ends busy, few enough to wait in no queue for long.
const USERS_PER_CPU: u64 = 500;

#[cfg(test)]
mod tests {
    use throng_load::scenario::Scenario;
    use throng_report::LoadInterval;

    use super::*;

    fn intervals(connects: &[u64], phase: &str) -> Vec<Interval> {
        let mut load = LoadInterval::default();
        let mut intervals = vec![Interval { load: Some(load.clone()), ..Interval::default() }];
        for (i, n) in connects.iter().enumerate() {
            load.counters.connects_ok += n;
            load.phase = phase.to_owned();
            let at_ms = 1000 * (i as u64 + 1);
            let load = Some(load.clone());
            intervals.push(Interval { at_ms, span_ms: 1000, load, ..Interval::default() });
        }
        intervals
    }

    #[test]
    fn the_first_second_does_not_count() {
        assert_eq!(steady(&intervals(&[1_000, 12_000, 14_000], "hold")), Some(13_000.0));
        assert_eq!(steady(&intervals(&[9_000], "hold")), None);
    }

    #[test]
    fn a_second_in_which_everybody_leaves_does_not_count() {
        let mut run = intervals(&[1_000, 12_000, 500], "hold");
        run[3].load.as_mut().unwrap().phase = throng_report::LEAVING.to_owned();
        assert_eq!(steady(&run), Some(12_000.0));
    }

    #[test]
    fn nothing_is_no_rate() {
        assert_eq!(steady(&intervals(&[0, 0, 0], "hold")), None);
        assert_eq!(steady(&[]), None);
    }

    #[test]
    fn it_is_a_scenario() {
        Scenario::parse(&scenario(1000, "  - connect\n  - close\n"), "calibration").unwrap();
    }
}
