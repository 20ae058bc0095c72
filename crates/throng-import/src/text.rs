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
