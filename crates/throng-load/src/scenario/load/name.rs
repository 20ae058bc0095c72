//! How phases are called in reports and in the plan.

use throng_base::units::{brief_count, show_count, show_duration};

use super::phase::{Curve, Phase};

/// Returns the name of a phase in reports.
pub(crate) fn phase_name(phase: &Phase) -> String {
    match phase {
        Phase::Ramp { to, over, curve } => {
            let (form, to) = (form(*curve), users(*to));
            format!("{form}ramp to {to} over {}", show_duration(*over))
        }
        Phase::Step { to: 1, span } => format!("1 user for {}", show_duration(*span)),
        Phase::Step { to, span } => format!("{} users for {}", users(*to), show_duration(*span)),
        Phase::Spike { to, span, .. } => {
            format!("spike to {} for {}", users(*to), show_duration(*span))
        }
        Phase::Hold { span, until_done } => {
            let most = if *until_done { " at most" } else { "" };
            format!("hold for {}{most}", show_duration(*span))
        }
        Phase::Arrivals { from, to, .. } if from == to => {
            format!("arrivals {}/s", brief_count(*from))
        }
        Phase::Arrivals { from, to, curve, .. } => {
            let form = form(*curve);
            format!("{form}arrivals {}/s to {}/s", brief_count(*from), brief_count(*to))
        }
        Phase::Recorded { moments_ns, .. } => {
            format!("{} arrivals from a file", brief_count(moments_ns.len() as f64))
        }
    }
}

/// Returns the names of phases, with each part that is repeated written once: `3 x (ramp to 100
/// over 1m, hold for 1m)`. Many different ones are cut.
pub(crate) fn outline(phases: &[Phase]) -> String {
    let names: Vec<String> = phases.iter().map(phase_name).collect();
    let (mut parts, mut at) = (Vec::new(), 0);
    while at < names.len() {
        let (period, times) = longest_repeat(&names[at..]);
        let once = names[at..at + period].join(", ");
        parts.push(if times > 1 { format!("{times} x ({once})") } else { once });
        at += period * times;
    }
    if parts.len() <= PARTS_MAX {
        return parts.join(", ");
    }
    let begin = parts[..PARTS_MAX - 2].join(", ");
    let last = &parts[parts.len() - 1];
    format!("{begin}, … {} more …, {last}", parts.len() - PARTS_MAX + 1)
}

/// Returns the length of the beginning that is repeated most, and how often it stands there.
fn longest_repeat(names: &[String]) -> (usize, usize) {
    let times_of = |period: usize| {
        let first = &names[..period];
        names.chunks_exact(period).take_while(|part| *part == first).count()
    };
    // A period of more parts than are shown is not shorter to read.
    let periods = 1..=(names.len() / 2).min(PARTS_MAX);
    let repeats = periods.map(|period| (period, times_of(period))).filter(|(_, times)| *times > 1);
    repeats.max_by_key(|(period, times)| (period * times, usize::MAX - period)).unwrap_or((1, 1))
}

fn users(number: u32) -> String {
    show_count(u64::from(number))
}

fn form(curve: Curve) -> &'static str {
    match curve {
        Curve::Linear => "",
        Curve::Exponential => "exponential ",
    }
}

/// Maximum number of parts that are shown.
const PARTS_MAX: usize = 12;
