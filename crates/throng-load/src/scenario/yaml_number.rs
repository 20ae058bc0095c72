//! Numbers of YAML, which has more forms of them than JSON: `.5`, `+1`, `0x1F`, `1_000`.

/// Converts a number of YAML (1.2.2 section 10.3.2, and the underscores and binary digits of 1.1
/// section 10.2, which readers still know) to one of JSON. `Err` says why it is none.
pub(crate) fn to_json(text: &str) -> Result<String, &'static str> {
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    match rest.to_ascii_lowercase().as_str() {
        ".inf" => return Err("JSON has no infinity"),
        ".nan" => return Err("JSON has no number that is none"),
        _ => {}
    }
    let digits = rest.replace('_', "");
    if rest.starts_with('_') || rest.ends_with('_') {
        return Err(NO_NUMBER);
    }
    let radix = match digits.get(..2) {
        Some("0x" | "0X") => 16,
        Some("0o" | "0O") => 8,
        Some("0b" | "0B") => 2,
        _ => return decimal(&digits).map(|number| format!("{sign}{number}")),
    };
    if digits.len() == 2 || !digits[2..].chars().all(|digit| digit.is_digit(radix)) {
        return Err(NO_NUMBER);
    }
    let number = u128::from_str_radix(&digits[2..], radix).map_err(|_| "at most 128 bits")?;
    Ok(format!("{sign}{number}"))
}

/// Converts a decimal number without a sign. No digit that counts is lost, however many there are.
fn decimal(text: &str) -> Result<String, &'static str> {
    let at = text.find(['e', 'E']).unwrap_or(text.len());
    let (mantissa, exponent) = text.split_at(at);
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let power = exponent.get(1..).map(|power| power.trim_start_matches(['+', '-']));
    let has_power = power.is_none_or(|power| !power.is_empty() && are_digits(power));
    let has_digit = !whole.is_empty() || !fraction.is_empty();
    if !has_digit || !has_power || !are_digits(whole) || !are_digits(fraction) {
        return Err(NO_NUMBER);
    }
    let whole = match whole.trim_start_matches('0') {
        "" => "0",
        whole => whole,
    };
    let dot = if fraction.is_empty() { "" } else { "." };
    Ok(format!("{whole}{dot}{fraction}{exponent}"))
}

const NO_NUMBER: &str = "not a number; put it in quotes to make it a text";

#[cfg(test)]
mod tests {
    use throng_proto::phoenix::json;

    use super::*;

    #[test]
    fn each_form_of_a_number_has_one_in_json() {
        for (yaml, number) in [
            ("0", "0"),
            ("-2.50e3", "-2.50e3"),
            (".5", "0.5"),
            ("-.5", "-0.5"),
            ("+1", "1"),
            ("1.", "1"),
            ("1.e+3", "1e+3"),
            (".5E-1", "0.5E-1"),
            ("0x1F", "31"),
            ("-0xff", "-255"),
            ("0o17", "15"),
            ("0b101", "5"),
            ("017", "17"),
            ("007.5", "7.5"),
            ("00", "0"),
            ("1_000", "1000"),
            ("1_000.000_1", "1000.0001"),
            ("0xFF_FF", "65535"),
            ("123456789012345678901234567890", "123456789012345678901234567890"),
        ] {
            assert_eq!(to_json(yaml).as_deref(), Ok(number), "{yaml}");
            assert!(json::is_valid(number), "{number}");
        }
    }

    #[test]
    fn what_is_no_number_of_json_is_refused_with_its_reason() {
        for (yaml, says) in [
            (".inf", "infinity"),
            ("-.Inf", "infinity"),
            (".NaN", "that is none"),
            (".", "not a number"),
            ("1e", "not a number"),
            ("1e+", "not a number"),
            ("0x", "not a number"),
            ("0o8", "not a number"),
            ("_1", "not a number"),
            ("1.2.3", "not a number"),
            ("0x100000000000000000000000000000000", "128 bits"),
        ] {
            assert!(to_json(yaml).is_err_and(|why| why.contains(says)), "{yaml}");
        }
    }
}
