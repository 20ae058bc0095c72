//! Matching an answer piece by piece as it arrives.
//!
//! Between two pieces a connection keeps four bytes of state and none of the answer.

use super::{Template, Variable, VariableScope};

/// A rule for the bytes of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matcher(Kind);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    /// Exactly this text. The state is the number of bytes that have matched.
    Literal(Template),
    /// Any bytes, this many. The state is the number that have arrived.
    Bytes(u32),
    /// Anything up to and including the pattern. The state is the length of the longest prefix of
    /// the pattern that the bytes so far end with.
    Until {
        pattern: Template,
        /// Borders of a pattern without variables.
        borders: Option<Box<[u32]>>,
    },
}

/// Result of feeding a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatchProgress {
    /// The whole piece belongs to the answer, which is not complete yet.
    NeedMore,
    /// The answer is complete. The state is 0 again.
    Matched {
        /// Bytes of the piece that belong to it; the rest belongs to the next answer.
        consumed: usize,
    },
    /// The piece does not match. The state is 0 again.
    Mismatch {
        /// Index of the first byte that does not match.
        at: usize,
    },
}

impl Matcher {
    /// Creates a matcher for exactly this text.
    ///
    /// # Panics
    /// Like the other constructors: if the answer would be empty or longer than 4 GiB.
    pub fn literal(text: Template) -> Self {
        check_length(text.bytes_max());
        Self(Kind::Literal(text))
    }

    /// Creates a matcher for any `count` bytes.
    pub fn bytes(count: u32) -> Self {
        check_length(count as usize);
        Self(Kind::Bytes(count))
    }

    /// Creates a matcher for anything up to and including the first `pattern`.
    pub fn until(pattern: Template) -> Self {
        check_length(pattern.bytes_max());
        let borders = pattern.as_literal().map(borders);
        Self(Kind::Until { pattern, borders })
    }

    /// Reports whether a part of one of its variables fits.
    pub(crate) fn uses(&self, is: impl Fn(&Variable) -> bool) -> bool {
        match &self.0 {
            Kind::Literal(text) | Kind::Until { pattern: text, .. } => text.uses(is),
            Kind::Bytes(_) => false,
        }
    }

    /// Returns the whole text of the answer, if it is always the same.
    pub(crate) fn literal_text(&self) -> Option<&[u8]> {
        match &self.0 {
            Kind::Literal(text) => text.as_literal(),
            Kind::Bytes(_) | Kind::Until { .. } => None,
        }
    }

    /// Describes the answer for people; `shown` formats bytes.
    pub fn describe(&self, shown: impl Fn(&[u8]) -> String) -> String {
        match &self.0 {
            Kind::Literal(text) => shown(text.to_string().as_bytes()),
            Kind::Bytes(count) => format!("any {count} bytes"),
            Kind::Until { pattern, .. } => {
                format!("anything up to {}", shown(pattern.to_string().as_bytes()))
            }
        }
    }

    /// Feeds the next piece. `state` is 0 before the first piece of an answer. The values of
    /// variables must not change until the answer is complete; `scratch` holds them.
    pub fn feed(
        &self,
        state: &mut u32,
        input: &[u8],
        scope: VariableScope<'_>,
        scratch: &mut Vec<u8>,
    ) -> MatchProgress {
        let seen = *state as usize;
        let (fed, next) = match &self.0 {
            Kind::Literal(text) => feed_literal(rendered(text, scope, scratch), seen, input),
            Kind::Bytes(count) => feed_bytes(*count as usize, seen, input),
            Kind::Until { pattern, borders: known } => {
                let pattern = rendered(pattern, scope, scratch);
                match known {
                    Some(known) => feed_until(pattern, known, seen, input),
                    None => feed_until(pattern, &borders(pattern), seen, input),
                }
            }
        };
        // No state reaches the length of its pattern, so it fits.
        *state = next as u32;
        fed
    }
}

/// Returns the text of a template, from `scratch` if it has variables.
fn rendered<'a>(
    template: &'a Template,
    mut scope: VariableScope<'_>,
    scratch: &'a mut Vec<u8>,
) -> &'a [u8] {
    if let Some(literal) = template.as_literal() {
        return literal;
    }
    scratch.clear();
    template.render(&mut scope, scratch);
    scratch
}

