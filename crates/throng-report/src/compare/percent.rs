//! Changes as text.

/// Returns a ratio as a change in per cent, `+23 %`, or from ten times on as `x12`.
pub(super) fn percent(ratio: f64) -> String {
    let percent = 100.0 * (ratio - 1.0);
    match ratio {
        _ if ratio >= 1_000.0 => "x1000+".to_owned(),
        _ if ratio >= 10.0 => format!("x{}", digits(ratio)),
        _ if digits(percent) == "0" => "0 %".to_owned(),
        _ => format!("{}{} %", if percent < 0.0 { "-" } else { "+" }, digits(percent.abs())),
    }
}

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
        check(12.0, "x12");
        check(5_000.0, "x1000+");
        check(0.0, "-100 %");
    }
}
