//! Quantities with units, such as `100k`, `1000/s`, `15m`, `64KiB`, `±10%`: parsing and formatting.
//!
//! Parsing is exact: a number is digits and a power of ten until its unit is known, so `0.1s` is
//! exactly a hundred million nanoseconds. The `parse_` function of a quantity reads the output of
//! its `show_` function as the same value. The `brief_` functions round to three digits and are for
//! display only.

mod error;
mod nearest;
mod read;
mod show;
mod utc;

pub use error::{Problem, UnitError};
pub use nearest::nearest;
pub use read::{
    parse_bit_rate, parse_bytes, parse_count, parse_duration, parse_jitter, parse_rate, parse_share,
};
pub use show::{
    brief_bytes, brief_count, brief_duration, brief_micros, brief_rate, brief_share, plural,
    show_bytes, show_count, show_duration, show_rate, show_share,
};
pub use utc::{days_since_1970, parse_utc, show_utc};

#[cfg(test)]
mod tests;