fn feed_literal(bytes: &[u8], seen: usize, input: &[u8]) -> (MatchProgress, usize) {
    let rest = bytes.get(seen..).unwrap_or_default();
    let length = rest.len().min(input.len());
    if rest[..length] != input[..length] {
        let at = rest.iter().zip(input).position(|(a, b)| a != b).unwrap_or(0);
        return (MatchProgress::Mismatch { at }, 0);
    }
    if length == rest.len() {
        (MatchProgress::Matched { consumed: length }, 0)
    } else {
        (MatchProgress::NeedMore, seen + length)
    }
}

fn feed_bytes(count: usize, seen: usize, input: &[u8]) -> (MatchProgress, usize) {
    let missing = count - seen;
    if input.len() >= missing {
        (MatchProgress::Matched { consumed: missing }, 0)
    } else {
        (MatchProgress::NeedMore, seen + input.len())
    }
}

fn feed_until(
    pattern: &[u8],
    borders: &[u32],
    mut seen: usize,
    input: &[u8],
) -> (MatchProgress, usize) {
    let mut at = 0;
    if pattern.is_empty() {
        // A variable without a value.
        return (MatchProgress::Matched { consumed: 0 }, 0);
    }
    while at < input.len() {
        if seen == 0 {
            // No prefix has matched: skip to the first byte of the pattern.
            match input[at..].iter().position(|&byte| byte == pattern[0]) {
                Some(skipped) => at += skipped,
                None => return (MatchProgress::NeedMore, 0),
            }
        }
        seen = step(pattern, borders, seen, input[at]);
        at += 1;
        if seen == pattern.len() {
            return (MatchProgress::Matched { consumed: at }, 0);
        }
    }
    (MatchProgress::NeedMore, seen)
}

/// Returns the length of the matched prefix after one more byte.
fn step(pattern: &[u8], borders: &[u32], mut seen: usize, byte: u8) -> usize {
    while seen > 0 && pattern[seen] != byte {
        seen = borders[seen - 1] as usize;
    }
    seen + usize::from(pattern[seen] == byte)
}

/// Returns for each `i` the length of the longest proper prefix that the pattern's first `i + 1`
/// bytes end with (Knuth, Morris, Pratt 1977).
fn borders(pattern: &[u8]) -> Box<[u32]> {
    let mut borders = vec![0u32; pattern.len()];
    for end in 1..pattern.len() {
        let before = borders[end - 1] as usize;
        borders[end] = step(pattern, &borders[..end], before, pattern[end]) as u32;
    }
    borders.into()
}

