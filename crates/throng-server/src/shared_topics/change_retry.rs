//! The time at which a node tries to change its subscriptions again, after the bus has refused.

use std::time::Duration;

use throng_base::Instant;
use throng_bus::BusError;

/// When a node changes its subscriptions at the earliest.
///
/// A bus that is away is tried again soon, because it says at once that it is away. A missing
/// permission stays missing for a while, and each try costs a round trip: the wait doubles.
#[derive(Debug)]
pub(super) struct ChangeRetry {
    at: Instant,
    /// The wait after the next denial.
    denied_wait: Duration,
}

impl ChangeRetry {
    pub(super) fn new() -> Self {
        Self { at: Instant::ZERO, denied_wait: RETRY_AFTER }
    }

    /// Returns the time before which the subscriptions are not changed.
    pub(super) fn at(&self) -> Instant {
        self.at
    }

    /// Notes that the bus has made a change.
    pub(super) fn succeed(&mut self) {
        *self = Self::new();
    }

    /// Notes why the bus has not made a change.
    pub(super) fn fail(&mut self, error: &BusError, now: Instant) {
        if matches!(error, BusError::Denied(_)) {
            self.at = now + self.denied_wait;
            self.denied_wait = DENIED_WAIT_MAX.min(self.denied_wait * 2);
        } else {
            *self = Self { at: now + RETRY_AFTER, ..Self::new() };
        }
    }
}

/// The time until a change is tried again that a bus has refused, at first.
const RETRY_AFTER: Duration = Duration::from_millis(100);
/// The longest time until a change is tried again that the bus denied.
const DENIED_WAIT_MAX: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use throng_bus::{BusAction, BusDenial};

    use super::*;

    fn denied() -> BusError {
        let action = BusAction::Subscribe;
        BusError::Denied(BusDenial { action, subject: "throng.default.topics.1".into() })
    }

    /// Returns the waits after these failures, in milliseconds. Each comes when the wait before it
    /// is over.
    fn waits(retry: &mut ChangeRetry, failures: &[BusError]) -> Vec<u128> {
        let wait = |failure| {
            let now = retry.at();
            retry.fail(failure, now);
            retry.at().since(now).as_millis()
        };
        failures.iter().map(wait).collect()
    }

    #[test]
    fn the_wait_after_a_denial_doubles_up_to_some_seconds() {
        let mut retry = ChangeRetry::new();
        let each = waits(&mut retry, &vec![denied(); 8]);
        assert_eq!(each, [100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000]);
        retry.succeed();
        assert_eq!(waits(&mut retry, &[denied(), denied()]), [100, 200]);
    }

    #[test]
    fn a_bus_that_is_away_is_tried_again_soon() {
        let away = || BusError::Away("it was made so".into());
        let failures = [away(), away(), away(), denied(), denied(), away(), denied()];
        let each = waits(&mut ChangeRetry::new(), &failures);
        assert_eq!(each, [100, 100, 100, 100, 200, 100, 100]);
    }
}
