//! Counts of the answers to HTTP requests by their status.

use serde::{Deserialize, Serialize};

/// The statuses that came, and how often: as many entries as there were different statuses.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct StatusCounts(Vec<StatusCount>);

/// The answers with one status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StatusCount {
    /// The status.
    pub status: u16,
    /// Answers with it.
    pub answers: u64,
    /// Those whose step expected another status.
    pub unexpected: u64,
}

impl StatusCounts {
    /// Counts an answer.
    pub(super) fn count(&mut self, status: u16) {
        self.entry(status).answers += 1;
    }

    /// Counts an answer whose step expected another status. It is counted as an answer on its own.
    pub(super) fn count_unexpected(&mut self, status: u16) {
        self.entry(status).unexpected += 1;
    }

    /// Returns the counts, in the order in which the statuses came first.
    pub fn iter(&self) -> impl Iterator<Item = &StatusCount> {
        self.0.iter()
    }

    /// Adds the counts of another core.
    pub(super) fn add(&mut self, other: &Self) {
        for count in other.iter() {
            let sum = self.entry(count.status);
            sum.answers += count.answers;
            sum.unexpected += count.unexpected;
        }
    }

    /// Copies the counts of `other` into the memory that there is.
    pub(super) fn copy_from(&mut self, other: &Self) {
        self.0.clone_from(&other.0);
    }

    /// Servers send few statuses, and the usual one comes first.
    fn entry(&mut self, status: u16) -> &mut StatusCount {
        let at = self.0.iter().position(|count| count.status == status);
        let at = at.unwrap_or_else(|| {
            self.0.push(StatusCount { status, answers: 0, unexpected: 0 });
            self.0.len() - 1
        });
        &mut self.0[at]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_status_has_its_answers_and_those_that_were_not_expected() {
        let mut counts = StatusCounts::default();
        for status in [200, 429, 200, 429, 500] {
            counts.count(status);
        }
        counts.count_unexpected(429);
        let mut copy = StatusCounts::default();
        copy.copy_from(&counts);
        let shown: Vec<_> = copy.iter().map(|c| (c.status, c.answers, c.unexpected)).collect();
        assert_eq!(shown, [(200, 2, 0), (429, 2, 1), (500, 1, 0)]);
    }
}
