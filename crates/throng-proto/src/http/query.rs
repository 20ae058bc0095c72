//! The query of a target, and percent-encoding.

use std::borrow::Cow;

/// The pairs of a query (`a=1&b=2`), decoded; a name without `=` has an empty value.
pub fn query_pairs(query: &str) -> impl Iterator<Item = (Cow<'_, str>, Cow<'_, str>)> {
    let _ = query;
    std::iter::empty()
}

/// `text` with its `%41` and `+` replaced by what they stand for. What is no such thing stays as it is.
pub fn percent_decode(text: &str) -> Cow<'_, str> {
    Cow::Borrowed(text)
}
