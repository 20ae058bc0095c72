//! Texts of a scenario: what is literal, and what is a variable.

/// Returns a text in which nothing is a variable of the scenario.
pub(crate) fn escape(text: &str) -> String {
    text.replace("${", "$${")
}

/// Appends a part, which may begin with a variable. A `$` before it stays one.
pub(crate) fn append(text: &mut String, part: &str) {
    if text.ends_with('$') && part.starts_with(['{', '$']) {
        text.pop();
        text.push_str("${'$'}");
    }
    text.push_str(part);
}

/// Returns a text of this many random digits.
pub(crate) fn random_digits(length: u64) -> String {
    let part = |digits: u64| {
        let low = if digits == 1 { 0 } else { 10u64.pow(digits as u32 - 1) };
        format!("${{random({low},{})}}", 10u64.pow(digits as u32) - 1)
    };
    let whole = part(RANDOM_DIGITS).repeat((length / RANDOM_DIGITS) as usize);
    match length % RANDOM_DIGITS {
        0 => whole,
        rest => whole + &part(rest),
    }
}

/// Digits of one random number.
const RANDOM_DIGITS: u64 = 10;

/// The longest random text that an import writes.
pub(crate) const RANDOM_CHARS_MAX: u64 = 1_024;

/// Returns bytes as a scenario writes them: pairs of hexadecimal digits, with spaces between them,
/// so that YAML reads no number.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
}

/// Returns the variable that is the text in base64; `None` if a variable cannot hold the text.
pub(crate) fn base64(text: &str) -> Option<String> {
    let fits = !text.contains(['\'', '{', '}', '$']);
    fits.then(|| format!("${{base64('{text}')}}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dollar_before_a_variable_stays_one() {
        let mut text = escape("a ${b} costs $");
        append(&mut text, "${price}");
        assert_eq!(text, "a $${b} costs ${'$'}${price}");
    }
}
