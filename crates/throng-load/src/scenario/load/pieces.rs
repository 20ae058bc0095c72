//! The load cut where a class begins another phase: what reports call a phase.

use std::time::Duration;

use super::phase::Phase;
use super::{ScenarioLoad, phase_name};

/// A part of the load in which no class begins another phase. In a load of all users, it is a
/// phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadPiece {
    /// End of the piece, from the beginning of the run.
    pub end: Duration,
    /// Its name in reports.
    pub name: String,
}

/// Returns the pieces of a load, in order.
pub(super) fn of(load: &ScenarioLoad) -> Vec<LoadPiece> {
    match load {
        ScenarioLoad::Shared(phases) => ends(phases)
            .zip(phases)
            .map(|(end, phase)| LoadPiece { end, name: phase_name(phase) })
            .collect(),
        ScenarioLoad::ByClass(classes) => {
            let mut cuts: Vec<_> = classes.iter().flat_map(|class| ends(&class.phases)).collect();
            cuts.sort_unstable();
            cuts.dedup();
            let begins = std::iter::once(Duration::ZERO).chain(cuts.iter().copied());
            let name_at = |begin: Duration| {
                let at = classes.iter().filter_map(|class| {
                    let at = ends(&class.phases).position(|end| begin < end)?;
                    Some(format!("{}: {}", class.class, phase_name(&class.phases[at])))
                });
                at.collect::<Vec<_>>().join("; ")
            };
            let pieces = cuts.iter().zip(begins);
            pieces.map(|(&end, begin)| LoadPiece { end, name: name_at(begin) }).collect()
        }
    }
}

/// Returns the ends of phases that follow one another.
fn ends(phases: &[Phase]) -> impl Iterator<Item = Duration> {
    phases.iter().scan(Duration::ZERO, |end, phase| {
        *end = end.saturating_add(phase.length());
        Some(*end)
    })
}

#[cfg(test)]
mod tests {
    use crate::scenario::Scenario;

    #[test]
    fn a_phase_of_a_report_says_what_each_class_does() {
        let text = "target: tcp://h:1\nusers:\n  \
                    chat: {load: [ramp: {to: 5, over: 2s}, hold: {for: 8s}], user: [connect]}\n  \
                    api: {load: [arrivals: {rate: 9/s, for: 4s}], user: [connect]}\n";
        let pieces = Scenario::parse(text, "test").unwrap().load.pieces();
        let shown: Vec<_> =
            pieces.iter().map(|piece| (piece.end.as_secs(), piece.name.as_str())).collect();
        let expected = [
            (2, "chat: ramp to 5 over 2s; api: arrivals 9/s"),
            (4, "chat: hold for 8s; api: arrivals 9/s"),
            (10, "chat: hold for 8s"),
        ];
        assert_eq!(shown, expected);
    }
}
