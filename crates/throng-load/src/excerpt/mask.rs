//! Masking of secrets: `***` in place of a value.

use std::borrow::Cow;

/// Returns at most `bytes_max` bytes, in which `***` stands for each secret, and whether more bytes
/// follow. A secret at the cut is masked as a whole.
pub(super) fn without_secrets<'a>(
    bytes: &'a [u8],
    bytes_max: usize,
    secrets: &[String],
) -> (Cow<'a, [u8]>, bool) {
    let is_cut = bytes.len() > bytes_max;
    let end = bytes.len().min(bytes_max);
    if secrets.iter().all(String::is_empty) {
        return (Cow::Borrowed(&bytes[..end]), is_cut);
    }
    let mut masked = Vec::with_capacity(end);
    let mut at = 0;
    while at < end {
        let begins = |secret: &&String| bytes[at..].starts_with(secret.as_bytes());
        let secrets = secrets.iter().filter(|secret| !secret.is_empty());
        match secrets.filter(begins).map(String::len).max() {
            Some(length) => {
                masked.extend_from_slice(MASK.as_bytes());
                at += length;
            }
            None => {
                masked.push(bytes[at]);
                at += 1;
            }
        }
    }
    (Cow::Owned(masked), is_cut)
}

/// Returns where the secret begins that byte `at` is inside of; else `at`.
pub(super) fn begin_of_secret(bytes: &[u8], at: usize, secrets: &[String]) -> usize {
    let of_secret = |secret: &String| {
        let first = (at + 1).saturating_sub(secret.len());
        (first..at).find(|from| bytes[*from..].starts_with(secret.as_bytes()))
    };
    let secrets = secrets.iter().filter(|secret| !secret.is_empty());
    secrets.filter_map(of_secret).min().unwrap_or(at)
}

/// Masks secrets in the head of an HTTP message, whose lines may end with CR, LF or both. A line
/// that begins with a blank continues the field before it.
pub(super) fn head(text: &str) -> String {
    let mut masked = String::new();
    let (mut is_first, mut is_hidden) = (true, false);
    for piece in text.split_inclusive(['\r', '\n']) {
        let line = piece.trim_end_matches(['\r', '\n']);
        let line_end = &piece[line.len()..];
        if !line.is_empty() {
            let name = line.split_once(':').map(|(name, _)| name);
            // A field's name has no blanks; the first line of a request has.
            let name = name.filter(|name| !is_first || !name.contains(' '));
            let is_continued = line.starts_with([' ', '\t']) && is_hidden;
            let is_field = name.is_some_and(is_secret);
            masked += &match name.filter(|_| is_field && !is_continued) {
                Some(name) if is_set_cookie(name) => {
                    format!("{name}: {}", set_cookie(&line[name.len() + 1..]))
                }
                Some(name) => format!("{name}: {MASK}"),
                None if is_continued => format!(" {MASK}"),
                None => query(line),
            };
            (is_first, is_hidden) = (false, is_field || is_continued);
        }
        masked += line_end;
    }
    masked
}

fn is_set_cookie(name: &str) -> bool {
    name.trim().eq_ignore_ascii_case("set-cookie")
}

/// Masks the value of a cookie, and each part that is no attribute of one.
fn set_cookie(field: &str) -> String {
    let mut parts = field.split(';').map(str::trim_ascii);
    let pair = parts.next().unwrap_or_default();
    let mut masked = match pair.split_once('=') {
        Some((name, _)) => format!("{name}={MASK}"),
        None => MASK.to_owned(),
    };
    for part in parts {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        let is_known = ATTRIBUTES.iter().any(|known| name.trim().eq_ignore_ascii_case(known));
        // Another cookie may follow an attribute, where a proxy has joined two fields.
        let is_one = !value.contains(['=', '"']);
        masked += "; ";
        masked += if is_known && is_one { part } else { MASK };
    }
    masked
}

