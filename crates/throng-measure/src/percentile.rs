//! Percentiles by name: `p95`, `p99.99`.

use std::fmt;

use crate::{Histogram, LatencySummary};

/// A percentile above 0 and below 100, with at most four decimals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Percentile {
    /// The share of the values in ten-thousandths of a per cent.
    ten_thousandths: u32,
}

impl Percentile {
    /// Returns the percentile `name`: `p95`, `p99.99`, or `p999`, which is `p99.9`.
    pub fn named(name: &str) -> Option<Self> {
        if name == "p999" {
            return Some(Self { ten_thousandths: 999_000 });
        }
        let number = name.strip_prefix('p')?;
        let (whole, decimals) = match number.split_once('.') {
            Some((_, "")) => return None,
            Some(parts) => parts,
            None => (number, ""),
        };
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let has_leading_zero = whole.len() > 1 && whole.starts_with('0');
        if !(1..=2).contains(&whole.len()) || has_leading_zero || decimals.len() > DECIMALS {
            return None;
        }
        if !is_number(whole) || !is_number(decimals) {
            return None;
        }
        let ten_thousandths = format!("{whole}{decimals:0<DECIMALS$}").parse().ok()?;
        (ten_thousandths > 0).then_some(Self { ten_thousandths })
    }

    /// Returns the name that `mistyped` probably means: `p9999` means `p99.99`, `p100` means `max`.
    pub fn meant_by(mistyped: &str) -> Option<String> {
        let digits = mistyped.strip_prefix(['p', 'P']).unwrap_or(mistyped);
        if digits.parse() == Ok(100.0) {
            return Some("max".to_owned());
        }
        let decimals = digits.strip_prefix("99").filter(|rest| !rest.starts_with('.'));
        let candidates = [
            format!("p{digits}"),
            format!("p{}", digits.trim_start_matches('0')),
            decimals.map_or_else(String::new, |decimals| format!("p99.{decimals}")),
        ];
        candidates.into_iter().find(|name| name != mistyped && Self::named(name).is_some())
    }

    /// Returns the percentage: 99.9.
    pub fn percent(self) -> f64 {
        f64::from(self.ten_thousandths) / 1e4
    }

    /// Returns its name in the summary and in thresholds: `p95`, `p99.99`; of 99.9 it is `p999`.
    pub fn name(self) -> String {
        match self.ten_thousandths {
            999_000 => "p999".to_owned(),
            _ => self.to_string(),
        }
    }

    /// Returns the value that this percentage of the values do not exceed.
    pub fn of(self, histogram: &Histogram) -> u64 {
        histogram.percentile(self.percent())
    }

    /// Returns the value if a summary has this percentile.
    pub fn of_summary(self, summary: &LatencySummary) -> Option<u64> {
        Some(match self.ten_thousandths {
            500_000 => summary.p50,
            900_000 => summary.p90,
            950_000 => summary.p95,
            990_000 => summary.p99,
            999_000 => summary.p999,
            _ => return None,
        })
    }
}

impl fmt::Display for Percentile {
    /// Writes it without needless zeros: `p99.9`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, decimals) = (self.ten_thousandths / 10_000, self.ten_thousandths % 10_000);
        let decimals = format!("{decimals:0DECIMALS$}");
        match decimals.trim_end_matches('0') {
            "" => write!(f, "p{whole}"),
            decimals => write!(f, "p{whole}.{decimals}"),
        }
    }
}

/// The most decimals of a percentile.
const DECIMALS: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_known_by_its_name() {
        for (name, shown, percent) in [
            ("p50", "p50", 50.0),
            ("p5", "p5", 5.0),
            ("p0.1", "p0.1", 0.1),
            ("p95", "p95", 95.0),
            ("p99.9", "p99.9", 99.9),
            ("p999", "p99.9", 99.9),
            ("p99.90", "p99.9", 99.9),
            ("p99.99", "p99.99", 99.99),
            ("p99.0001", "p99.0001", 99.0001),
        ] {
            let percentile = Percentile::named(name).unwrap();
            assert_eq!((percentile.to_string().as_str(), percentile.percent()), (shown, percent));
            assert_eq!(Percentile::named(&percentile.name()), Some(percentile), "{name}");
        }
        assert_eq!(Percentile::named("p99.9").unwrap().name(), "p999");
    }

    #[test]
    fn anything_else_is_none() {
        for name in [
            "",
            "p",
            "p0",
            "p00",
            "p05",
            "p100",
            "p100.1",
            "p9999",
            "p99.",
            "p.5",
            "p99.99999",
            "p-5",
            "p+5",
            "p9 5",
            "95",
            "P95",
            "p9a",
            "p99.9.9",
            "p99,9",
            "pé5",
            "p0.0000",
        ] {
            assert_eq!(Percentile::named(name), None, "{name}");
        }
    }

    #[test]
    fn a_mistyped_one_has_a_suggestion() {
        for (mistyped, meant) in [
            ("p9999", Some("p99.99")),
            ("p100", Some("max")),
            ("p05", Some("p5")),
            ("P95", Some("p95")),
            ("95", Some("p95")),
            ("p0", None),
            ("p101", None),
            ("best", None),
        ] {
            assert_eq!(Percentile::meant_by(mistyped).as_deref(), meant, "{mistyped}");
        }
    }

    #[test]
    fn the_summary_has_the_usual_ones_as_the_histogram_has_them() {
        let mut histogram = Histogram::new();
        (1..=2_000).for_each(|us| histogram.record_us(us));
        let summary = LatencySummary::from(&histogram);
        for (name, us) in
            [("p50", 1_000), ("p90", 1_800), ("p95", 1_900), ("p99", 1_980), ("p99.9", 1_998)]
        {
            let percentile = Percentile::named(name).unwrap();
            assert_eq!(percentile.of(&histogram), us, "{name}");
            assert_eq!(percentile.of_summary(&summary), Some(us), "{name}");
        }
        let rare = Percentile::named("p99.95").unwrap();
        assert_eq!((rare.of(&histogram), rare.of_summary(&summary)), (1_999, None));
    }
}
