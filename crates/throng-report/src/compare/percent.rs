//! Changes as text.

use throng_base::units::brief_count;

/// Returns a ratio as a change in per cent, `+23 %`, or from ten times on as a factor, `×12`.
pub(super) fn percent(ratio: f64) -> String {
    let percent = 100.0 * (ratio - 1.0);
    match factor(ratio) {
        Some(factor) => format!("×{factor}"),
        None if digits(percent) == "0" => "0 %".to_owned(),
        None => format!("{}{} %", if percent < 0.0 { "-" } else { "+" }, digits(percent.abs())),
    }
}

/// Returns a ratio from ten on as `264`: a reader has to divide per cents of this size.
pub(super) fn factor(ratio: f64) -> Option<String> {
    (ratio >= FACTOR_LEAST).then(|| match ratio {
        small if small < 10_000.0 => digits(small),
        large if large < 1e6 => brief_count(large),
        _ => "1M+".to_owned(),
    })
}

/// The smallest ratio that is not shown in per cent.
const FACTOR_LEAST: f64 = 10.0;

/// Returns one decimal below ten, and none from there.
pub(super) fn digits(n: f64) -> String {
    let text = if n.abs() < 9.95 { format!("{n:.1}") } else { format!("{n:.0}") };
    let text = text.strip_suffix(".0").unwrap_or(&text);
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_a_change_in_per_cent() {
        let check = |ratio: f64, text: &str| assert_eq!(percent(ratio), text);
        check(1.0, "0 %");
        check(1.0001, "0 %");
        check(1.234, "+23 %");
        check(1.05, "+5 %");
        check(0.9321, "-6.8 %");
        check(9.9, "+890 %");
        check(12.0, "×12");
        check(263.92, "×264");
        check(5_000.0, "×5000");
        check(424_847.0, "×425k");
        check(0.0, "-100 %");
    }
}
