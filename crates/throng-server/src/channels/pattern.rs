//! Topic patterns: each leads topics to a channel.

/// A topic, or all topics with a prefix: `rooms:lobby`, `rooms:*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Pattern {
    Exact(Box<str>),
    Prefix(Box<str>),
}

/// The error for a `*` that is not a pattern's last character.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the topic pattern `{0}` has a `*` that is not its last character")]
pub struct PatternError(String);

impl Pattern {
    pub(crate) fn new(pattern: &str) -> Result<Self, PatternError> {
        let prefix = pattern.strip_suffix('*');
        if prefix.unwrap_or(pattern).contains('*') {
            return Err(PatternError(pattern.to_owned()));
        }
        Ok(prefix.map_or_else(|| Self::Exact(pattern.into()), |prefix| Self::Prefix(prefix.into())))
    }

    pub(crate) fn matches(&self, topic: &str) -> bool {
        match self {
            Self::Exact(name) => **name == *topic,
            Self::Prefix(prefix) => topic.starts_with(&**prefix),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_takes_any_rest() {
        for (pattern, topic, matches) in [
            ("rooms:*", "rooms:lobby", true),
            ("rooms:*", "rooms:", true),
            ("rooms:*", "rooms", false),
            ("rooms:lobby", "rooms:lobby", true),
            ("rooms:lobby", "rooms:lobby2", false),
            ("*", "anything", true),
        ] {
            assert_eq!(Pattern::new(pattern).unwrap().matches(topic), matches, "{pattern} {topic}");
        }
    }

    #[test]
    fn a_star_elsewhere_is_an_error() {
        for pattern in ["rooms:*:a", "*a", "a**", "**"] {
            assert!(Pattern::new(pattern).unwrap_err().to_string().contains(pattern));
        }
    }
}
