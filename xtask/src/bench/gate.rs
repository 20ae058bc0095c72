//! `--gate`: throng's targets against this run's ratios.

use super::generator;
use super::peer::THRONG;
use super::result::Report;

/// Sentences, one for each target that was missed or could not be checked; none when all is well.
pub(super) fn misses(report: &Report) -> Vec<String> {
    let rows: Vec<_> = report.rows().into_iter().filter(|row| row.peer == THRONG).collect();
    let mut misses = Vec::new();
    if rows.is_empty() {
        misses.push("throng was not measured".to_string());
    }
    for row in rows {
        let mut check = |ratio: Option<f64>, most: f64, than: &str| {
            let workload = row.workload.name();
            match ratio {
                None => misses.push(format!("{workload}: there is no {than} to compare with")),
                Some(ratio) if ratio > most => misses.push(format!(
                    "{workload}: server CPU {ratio:.3}x {than}, the target is at most {most}x"
                )),
                Some(_) => {}
            }
        };
        check(row.to_bare, TO_BARE_MOST, "bare");
        check(row.to_ranch, TO_RANCH_MOST, "Ranch");
    }
    match generator::ratio(&report.generators) {
        None => misses.push("the generator was not measured".into()),
        Some(ratio) if ratio > TO_BARE_MOST => misses.push(format!(
            "generator: CPU per connection {ratio:.3}x bare, the target is at most {TO_BARE_MOST}x"
        )),
        Some(_) => {}
    }
    misses
}

const TO_BARE_MOST: f64 = 1.15;
/// Against Ranch with its defaults.
const TO_RANCH_MOST: f64 = 0.35;

#[cfg(test)]
mod tests {
    use super::super::peer::{BARE, RANCH_PLAIN};
    use super::super::result::tests::{report, sample};
    use super::*;

    fn with_throng_at(server_us: f64, generator_us: f64) -> Vec<String> {
        let mut report = report(vec![
            sample(BARE, 0, 10.0),
            sample(RANCH_PLAIN, 0, 40.0),
            sample(THRONG, 0, server_us),
        ]);
        report.generators = vec![
            generator::tests::sample(generator::BARE_CLIENT, 10.0),
            generator::tests::sample(generator::THRONG_RUN, generator_us),
        ];
        misses(&report)
    }

    #[test]
    fn targets_that_are_met_say_nothing() {
        assert_eq!(with_throng_at(11.0, 11.0), Vec::<String>::new());
    }

    #[test]
    fn each_target_that_is_missed_is_named() {
        let misses = with_throng_at(20.0, 12.0);
        assert_eq!(misses.len(), 3, "{misses:?}");
        assert!(misses[0].contains("2.000x bare"));
        assert!(misses[1].contains("0.500x Ranch"));
        assert!(misses[2].contains("generator"));
    }

    #[test]
    fn what_was_not_measured_does_not_pass() {
        assert_eq!(misses(&report(vec![])).len(), 2);
        let alone = misses(&report(vec![sample(THRONG, 0, 1.0)]));
        assert!(alone[0].contains("no bare to compare with"), "{alone:?}");
    }
}