/// Masks the values of secret query parameters in all URLs of a line.
fn query(line: &str) -> String {
    let mut masked = String::new();
    let mut rest = line;
    while let Some(mark) = rest.find(['?', '&']) {
        let (before, after) = rest.split_at(mark + 1);
        masked += before;
        rest = after;
        let end = rest.find(['&', ' ', '#', '"', '\r']).unwrap_or(rest.len());
        if let Some((name, _)) = rest[..end].split_once('=').filter(|(name, _)| is_secret(name)) {
            masked += &format!("{name}={MASK}");
            rest = &rest[end..];
        }
    }
    masked + rest
}

/// Masks the values of secret members of JSON, and of secret parameters of a form or a URL.
pub(super) fn body(text: &str) -> String {
    let mut masked = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('"') {
        let marks = backslashes_before(rest, at);
        let (name, after) = match quoted(&rest[at + 1..], marks) {
            Some((name, after)) if is_secret_member(name) => (name, after),
            // A secret name may begin at the next quotation mark.
            _ => {
                masked += &rest[..=at];
                rest = &rest[at + 1..];
                continue;
            }
        };
        let value = after.trim_start().strip_prefix(':').map(str::trim_start);
        let Some(value) = value else {
            masked += &rest[..at + 1 + name.len()];
            rest = &rest[at + 1 + name.len()..];
            continue;
        };
        masked += &rest[..rest.len() - value.len()];
        rest = match value.trim_start_matches('\\').strip_prefix('"') {
            Some(inside) => {
                let mark = &value[..value.len() - inside.len()];
                let hidden = quoted(inside, marks).map_or(inside.len(), |(hidden, _)| hidden.len());
                masked += mark;
                masked += MASK;
                &inside[hidden..]
            }
            // What is inside an object or a list has names of its own.
            None if value.starts_with(['{', '[']) => value,
            None => {
                masked += MASK;
                &value[value.find([',', '}', ']']).unwrap_or(value.len())..]
            }
        };
    }
    form(&(masked + rest))
}

/// Returns the text before the next quotation mark that has `marks` backslashes before it, and what
/// follows the mark.
fn quoted(text: &str, marks: usize) -> Option<(&str, &str)> {
    let mut ends = text.match_indices('"').map(|(at, _)| at);
    let is_end = |at: &usize| match backslashes_before(text, *at) {
        found if marks == 0 => found % 2 == 0,
        found => found == marks,
    };
    let at = ends.find(is_end)?;
    Some((&text[..at - marks], &text[at + 1..]))
}

fn backslashes_before(text: &str, at: usize) -> usize {
    text[..at].len() - text[..at].trim_end_matches('\\').len()
}

/// Masks the values of secret parameters, in a form as in the URLs of a text.
fn form(text: &str) -> String {
    let end = text.find(['&', ' ', '\n', '"']).unwrap_or(text.len());
    match text[..end].split_once('=') {
        Some((name, _)) if is_secret_member(name) => {
            format!("{name}={MASK}{}", query(&text[end..]))
        }
        _ => query(text),
    }
}

/// Reports whether a member of a body of this name carries a secret. A body has more names than a
/// head: a `key` may be that of an item.
fn is_secret_member(name: &str) -> bool {
    let name = name.trim();
    let is_simple = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'));
    is_simple && !PUBLIC_MEMBERS.contains(&name.to_ascii_lowercase().as_str()) && is_secret(name)
}

/// Reports whether a header field or a query parameter of this name carries a secret: one of its
/// words is known, or it ends with one.
fn is_secret(name: &str) -> bool {
    let name = name.trim().to_ascii_lowercase();
    let mut words = name.split(|c: char| !c.is_ascii_alphanumeric());
    words.any(|word| WORDS.contains(&word)) || ENDINGS.iter().any(|end| name.ends_with(end))
}

const MASK: &str = "***";

