//! A set number of iterations: which users do them.

use crate::draft::DraftClass;
use crate::step;
use crate::yaml::Yaml;

use super::load::Iterations;

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
