//! The message whose answer was given in place of another.

use crate::first_error::{FirstError, quoted};

/// The message to which a wrong answer belongs, as far as its numbers tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AnswerOwner {
    /// Another user, by its number.
    User { wrong: u64, right: u64 },
    /// The message of the same user one turn before.
    TurnBefore { user: u64 },
    /// An earlier message of the same user.
    Earlier { user: u64 },
    /// Another user, or another message.
    Unknown,
}

impl AnswerOwner {
    /// Returns the owner of an answer that differs from the expected one by numbers alone, else
    /// `None`. Where the expected answer has the user's own number, that number tells the users
    /// apart. `users` is how many there were.
    pub(super) fn of(first: FirstError<'_>, users: u64) -> Option<Self> {
        let (expected, got) = (Numbers::of(first.expected), Numbers::of(first.got));
        let is_alike = !expected.values.is_empty() && expected.form == got.form;
        is_alike.then(|| Self::by_numbers(&expected.values, &got.values, first.user, users))
    }

    fn by_numbers(expected: &[&str], got: &[&str], user: Option<u64>, users: u64) -> Self {
        let Some(user) = user else { return Self::Unknown };
        let pairs = || {
            let numbers = expected.iter().zip(got);
            numbers.map(|(expected, got)| (expected.parse::<u64>().ok(), got.parse::<u64>().ok()))
        };
        let mut own = pairs().filter(|(expected, _)| *expected == Some(user));
        // A second number may be equal by chance.
        let (Some((_, Some(other))), None) = (own.next(), own.next()) else { return Self::Unknown };
        if other != user {
            let is_one = other < users;
            return if is_one { Self::User { wrong: other, right: user } } else { Self::Unknown };
        }
        let mut changed = pairs().filter(|(expected, got)| expected != got);
        match (changed.next(), changed.next()) {
            (Some((Some(expected), Some(got))), None) if got.checked_add(1) == Some(expected) => {
                Self::TurnBefore { user }
            }
            (Some((Some(expected), Some(got))), None) if got < expected => Self::Earlier { user },
            _ => Self::Unknown,
        }
    }

    /// Returns the end of the sentence that quotes the answer.
    pub(super) fn clause(self) -> String {
        match self {
            Self::User { wrong, .. } => format!(", the answer to user {wrong}"),
            Self::TurnBefore { user } => format!(", what user {user} itself got one turn before"),
            Self::Earlier { user } => format!(", what user {user} itself got in an earlier turn"),
            Self::Unknown => String::new(),
        }
    }

    /// Reports whether the answer is that to an earlier message of the same user.
    pub(super) fn is_earlier(self) -> bool {
        matches!(self, Self::TurnBefore { .. } | Self::Earlier { .. })
    }

    /// Returns a sentence about the answer.
    pub(super) fn sentence(self) -> String {
        match self {
            Self::User { wrong, right } => {
                format!("User {right} received what belongs to user {wrong}.")
            }
            Self::TurnBefore { .. } | Self::Earlier { .. } => {
                "The answer is stale: the server does not know the last message of the user."
                    .to_owned()
            }
            Self::Unknown => "It differs by a number alone: it is the answer to another user, or \
                              to another message of this one."
                .to_owned(),
        }
    }

    pub(super) fn remedy(self) -> &'static str {
        match self {
            Self::TurnBefore { .. } | Self::Earlier { .. } => {
                "find where the server reads what a user has just written: a cache that the write \
                 does not change, a replica that lags, or a read before the write is done"
            }
            Self::User { .. } | Self::Unknown => {
                "find what requests share in the server: a variable that is global, a connection \
                 or buffer that two use at a time, a key of a cache that lacks the user"
            }
        }
    }
}

/// The quoted part of a text: its numbers, and the rest.
struct Numbers<'a> {
    values: Vec<&'a str>,
    form: String,
}

impl<'a> Numbers<'a> {
    fn of(text: &'a str) -> Self {
        let quote = text.find('`').map_or(text, |at| quoted(&text[at..]));
        let (mut values, mut form, mut begin) = (Vec::new(), String::new(), None);
        for (at, c) in quote.char_indices() {
            if c.is_ascii_digit() {
                if begin.is_none() {
                    begin = Some(at);
                    form.push('0');
                }
                continue;
            }
            values.extend(begin.take().map(|begin| &quote[begin..at]));
            if !c.is_whitespace() {
                form.push(c);
            }
        }
        values.extend(begin.map(|begin| &quote[begin..]));
        Self { values, form }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(expected: &str, got: &str, user: Option<u64>) -> Option<AnswerOwner> {
        AnswerOwner::of(FirstError { expected, got, user, ..FirstError::default() }, 100)
    }

    #[test]
    fn the_number_of_the_user_tells_whose_answer_it_is() {
        let of = |expected, got| of(expected, got, Some(17));
        let other = Some(AnswerOwner::User { wrong: 23, right: 17 });
        assert_eq!(of("`echo 4 of 17`", "`echo 1 of 23`"), other);
        assert_eq!(of("JSON with `{\"user\":17}`", "`{\"user\": 23}`"), other);
        let before = Some(AnswerOwner::TurnBefore { user: 17 });
        assert_eq!(of("`17 wrote 5`", "`17 wrote 4`"), before);
        assert_eq!(of("`17 wrote 5`", "`17 wrote 2`"), Some(AnswerOwner::Earlier { user: 17 }));
    }

    #[test]
    fn what_the_numbers_do_not_tell_is_unknown() {
        let unknown = Some(AnswerOwner::Unknown);
        assert_eq!(of("`echo 4`", "`echo 3`", Some(17)), unknown);
        assert_eq!(of("`echo 17`", "`echo 3`", None), unknown);
        // No user has this number, one that was not sent yet, and two that may be the user's.
        assert_eq!(of("`17 x 5`", "`90210 x 5`", Some(17)), unknown);
        assert_eq!(of("`17 x 5`", "`17 x 6`", Some(17)), unknown);
        assert_eq!(of("`17 x 17`", "`17 x 16`", Some(17)), unknown);
        for (expected, got) in [("`ok`", "`no`"), ("`echo 17`", "`echo`"), ("`a`", "`a`")] {
            assert_eq!(of(expected, got, Some(17)), None);
        }
    }
}
