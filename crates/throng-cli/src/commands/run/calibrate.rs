//! The calibration: measures this generator's capacity before the run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use throng_base::units::show_duration;
use throng_measure::runfile::Ceiling;
use throng_report::render::{bytes, micros, rate};
use throng_run::ceiling::{self, CeilingOptions};

use super::plan::RunPlan;
use crate::interrupt::{By, Interrupt, LOOK_EVERY};

/// The result of a calibration.
pub(super) enum CalibrationResult {
    /// The measured ceiling.
    Measured(Ceiling),
    /// The reason why nothing was measured; the run goes on without a ceiling.
    Unknown(String),
    /// A request to end, by its source.
    Interrupted(By),
}

impl CalibrationResult {
    /// Returns the result for `ceiling`, which took about `length`. A run cannot be compared with a
    /// ceiling that has no rate.
    fn of(ceiling: Ceiling, length: Duration) -> Self {
        if ceiling.connects_per_s.or(ceiling.messages_per_s).is_some() {
            return Self::Measured(ceiling);
        }
        let length = show_duration(length);
        Self::Unknown(format!(
            "nothing could be measured in {length} because other programs keep the CPUs busy; try \
             a longer --calibrate"
        ))
    }
}

/// Measures the plan's kind of traffic for about `length`, or until a request to end.
pub(super) fn calibrate(
    plan: &RunPlan,
    length: Duration,
    interrupt: &Interrupt,
) -> CalibrationResult {
    let stop = Arc::new(AtomicBool::new(false));
    let options = options(plan, length, Arc::clone(&stop));
    let measuring = thread::spawn(move || ceiling::measure(&options));
    while !measuring.is_finished() {
        if interrupt.requested().is_some() {
            stop.store(true, Ordering::Relaxed);
        }
        thread::sleep(LOOK_EVERY);
    }
    let measured = measuring.join();
    if let Some(by) = interrupt.requested() {
        return CalibrationResult::Interrupted(by);
    }
    match measured {
        Ok(Ok(found)) => CalibrationResult::of(found.ceiling, length),
        Ok(Err(error)) => CalibrationResult::Unknown(error.to_string()),
        Err(_) => CalibrationResult::Unknown("the calibration panicked".to_owned()),
    }
}

fn options(plan: &RunPlan, length: Duration, stop: Arc<AtomicBool>) -> CeilingOptions {
    CeilingOptions {
        length,
        protocol: plan.load.program().protocol(),
        traffic: plan.load.program().traffic(),
        resume: plan.load.resume_share(),
        cores: Some(plan.load.capacity.cores),
        // Server and generator of the calibration each have this process's limit of fds, and few
        // others open.
        users_most: plan.load.capacity.held() / 2,
        target_is_remote: !plan.header.target_is_here,
        stop,
        ..CeilingOptions::default()
    }
}

/// Describes the ceiling: `this machine: 21k/s connects, 95k/s messages at most, timers late by 120
/// µs, 230 B a user`.
pub(super) fn describe(ceiling: &Ceiling) -> String {
    let connects = if ceiling.over_tls { "connects with a full TLS handshake" } else { "connects" };
    let rates = [
        (ceiling.connects_per_s, connects),
        (ceiling.resumed_per_s, "with a resumed one"),
        (ceiling.messages_per_s, "messages"),
    ];
    let rates = rates.into_iter().filter_map(|(n, what)| Some(format!("{} {what}", rate(n?))));
    let rates = rates.collect::<Vec<_>>().join(", ");
    let mut parts = Vec::new();
    if !rates.is_empty() {
        parts.push(format!("{rates} at most"));
    }
    if let Some(us) = ceiling.timer_error_us_p99 {
        parts.push(format!("timers late by {} (p99)", micros(us)));
    }
    if let Some(each) = ceiling.bytes_per_user {
        parts.push(format!("{} per user", bytes(each)));
    }
    if parts.is_empty() {
        "this machine: nothing could be measured".to_owned()
    } else {
        format!("this machine: {}", parts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ceiling_without_a_rate_is_not_known() {
        let of = |ceiling| match CalibrationResult::of(ceiling, Duration::from_secs(1)) {
            CalibrationResult::Measured(ceiling) => Ok(ceiling),
            CalibrationResult::Unknown(why) => Err(why),
            CalibrationResult::Interrupted(_) => panic!("no request to end was made"),
        };
        let why = "nothing could be measured in 1s because other programs keep the CPUs busy; \
                   try a longer --calibrate";
        assert_eq!(of(Ceiling::default()), Err(why.to_owned()));
        let timers = Ceiling { timer_error_us_p99: Some(120), ..Default::default() };
        assert_eq!(of(timers), Err(why.to_owned()), "timers are no rate");
        for known in [
            Ceiling { connects_per_s: Some(1.0), ..Default::default() },
            Ceiling { messages_per_s: Some(1.0), ..Default::default() },
        ] {
            assert_eq!(of(known.clone()), Ok(known));
        }
    }

    #[test]
    fn only_what_was_measured_is_shown() {
        let mut ceiling = Ceiling { connects_per_s: Some(21_400.0), ..Default::default() };
        assert_eq!(describe(&ceiling), "this machine: 21.4k/s connects at most");
        ceiling.messages_per_s = Some(95_000.0);
        ceiling.timer_error_us_p99 = Some(120);
        ceiling.bytes_per_user = Some(231.0);
        let all = "this machine: 21.4k/s connects, 95k/s messages at most, timers late by 120 µs \
                   (p99), 231 B per user";
        assert_eq!(describe(&ceiling), all);
        let tls = Ceiling {
            over_tls: true,
            connects_per_s: Some(3_000.0),
            resumed_per_s: Some(7_500.0),
            ..Ceiling::default()
        };
        let all = "this machine: 3k/s connects with a full TLS handshake, 7.5k/s with a \
                   resumed one at most";
        assert_eq!(describe(&tls), all);
        assert_eq!(describe(&Ceiling::default()), "this machine: nothing could be measured");
    }
}
