//! Headroom of a run: the unused part of the resource that was nearest to its limit.

use throng_measure::Endpoint;
use throng_report::render::count;

use crate::cpus::{CpuUse, FULL_SHARE, whole_percent};
use crate::fleet_machines::busiest_machine;
use crate::kernels::{Kernel, machines};
use crate::run_view::RunView;

/// The unused part of the scarcest resource.
#[derive(Clone, Debug, PartialEq)]
pub struct Headroom {
    /// Free share, from 0 (nothing) to 1.
    pub share_free: f64,
    /// The resource, and how far it was used.
    pub of: String,
    /// True if it is CPU time.
    pub is_of_cpus: bool,
    /// True if none is left because other programs used it.
    pub is_others: bool,
}

/// The use of one resource.
struct Usage {
    share: f64,
    of: String,
    is_of_cpus: bool,
    is_others: bool,
}

/// Returns the headroom of the scarcest resource, or `None` if no resource is known.
pub fn headroom(run: &RunView<'_>) -> Option<Headroom> {
    let machines = machines(run).into_iter().filter_map(|machine| cpus(run, &machine));
    let used = machines.chain(ceiling(run)).chain(places(run));
    let Usage { share, of, is_of_cpus, is_others } =
        used.max_by(|a, b| a.share.total_cmp(&b.share))?;
    let share_free = (1.0 - share).max(0.0);
    Some(Headroom { share_free, of, is_of_cpus, is_others: is_others && share > FULL_SHARE })
}

/// Returns the share of a machine's CPUs that was not free in the busiest interval, whichever
/// program used them.
fn cpus(run: &RunView<'_>, machine: &Kernel) -> Option<Usage> {
    let uses = CpuUse::of(run, machine.endpoint);
    if let (Endpoint::Client, Some((name, share))) = (machine.endpoint, busiest_machine(run)) {
        let of = format!(
            "the CPUs of the machine {name} were busy for {} at most",
            whole_percent(share)
        );
        return Some(Usage { share, of, is_of_cpus: true, is_others: false });
    }
    let busiest = uses.iter().max_by(|a, b| a.full_share().total_cmp(&b.full_share()))?;
    let (busy, full, whose) = (busiest.taken_share(), busiest.full_share(), machine.whose);
    let others = busiest.strangers(run).unwrap_or(0.0) / busiest.cpus;
    let by_others = if others < OTHERS_MIN {
        String::new()
    } else {
        format!(", {} by other programs", whole_percent(others))
    };
    let of = if full > busy {
        format!("the CPUs that one side may use were busy for {} at most", whole_percent(full))
    } else {
        format!("the CPUs of {whose} were busy for {} at most{by_others}", whole_percent(busy))
    };
    let is_others = busy - others < OWN_SHARE_MOST;
    Some(Usage { share: full, of, is_of_cpus: true, is_others })
}

/// Returns the used share of the generator's measured maximum. Connects, messages and pushes use
/// the same CPUs, and add up.
///
/// If the share is well above 1, it is ignored: then the calibration did not measure the maximum.
fn ceiling(run: &RunView<'_>) -> Option<Usage> {
    let share = run.summary.generator.ceiling_share.filter(|share| *share <= CEILING_SHARE_MOST)?;
    let of =
        format!("the busiest second took {} of what the generator can do", whole_percent(share));
    Some(Usage { share, of, is_of_cpus: false, is_others: false })
}

/// Returns the used share of the connections that the generator has fds and ports for.
fn places(run: &RunView<'_>) -> Option<Usage> {
    let can = run.header.capacity.filter(|can| *can > 0)?;
    let most = run.summary.users.connected_most;
    let of = format!(
        "{} of the {} connections that fds and ports allow",
        count(most as f64),
        count(can as f64)
    );
    Some(Usage { share: most as f64 / can as f64, of, is_of_cpus: false, is_others: false })
}

/// The smallest share of other programs that is mentioned.
const OTHERS_MIN: f64 = 0.10;

/// The largest share of the CPUs with which a run is not what fills them.
const OWN_SHARE_MOST: f64 = 0.80;

/// The largest believable share: a second of a run may do a little more than those of the
/// calibration.
const CEILING_SHARE_MOST: f64 = 1.2;

#[cfg(test)]
mod tests {
    use throng_measure::runfile::Ceiling;

    use throng_measure::ProcessMetric;

    use super::*;
    use crate::rules::fixture::Run;

    /// A machine of two CPUs: the generator uses 0.05, the server 0.2, other programs the rest.
    fn beside_others(delayed: i64) -> Headroom {
        let run = Run::quiet()
            .growing(ProcessMetric::CPU_US.server, 0, 200_000, 0)
            .with(ProcessMetric::MOST_DELAYED_THREAD_PERMILLE.server, 10)
            .with(ProcessMetric::MOST_DELAYED_THREAD_PERMILLE.client, delayed)
            .changed(|interval, second| {
                let machine = interval.machine.as_mut().unwrap();
                (machine.cpu_busy_us, machine.cpu_idle_us) = (2_000_000 * second, 0);
            });
        let (history, summary) = run.whole();
        headroom(&RunView::new(&history, &summary)).unwrap()
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
        let found = headroom(&RunView::new(&history, &summary)).unwrap();
        // A fifth of either in the same second.
        assert!((found.share_free - 0.6).abs() < 1e-6, "{found:?}");
        assert_eq!(found.of, "the busiest second took 40 % of what the generator can do");
    }

    #[test]
    fn cpu_time_of_other_programs_is_no_headroom_and_is_named() {
        for delayed in [20, 300] {
            let none = beside_others(delayed);
            assert_eq!((none.share_free, none.is_others), (0.0, true));
            assert_eq!(
                none.of,
                "the CPUs of this machine were busy for 100 % at most, 88 % by other programs"
            );
        }
    }

    #[test]
    fn a_ceiling_that_was_far_exceeded_is_none() {
        let mut run = Run::quiet();
        let ceiling = |per_s| Ceiling { messages_per_s: Some(per_s), ..Ceiling::default() };
        let mut of = |per_s| {
            run.header.ceiling = Some(ceiling(per_s));
            let (history, summary) = run.whole();
            headroom(&RunView::new(&history, &summary)).unwrap().of
        };
        assert!(of(1_250.0).contains("80 % of what the generator can do"));
        assert!(of(500.0).starts_with("the CPUs of this machine"), "{}", of(500.0));
    }
}
