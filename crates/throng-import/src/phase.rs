//! Phases of a load, as a scenario writes them.

use std::time::Duration;

use throng_base::units::{show_count, show_duration};

use crate::yaml::Yaml;

/// A phase in which users arrive.
#[derive(Clone, Debug)]
pub(crate) struct Arrivals {
    /// A rate, or its ends: `{from, to}`.
    pub(crate) rate: Yaml,
    /// How long it takes: `10s`, or an expression.
    pub(crate) length: String,
    /// The most users, as they are written.
    pub(crate) most: Option<String>,
    /// True for equal distances, false for random ones.
    pub(crate) is_even: bool,
}

impl Arrivals {
    /// Returns users at equal distances, at this rate, for so long.
    pub(crate) fn even(rate: impl ToString, length: Duration) -> Self {
        Self { is_even: true, ..Self::random(rate, length) }
    }

    /// Returns users at random distances, at this rate, for so long.
    pub(crate) fn random(rate: impl ToString, length: Duration) -> Self {
        let rate = Yaml::plain(rate);
        Self { rate, length: show_duration(length), most: None, is_even: false }
    }

    /// Returns users at equal distances, at a rate that changes linearly.
    pub(crate) fn between(from: impl ToString, to: impl ToString, length: Duration) -> Self {
        let ends = [("from", Yaml::plain(from)), ("to", Yaml::plain(to))];
        Self { rate: Yaml::map(ends), ..Self::even("", length) }
    }

    /// Sets the most users.
    #[must_use]
    pub(crate) fn most(mut self, users: Option<u64>) -> Self {
        self.most = users.map(show_count);
        self
    }

    /// Returns the phase.
    pub(crate) fn write(self) -> Yaml {
        let mut entries = vec![("rate", self.rate), ("for", Yaml::plain(self.length))];
        entries.extend(self.most.map(|most| ("most", Yaml::plain(most))));
        entries.extend(self.is_even.then(|| ("spacing", Yaml::plain("even"))));
        Yaml::entry("arrivals", Yaml::map(entries))
    }
}

/// Returns a phase in which the number of users changes.
pub(crate) fn ramp(to: u64, over: Duration) -> Yaml {
    let over = Yaml::plain(show_duration(over));
    Yaml::entry("ramp", Yaml::map([("to", Yaml::plain(show_count(to))), ("over", over)]))
}

/// Returns a phase in which nothing changes.
pub(crate) fn hold(length: Duration) -> Yaml {
    hold_for(show_duration(length))
}

/// Returns a last phase in which the users finish: it ends with them, after this time at most.
pub(crate) fn finish(most: impl ToString) -> Yaml {
    let entries = [("for", Yaml::plain(most)), ("until", Yaml::plain("done"))];
    Yaml::entry("hold", Yaml::map(entries))
}

/// Returns a phase in which nothing changes, for a time that is written so.
pub(crate) fn hold_for(length: impl ToString) -> Yaml {
    Yaml::entry("hold", Yaml::map([("for", Yaml::plain(length))]))
}
