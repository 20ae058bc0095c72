//! The rules of all topics.

use crate::TopicRules;

/// The rules of all topics, by prefixes of their names. Every core has the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rulebook {
    by_prefix: Vec<(Box<str>, TopicRules)>,
    otherwise: TopicRules,
}

impl Rulebook {
    /// Makes the same rules for every topic.
    pub const fn all(rules: TopicRules) -> Self {
        Self { by_prefix: Vec::new(), otherwise: rules }
    }

    /// Adds rules for topics whose names begin with `prefix`. The longest prefix counts.
    #[must_use]
    pub fn with(mut self, prefix: &str, rules: TopicRules) -> Self {
        self.by_prefix.insert(0, (prefix.into(), rules));
        // The longest first. Of two equal prefixes, the one added last.
        self.by_prefix.sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.len()));
        self
    }

    /// Returns the rules of one topic.
    pub fn of(&self, topic: &str) -> TopicRules {
        let found = self.by_prefix.iter().find(|(prefix, _)| topic.starts_with(&**prefix));
        found.map_or(self.otherwise, |(_, rules)| *rules)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_prefix_counts() {
        let rules = |queue_bytes_max| TopicRules { queue_bytes_max, ..TopicRules::default() };
        let book = Rulebook::all(rules(1)).with("rooms:", rules(2)).with("rooms:vip:", rules(3));
        let of = |topic| book.of(topic).queue_bytes_max;
        assert_eq!((of("lobby"), of("rooms:7"), of("rooms:vip:7"), of("room")), (1, 2, 3, 1));
    }
}
