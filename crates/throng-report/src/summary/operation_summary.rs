//! What a summary has of one operation, whichever it is.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};
use throng_measure::{Operation, PerOperation};

use super::Summary;
use super::operations::OperationSummary;

macro_rules! operation {
    ($of:expr, $started:expr, $ok:expr, $failed:expr) => {
        OperationSummary {
            started: $started,
            ok: $ok,
            failed: $failed,
            waiting: $of.waiting,
            rate_most: $of.rate_most,
            rate_mean: $of.rate_mean,
            latency_us: $of.latency_us,
            seen_us: $of.seen_us,
            unanswered_us: $of.unanswered_us,
            judged_us: $of.judged_us,
        }
    };
}

impl Summary {
    /// Returns the numbers of an operation; `None` if the run has none of it.
    pub fn operation(&self, operation: Operation) -> Option<OperationSummary> {
        let (connect, message) = (&self.connect, &self.message);
        Some(match operation {
            Operation::Connect => {
                operation!(connect, connect.intended, connect.ok, connect.failed.total())
            }
            Operation::Tcp => OperationSummary {
                latency_us: connect.tcp_latency_us,
                seen_us: connect.tcp_latency_us,
                judged_us: connect.tcp_judged_us,
                ..operation!(connect, connect.intended, connect.ok, 0)
            },
            Operation::Message => {
                operation!(message, message.expected, message.answered, message.failed)
            }
            Operation::Http => {
                let http = self.http.as_ref()?;
                operation!(http, http.started, http.ok, http.failed)
            }
            Operation::Broadcast => {
                let broadcast = self.broadcast.as_ref()?;
                OperationSummary {
                    started: broadcast.counters.expected,
                    ok: broadcast.counters.delivered,
                    failed: broadcast.counters.missing,
                    latency_us: broadcast.latency_us,
                    seen_us: broadcast.seen_us,
                    // The probe accounts for its missing deliveries itself.
                    judged_us: broadcast.latency_us,
                    ..OperationSummary::default()
                }
            }
            plain => self.plain[plain]?,
        })
    }

    /// Returns the operations that the run has, each with its numbers, but the parts of others.
    pub fn operations(&self) -> impl Iterator<Item = (Operation, OperationSummary)> {
        let whole = Operation::ALL.into_iter().filter(|operation| *operation != Operation::Tcp);
        whole.filter_map(|operation| Some((operation, self.operation(operation)?)))
    }
}

/// Returns the name of the number of those that have begun.
const fn begun(operation: Operation) -> &'static str {
    match operation {
        Operation::Push => "sent",
        _ => "started",
    }
}

/// Writes the operations that the run has, by their names.
pub(super) fn serialize<S: Serializer>(
    plain: &PerOperation<Option<OperationSummary>>,
    to: S,
) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Written<'a> {
        #[serde(flatten)]
        begun: BTreeMap<&'a str, u64>,
        #[serde(flatten)]
        of: &'a OperationSummary,
    }
    to.collect_map(plain.iter().filter_map(|(operation, of)| {
        let of = of.as_ref()?;
        let begun = [(begun(operation), of.started)].into();
        Some((operation.name(), Written { begun, of }))
    }))
}
