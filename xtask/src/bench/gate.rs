//! The gate (`--gate`): throng's targets against the ratios of this run.

use super::generator;
use super::peer::{BARE, THRONG};
use super::result::{Report, Row, median_of_some};
use super::workload::Workload;

/// The result of the gate.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Verdict {
    /// A sentence for each target that was missed or could not be checked.
    pub(super) misses: Vec<String>,
    /// A sentence for each target that no program can meet here, because the bare loop does not
    /// meet it.
    pub(super) notes: Vec<String>,
}

/// Compares each of throng's rows, and its generator, with the targets.
pub(super) fn judge(report: &Report) -> Verdict {
    let rows = report.rows();
    let mut verdict = Verdict::default();
    for &workload in &report.workloads {
        let row = |peer| rows.iter().find(|row| row.workload == workload && row.peer == peer);
        match row(THRONG) {
            None => verdict.misses.push(format!("{}: throng was not measured", workload.name())),
            Some(throng) if workload == Workload::WsBroadcast => verdict.check_broadcast(throng),
            Some(throng) if workload.is_websocket() => verdict.check_against_bare(throng),
            Some(throng) => {
                verdict.check_against_ranch(throng, row(BARE));
                verdict.check_against_bare(throng);
            }
        }
    }
    if report.workloads.iter().any(|workload| !workload.is_websocket()) {
        let generator = generator::ratio(&report.generators);
        verdict.check("generator: CPU per connection", generator, TO_BARE_MAX, "the bare client");
    }
    verdict.notes.extend(user_note(report));
    verdict
}

/// Returns a note on the cost of a WebSocket user of the generator. It is not a target, because the
/// targets are for more users than this run has.
fn user_note(report: &Report) -> Option<String> {
    let of = || report.users.iter().filter(|s| s.generator == generator::THRONG_RUN);
    let memory = median_of_some(of().map(|s| s.memory_bytes))?;
    let cpu = generator::users::ratio(&report.users, generator::THRONG_RUN);
    Some(format!(
        "generator: a WebSocket user takes {memory:.0} B (target: {USER_BYTES_MAX} B at 100,000 \
         users) and {:.2}x the bare client's CPU",
        cpu.unwrap_or(f64::NAN)
    ))
}

impl Verdict {
    fn check_against_bare(&mut self, row: &Row) {
        let what = format!("{}: server CPU", row.workload.name());
        self.check(&what, row.to_bare, TO_BARE_MAX, "bare");
    }

    fn check_against_ranch(&mut self, row: &Row, bare: Option<&Row>) {
        let workload = row.workload.name();
        let bare_to_ranch = bare.and_then(|bare| bare.to_ranch);
        if let Some(bare) = bare_to_ranch.filter(|&ratio| ratio > TO_RANCH_MAX) {
            self.notes.push(format!(
                "{workload}: the bare loop itself is at {bare:.2}x Ranch, so the target of \
                 {TO_RANCH_MAX}x is not reachable; throng is at {:.2}x",
                row.to_ranch.unwrap_or(f64::NAN)
            ));
        } else {
            self.check(&format!("{workload}: server CPU"), row.to_ranch, TO_RANCH_MAX, "Ranch");
        }
    }

    fn check_broadcast(&mut self, row: &Row) {
        let workload = row.workload.name();
        match row.rate_to_bare {
            None => self.misses.push(format!("{workload}: no sample of bare to compare with")),
            Some(ratio) if ratio < BROADCAST_TO_BARE_MIN => self.misses.push(format!(
                "{workload}: the rate is {ratio:.3}x bare; the target is at least \
                 {BROADCAST_TO_BARE_MIN}x"
            )),
            Some(_) => {}
        }
    }

    fn check(&mut self, what: &str, ratio: Option<f64>, max: f64, than: &str) {
        match ratio {
            None => self.misses.push(format!("{what}: no sample of {than} to compare with")),
            Some(ratio) if ratio > max => {
                self.misses
                    .push(format!("{what} is {ratio:.3}x {than}; the target is at most {max}x"));
            }
            Some(_) => {}
        }
    }
}

const TO_BARE_MAX: f64 = 1.15;
/// The highest ratio to Ranch with its defaults.
const TO_RANCH_MAX: f64 = 0.35;
/// The lowest ratio of messages a second in a broadcast.
const BROADCAST_TO_BARE_MIN: f64 = 0.95;
/// The most bytes of the generator for a WebSocket user.
const USER_BYTES_MAX: u32 = 300;

#[cfg(test)]
mod tests {
    use super::super::peer::RANCH_PLAIN;
    use super::super::result::tests::{report, sample};
    use super::*;

    fn verdict_for(bare_us: f64, throng_us: f64, generator_us: f64) -> Verdict {
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
    fn targets_that_are_met_print_nothing() {
        assert_eq!(verdict_for(10.0, 11.0, 11.0), Verdict::default());
    }

    #[test]
    fn each_target_that_is_missed_is_named() {
        let misses = verdict_for(10.0, 20.0, 12.0).misses;
        assert_eq!(misses.len(), 3, "{misses:?}");
        assert!(misses[0].contains("0.500x Ranch"));
        assert!(misses[1].contains("2.000x bare"));
        assert!(misses[2].contains("generator"));
    }

    #[test]
    fn a_target_beyond_the_bare_loop_is_noted_and_not_missed() {
        let verdict = verdict_for(20.0, 21.0, 10.0);
        assert_eq!(verdict.misses, Vec::<String>::new());
        assert!(verdict.notes[0].contains("0.50x Ranch"), "{:?}", verdict.notes);
    }

    #[test]
    fn a_broadcast_is_judged_by_its_rate_and_nothing_else() {
        let judged = |rate| {
            let mut bare = sample(BARE, 0, 5.0);
            let mut throng = sample(THRONG, 0, 50.0);
            (bare.workload, throng.workload) = (Workload::WsBroadcast, Workload::WsBroadcast);
            (bare.rate, throng.rate) = (100.0, rate);
            let mut report = report(vec![bare, throng]);
            report.workloads = vec![Workload::WsBroadcast];
            judge(&report)
        };
        assert_eq!(judged(96.0), Verdict::default());
        let misses = judged(90.0).misses;
        assert_eq!(misses.len(), 1, "{misses:?}");
        assert!(misses[0].contains("0.900x bare"), "{misses:?}");
    }

    #[test]
    fn opening_websockets_is_compared_with_bare_alone() {
        let mut samples = vec![sample(BARE, 0, 10.0), sample(THRONG, 0, 12.0)];
        samples.iter_mut().for_each(|sample| sample.workload = Workload::WsOpenSaturated);
        let mut report = report(samples);
        report.workloads = vec![Workload::WsOpenSaturated];
        report.users = vec![generator::users::tests::sample(generator::THRONG_RUN, 0, 9.0)];
        let verdict = judge(&report);
        assert_eq!(verdict.misses.len(), 1, "{verdict:?}");
        assert!(verdict.misses[0].contains("1.200x bare"), "{verdict:?}");
        assert!(verdict.notes[0].contains("takes 250 B"), "{verdict:?}");
    }

    #[test]
    fn a_row_that_was_not_measured_does_not_pass() {
        assert_eq!(judge(&report(vec![])).misses.len(), 2);
        let alone = judge(&report(vec![sample(THRONG, 0, 1.0)])).misses;
        assert_eq!(alone.len(), 3, "{alone:?}");
    }
}
