//! What this generator does at most, measured before the run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use throng_base::units::show_duration;
use throng_lab::ceiling::{self, CeilingOptions, Traffic};
use throng_load::scenario::{Action, Scenario, Step};
use throng_report::render::{bytes, micros, rate};
use throng_report::runfile::Ceiling;

use super::plan::RunPlan;
use crate::interrupt::{By, Interrupt, LOOK_EVERY};

/// What came of a calibration.
pub(super) enum CalibrationResult {
    /// It was measured.
    Measured(Ceiling),
    /// It could not be, for this reason; the run goes on without.
    Unknown(String),
    /// Somebody wants no run any more.
    Interrupted(By),
}

impl CalibrationResult {
    /// Returns what is to be said of `ceiling`, which took about `length`. Without any rate, the run
    /// cannot be held against it.
    fn of(ceiling: Ceiling, length: Duration) -> Self {
        if ceiling.connects_per_s.or(ceiling.messages_per_s).is_some() {
            return Self::Measured(ceiling);
        }
        let length = show_duration(length);
        Self::Unknown(format!(
            "{length} told nothing, as other programs keep the CPUs busy; a longer --calibrate may"
        ))
    }
}

/// Measures for about `length` what users of the plan's scenario do, or until somebody asks for the end.
pub(super) fn calibrate(
    plan: &RunPlan,
    length: Duration,
    interrupt: &Interrupt,
) -> CalibrationResult {
    let stop = Arc::new(AtomicBool::new(false));
    let options = options(plan, length, Arc::clone(&stop));
    let measuring = thread::spawn(move || ceiling::measure(&options));
    while !measuring.is_finished() {
        if interrupt.asked().is_some() {
            stop.store(true, Ordering::Relaxed);
        }
        thread::sleep(LOOK_EVERY);
    }
    let measured = measuring.join();
    if let Some(by) = interrupt.asked() {
        return CalibrationResult::Interrupted(by);
    }
    match measured {
        Ok(Ok(found)) => CalibrationResult::of(found.ceiling, length),
        Ok(Err(error)) => CalibrationResult::Unknown(error.to_string()),
        Err(_) => CalibrationResult::Unknown("the calibration itself failed".to_owned()),
    }
}

fn options(plan: &RunPlan, length: Duration, stop: Arc<AtomicBool>) -> CeilingOptions {
    CeilingOptions {
        length,
        protocol: plan.load.program().protocol(),
        traffic: plan.talk,
        cores: Some(plan.load.capacity.cores),
        // Both ends of the calibration have the fds that this process has, and little else is open in them.
        users_most: plan.load.capacity.fds() / 2,
        target_is_remote: !plan.header.target_is_here,
        stop,
        ..CeilingOptions::default()
    }
}

/// `this machine: 21k/s connects, 95k/s messages at most, timers late by 120 µs, 230 B a user`.
pub(super) fn words(ceiling: &Ceiling) -> String {
    let rates = [(ceiling.connects_per_s, "connects"), (ceiling.messages_per_s, "messages")];
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
        parts.push(format!("{} a user", bytes(each)));
    }
    match parts.is_empty() {
        true => "this machine: nothing could be measured".to_owned(),
        false => format!("this machine: {}", parts.join(", ")),
    }
}

/// What the users of `scenario` say.
pub(super) fn talk(scenario: &Scenario) -> Traffic {
    let all = scenario.classes.iter().map(|class| of_steps(&class.steps));
    all.fold(Traffic::Silent, Ord::max)
}

fn of_steps(steps: &[Step]) -> Traffic {
    let of_step = |step: &Step| match &step.action {
        Action::Expect { .. } | Action::Await { .. } | Action::Push { .. } => Traffic::Answered,
        Action::Send(_) => Traffic::Sent,
        Action::Every { steps, .. } | Action::Repeat { steps, .. } => of_steps(steps),
        _ => Traffic::Silent,
    };
    steps.iter().map(of_step).fold(Traffic::Silent, Ord::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_talk(user: &str, expected: Traffic) {
        let source =
            format!("target: tcp://127.0.0.1:1\nload: [{{ramp: {{to: 1, over: 1s}}}}]\n{user}\n");
        assert_eq!(talk(&Scenario::parse(&source, "test").unwrap()), expected, "{user}");
    }

    #[test]
    fn only_what_users_do_is_measured() {
        check_talk("user: [connect, {wait: 1s}, close]", Traffic::Silent);
        check_talk("user: [connect, {send: a}, close]", Traffic::Sent);
        check_talk("user: [connect, {send: a}, {expect: b}, close]", Traffic::Answered);
        let nested = "user: [connect, {repeat: {times: 2, do: [{send: a}, {expect: b}]}}, stay]";
        check_talk(nested, Traffic::Answered);
        let classes = "users: {one: {user: [connect, stay]}, two: {user: [connect, {send: a}]}}";
        check_talk(classes, Traffic::Sent);
    }

    #[test]
    fn a_ceiling_without_a_rate_is_not_known() {
        let of = |ceiling| match CalibrationResult::of(ceiling, Duration::from_secs(1)) {
            CalibrationResult::Measured(ceiling) => Ok(ceiling),
            CalibrationResult::Unknown(why) => Err(why),
            CalibrationResult::Interrupted(_) => panic!("nobody asked for the end"),
        };
        let why = "1s told nothing, as other programs keep the CPUs busy; a longer --calibrate may";
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
    fn only_what_was_measured_is_said() {
        let mut ceiling = Ceiling { connects_per_s: Some(21_400.0), ..Default::default() };
        assert_eq!(words(&ceiling), "this machine: 21.4k/s connects at most");
        ceiling.messages_per_s = Some(95_000.0);
        ceiling.timer_error_us_p99 = Some(120);
        ceiling.bytes_per_user = Some(231.0);
        let all = "this machine: 21.4k/s connects, 95k/s messages at most, timers late by 120 µs (p99), 231 B a user";
        assert_eq!(words(&ceiling), all);
        assert_eq!(words(&Ceiling::default()), "this machine: nothing could be measured");
    }
}
