//! How many attributes one element has: the parser compares each with all before it.

use throng_load::scenario::Diagnostic;

/// Reports an element with too many attributes.
pub(super) fn check(text: &str) -> Result<(), Diagnostic> {
    let mut at = 0;
    while let Some(found) = text[at..].find('<') {
        at += found;
        let rest = &text[at..];
        let skipped = [("<!--", "-->"), ("<![CDATA[", "]]>"), ("<?", "?>")];
        if let Some((_, end)) = skipped.iter().find(|(begin, _)| rest.starts_with(begin)) {
            at += rest.find(end).map_or(rest.len(), |length| length + end.len());
            continue;
        }
        at += check_tag(rest, at)?;
    }
    Ok(())
}

/// Reports too many attributes in the tag at the beginning of `rest`. Returns its length.
fn check_tag(rest: &str, at: usize) -> Result<usize, Diagnostic> {
    let (mut count, mut quote) = (0, None);
    for (place, sign) in rest.bytes().enumerate().skip(1) {
        match (quote, sign) {
            (Some(open), sign) if open == sign => quote = None,
            (Some(_), _) => {}
            (None, b'"' | b'\'') => {
                quote = Some(sign);
                count += 1;
                if count > ATTRIBUTES_MAX {
                    let title = "this element has too many attributes";
                    let label = format!("expected at most {ATTRIBUTES_MAX}");
                    return Err(Diagnostic::new(at..at + 1, title, label));
                }
            }
            (None, b'>') => return Ok(place + 1),
            _ => {}
        }
    }
    Ok(rest.len())
}

/// The most attributes of one element: tsung has at most 13.
const ATTRIBUTES_MAX: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_element_has_a_bounded_number_of_attributes() {
        let element = |count: usize| {
            let attributes: String = (0..count).map(|n| format!(" a{n}='>'")).collect();
            format!("<?x a='?><!-- ' --><![CDATA[ \" ]]><t{attributes}><t b=\"<\"/></t>")
        };
        assert!(check(&element(100)).is_ok());
        let mistake = check(&element(101)).unwrap_err();
        assert_eq!(mistake.span.start, element(0).find("<t>").unwrap());
        assert!(check("<").is_ok() && check("<!--").is_ok() && check("<a b='").is_ok());
    }
}
