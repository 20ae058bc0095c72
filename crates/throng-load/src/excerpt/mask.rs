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
    fn a_name_is_secret_by_one_of_its_words() {
        let secret = ["token", "access_token", "accessToken", "X-Api-Key", "Set-Cookie", "KEY"];
        let public = ["monkey", "keyboard", "room", "author", "sec-websocket-accept", "tokens_max"];
        assert!(secret.iter().all(|name| is_secret(name)), "{secret:?}");
        assert!(!public.iter().any(|name| is_secret(name)), "{public:?}");
    }
}
