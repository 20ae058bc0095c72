//! Limits the panic messages of handlers on the terminal: a client may provoke panics.

use std::panic;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Installs a panic hook that prints at most one panic per second. The server counts all of them:
/// in `core.panics`, and those of channels in `channel_crashes`.
pub(super) fn limit_output() {
    let print = panic::take_hook();
    let throttle = Mutex::new(Throttle::default());
    panic::set_hook(Box::new(move |panic| {
        let allowed = throttle.lock().map(|mut throttle| throttle.allows(Instant::now()));
        if allowed.unwrap_or(true) {
            print(panic);
        }
    }));
}

#[derive(Default)]
struct Throttle {
    quiet_until: Option<Instant>,
}

impl Throttle {
    fn allows(&mut self, now: Instant) -> bool {
        let is_allowed = self.quiet_until.is_none_or(|quiet_until| now >= quiet_until);
        if is_allowed {
            self.quiet_until = Some(now + QUIET);
        }
        is_allowed
    }
}

const QUIET: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_a_second_is_allowed() {
        let (mut throttle, now) = (Throttle::default(), Instant::now());
        let allowed = [0, 1, 999, 1_000, 1_500, 2_000]
            .map(|ms| throttle.allows(now + Duration::from_millis(ms)));
        assert_eq!(allowed, [true, false, false, true, false, true]);
    }
}
