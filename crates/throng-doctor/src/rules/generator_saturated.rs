//! The generator itself was late: what it measured is its own lateness.

use throng_report::render::micros;
use throng_report::validity::{LAG_DEGRADED_US, LAG_INVALID_US};
use throng_report::{Evidence, Finding, Severity, Side};

use super::Rule;
use crate::case::Case;

pub(super) const RULE: Rule = Rule { id: "generator_saturated", explains: &[], find };

/// Lateness is of steps that depended on nobody else, so it is the generator's alone.
fn find(case: &Case<'_>) -> Option<Finding> {
    let late = case.summary.generator.lag_us.p99;
    if late <= LAG_DEGRADED_US {
        return None;
    }
    let moments = case.moments();
    let first = moments.iter().find(|moment| moment.lag.p99_us > LAG_DEGRADED_US)?;
    let severity = if late > LAG_INVALID_US { Severity::Stopped } else { Severity::Slowed };
    let mut found = Finding::new(
        RULE.id,
        Side::Client,
        format!(
            "The generator was late by {} (p99). It could not do what it was told when it was told, so the numbers describe it \
             and not the target.",
            micros(late)
        ),
    )
    .with_severity(severity);
    found.evidence.push(Evidence {
        counter: "load.lag_us.p99".to_owned(),
        from: moments.iter().find(|moment| moment.lag.count > 0)?.lag.p99_us as f64,
        to: first.lag.p99_us as f64,
        at_ms: first.interval.at_ms,
    });
    Some(found.remedied_by(
        "ask for less, give it more CPUs (--cores), or move it to a machine of its own",
    ))
}

#[cfg(test)]
mod tests {
    use super::super::fixture::Run;
    use super::*;

    #[test]
    fn a_generator_that_is_late_is_told() {
        let late = |us| {
            Run::quiet()
                .loaded(move |load, second| load.lag.record_n(us, if second > 5 { 900 } else { 0 }))
        };
        let found = late(250_000).speaks(&RULE);
        assert_eq!((found.severity, found.evidence[0].at_ms), (Severity::Stopped, 6_000));
        assert_eq!(late(30_000).speaks(&RULE).severity, Severity::Slowed);
    }

    #[test]
    fn a_generator_on_time_is_not() {
        Run::quiet().is_silent(&RULE);
    }
}
