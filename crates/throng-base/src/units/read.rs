//! Parsing of quantities.

use std::ops::Range;
use std::time::Duration;

use super::{Problem, UnitError};

/// Parses a whole number: `250`, `1_000`, `100k`, `2.5M`, `1G` (powers of a thousand).
pub fn parse_count(text: &str) -> Result<u64, UnitError> {
    let mut scan = Scan::new(text, "a whole number such as 250, 1_000, 100k or 2.5M");
    let number = scan.number()?;
    let (unit, at) = scan.word();
    let factor = if unit.is_empty() { 1 } else { scan.unit(&THOUSANDS, unit, at)? };
    let whole = scan.whole(&number, factor)?;
    scan.end()?;
    Ok(whole)
}

/// Parses a duration: `250ms`, `15m`, `1h30m`, `10us`, `1.5s`; units d, h, m, s, ms, us (or µs),
/// ns, from large to small. Truncates to whole nanoseconds.
pub fn parse_duration(text: &str) -> Result<Duration, UnitError> {
    let mut scan = Scan::new(text, "a duration such as 250ms, 15m or 1h30m");
    let duration = scan.duration()?;
    scan.end()?;
    Ok(duration)
}

/// Parses a number of bytes: `512`, `512B`, `1kB`, `1MB` (thousands), `64KiB`, `1MiB` (1024s).
pub fn parse_bytes(text: &str) -> Result<u64, UnitError> {
    let mut scan = Scan::new(text, "a number of bytes such as 512, 64KiB or 1MB");
    let number = scan.number()?;
    let (unit, at) = scan.word();
    let factor = if unit.is_empty() { 1 } else { scan.unit(&BYTES, unit, at)? };
    let whole = scan.whole(&number, factor)?;
    scan.end()?;
    Ok(whole)
}

/// Parses a rate and returns it per second: `1000/s`, `5k/s`, `600/m`, `3600/h`.
pub fn parse_rate(text: &str) -> Result<f64, UnitError> {
    let mut scan = Scan::new(text, "a rate such as 1000/s, 5k/s or 600/m");
    let number = scan.number()?;
    let (unit, at) = scan.word();
    let factor = if unit.is_empty() { 1 } else { scan.unit(&THOUSANDS, unit, at)? };
    if !scan.take("/") {
        return Err(scan.error(scan.rest_span(), Problem::UnitMissing));
    }
    let (per, at) = scan.word();
    if per.is_empty() {
        return Err(scan.error(scan.rest_span(), Problem::UnitMissing));
    }
    let seconds = scan.unit(&PER, per, at)?;
    scan.end()?;
    Ok(number.times(factor) / seconds as f64)
}

/// Parses a network's bit rate, in bits a second: `25Gbit`, `100Mbit/s`, `100kbit`; powers of a
/// thousand.
pub fn parse_bit_rate(text: &str) -> Result<f64, UnitError> {
    let mut scan = Scan::new(text, "a bit rate such as 25Gbit or 100Mbit/s");
    let number = scan.number()?;
    let (unit, at) = scan.word();
    if unit.is_empty() {
        return Err(scan.error(scan.rest_span(), Problem::UnitMissing));
    }
    let factor = scan.unit(&BITS, unit, at)?;
    if scan.take("/") {
        let (per, at) = scan.word();
        scan.unit(&PER[..1], per, at)?;
    }
    scan.end()?;
    Ok(number.times(factor))
}

/// Parses a share: `0.01%` is 0.0001. It may be more than `100%`.
pub fn parse_share(text: &str) -> Result<f64, UnitError> {
    let mut scan = Scan::new(text, "a share such as 0.01% or 10%");
    let share = scan.share()?;
    scan.end()?;
    Ok(share)
}

/// Parses a duration with its jitter, a share in both directions: `1s ±10%`, `1s +-10%`, or plain
/// `1s`.
pub fn parse_jitter(text: &str) -> Result<(Duration, f64), UnitError> {
    let mut scan = Scan::new(text, "a duration with an optional spread, such as 1s or 1s ±10%");
    let duration = scan.duration()?;
    let spread =
        if ["±", "+-", "+/-"].iter().any(|sign| scan.take(sign)) { scan.share()? } else { 0.0 };
    scan.end()?;
    Ok((duration, spread))
}

