//! A set number of iterations: which users do them, and how long they may take.

use std::time::Duration;

use crate::draft::DraftClass;
use crate::step;
use crate::yaml::Yaml;

use super::load::{Iterations, parse_duration};
use super::script::Item;

/// Returns the classes of users: those of a set number of iterations may do different numbers.
pub(super) fn classes(
    iterations: Option<Iterations>,
    steps: &[Yaml],
    on_error: Option<&'static str>,
) -> Vec<DraftClass> {
    let class = |name: &str, weight: u64, times: u64| {
        let steps = match times {
            1 => steps.to_vec(),
            _ => vec![step::repeat(times, steps.to_vec())],
        };
        let weight = u32::try_from(weight).unwrap_or(u32::MAX);
        DraftClass { name: name.to_owned(), weight, steps, on_error }
    };
    match iterations {
        None => vec![class("user", 1, 1)],
        Some(Iterations { each, more: 0, .. }) => vec![class("user", 1, each)],
        Some(Iterations { each, users, more }) => {
            let part = common_divisor(users, more);
            vec![
                class("user", (users - more) / part, each),
                class("user with one more", more / part, each + 1),
            ]
        }
    }
}

fn common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

/// Returns the longest time that one turn takes, by the time-outs of its steps; `None` if it has no
/// bound.
pub(super) fn longest(items: &[Item]) -> Option<Duration> {
    let of_item = |item: &Item| match item {
        Item::Request(request) => Some(request.timeout.unwrap_or(STEP_TIMEOUT)),
        Item::Session(session) => Some(session.length()? + STEP_TIMEOUT * 2),
        Item::Group(_, items) => longest(items),
        Item::Step(step) => Some(longest_wait(step)),
    };
    // After an error, a user rests for a second.
    items.iter().try_fold(REST, |sum, item| sum.checked_add(of_item(item)?))
}

/// Returns the longest time of a `wait`.
fn longest_wait(step: &Yaml) -> Duration {
    let times = step.scalars();
    let text = times.first().copied().unwrap_or_default().trim_end_matches(')');
    let last = text.rsplit([',', '(']).next().unwrap_or_default().trim();
    parse_duration(last).unwrap_or_default()
}

/// How long a step of the scenario waits by itself: for an answer, a connection, or a close.
const STEP_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a user rests after an error, at most.
const REST: Duration = Duration::from_millis(1_100);
