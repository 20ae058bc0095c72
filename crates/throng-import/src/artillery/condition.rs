//! `ifTrue`: a comparison of two values.

use crate::text::escape;

/// Returns the condition in the scenario's words; `None` if it is more than a comparison. `value`
/// returns the text of a variable.
pub(super) fn translate(
    text: &str,
    mut value: impl FnMut(&str) -> Option<String>,
) -> Option<String> {
    let text = text.trim();
    let text = text.strip_prefix("{{").and_then(|text| text.strip_suffix("}}")).unwrap_or(text);
    for (sign, ours) in SIGNS {
        let Some((left, right)) = text.split_once(sign) else { continue };
        let (left, right) = (operand(left, &mut value)?, operand(right, &mut value)?);
        return Some(format!("{left} {ours} {right}"));
    }
    operand(text, &mut value)
}

/// Returns a number, a text or a variable.
fn operand(text: &str, value: &mut impl FnMut(&str) -> Option<String>) -> Option<String> {
    let text = text.trim();
    let unquoted = ['"', '\'']
        .iter()
        .find_map(|quote| text.strip_prefix(*quote).and_then(|text| text.strip_suffix(*quote)));
    if let Some(unquoted) = unquoted {
        let is_word = unquoted.chars().all(|c| c.is_alphanumeric() || "_-. ".contains(c));
        return (is_word && !unquoted.trim().is_empty()).then(|| escape(unquoted));
    }
    if matches!(text, "true" | "false") || text.parse::<f64>().is_ok_and(f64::is_finite) {
        return Some(text.to_owned());
    }
    let is_name = |c: char| c.is_ascii_alphanumeric() || "_$.".contains(c);
    (!text.is_empty() && text.chars().all(is_name)).then(|| value(text)).flatten()
}

/// The signs of comparisons, the longer ones first, each with the scenario's.
const SIGNS: [(&str, &str); 8] = [
    ("===", "=="),
    ("!==", "!="),
    ("==", "=="),
    ("!=", "!="),
    ("<=", "<="),
    (">=", ">="),
    ("<", "<"),
    (">", ">"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comparison_is_a_condition() {
        for (text, expected) in [
            ("page < 10", Some("${page} < 10")),
            ("page === 'last'", Some("${page} == last")),
            ("token", Some("${token}")),
            ("{{ page != 3 }}", Some("${page} != 3")),
            ("a && b", None),
            ("f(x)", None),
            ("!page", None),
        ] {
            let value = |name: &str| Some(format!("${{{name}}}"));
            assert_eq!(translate(text, value).as_deref(), expected, "{text}");
        }
    }
}