/// Scanner: a position in a text, and the description of a valid text.
struct Scan<'a> {
    text: &'a str,
    at: usize,
    expected: &'static str,
}

/// Number without its unit: `digits / 10^scale`, its place in the text, and its nearest float.
struct Number {
    digits: u128,
    scale: u32,
    span: Range<usize>,
    float: f64,
}

impl Number {
    /// Returns `self * factor`. A whole product is exact, while the product of the nearest float
    /// may not be.
    fn times(&self, factor: u128) -> f64 {
        let (product, divisor) = (self.digits * factor, 10u128.pow(self.scale));
        if product.is_multiple_of(divisor) {
            (product / divisor) as f64
        } else {
            self.float * factor as f64
        }
    }
}

impl<'a> Scan<'a> {
    fn new(text: &'a str, expected: &'static str) -> Self {
        Self { text, at: 0, expected }
    }

    fn error(&self, span: Range<usize>, problem: Problem) -> UnitError {
        UnitError { span, expected: self.expected, problem }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip_spaces(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    /// Returns the span from here to the last character; an empty rest is the place after that
    /// character.
    fn rest_span(&self) -> Range<usize> {
        let end = self.text.trim_end().len();
        self.at.min(end)..end
    }

    fn take(&mut self, token: &str) -> bool {
        self.skip_spaces();
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    /// Checks that only spaces follow.
    fn end(&mut self) -> Result<(), UnitError> {
        self.skip_spaces();
        if self.rest().is_empty() {
            Ok(())
        } else {
            Err(self.error(self.rest_span(), Problem::Surplus))
        }
    }

    /// Parses digits, with `_` between them and at most one `.`.
    fn number(&mut self) -> Result<Number, UnitError> {
        self.skip_spaces();
        let rest = self.rest();
        if rest.is_empty() {
            return Err(self.error(self.rest_span(), Problem::Empty));
        }
        let length = rest
            .find(|c: char| !(c.is_ascii_digit() || c == '_' || c == '.'))
            .unwrap_or(rest.len());
        let span = self.at..self.at + length;
        let written: String = rest[..length].chars().filter(|&c| c != '_').collect();
        let (whole, fraction) = written.split_once('.').unwrap_or((&written, "0"));
        let digits_only = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        if rest.starts_with('_') || !digits_only(whole) || !digits_only(fraction) {
            let span = if length == 0 { self.rest_span() } else { span };
            return Err(self.error(span, Problem::NotANumber));
        }
        let fraction = &fraction.trim_end_matches('0');
        let fraction = &fraction[..fraction.len().min(FRACTION_DIGITS_MAX)];
        let digits =
            format!("{whole}{fraction}").parse().ok().filter(|&digits| digits < DIGITS_MAX);
        let Some(digits) = digits else {
            return Err(self.error(span, Problem::TooLarge));
        };
        self.at = span.end;
        let float = written.parse().unwrap_or(f64::INFINITY);
        Ok(Number { digits, scale: fraction.len() as u32, span, float })
    }

    /// Takes the letters that follow, perhaps none, and returns them with their span.
    fn word(&mut self) -> (&'a str, Range<usize>) {
        self.skip_spaces();
        let rest = self.rest();
        let length = rest.find(|c: char| !c.is_alphabetic()).unwrap_or(rest.len());
        let span = self.at..self.at + length;
        self.at = span.end;
        (&rest[..length], span)
    }

    fn unit(&self, units: &[Unit], unit: &str, at: Range<usize>) -> Result<u128, UnitError> {
        if let Some((_, factor, _)) = units.iter().find(|(name, ..)| *name == unit) {
            return Ok(*factor);
        }
        let lower = unit.to_lowercase();
        let meant = units
            .iter()
            .find(|(name, _, others)| {
                others.contains(&lower.as_str()) || name.to_lowercase() == lower
            })
            .map(|(name, ..)| *name);
        Err(self.error(at, Problem::UnitUnknown { unit: unit.to_owned(), meant }))
    }

    /// Returns `number * factor`, if that is a whole number.
    fn whole(&self, number: &Number, factor: u128) -> Result<u64, UnitError> {
        let product = number.digits * factor;
        let divisor = 10u128.pow(number.scale);
        if !product.is_multiple_of(divisor) {
            return Err(self.error(number.span.clone(), Problem::NotWhole));
        }
        u64::try_from(product / divisor)
            .map_err(|_| self.error(number.span.clone(), Problem::TooLarge))
    }

    fn duration(&mut self) -> Result<Duration, UnitError> {
        let mut nanos = 0u64;
        let mut smaller_than = u128::MAX;
        loop {
            let number = self.number()?;
            let (unit, at) = self.word();
            if unit.is_empty() {
                return Err(self.error(number.span, Problem::UnitMissing));
            }
            let factor = self.unit(&TIMES, unit, at.clone())?;
            if factor >= smaller_than {
                return Err(self.error(number.span.start..at.end, Problem::Order));
            }
            smaller_than = factor;
            let part = number.digits * factor / 10u128.pow(number.scale);
            let sum = u64::try_from(part).ok().and_then(|part| nanos.checked_add(part));
            nanos = sum.ok_or_else(|| self.error(number.span.start..at.end, Problem::TooLarge))?;
            self.skip_spaces();
            if !self.rest().starts_with(|c: char| c.is_ascii_digit()) {
                return Ok(Duration::from_nanos(nanos));
            }
        }
    }

    fn share(&mut self) -> Result<f64, UnitError> {
        let number = self.number()?;
        if !self.take("%") {
            return Err(self.error(number.span, Problem::UnitMissing));
        }
        Ok(number.float / 100.0)
    }
}

/// Unit, its factor to the base unit, and common other spellings (in lower case).
type Unit = (&'static str, u128, &'static [&'static str]);

const THOUSANDS: [Unit; 3] = [
    ("k", 1_000, &["thousand"]),
    ("M", 1_000_000, &["mio", "million"]),
    ("G", 1_000_000_000, &["b", "bn", "billion"]),
];

/// Units of time, in nanoseconds. Both characters for micro are valid.
const TIMES: [Unit; 9] = [
    ("ns", 1, &["nsec", "nanos"]),
    ("us", 1_000, &["usec", "micros"]),
    ("\u{b5}s", 1_000, &[]),
    ("\u{3bc}s", 1_000, &[]),
    ("ms", 1_000_000, &["msec", "millis"]),
    ("s", 1_000_000_000, &["sec", "secs", "second", "seconds"]),
    ("m", 60_000_000_000, &["min", "mins", "minute", "minutes"]),
    ("h", 3_600_000_000_000, &["hr", "hrs", "hour", "hours"]),
    ("d", 86_400_000_000_000, &["day", "days"]),
];

/// Units of rates, in seconds.
const PER: [Unit; 3] =
    [("s", 1, &["sec", "second"]), ("m", 60, &["min", "minute"]), ("h", 3_600, &["hr", "hour"])];

const BITS: [Unit; 5] = [
    ("bit", 1, &["b", "bits"]),
    ("kbit", 1_000, &["k", "kb", "kbps"]),
    ("Mbit", 1_000_000, &["m", "mb", "mbps"]),
    ("Gbit", 1_000_000_000, &["g", "gb", "gbps"]),
    ("Tbit", 1_000_000_000_000, &["t", "tb", "tbps"]),
];

const BYTES: [Unit; 9] = [
    ("B", 1, &["byte", "bytes"]),
    ("kB", 1_000, &[]),
    ("MB", 1_000_000, &[]),
    ("GB", 1_000_000_000, &[]),
    ("TB", 1_000_000_000_000, &[]),
    ("KiB", 1 << 10, &["k"]),
    ("MiB", 1 << 20, &["m"]),
    ("GiB", 1 << 30, &["g"]),
    ("TiB", 1 << 40, &["t"]),
];

/// Digits after the point that count. No unit that matters is smaller than a billionth of another,
/// so further digits are noise.
const FRACTION_DIGITS_MAX: usize = 15;

/// Limit of the digits, so that every product with a unit (the largest is below 2^47) fits into a
/// u128.
const DIGITS_MAX: u128 = 1 << 80;
