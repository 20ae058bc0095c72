//! Waits of users for one another, at one barrier or for one signal.

use serde::{Deserialize, Serialize};
use throng_base::units::{brief_micros, plural};

/// Waits at one barrier or for one signal, as far as they have come.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CueWaits {
    /// The name in the scenario.
    pub name: String,
    /// The line of the first step that waits.
    pub line: u64,
    /// Users that a barrier waits for; `None` for a signal.
    pub users: Option<u64>,
    /// Times that the barrier opened; 1 once the signal was given.
    pub opened: u64,
    /// Waits that began.
    pub waits: u64,
    /// Users that wait; after the end of a run, those that still waited then.
    pub waiting: u64,
    /// The most users that waited at the barrier at once; 0 for a signal.
    pub waiting_most: u64,
    /// The longest wait that has ended, or that the end of the run cut off, in microseconds.
    pub wait_us_most: u64,
}

impl CueWaits {
    /// Says that users waited for what never happened; `None` if it did, or if none waited.
    pub fn describe_unopened(&self) -> Option<String> {
        if self.opened > 0 || self.waits == 0 {
            return None;
        }
        let Self { name, line, waits, waiting_most, .. } = self;
        let longest = brief_micros(self.wait_us_most);
        Some(match self.users {
            Some(users) => format!(
                "the barrier `{name}` (line {line}) never opened: at most {waiting_most} of its \
                 {users} {} waited there at once, the longest for {longest}",
                plural(users, "user", "users")
            ),
            None => format!(
                "the signal `{name}` was never given: {waits} {} for it (line {line}), the \
                 longest for {longest}",
                plural(*waits, "user waited", "users waited")
            ),
        })
    }

    /// Says that users still waited when the run ended, although others had gone on before; `None`
    /// if none did.
    pub fn describe_left(&self) -> Option<String> {
        let Self { name, line, opened, waiting, .. } = self;
        let users = self.users.filter(|_| *opened > 0 && *waiting > 0)?;
        Some(format!(
            "When the run ended, {waiting} of {users} {} waited at the barrier `{name}` (line \
             {line}), which had opened {opened} {}.",
            plural(users, "user", "users"),
            plural(*opened, "time", "times")
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn barrier() -> CueWaits {
        CueWaits {
            name: "go".into(),
            line: 14,
            users: Some(2),
            waits: 1,
            waiting: 1,
            waiting_most: 1,
            wait_us_most: 3_580_000,
            ..CueWaits::default()
        }
    }

    #[test]
    fn a_barrier_that_never_opened_is_told_with_its_line_and_its_users() {
        assert_eq!(
            barrier().describe_unopened().as_deref(),
            Some(
                "the barrier `go` (line 14) never opened: at most 1 of its 2 users waited there \
                 at once, the longest for 3.58 s"
            )
        );
        assert_eq!(CueWaits { opened: 1, ..barrier() }.describe_unopened(), None);
        assert_eq!(CueWaits { waits: 0, ..barrier() }.describe_unopened(), None);
    }

    #[test]
    fn a_signal_that_was_never_given_is_told_with_those_that_waited() {
        let signal = CueWaits { users: None, waits: 12, waiting_most: 0, ..barrier() };
        assert_eq!(
            signal.describe_unopened().as_deref(),
            Some(
                "the signal `go` was never given: 12 users waited for it (line 14), the longest \
                 for 3.58 s"
            )
        );
    }

    #[test]
    fn users_that_were_left_over_are_told_of_a_barrier_that_had_opened() {
        let left = CueWaits { opened: 1, waits: 3, ..barrier() };
        assert_eq!(
            left.describe_left().as_deref(),
            Some(
                "When the run ended, 1 of 2 users waited at the barrier `go` (line 14), which had \
                 opened 1 time."
            )
        );
        assert_eq!(barrier().describe_left(), None);
    }
}
