//! The summary of HTTP requests.

use serde::{Deserialize, Serialize};
use throng_measure::http_status::StatusRange;
use throng_measure::{LatencySummary, LoadInterval, Tally};

use super::OperationSummary;

/// HTTP requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HttpSummary {
    /// Requests begun.
    pub started: u64,
    /// Requests answered as expected.
    pub ok: u64,
    /// Requests answered otherwise, or not answered in time, or that lost their connection.
    pub failed: u64,
    /// Requests without an answer when their user was stopped.
    pub waiting: u64,
    /// Requests sent a second time, because the server had closed the connection.
    pub retried: u64,
    /// Requests that failed after a part of their answer had arrived: at their time-out, or at the
    /// end of their connection.
    pub incomplete: u64,
    /// Connections established for requests. The connects of the run include them.
    pub connects: u64,
    /// Connects for requests that failed. The failed connects of the run include them.
    pub connects_failed: u64,
    /// Connects for requests in progress when their user was stopped. The waiting connects of the
    /// run include them.
    pub connects_waiting: u64,
    /// Answers by their status, expected or not.
    pub statuses: Tally,
    /// Answers with a status from 200 to 299.
    pub status_2xx: u64,
    /// Answers with a status from 300 to 399.
    pub status_3xx: u64,
    /// Answers with a status from 400 to 499.
    pub status_4xx: u64,
    /// Answers with a status of 500 or more.
    pub status_5xx: u64,
    /// Requests answered as expected per second in the best second.
    pub rate_most: Option<f64>,
    /// Requests answered as expected per second.
    pub rate_mean: Option<f64>,
    /// Time from the intended moment until the answer was complete.
    pub latency_us: LatencySummary,
    /// Time from the intended moment until the generator read the answer: larger if it read late.
    pub seen_us: LatencySummary,
    /// Waits for an answer that never came.
    pub unanswered_us: LatencySummary,
    /// `latency_us` and `unanswered_us` combined, as a threshold compares it.
    pub judged_us: LatencySummary,
}

impl HttpSummary {
    /// Returns the number of answers, whatever their status.
    pub fn responses(&self) -> u64 {
        self.status_2xx + self.status_3xx + self.status_4xx + self.status_5xx
    }

    /// Returns the number of answers with these statuses; `None` if there was no answer, or if the
    /// run file has only their classes.
    pub fn answers_with(&self, range: StatusRange) -> Option<u64> {
        let classes = [self.status_2xx, self.status_3xx, self.status_4xx, self.status_5xx];
        match range {
            StatusRange::Class(class) => classes.get(usize::from(class).checked_sub(2)?).copied(),
            StatusRange::One(status) => {
                let is_known = self.statuses.total() > 0 || self.responses() == 0;
                is_known.then(|| self.statuses.get(status.to_string()))
            }
        }
    }

    /// Returns the summary of the requests that `load` counts, with the numbers that any operation
    /// has.
    pub(super) fn of(load: &LoadInterval, of: OperationSummary) -> Self {
        let counters = &load.counters;
        Self {
            started: of.started,
            ok: of.ok,
            failed: of.failed,
            waiting: of.waiting,
            retried: counters.http_retried,
            incomplete: counters.http_incomplete,
            connects: counters.http_connects,
            connects_failed: counters.http_connects_failed,
            connects_waiting: counters.http_connects_waiting,
            statuses: load.http_statuses.clone(),
            status_2xx: counters.http_2xx,
            status_3xx: counters.http_3xx,
            status_4xx: counters.http_4xx,
            status_5xx: counters.http_5xx,
            rate_most: of.rate_most,
            rate_mean: of.rate_mean,
            latency_us: of.latency_us,
            seen_us: of.seen_us,
            unanswered_us: of.unanswered_us,
            judged_us: of.judged_us,
        }
    }
}
