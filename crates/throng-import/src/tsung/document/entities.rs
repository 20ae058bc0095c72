//! How long the text becomes when entities stand in the places of their names: counted before the
//! parser puts them there.

use std::collections::HashMap;

use throng_load::scenario::Diagnostic;

/// Reports the name of an entity with which the text is more than ten times as long.
pub(super) fn check(text: &str) -> Result<(), Diagnostic> {
    let values = declared(text);
    if values.is_empty() {
        return Ok(());
    }
    let mut lengths = HashMap::new();
    let bytes_max = EXPANSION_RATIO_MAX * text.len() as u64;
    let mut bytes = text.len() as u64;
    // A name in the document type counts once more where its entity is used.
    for (at, name) in references(text) {
        bytes = bytes.saturating_add(length_of(name, &values, &mut lengths, 0));
        if bytes > bytes_max {
            let title = "the file is too long once its entities stand in the places of their names";
            let label = format!(
                "more than {bytes_max} bytes by here: at most {EXPANSION_RATIO_MAX} times the file"
            );
            return Err(Diagnostic::new(at..at + name.len() + 2, title, label)
                .help("write the texts out, in a shorter file"));
        }
    }
    Ok(())
}

/// Returns the values of the entities that the text declares, by their names. Of one that is
/// declared twice, all count.
fn declared(text: &str) -> HashMap<&str, Vec<&str>> {
    let mut values = HashMap::<&str, Vec<&str>>::new();
    for (at, keyword) in text.match_indices("<!ENTITY") {
        let rest = text[at + keyword.len()..].trim_start();
        let Some((name, rest)) = rest.split_once(char::is_whitespace) else { continue };
        let rest = rest.trim_start();
        let Some(quote) = rest.chars().next().filter(|sign| matches!(sign, '"' | '\'')) else {
            continue;
        };
        let value = rest[1..].split(quote).next().unwrap_or_default();
        values.entry(name).or_default().push(value);
    }
    values
}

/// Iterates over the names of entities in a text, `&name;`, each with its place.
fn references(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.match_indices('&').filter_map(|(at, _)| {
        let rest = &text[at + 1..];
        let end = rest.find(|sign: char| sign == ';' || sign == '&' || sign.is_whitespace())?;
        rest[end..].starts_with(';').then(|| (at, &rest[..end]))
    })
}

/// Returns how long an entity becomes when those in it stand in their places, too.
fn length_of<'t>(
    name: &'t str,
    values: &HashMap<&'t str, Vec<&'t str>>,
    lengths: &mut HashMap<&'t str, u64>,
    depth: usize,
) -> u64 {
    if let Some(known) = lengths.get(name) {
        return *known;
    }
    let Some(values_of_name) = values.get(name) else { return 0 };
    if depth > DEPTH_MAX {
        // The parser reports entities that are nested deeper, and those that have no end.
        return 0;
    }
    lengths.insert(name, 0);
    let mut length = 0_u64;
    for value in values_of_name {
        length = length.saturating_add(value.len() as u64);
        for (_, inner) in references(value) {
            length = length.saturating_add(length_of(inner, values, lengths, depth + 1));
        }
    }
    lengths.insert(name, length);
    length
}

/// The longest text with entities in their places, as a multiple of the file.
const EXPANSION_RATIO_MAX: u64 = 10;

/// Deepest entity in entities: the parser takes fewer levels.
const DEPTH_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn file(entities: &str, body: &str) -> String {
        format!("<!DOCTYPE tsung [{entities}]>\n<tsung>{body}</tsung>")
    }

    #[test]
    fn a_text_of_ten_times_the_file_is_refused() {
        let big = format!("<!ENTITY b \"{}\">", "x".repeat(10_000));
        let few = file(&big, &"&b;".repeat(8));
        assert!(check(&few).is_ok());
        let many = file(&big, &format!("<a b='{}'/>", "&b;".repeat(10)));
        let mistake = check(&many).unwrap_err();
        assert_eq!(&many[mistake.span.clone()], "&b;");
        assert!(mistake.label.contains("at most 10 times the file"), "{}", mistake.label);
    }

    #[test]
    fn entities_of_entities_are_counted_whole() {
        let mut entities = "<!ENTITY e0 'xxxxxxxxxx'>".to_owned();
        for level in 1..9 {
            let inner = format!("&e{};", level - 1).repeat(10);
            entities += &format!("<!ENTITY e{level} '{inner}'>");
        }
        assert!(check(&file(&entities, "&e8;")).is_err());
        assert!(check(&file(&entities, "&e1;")).is_err(), "those of the document type count, too");
    }

    #[test]
    fn names_without_an_end_and_external_ones_count_nothing() {
        let entities = "<!ENTITY a '&b;'><!ENTITY b '&a;'><!ENTITY c SYSTEM 'file'>";
        assert!(check(&file(entities, "&a;&c;&amp;&#10;& &;")).is_ok());
        assert!(check("<!ENTITY").is_ok() && check("<!ENTITY a").is_ok() && check("&").is_ok());
    }
}
