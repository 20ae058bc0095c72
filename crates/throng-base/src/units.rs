//! The units that people write: `100k`, `1000/s`, `15m`, `64KiB`, `±10%`, and the same written back.
//!
//! Reading is exact: a number is kept as digits and a power of ten until its unit is known, so
//! `0.1s` is a hundred million nanoseconds and not nearly so. Whatever a `show_` function writes,
//! the `parse_` function of the same name reads as the same value; the `brief_` functions round to
//! three digits and are for eyes only.

mod error;
mod nearest;
mod read;
mod show;

pub use error::{Problem, UnitError};
pub use nearest::nearest;
pub use read::{
    parse_bit_rate, parse_bytes, parse_count, parse_duration, parse_jitter, parse_rate, parse_share,
};
pub use show::{
    brief_bytes, brief_count, brief_duration, brief_micros, brief_rate, brief_share, show_bytes,
    show_count, show_duration, show_rate, show_share,
};

#[cfg(test)]
mod tests;
