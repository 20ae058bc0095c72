//! Numbers of a run file that no run reaches: of a damaged file, or of one that was made by hand.

use serde::de::DeserializeOwned;
use serde_json::Value;

/// The largest number that is taken from a line: more than 4,000 TB, or 140 years in microseconds.
/// A thousand times as much, and the sum of a thousand of them, fit into 64 bits.
pub(super) const NUMBER_MAX: u64 = 1 << 52;
/// The digits of [`NUMBER_MAX`].
const NUMBER_DIGITS: usize = 16;

/// Parses a line, its numbers limited to [`NUMBER_MAX`], except the kernel's: these may be anything
/// up to `i64::MAX`, as `files.max` is. Returns true if a number was larger.
pub(super) fn parse_bounded<T: DeserializeOwned>(line: &[u8]) -> serde_json::Result<(T, bool)> {
    let parsed = serde_json::from_slice(line);
    let is_broken = parsed.is_err() && has_long_number(line);
    if !is_broken && !outside_kernels(line).any(has_long_number) {
        return Ok((parsed?, false));
    }
    let mut value: Value = serde_json::from_slice(line)?;
    let mut is_bounded = false;
    if let Value::Object(fields) = &mut value {
        for (name, value) in fields {
            let max = if KERNELS.contains(&name.as_str()) { i64::MAX as u64 } else { NUMBER_MAX };
            is_bounded |= bound(value, max);
        }
    }
    Ok((serde_json::from_value(value)?, is_bounded))
}

/// The fields of a line with numbers of the kernel.
const KERNELS: [&str; 2] = ["kernel", "server_kernel"];

/// Returns the parts of a line that are not between `kernel":{` and the next brace.
fn outside_kernels(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    const BEGIN: &[u8] = b"kernel\":{";
    let mut rest = Some(line);
    std::iter::from_fn(move || {
        let part = rest?;
        let begin = part.windows(BEGIN.len()).position(|window| window == BEGIN);
        let Some(begin) = begin else { return rest.take() };
        let end = part[begin..].iter().position(|byte| *byte == b'}');
        rest = end.map(|end| &part[begin + end..]);
        Some(&part[..begin])
    })
}

/// Reports whether there are so many digits in a row that they may be a number that is too large.
fn has_long_number(text: &[u8]) -> bool {
    let mut digits = 0;
    text.iter().any(|byte| {
        digits = if byte.is_ascii_digit() { digits + 1 } else { 0 };
        digits >= NUMBER_DIGITS
    })
}

/// Limits each whole number, and reports whether one was larger.
fn bound(value: &mut Value, max: u64) -> bool {
    match value {
        Value::Array(values) => values.iter_mut().fold(false, |any, one| bound(one, max) | any),
        Value::Object(fields) => fields.iter_mut().fold(false, |any, (name, one)| {
            // The number of a process has 32 bits.
            let max = if name == "pid" { max.min(u32::MAX.into()) } else { max };
            bound(one, max) | any
        }),
        // Anything else is a fraction, or below zero.
        Value::Number(number) if number.as_u64().is_some_and(|n| n > max) => {
            *number = max.into();
            true
        }
        _ => false,
    }
}
