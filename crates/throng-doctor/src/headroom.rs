//! How much more would have fitted: what is left of the resource that was nearest to its end.

use throng_report::render::count;

use crate::case::Case;
use crate::cpus::{CpuUse, ProcessCpus, whole_percent};
use crate::kernels::{Kernel, machines};

/// What was left of the scarcest resource.
#[derive(Clone, Debug, PartialEq)]
pub struct Headroom {
    /// From 0, nothing, to 1.
    pub share_free: f64,
    /// Which resource it is, and how far it was used.
    pub of: String,
}

/// The least of what was left of each: none where nothing is known.
pub fn headroom(case: &Case<'_>) -> Option<Headroom> {
    let machines = machines(case).into_iter().filter_map(|machine| cpus(case, &machine));
    let used = machines.chain(ceiling(case)).chain(places(case));
    let worst = used.max_by(|one, other| one.0.total_cmp(&other.0));
    worst.map(|(used, of)| Headroom { share_free: (1.0 - used).max(0.0), of })
}

/// The share of a machine's CPUs that was not free in the busiest interval.
///
/// What others took counts only where the run had to wait: who takes no more than what is idle gives way to more load.
fn cpus(case: &Case<'_>, machine: &Kernel) -> Option<(f64, String)> {
    let uses = CpuUse::of(case, machine.end);
    let taken = |used: &CpuUse| {
        let waits =
            |process: ProcessCpus| process.most_delayed.is_none_or(|delayed| delayed > DELAYED_MIN);
        let felt = [used.server, used.client].into_iter().flatten().any(waits);
        let given_way = if felt { 0.0 } else { used.strangers(case).unwrap_or(0.0) };
        (used.taken_share() - given_way / used.cpus).max(0.0)
    };
    let (most, busy) = uses
        .iter()
        .map(|used| (taken(used), used.taken_share()))
        .max_by(|one, other| one.0.total_cmp(&other.0))?;
    let whose = machine.whose;
    let of = if busy - most < OTHERS_MIN {
        format!("the CPUs of {whose} were busy for {} at most", whole_percent(most))
    } else {
        format!(
            "the run took {} of the CPUs of {whose} at most, and others gave way",
            whole_percent(most)
        )
    };
    Some((most, of))
}

/// The share of what the generator was measured to do at most: connects, messages and pushes take the same CPUs, and add up.
fn ceiling(case: &Case<'_>) -> Option<(f64, String)> {
    let share = case.summary.generator.ceiling_share?;
    let of =
        format!("the busiest second took {} of what the generator can do", whole_percent(share));
    Some((share, of))
}

/// The share of the connections that the generator has fds and ports for.
fn places(case: &Case<'_>) -> Option<(f64, String)> {
    let can = case.header.capacity.filter(|can| *can > 0)?;
    let most = case.summary.users.connected_most;
    let of = format!(
        "{} of the {} connections that fds and ports allow",
        count(most as f64),
        count(can as f64)
    );
    Some((most as f64 / can as f64, of))
}

/// What others take is worth a word from this share of the CPUs on.
const OTHERS_MIN: f64 = 0.05;

/// Threads that wait for a CPU for less than this share of the time have as much of them as they want.
const DELAYED_MIN: f64 = 0.10;

#[cfg(test)]
mod tests {
    use throng_report::runfile::Ceiling;

    use super::*;
    use crate::rules::fixture::Run;

    /// Of two CPUs the generator takes 0.05 and the server 0.2; others have the rest.
    fn beside_others(delayed: i64) -> Headroom {
        let run = Run::quiet()
            .growing("process.server.cpu_us", 0, 200_000, 0)
            .with("process.server.most_delayed_thread_permille", 10)
            .with("process.client.most_delayed_thread_permille", delayed)
            .changed(|interval, second| {
                let machine = interval.machine.as_mut().unwrap();
                (machine.cpu_busy_us, machine.cpu_idle_us) = (2_000_000 * second, 0);
            });
        let (history, summary) = run.whole();
        headroom(&Case::new(&history, &summary)).unwrap()
    }

    #[test]
    fn connects_and_messages_share_what_the_generator_can_do() {
        let mut run = Run::quiet();
        run.header.ceiling = Some(Ceiling {
            connects_per_s: Some(1_000.0),
            messages_per_s: Some(5_000.0),
            ..Ceiling::default()
        });
        let (history, summary) = run.whole();
        let found = headroom(&Case::new(&history, &summary)).unwrap();
        // A fifth of either in the same second.
        assert!((found.share_free - 0.6).abs() < 1e-6, "{found:?}");
        assert_eq!(found.of, "the busiest second took 40 % of what the generator can do");
    }

    #[test]
    fn what_others_take_counts_where_the_run_waits_for_it() {
        assert_eq!(beside_others(300).share_free, 0.0);
        let free = beside_others(20);
        assert!((free.share_free - 0.875).abs() < 1e-9, "{free:?}");
        assert_eq!(
            free.of,
            "the run took 12 % of the CPUs of this machine at most, and others gave way"
        );
    }
}
