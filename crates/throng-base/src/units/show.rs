//! Formatting of quantities.

use std::time::Duration;

/// Formats the exact duration: `250ms`, `1.5s`, `1h30m`; zero is `0s`.
pub fn show_duration(duration: Duration) -> String {
    let nanos = duration.as_nanos();
    if nanos == 0 {
        return "0s".to_owned();
    }
    if nanos < MINUTE {
        let (unit, size) = small_unit(nanos);
        return format!("{}{unit}", decimal(nanos, size));
    }
    let mut text = String::new();
    let (hours, minutes, rest) = (nanos / HOUR, nanos % HOUR / MINUTE, nanos % MINUTE);
    if hours > 0 {
        text += &format!("{hours}h");
    }
    if minutes > 0 {
        text += &format!("{minutes}m");
    }
    if rest > 0 {
        text += &format!("{}s", decimal(rest, SECOND));
    }
    text
}

/// Formats the exact count: `100k`, `2.5M`, and plain digits if a suffix would not shorten it.
pub fn show_count(count: u64) -> String {
    with_suffix(count, &[("G", 1_000_000_000), ("M", 1_000_000), ("k", 1_000)])
}

/// Returns the word in the number of `count`: `line` of one, `lines` of any other number.
pub fn plural<'a>(count: u64, one: &'a str, many: &'a str) -> &'a str {
    if count == 1 { one } else { many }
}

/// Formats the exact number of bytes: `64KiB`, `1.5MiB`, `1MB`, `512`.
pub fn show_bytes(bytes: u64) -> String {
    if bytes >= 1 << 10 && bytes.is_multiple_of(1 << 9) {
        let binary = [("GiB", 1u64 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
        for (unit, size) in binary {
            if bytes >= size && bytes.is_multiple_of(size / 2) {
                return format!("{}{unit}", decimal(bytes.into(), size.into()));
            }
        }
    }
    with_suffix(bytes, &[("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1_000)])
}

/// Formats the exact rate: `1k/s`, `0.3/s`; slow rates per minute or hour if that is a whole
/// number.
pub fn show_rate(per_second: f64) -> String {
    let whole = |value: f64| value >= 0.0 && value.fract() == 0.0 && value < WHOLE_MAX;
    if whole(per_second) {
        return format!("{}/s", show_count(per_second as u64));
    }
    for (unit, seconds) in [("m", 60.0), ("h", 3_600.0)] {
        let turns = (per_second * seconds).round();
        if per_second < 1.0 && whole(turns) && turns / seconds == per_second {
            return format!("{}/{unit}", show_count(turns as u64));
        }
    }
    format!("{per_second}/s")
}

/// Formats the share in per cent, with up to twelve decimal places: 0.0001 is `0.01%`.
pub fn show_share(share: f64) -> String {
    let percent = format!("{:.12}", share * 100.0);
    format!("{}%", percent.trim_end_matches('0').trim_end_matches('.'))
}

/// Formats the duration in three digits: `1.23ms`, `45.6s`, `12m5s`.
pub fn brief_duration(duration: Duration) -> String {
    let nanos = duration.as_nanos();
    if nanos >= MINUTE {
        return show_duration(Duration::from_secs((nanos + SECOND / 2) as u64 / SECOND as u64));
    }
    if nanos == 0 {
        return "0s".to_owned();
    }
    let (_, size) = small_unit(nanos);
    let step = three_digits(nanos, size);
    let rounded = (nanos + step / 2) / step * step;
    if rounded >= MINUTE {
        return "1m".to_owned();
    }
    let (unit, size) = small_unit(rounded);
    format!("{}{unit}", decimal(rounded, size))
}

/// Formats the count in three digits: `950`, `12.3k`, `1.05M`.
pub fn brief_count(count: f64) -> String {
    if !count.is_finite() || count < 0.0 {
        return format!("{count}");
    }
    let mut scaled = count;
    for suffix in ["", "k", "M", "G"] {
        if scaled < 999.5 || suffix == "G" {
            let places = if scaled < 9.995 { 2 } else { usize::from(scaled < 99.95) };
            let text = format!("{scaled:.places$}");
            let text =
                if places > 0 { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
            return format!("{text}{suffix}");
        }
        scaled /= 1_000.0;
    }
    unreachable!("the last suffix fits every count")
}

/// Returns the rate in three digits: `12.5/s`, `1.2k/s`.
pub fn brief_rate(per_second: f64) -> String {
    format!("{}/s", brief_count(per_second))
}

/// Returns the number of bytes in three digits: `950 B`, `12.3 MiB`.
pub fn brief_bytes(bytes: f64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let (mut scaled, mut unit) = (bytes, 0);
    // 1023.96 would round to 1024, which is one of the next unit.
    while scaled >= 1023.95 && unit + 1 < UNITS.len() {
        scaled /= 1024.0;
        unit += 1;
    }
    format!("{} {}", digits(scaled), UNITS[unit])
}

/// Returns the microseconds in three digits, for a column of latencies: `85 µs`, `3.40 ms`,
/// `1.20 s`.
pub fn brief_micros(us: u64) -> String {
    match us {
        0..1000 => format!("{us} µs"),
        1000..1_000_000 => format!("{} ms", digits(us as f64 / 1e3)),
        _ => format!("{} s", digits(us as f64 / 1e6)),
    }
}

/// Returns the share in per cent, in three digits: `1.20 %`.
pub fn brief_share(share: f64) -> String {
    format!("{} %", digits(share * 100.0))
}

/// Returns three digits, zeros kept: `3.40`, `12.3`, `123`.
fn digits(n: f64) -> String {
    match n.abs() {
        n_abs if n_abs == 0.0 || n_abs >= 99.95 => format!("{n:.0}"),
        n_abs if n_abs >= 9.995 => format!("{n:.1}"),
        n_abs if n_abs >= 0.0995 => format!("{n:.2}"),
        _ => format!("{n:.4}"),
    }
}

/// Returns the largest unit below a minute that is not larger than `nanos`, and its size.
fn small_unit(nanos: u128) -> (&'static str, u128) {
    [("s", SECOND), ("ms", 1_000_000), ("us", 1_000)]
        .into_iter()
        .find(|(_, size)| nanos >= *size)
        .unwrap_or(("ns", 1))
}

/// Returns the value of the third digit of `nanos`, which has one to three digits before the point
/// in units of `size`.
fn three_digits(nanos: u128, size: u128) -> u128 {
    let step = if nanos >= size * 100 {
        size
    } else if nanos >= size * 10 {
        size / 10
    } else {
        size / 100
    };
    step.max(1)
}

/// Formats `value / size` with as many decimal places as needed.
fn decimal(value: u128, size: u128) -> String {
    let mut text = format!("{}", value / size);
    let mut rest = value % size;
    if rest > 0 {
        text.push('.');
    }
    while rest > 0 {
        rest *= 10;
        text += &format!("{}", rest / size);
        rest %= size;
    }
    text
}

/// Formats `value` with the largest suffix that leaves at most one decimal place, or without a
/// suffix.
fn with_suffix(value: u64, suffixes: &[(&str, u64)]) -> String {
    for &(suffix, size) in suffixes {
        if value >= size && value.is_multiple_of(size / 10) {
            return format!("{}{suffix}", decimal(value.into(), size.into()));
        }
    }
    format!("{value}")
}

const SECOND: u128 = 1_000_000_000;
const MINUTE: u128 = 60 * SECOND;
const HOUR: u128 = 60 * MINUTE;

/// Largest value up to which floats represent every whole number.
const WHOLE_MAX: f64 = (1u64 << 53) as f64;
