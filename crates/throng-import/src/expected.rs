//! What a mistake says about a name that is none of those that are known.

use throng_base::units::nearest;

/// Returns the known name that looks like `name`, as a question; or else `otherwise`.
pub(crate) fn near_or<'k>(
    name: &str,
    known: impl IntoIterator<Item = &'k str>,
    otherwise: impl Into<String>,
) -> String {
    match nearest(name, known) {
        Some(near) => format!("did you mean `{near}`?"),
        None => otherwise.into(),
    }
}

/// Returns the known name that looks like `name`, as a question; or else all of them.
pub(crate) fn one_of(name: &str, known: &[&str]) -> String {
    near_or(name, known.iter().copied(), format!("expected one of `{}`", known.join("`, `")))
}

/// Why the rate of a tool's messages has no threshold where a step waits for an answer.
pub(crate) const RATE_OF_ANSWERS: &str = "`message.rate_mean` counts answers where a step expects \
    one, and has no rate of what is sent: write `message.sent > N` for the whole run";
