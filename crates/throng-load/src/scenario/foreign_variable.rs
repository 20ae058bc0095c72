//! Variables as other tools write them: `{{ user.id }}`. They stay in a text as they are.

use super::Diagnostic;

/// Returns a warning about each variable in `source` that is written as other tools do.
pub(crate) fn warnings(source: &str) -> Vec<Diagnostic> {
    let mut found: Vec<Diagnostic> = Vec::new();
    let mut begin = 0;
    for line in source.split_inclusive('\n') {
        let text = line.find('#').filter(|at| line[..*at].trim_end().len() < *at || *at == 0);
        let text = &line[..text.unwrap_or(line.len())];
        for (at, _) in text.match_indices("{{") {
            let Some(length) = text[at..].find("}}") else { continue };
            let name = text[at + 2..at + length].trim();
            let whole = &text[at..at + length + 2];
            let title = format!("`{whole}` is no variable: it stays as it is");
            if is_name(name) && found.iter().all(|other| other.title != title) {
                let span = begin + at..begin + at + whole.len();
                let label =
                    format!("a variable is written `${{{}}}`", name.trim_start_matches('$'));
                found.push(Diagnostic::new(span, title, label));
            }
        }
        begin += line.len();
    }
    found
}

/// Reports whether other tools may call a variable so.
fn is_name(text: &str) -> bool {
    let is_part = |sign: char| sign.is_alphanumeric() || "_.$()".contains(sign);
    text.starts_with(|sign: char| sign.is_alphabetic() || "_$".contains(sign))
        && text.chars().all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_name_in_two_braces_is_a_variable_of_another_tool() {
        for (source, labels) in [
            ("send: \"hi {{ user.id }}\"\n", &["a variable is written `${user.id}`"][..]),
            ("get: \"/{{id}}/{{ id }}\"", &["a variable is written `${id}`"; 2]),
            ("send: '{{ $uuid() }}' # {{ no }}", &["a variable is written `${uuid()}`"]),
            ("# {{ id }}\nsend: '{{ a b }}'\n", &[]),
            ("send: {json: {a: {b: {{}}}}}", &[]),
            ("send: 'é #1 {{x}}'", &[]),
        ] {
            let found: Vec<_> = warnings(source).into_iter().map(|it| it.label).collect();
            assert_eq!(found, labels, "{source}");
        }
    }
}
