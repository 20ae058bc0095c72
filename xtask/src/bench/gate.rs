//! `--gate`: throng's targets against this run's ratios.

use super::generator;
use super::peer::{BARE, THRONG};
use super::result::Report;

/// What the gate has to say.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Verdict {
    /// Sentences, one for each target that was missed or could not be checked.
    pub(super) misses: Vec<String>,
    /// Targets that no program can meet here, because the bare loop does not.
    pub(super) notes: Vec<String>,
}

/// Compares each of throng's rows, and its generator, with the targets.
pub(super) fn judge(report: &Report) -> Verdict {
    let rows = report.rows();
    let mut verdict = Verdict::default();
    if !rows.iter().any(|row| row.peer == THRONG) {
        verdict.misses.push("throng was not measured".to_string());
    }
    for row in rows.iter().filter(|row| row.peer == THRONG) {
        let workload = row.workload.name();
        let bare = rows.iter().find(|bare| bare.peer == BARE && bare.workload == row.workload);
        let bare_to_ranch = bare.and_then(|bare| bare.to_ranch);
        if let Some(bare) = bare_to_ranch.filter(|&ratio| ratio > TO_RANCH_MOST) {
            verdict.notes.push(format!(
                "{workload}: the bare loop itself is at {bare:.2}x Ranch, so {TO_RANCH_MOST}x is \
                 out of reach; throng is at {:.2}x",
                row.to_ranch.unwrap_or(f64::NAN)
            ));
        } else {
            verdict.check(&format!("{workload}: server CPU"), row.to_ranch, TO_RANCH_MOST, "Ranch");
        }
        verdict.check(&format!("{workload}: server CPU"), row.to_bare, TO_BARE_MOST, "bare");
    }
    let generator = generator::ratio(&report.generators);
    verdict.check("generator: CPU per connection", generator, TO_BARE_MOST, "the bare client");
    verdict
}

impl Verdict {
    fn check(&mut self, what: &str, ratio: Option<f64>, most: f64, than: &str) {
        match ratio {
            None => self.misses.push(format!("{what}: not measured beside {than}")),
            Some(ratio) if ratio > most => {
                self.misses
                    .push(format!("{what} is {ratio:.3}x {than}, at most {most}x is the target"));
            }
            Some(_) => {}
        }
    }
}

const TO_BARE_MOST: f64 = 1.15;
/// Against Ranch with its defaults.
const TO_RANCH_MOST: f64 = 0.35;

#[cfg(test)]
mod tests {
    use super::super::peer::RANCH_PLAIN;
    use super::super::result::tests::{report, sample};
    use super::*;

    fn judged(bare_us: f64, throng_us: f64, generator_us: f64) -> Verdict {
        let mut report = report(vec![
            sample(BARE, 0, bare_us),
            sample(RANCH_PLAIN, 0, 40.0),
            sample(THRONG, 0, throng_us),
        ]);
        report.generators = vec![
            generator::tests::sample(generator::BARE_CLIENT, 10.0),
            generator::tests::sample(generator::THRONG_RUN, generator_us),
        ];
        judge(&report)
    }

    #[test]
    fn targets_that_are_met_say_nothing() {
        assert_eq!(judged(10.0, 11.0, 11.0), Verdict::default());
    }

    #[test]
    fn each_target_that_is_missed_is_named() {
        let misses = judged(10.0, 20.0, 12.0).misses;
        assert_eq!(misses.len(), 3, "{misses:?}");
        assert!(misses[0].contains("0.500x Ranch"));
        assert!(misses[1].contains("2.000x bare"));
        assert!(misses[2].contains("generator"));
    }

    #[test]
    fn what_the_bare_loop_cannot_do_is_noted_and_not_missed() {
        let verdict = judged(20.0, 21.0, 10.0);
        assert_eq!(verdict.misses, Vec::<String>::new());
        assert!(verdict.notes[0].contains("0.50x Ranch"), "{:?}", verdict.notes);
    }

    #[test]
    fn what_was_not_measured_does_not_pass() {
        assert_eq!(judge(&report(vec![])).misses.len(), 2);
        let alone = judge(&report(vec![sample(THRONG, 0, 1.0)])).misses;
        assert_eq!(alone.len(), 3, "{alone:?}");
    }
}