const WORDS: [&str; 15] = [
    "token",
    "key",
    "secret",
    "password",
    "passwd",
    "pwd",
    "auth",
    "authorization",
    "cookie",
    "jwt",
    "apikey",
    "credential",
    "credentials",
    "signature",
    "sig",
];

/// Members of a body that are hardly ever secrets.
const PUBLIC_MEMBERS: [&str; 4] = ["key", "sig", "signature", "auth"];

/// Attributes of cookies, which are no secrets.
const ATTRIBUTES: [&str; 9] = [
    "domain",
    "expires",
    "httponly",
    "max-age",
    "partitioned",
    "path",
    "priority",
    "samesite",
    "secure",
];

/// Endings of names that are written as one word: `accessToken`.
const ENDINGS: [&str; 4] = ["token", "secret", "password", "apikey"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_inside_a_secret_is_found_with_its_beginning() {
        let secrets = ["hunter2".to_owned(), String::new()];
        let begin = |at| begin_of_secret(b"pw=hunter2;", at, &secrets);
        assert_eq!([begin(0), begin(3), begin(4), begin(9), begin(10)], [0, 3, 3, 3, 10]);
    }

    #[test]
    fn a_cookie_shows_its_name_and_its_attributes() {
        for (field, shown) in [
            ("sid=abc; Path=/; HttpOnly; Max-Age=9", "sid=***; Path=/; HttpOnly; Max-Age=9"),
            (
                "sid = a=b ;expires=Thu, 01 Jan 2026 00:00:00 GMT;Secure",
                "sid =***; expires=Thu, 01 Jan 2026 00:00:00 GMT; Secure",
            ),
            ("abc; secure", "***; secure"),
            ("sid=\"a; abc\"; SameSite=Lax", "sid=***; ***; SameSite=Lax"),
            ("sid=a; Path=/, token=abc; abc=d", "sid=***; ***; ***"),
            ("", "***"),
        ] {
            let text = format!("HTTP/1.1 200 OK\r\nSet-Cookie: {field}\r\n");
            let expected = format!("HTTP/1.1 200 OK\r\nSet-Cookie: {shown}\r\n");
            assert_eq!(head(&text), expected, "{field}");
        }
    }

    #[test]
    fn members_of_json_are_masked_by_their_name() {
        for (text, shown) in [
            (r#"{"token":"abc","id":7}"#, r#"{"token":"***","id":7}"#),
            (
                r#"{ "a" : 1, "api_key" : "a\"b" , "b":2}"#,
                r#"{ "a" : 1, "api_key" : "***" , "b":2}"#,
            ),
            (r#"{"password":12345,"b":[1]}"#, r#"{"password":***,"b":[1]}"#),
            (r#"{"token":{"id":7,"secret":"abc"}}"#, r#"{"token":{"id":7,"secret":"***"}}"#),
            (r#"{"key":"item-7","tokens_max":9}"#, r#"{"key":"item-7","tokens_max":9}"#),
            (r#"["token","abc"]"#, r#"["token","abc"]"#),
            (r#"say "token": no"#, r#"say "token": ***"#),
            (
                r#"{"body":"{\"token\":\"abc\",\"id\":7}"}"#,
                r#"{"body":"{\"token\":\"***\",\"id\":7}"}"#,
            ),
            (r#"{"token":"abc"#, r#"{"token":"***"#),
            ("token=abc&id=7", "token=***&id=7"),
            ("id=7&token=abc", "id=7&token=***"),
            ("a=b", "a=b"),
        ] {
            assert_eq!(body(text), shown, "{text}");
        }
    }

    #[test]
    fn a_name_is_secret_by_one_of_its_words() {
        let secret = ["token", "access_token", "accessToken", "X-Api-Key", "Set-Cookie", "KEY"];
        let public = ["monkey", "keyboard", "room", "author", "sec-websocket-accept", "tokens_max"];
        assert!(secret.iter().all(|name| is_secret(name)), "{secret:?}");
        assert!(!public.iter().any(|name| is_secret(name)), "{public:?}");
    }
}
