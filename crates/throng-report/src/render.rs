//! Numbers as people read them: units, tables, the final report, the line of an interval. No colours.

mod outcome;
mod progress;
mod report;
mod table;
mod wrap;

pub use progress::{broadcast_progress, paused, progress_line};
pub use report::{findings, render_text};
pub use table::{Align, Table};
pub use wrap::wrap;

/// A count: `950`, `1.2k`, `100k`, `3.4M`.
pub fn count(n: f64) -> String {
    throng_base::units::brief_count(n)
}

/// A rate: `1.2k/s`.
pub fn rate(per_second: f64) -> String {
    format!("{}/s", count(per_second))
}

/// Bytes: `950 B`, `12.3 MiB`.
pub fn bytes(n: f64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let (mut n, mut unit) = (n, 0);
    // 1023.96 would be shown as 1024: it is already one of the next unit.
    while n >= 1023.95 && unit + 1 < UNITS.len() {
        n /= 1024.0;
        unit += 1;
    }
    format!("{} {}", digits(n), UNITS[unit])
}

/// Microseconds: `85 µs`, `3.40 ms`, `1.20 s`.
pub fn micros(us: u64) -> String {
    match us {
        0..1000 => format!("{us} µs"),
        1000..1_000_000 => format!("{} ms", digits(us as f64 / 1e3)),
        _ => format!("{} s", digits(us as f64 / 1e6)),
    }
}

/// A share: `1.2 %`.
pub fn percent(share: f64) -> String {
    format!("{} %", digits(share * 100.0))
}

/// `-` for what was not measured.
pub fn or_dash<T>(value: Option<T>, show: impl Fn(T) -> String) -> String {
    value.map_or_else(|| "-".to_owned(), show)
}

/// Three digits: `3.40`, `12.3`, `123`.
fn digits(n: f64) -> String {
    match n.abs() {
        n_abs if n_abs == 0.0 || n_abs >= 99.95 => format!("{n:.0}"),
        n_abs if n_abs >= 9.995 => format!("{n:.1}"),
        n_abs if n_abs >= 0.0995 => format!("{n:.2}"),
        _ => format!("{n:.4}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_and_a_unit() {
        assert_eq!([0.0, 12.5, 1234.0, 3.4e6].map(count), ["0", "12.5", "1.23k", "3.4M"]);
        assert_eq!(
            [512.0, 1023.97, 2048.0, 12.34 * 1048576.0].map(bytes),
            ["512 B", "1.00 KiB", "2.00 KiB", "12.3 MiB"]
        );
        assert_eq!(
            [85, 3400, 100_000, 1_200_000].map(micros),
            ["85 µs", "3.40 ms", "100 ms", "1.20 s"]
        );
        assert_eq!([0.0001, 0.0123, 1.0].map(percent), ["0.0100 %", "1.23 %", "100 %"]);
        assert_eq!(rate(1000.0), "1k/s");
        assert_eq!(or_dash(None, rate), "-");
    }
}
