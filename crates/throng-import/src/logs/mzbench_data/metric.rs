//! What a metric of MZBench is in a run file.

use super::super::counted_lines::{approximated, not_needed, not_supported, translated};
use crate::fidelity::Fidelity;

/// The counter of answered requests of the tcp_worker.
pub(super) const ANSWERED: &str = "request.ok";

/// What a metric counts or measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MetricUse<'m> {
    WorkersStarted,
    WorkersEnded,
    WorkersFailed,
    Answered,
    Failed,
    /// A datapoint of the latency of requests: `mean`, `95`.
    Latency(&'m str),
    /// Follows from a total.
    Rate,
    Unknown,
}

impl<'m> MetricUse<'m> {
    /// Returns what a metric is. `is_tcp` says that the worker is the tcp_worker.
    pub(super) fn of(metric: &'m str, is_tcp: bool) -> Self {
        let of_workers = metric.strip_prefix("workers.").and_then(|rest| rest.rsplit_once('.'));
        match (metric, of_workers) {
            (name, _) if name.ends_with(".rps") => Self::Rate,
            (_, Some((_, "started"))) => Self::WorkersStarted,
            (_, Some((_, "ended"))) => Self::WorkersEnded,
            (_, Some((_, "failed"))) => Self::WorkersFailed,
            (ANSWERED, _) => Self::Answered,
            ("request.error", _) => Self::Failed,
            (name, _) if is_tcp => match name.strip_prefix("latency.") {
                Some(datapoint) if DATAPOINTS.contains(&datapoint) => Self::Latency(datapoint),
                _ => Self::Unknown,
            },
            _ => Self::Unknown,
        }
    }

    /// Reports whether it is a total since the run began.
    pub(super) fn is_counter(self) -> bool {
        use MetricUse::{Answered, Failed, WorkersEnded, WorkersFailed, WorkersStarted};
        matches!(self, WorkersStarted | WorkersEnded | WorkersFailed | Answered | Failed)
    }

    /// Returns what the report calls it: one name for all pools and all datapoints.
    pub(super) fn kind(self, metric: &str) -> String {
        match self {
            Self::WorkersStarted => "workers.*.started".to_owned(),
            Self::WorkersEnded => "workers.*.ended".to_owned(),
            Self::WorkersFailed => "workers.*.failed".to_owned(),
            Self::Latency(_) => "latency".to_owned(),
            Self::Rate => "*.rps".to_owned(),
            Self::Answered | Self::Failed | Self::Unknown => metric.to_owned(),
        }
    }

    /// Returns what becomes of its values. `has_mean` says that the data have means of the latency.
    pub(super) fn fate(self, has_mean: bool) -> (Fidelity, String) {
        match self {
            Self::WorkersStarted | Self::WorkersFailed => translated(),
            Self::WorkersEnded => {
                approximated("a worker that was stopped counts as one that finished")
            }
            Self::Answered => approximated(
                "a counter of the tcp_worker: answered messages; the data have no connects",
            ),
            Self::Failed => approximated(
                "a counter of the tcp_worker: the error request_error, without its cause; such a \
                 message counts as sent, whether it was",
            ),
            Self::Latency(_) if has_mean => approximated(
                "a histogram of the tcp_worker, in milliseconds: the data have no number of its \
                 values, which is taken to be the growth of request.ok; percentiles are those of \
                 each interval, and of the whole run none is known",
            ),
            Self::Latency(_) => {
                not_supported("the data have no mean of it, without which there are no statistics")
            }
            Self::Rate => not_needed("the run file has the total"),
            Self::Unknown => not_supported("the worker chooses its unit, and the data lack it"),
        }
    }
}

/// The datapoints of a histogram in MZBench.
const DATAPOINTS: [&str; 9] = ["min", "max", "mean", "50", "75", "90", "95", "99", "999"];