fn check_length(length: usize) {
    assert!(
        length > 0 && u32::try_from(length).is_ok(),
        "cannot expect an answer of {length} bytes"
    );
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use throng_base::Prng;

    use super::*;

    fn text(text: &str) -> Template {
        Template::parse(text).unwrap()
    }

    /// Feeds pieces one after another. Returns the result with its index in the whole.
    fn feed_all<'a>(
        matcher: &Matcher,
        pieces: impl IntoIterator<Item = &'a [u8]>,
    ) -> MatchProgress {
        let (mut state, mut before) = (0, 0);
        for piece in pieces {
            let scope = VariableScope::new(7, Prng::new(1));
            match matcher.feed(&mut state, piece, scope, &mut Vec::new()) {
                MatchProgress::NeedMore => before += piece.len(),
                ended => {
                    assert_eq!(state, 0, "an ended answer leaves no state");
                    return match ended {
                        MatchProgress::Matched { consumed } => {
                            MatchProgress::Matched { consumed: before + consumed }
                        }
                        MatchProgress::Mismatch { at } => {
                            MatchProgress::Mismatch { at: before + at }
                        }
                        MatchProgress::NeedMore => unreachable!(),
                    };
                }
            }
        }
        MatchProgress::NeedMore
    }

    fn check(matcher: &Matcher, input: &str, expected: MatchProgress) {
        assert_eq!(feed_all(matcher, [input.as_bytes()]), expected, "{matcher:?} <- {input:?}");
        assert_eq!(
            feed_all(matcher, input.as_bytes().chunks(1)),
            expected,
            "{matcher:?} <- {input:?} by bytes"
        );
    }

    #[test]
    fn a_literal_is_exact() {
        let ok = Matcher::literal(text("ok"));
        check(&ok, "", MatchProgress::NeedMore);
        check(&ok, "o", MatchProgress::NeedMore);
        check(&ok, "ok", MatchProgress::Matched { consumed: 2 });
        check(&ok, "okok", MatchProgress::Matched { consumed: 2 });
        check(&ok, "no", MatchProgress::Mismatch { at: 0 });
        check(&ok, "on", MatchProgress::Mismatch { at: 1 });
    }

    #[test]
    fn bytes_are_counted() {
        let four = Matcher::bytes(4);
        check(&four, "abc", MatchProgress::NeedMore);
        check(&four, "abcde", MatchProgress::Matched { consumed: 4 });
    }

    #[test]
    fn until_finds_the_first_pattern_even_where_it_overlaps_itself() {
        check(&Matcher::until(text("\n")), "hello\nrest", MatchProgress::Matched { consumed: 6 });
        check(
            &Matcher::until(text("\r\n\r\n")),
            "a\r\n\r\r\n\r\nb",
            MatchProgress::Matched { consumed: 8 },
        );
        check(&Matcher::until(text("aab")), "aaab", MatchProgress::Matched { consumed: 4 });
        check(&Matcher::until(text("abab")), "ababab", MatchProgress::Matched { consumed: 4 });
        check(&Matcher::until(text("abcabd")), "abcabcabd", MatchProgress::Matched { consumed: 9 });
        check(&Matcher::until(text("aab")), "aaaaaa", MatchProgress::NeedMore);
    }

    #[test]
    fn variables_are_filled_in_at_each_piece() {
        let own = Matcher::literal(text("user ${user.id}!"));
        check(&own, "user 7!rest", MatchProgress::Matched { consumed: 7 });
        check(&own, "user 8!", MatchProgress::Mismatch { at: 5 });
        let until = Matcher::until(text("<${user.id}>"));
        check(&until, "a<6><7>b", MatchProgress::Matched { consumed: 7 });
    }

    #[test]
    #[should_panic(expected = "an answer of 0 bytes")]
    fn an_empty_answer_is_refused() {
        Matcher::until(text(""));
    }

    /// The expected result, computed in the simplest way.
    fn by_hand(matcher: &Matcher, input: &[u8]) -> MatchProgress {
        match &matcher.0 {
            Kind::Literal(text) => {
                match text.as_literal().unwrap().iter().zip(input).position(|(a, b)| a != b) {
                    Some(at) => MatchProgress::Mismatch { at },
                    None if input.len() < text.bytes_max() => MatchProgress::NeedMore,
                    None => MatchProgress::Matched { consumed: text.bytes_max() },
                }
            }
            Kind::Bytes(count) if input.len() < *count as usize => MatchProgress::NeedMore,
            Kind::Bytes(count) => MatchProgress::Matched { consumed: *count as usize },
            Kind::Until { pattern, .. } => {
                let pattern = pattern.as_literal().unwrap();
                match input.windows(pattern.len()).position(|window| window == pattern) {
                    Some(at) => MatchProgress::Matched { consumed: at + pattern.len() },
                    None => MatchProgress::NeedMore,
                }
            }
        }
    }

    proptest! {
        // Only two letters, so that patterns overlap themselves and almost match.
        #[test]
        fn splitting_the_input_anywhere_changes_nothing(
            kind in 0..3,
            pattern in "[ab]{1,6}",
            input in "[ab]{0,24}",
            cuts in prop::collection::vec(0usize..=24, 0..6),
        ) {
            let matcher = match kind {
                0 => Matcher::literal(text(&pattern)),
                1 => Matcher::bytes(pattern.len() as u32),
                _ => Matcher::until(text(&pattern)),
            };
            let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(input.len())).collect();
            cuts.sort_unstable();
            cuts.push(input.len());
            let mut begin = 0;
            let pieces = cuts
                .into_iter()
                .map(|cut| &input.as_bytes()[std::mem::replace(&mut begin, cut)..cut]);
            prop_assert_eq!(feed_all(&matcher, pieces), by_hand(&matcher, input.as_bytes()));
        }
    }
}
