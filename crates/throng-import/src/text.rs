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
