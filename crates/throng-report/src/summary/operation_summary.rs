//! What a summary has of one operation, whichever it is.

use throng_measure::Operation;

use super::Summary;
use super::operations::OperationSummary;

macro_rules! operation {
    ($of:expr, $ok:expr, $failed:expr) => {
        OperationSummary {
            ok: $ok,
            failed: $failed,
            waiting: $of.waiting,
            rate_most: $of.rate_most,
            rate_mean: $of.rate_mean,
            latency_us: $of.latency_us,
            seen_us: $of.seen_us,
            judged_us: $of.judged_us,
        }
    };
}

impl Summary {
    /// Returns the numbers of an operation; `None` if the run has none of it.
    pub fn operation(&self, operation: Operation) -> Option<OperationSummary> {
        let (connect, message) = (&self.connect, &self.message);
        Some(match operation {
            Operation::Connect => operation!(connect, connect.ok, connect.failed.total()),
            Operation::Tcp => OperationSummary {
                latency_us: connect.tcp_latency_us,
                seen_us: connect.tcp_latency_us,
                judged_us: connect.tcp_judged_us,
                ..operation!(connect, connect.ok, 0)
            },
            Operation::Message => operation!(message, message.answered, message.failed),
            Operation::Join => {
                self.join.as_ref().map(|join| operation!(join, join.ok, join.failed))?
            }
            Operation::Push => {
                self.push.as_ref().map(|push| operation!(push, push.ok, push.failed))?
            }
            Operation::Http => {
                self.http.as_ref().map(|http| operation!(http, http.ok, http.failed))?
            }
            Operation::Broadcast => {
                let broadcast = self.broadcast.as_ref()?;
                OperationSummary {
                    ok: broadcast.counters.delivered,
                    failed: broadcast.counters.missing,
                    waiting: 0,
                    rate_most: None,
                    rate_mean: None,
                    latency_us: broadcast.latency_us,
                    seen_us: broadcast.seen_us,
                    // The probe accounts for its missing deliveries itself.
                    judged_us: broadcast.latency_us,
                }
            }
        })
    }

    /// Returns the operations that the run has, each with its numbers, but the parts of others.
    pub fn operations(&self) -> impl Iterator<Item = (Operation, OperationSummary)> {
        let whole = Operation::ALL.into_iter().filter(|operation| *operation != Operation::Tcp);
        whole.filter_map(|operation| Some((operation, self.operation(operation)?)))
    }
}
