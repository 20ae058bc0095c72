//! Where the connections wait that the server does not serve, and whether its threads are idle.

use throng_measure::{Endpoint, Evidence, Metric};
use throng_report::render::percent;

use super::step::Step;
use crate::counted::counted;
use crate::cpus::CpuUse;
use crate::run_view::RunView;

/// The place where the other connections wait.
pub(super) enum Place {
    /// In the accept queue, as many.
    AcceptQueue(u64),
    /// In the server's program, which does not read them.
    Unread(u64),
    /// In the server's program, which has read what they sent.
    Read,
    /// It cannot be seen from here.
    Unknown,
}

impl Place {
    pub(super) fn of(full: &[Step]) -> Self {
        let last = |of: fn(&Step) -> Option<u64>| full.iter().rev().find_map(of).unwrap_or(0);
        // Where users give up together, a moment later there are none for a while.
        let stand = |of: fn(&Step) -> Option<u64>| {
            let known: Vec<u64> = full.iter().filter_map(of).collect();
            let some = known.iter().filter(|value| **value > 0).count();
            last(of) > 0 && some * 5 >= known.len() * 3
        };
        if full.iter().all(|step| step.queue.is_none()) {
            Self::Unknown
        } else if stand(|step| step.queue) {
            Self::AcceptQueue(last(|step| step.queue))
        } else if stand(|step| step.unread) {
            Self::Unread(last(|step| step.unread))
        } else if full.iter().all(|step| step.unread.is_none()) {
            Self::Unknown
        } else {
            Self::Read
        }
    }

    /// Returns a sentence about the place.
    pub(super) fn describe(&self, thread: Option<ThreadUse>) -> String {
        let idle = thread.filter(|thread| thread.wanted() < IDLE_MAX);
        let idle = idle.map_or(String::new(), |ThreadUse { ran, .. }| {
            format!(", though it is idle (its busiest thread: {} of a CPU)", percent(ran))
        });
        match self {
            Self::AcceptQueue(queue) => format!(
                "{} in its accept queue, which it does not empty{idle}.",
                counted(*queue, "connection waits", "connections wait")
            ),
            Self::Unread(unread) => format!(
                "It has accepted {} and reads nothing from {}{idle}.",
                counted(*unread, "connection more", "connections more"),
                if *unread == 1 { "it" } else { "them" }
            ),
            Self::Read => format!(
                "Its program has accepted the others and read what they sent: they wait inside \
                 it{idle}."
            ),
            Self::Unknown => {
                "Whether they wait in its accept queue or in its program shows on its \
                              machine: Recv-Q in `ss -ltn` and `ss -tn`."
                    .to_owned()
            }
        }
    }

    pub(super) fn confidence(&self) -> f64 {
        match self {
            Self::AcceptQueue(_) | Self::Unread(_) => 0.95,
            Self::Read | Self::Unknown => 0.7,
        }
    }

    pub(super) fn evidence(&self, full: &[Step]) -> Option<Evidence> {
        match self {
            Self::AcceptQueue(_) => queue_evidence(full),
            Self::Unread(unread) => Some(Evidence {
                counter: Metric::LISTENER_UNREAD.name().to_owned(),
                from: 0.0,
                to: *unread as f64,
                at_ms: full[0].at_ms,
            }),
            Self::Read | Self::Unknown => None,
        }
    }
}

/// Returns the evidence for the accept queues in these intervals.
pub(super) fn queue_evidence(steps: &[Step]) -> Option<Evidence> {
    let (first, last) = (steps.first()?, steps.last()?);
    Some(Evidence {
        counter: Metric::LISTENER_ACCEPT_QUEUE.name().to_owned(),
        from: first.queue? as f64,
        to: last.queue? as f64,
        at_ms: first.at_ms,
    })
}

/// The use of the CPUs by the server's threads while it was full: medians, in shares of its time.
#[derive(Clone, Copy)]
pub(super) struct ThreadUse {
    /// The share for which its busiest thread ran.
    ran: f64,
    /// The share for which its most delayed thread was ready to run and did not.
    waited: f64,
}

impl ThreadUse {
    pub(super) fn of(run: &RunView<'_>, full: &[Step]) -> Option<Self> {
        let from_ms = full.first()?.at_ms;
        let uses = CpuUse::of(run, Endpoint::Server).into_iter();
        let uses = uses.filter(|used| used.at_ms >= from_ms).filter_map(|used| used.server);
        let (mut ran, mut waited): (Vec<f64>, Vec<f64>) = uses
            .filter_map(|server| Some((server.busiest?, server.most_delayed.unwrap_or(0.0))))
            .unzip();
        ran.sort_by(f64::total_cmp);
        waited.sort_by(f64::total_cmp);
        let middle = ran.len() / 2;
        Some(Self { ran: *ran.get(middle)?, waited: *waited.get(middle)? })
    }

    /// Returns the share for which the server's program had something to do.
    pub(super) fn wanted(self) -> f64 {
        self.ran + self.waited
    }
}

/// The share for which the server's threads have something to do below which it is idle.
const IDLE_MAX: f64 = 0.5;
