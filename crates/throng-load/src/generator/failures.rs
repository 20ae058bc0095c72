//! The failures that a core counts, by their names in the run file.

use throng_measure::{ErrorKind, Tally};

use super::core_stats::CoreStats;
use crate::user::close_code_name;

impl CoreStats {
    /// Returns the number of errors of established connections.
    pub fn errors_total(&self) -> u64 {
        let closed: u64 = self.close_codes.iter().map(|(_, count)| count).sum();
        closed + self.errors.iter().sum::<u64>()
    }

    /// Adds the errors of established connections by their kinds: closes by their codes, and
    /// unexpected statuses one by one.
    pub fn add_errors_to(&self, errors: &mut Tally) {
        for kind in ErrorKind::OF_USERS.into_iter().filter(|kind| *kind != ErrorKind::HttpStatus) {
            errors.add(kind, self.errors[kind as usize]);
        }
        for count in self.statuses.iter() {
            errors.add(ErrorKind::HttpStatus.with(count.status), count.unexpected);
        }
        for (code, count) in &self.close_codes {
            errors.add(close_code_name(*code), *count);
        }
    }

    /// Adds the failed connects by their reasons.
    pub fn add_connect_failures_to(&self, failed: &mut Tally) {
        for (why, count) in &self.connect_failures {
            failed.add(why.to_string(), *count);
        }
    }
}
