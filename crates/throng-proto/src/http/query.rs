//! The query of a target, and percent-encoding.

use std::borrow::Cow;

/// Returns the decoded pairs of a query (`a=1&b=2`). A name without `=` has an empty value; empty
/// pairs are skipped.
pub fn query_pairs(query: &str) -> impl Iterator<Item = (Cow<'_, str>, Cow<'_, str>)> {
    query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (percent_decode(name), percent_decode(value))
    })
}

/// Decodes `%41` and `+` in the text of a query, as in URL-encoded forms. A `%` without two hex
/// digits stays as it is. Invalid UTF-8 in the result becomes the replacement character.
pub fn percent_decode(text: &str) -> Cow<'_, str> {
    if !text.contains(['%', '+']) {
        return Cow::Borrowed(text);
    }
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let (byte, width) = match bytes[at] {
            b'+' => (b' ', 1),
            b'%' => hex_pair(&bytes[at + 1..]).map_or((b'%', 1), |byte| (byte, 3)),
            byte => (byte, 1),
        };
        decoded.push(byte);
        at += width;
    }
    Cow::Owned(match String::from_utf8(decoded) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    })
}

fn hex_pair(bytes: &[u8]) -> Option<u8> {
    let digit = |at: usize| bytes.get(at).and_then(|&byte| char::from(byte).to_digit(16));
    Some((digit(0)? * 16 + digit(1)?) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_decoded() {
        let pairs: Vec<(String, String)> =
            query_pairs("vsn=2.0.0&&user=a%20b+c&flag&x=1=2&%C3%A9=")
                .map(|(name, value)| (name.into_owned(), value.into_owned()))
                .collect();
        let expected = [("vsn", "2.0.0"), ("user", "a b c"), ("flag", ""), ("x", "1=2"), ("é", "")];
        assert_eq!(pairs, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }

    #[test]
    fn a_percent_without_hex_digits_stays_and_bad_utf8_is_replaced() {
        assert!(matches!(percent_decode("plain"), Cow::Borrowed("plain")));
        assert_eq!(percent_decode("100%"), "100%");
        assert_eq!(percent_decode("%4"), "%4");
        assert_eq!(percent_decode("%zz%41"), "%zzA");
        assert_eq!(percent_decode("%ff"), "\u{fffd}");
    }
}
