//! What a slow server does meanwhile.

use throng_measure::{Endpoint, ProcessMetric};
use throng_report::render::micros;

use super::{LateAnswers, SlowAnswers};
use crate::cpus::{CpuUse, INTERVALS_MIN, mean, whole_percent};
use crate::run_view::{Peak, RunView};

/// The CPU time that the server used, and that was idle.
pub(super) struct ServerUse(Option<CpuUse>);

impl ServerUse {
    pub(super) fn of(run: &RunView<'_>) -> Self {
        Self(mean(&CpuUse::of(run, Endpoint::Server)))
    }

    /// Reports whether the server's CPUs and queues were read. Its queues alone do not distinguish
    /// a server that computes from one that waits.
    fn is_seen(&self, run: &RunView<'_>) -> bool {
        run.has_facts(Endpoint::Server) && self.0.is_some()
    }

    pub(super) fn describe(&self, run: &RunView<'_>) -> String {
        match self.0.map(|used| (used, used.server)) {
            Some((used, Some(server))) => format!(
                "while the server used {:.2} of the {:.0} CPUs that it may use",
                server.taken,
                server.allowed.min(used.cpus)
            ),
            Some((used, None)) => {
                format!("while {} of the CPUs were idle", whole_percent(1.0 - used.taken_share()))
            }
            None if run.has_facts(Endpoint::Server) => "while its CPU use is unknown".to_owned(),
            None => "while its CPU use and queues are unknown".to_owned(),
        }
    }
}

/// What the server does that is slow.
pub(super) struct Cause {
    /// The end of a sentence about how long it computed without a pause, or nothing.
    pub(super) bursts: String,
    pub(super) why: String,
    pub(super) remedy: &'static str,
    pub(super) confidence: f64,
    pub(super) evidence: Option<Peak>,
}

impl Cause {
    pub(super) fn of(run: &RunView<'_>, late: &LateAnswers<'_>, used: &ServerUse) -> Self {
        let burst_ms = burst_ms(run, late.slow.as_ref());
        let bursts = burst_ms.map_or_else(String::new, |ms| {
            format!(", and computed for up to {} at a time", micros(ms * 1000))
        });
        let in_kernel = waits_in_the_kernel(run);
        let (why, remedy) = match (burst_ms, &in_kernel) {
            (Some(_), _) => LONG_TASK,
            (None, Some((waits, _))) => (waits.as_str(), IN_KERNEL_REMEDY),
            (None, None) if used.is_seen(run) => INSIDE,
            (None, None) => UNSEEN,
        };
        let is_known = burst_ms.is_some() || in_kernel.is_some() || used.is_seen(run);
        Self {
            bursts,
            why: why.to_owned(),
            remedy,
            confidence: if is_known { CONFIDENCE } else { CONFIDENCE_UNSEEN },
            evidence: in_kernel.map(|(_, peak)| peak),
        }
    }
}

/// Returns a sentence about a server that was often found waiting in the kernel, and its evidence.
fn waits_in_the_kernel(run: &RunView<'_>) -> Option<(String, Peak)> {
    let gauge = ProcessMetric::UNINTERRUPTIBLE.server;
    let looks = run.samples().iter().filter_map(|now| run.value(Endpoint::Server, now, gauge));
    let looks: Vec<_> = looks.collect();
    let waiting = looks.iter().filter(|waiting| **waiting > 0).count();
    if waiting < INTERVALS_MIN || waiting * IN_KERNEL_ONE_IN < looks.len() {
        return None;
    }
    let sentence = format!(
        "It waited in the kernel for a disk or a network file system (state D) in {waiting} of {} \
         looks.",
        looks.len()
    );
    Some((sentence, run.peak(Endpoint::Server, gauge)?))
}

/// Returns the longest time for which the server computed without a pause, if that is a large part
/// of the slow answers' time.
fn burst_ms(run: &RunView<'_>, slow: Option<&SlowAnswers>) -> Option<u64> {
    let peak = run.peak(Endpoint::Server, ProcessMetric::BUSY_MS_MOST.server)?;
    let ms = u64::try_from(peak.value).ok()?;
    (ms >= BURST_MIN_MS && ms * 1000 * BURST_PARTS >= slow?.worst_us).then_some(ms)
}

/// What a server does that is slow, and what to do about it.
type Why = (&'static str, &'static str);

const LONG_TASK: Why = (
    "A long task delays all users of its thread.",
    "profile what it computes at a time (perf top, or the profiler of its language), and move it \
     to another thread or split it into pieces",
);
const INSIDE: Why = (
    "No queue overflowed and hardly any segment was sent again, so the server waits inside: for a \
     lock, a database or a timer, or requests wait for one another.",
    "find where the server waits (its own trace, strace -c -f, perf trace), not what it computes",
);
const UNSEEN: Why = (
    "Hardly any segment was sent again, so the time passes on its machine: it waits for CPUs, a \
     queue, or something else.",
    "find which with throng doctor --watch --listen ADDR:PORT on its machine and throng run \
     --server-facts HOST:PORT here",
);
const IN_KERNEL_REMEDY: &str = "find the file that it writes or reads for each answer (strace -f \
                                -T -e trace=file,fsync,fdatasync, iostat -x 1), and do that less \
                                often, together for several answers, or in another thread";

/// The part of the looks, one in so many, in which a server waits in the kernel that is slow by it.
const IN_KERNEL_ONE_IN: usize = 3;

/// The confidence when the server's CPUs and queues were read, and when only its answers are known.
const CONFIDENCE: f64 = 0.7;
const CONFIDENCE_UNSEEN: f64 = 0.4;

/// The shortest time of computing that delays users, and the number of times that it must fit at
/// most into the slowest answers.
const BURST_MIN_MS: u64 = 100;
const BURST_PARTS: u64 = 2;
