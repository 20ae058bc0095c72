//! Another peak for a load: all its levels change by the same factor.

use serde::{Deserialize, Serialize};

use crate::scenario::node::Node;
use crate::scenario::reader::Reader;

use super::phase::Phase;

/// The peak that a load gets in place of its own.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum LoadPeak {
    /// Closed model: the largest number of users.
    Users(u32),
    /// Open model: the highest rate of arrivals, per second.
    Arrivals(f64),
}

/// Returns the largest number of users of these phases; 0 in the open model.
pub fn peak_users(phases: &[Phase]) -> u32 {
    let users = phases.iter().map(|phase| match *phase {
        Phase::Ramp { to, .. } | Phase::Step { to, .. } => to,
        Phase::Spike { to, back, .. } => to.max(back),
        Phase::Hold { .. } | Phase::Arrivals { .. } | Phase::Recorded { .. } => 0,
    });
    users.max().unwrap_or(0)
}

/// Returns the highest rate of arrivals of these phases, per second; 0 in the closed model.
pub fn peak_arrivals(phases: &[Phase]) -> f64 {
    let rates = phases.iter().map(|phase| match *phase {
        Phase::Arrivals { from, to, .. } => from.max(to),
        _ => 0.0,
    });
    rates.fold(0.0, f64::max)
}

/// Gives the phases, which `node` has, another peak.
pub(super) fn set_peak(reader: &mut Reader<'_>, node: &Node, phases: &mut [Phase], peak: LoadPeak) {
    let (factor, missing) = match peak {
        LoadPeak::Users(users) => {
            (f64::from(users) / f64::from(peak_users(phases)), "users, but arrivals")
        }
        LoadPeak::Arrivals(rate) => (rate / peak_arrivals(phases), "arrivals by a rate, but users"),
    };
    let is_recorded = phases.iter().any(|phase| matches!(phase, Phase::Recorded { .. }));
    let label = match (is_recorded, factor.is_finite()) {
        (true, _) => "its arrivals come from a file".to_owned(),
        (false, false) => format!("it has no {missing}"),
        (false, true) => return phases.iter_mut().for_each(|phase| scale(phase, factor)),
    };
    reader.error(node.span.clone(), REFUSED, label);
}

fn scale(phase: &mut Phase, factor: f64) {
    let users = |count: &mut u32| *count = (f64::from(*count) * factor).round() as u32;
    match phase {
        Phase::Ramp { to, .. } | Phase::Step { to, .. } => users(to),
        Phase::Spike { to, back, .. } => {
            users(to);
            users(back);
        }
        Phase::Arrivals { from, to, most, .. } => {
            *from *= factor;
            *to *= factor;
            if let Some(most) = most {
                *most = ((*most as f64 * factor).round() as u64).max(1);
            }
        }
        Phase::Hold { .. } | Phase::Recorded { .. } => {}
    }
}

/// The mistake of a load whose peak cannot change.
pub(super) const REFUSED: &str = "this load cannot have another peak";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;

    fn with_peak(load: &str, peak: LoadPeak) -> Result<Vec<Phase>, String> {
        let text = format!("target: tcp://127.0.0.1:1\nload: {load}\nuser: [connect, close]\n");
        let scenario = Scenario::parse_with_peak(&text, "test", Some(peak));
        scenario
            .map(|scenario| scenario.load.shared().to_vec())
            .map_err(|mistakes| mistakes.to_string())
    }

    #[test]
    fn all_levels_keep_their_proportion() {
        let load =
            "[ramp: {to: 100, over: 1s}, spike: {to: 400, for: 1s}, ramp: {to: 10, over: 1s}]";
        let phases = with_peak(load, LoadPeak::Users(1000)).unwrap();
        assert_eq!(peak_users(&phases), 1000);
        assert!(matches!(phases[0], Phase::Ramp { to: 250, .. }), "{phases:?}");
        assert!(matches!(phases[2], Phase::Ramp { to: 25, .. }), "{phases:?}");
        let load = "[arrivals: {rate: {from: 10/s, to: 40/s}, for: 1s, most: 20}]";
        let phases = with_peak(load, LoadPeak::Arrivals(80.0)).unwrap();
        let Phase::Arrivals { from, to, most, .. } = phases[0] else { panic!("{phases:?}") };
        assert_eq!((from, to, most), (20.0, 80.0, Some(40)));
    }

    #[test]
    fn a_load_of_the_other_model_is_refused() {
        let wrong = with_peak("[ramp: {to: 100, over: 1s}]", LoadPeak::Arrivals(1.0)).unwrap_err();
        assert!(wrong.contains("it has no arrivals by a rate, but users"), "{wrong}");
        let load = "[arrivals: {rate: 1/s, for: 1s}]";
        let wrong = with_peak(load, LoadPeak::Users(1)).unwrap_err();
        assert!(wrong.contains("it has no users, but arrivals"), "{wrong}");
    }
}
