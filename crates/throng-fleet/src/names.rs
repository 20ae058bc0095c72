//! The processes of a group that have said who they are: so many names at most, and none that has
//! been silent for long.

use std::collections::BTreeMap;
use std::time::Duration;

use throng_base::Instant;
use throng_bus::Name;

use crate::within::NAMES_MAX;

/// What is known of each process, by its name.
#[derive(Debug)]
pub(crate) struct KnownNames<T> {
    known: BTreeMap<String, T>,
    heard: BTreeMap<String, Instant>,
    /// The next moment at which silent processes are forgotten.
    clean_at: Instant,
}

impl<T> Default for KnownNames<T> {
    fn default() -> Self {
        Self { known: BTreeMap::new(), heard: BTreeMap::new(), clean_at: Instant::ZERO }
    }
}

impl<T> KnownNames<T> {
    /// Returns all that are known.
    pub(crate) fn known(&self) -> &BTreeMap<String, T> {
        &self.known
    }

    /// Returns what is known of a process.
    pub(crate) fn get(&self, name: &str) -> Option<&T> {
        self.known.get(name)
    }

    /// Keeps what a process has said now. A new one is not kept while there are [`NAMES_MAX`].
    /// Forgets those that have been silent for [`FORGOTTEN_AFTER`], but for those that `stays`.
    pub(crate) fn insert(
        &mut self,
        name: &Name,
        value: T,
        now: Instant,
        stays: impl Fn(&str) -> bool,
    ) {
        if self.clean_at <= now {
            self.clean_at = now + CLEAN_EVERY;
            let is_silent = |at: &Instant| now.since(*at) > FORGOTTEN_AFTER;
            self.heard.retain(|name, at| stays(name) || !is_silent(at));
            self.known.retain(|name, _| self.heard.contains_key(name));
        }
        if self.known.len() >= NAMES_MAX && !self.known.contains_key(name.as_str()) {
            return;
        }
        self.heard.insert(name.to_string(), now);
        self.known.insert(name.to_string(), value);
    }
}

/// Silence after which a process is forgotten. A living one says once a second who it is.
pub(crate) const FORGOTTEN_AFTER: Duration = Duration::from_secs(60);
/// Time between two looks for silent processes.
const CLEAN_EVERY: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    fn name(number: usize) -> Name {
        Name::new(format!("n{number}")).unwrap()
    }

    #[test]
    fn made_up_names_are_bounded_and_forgotten() {
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        let mut names = KnownNames::default();
        for number in 0..60_000 {
            names.insert(&name(number), number, at(1), |_| false);
        }
        assert_eq!(names.known().len(), NAMES_MAX);
        // Those that are known may speak on.
        names.insert(&name(7), 70, at(30), |_| false);
        assert_eq!(names.get("n7"), Some(&70));
        names.insert(&name(60_000), 1, at(62), |name| name == "n3");
        let left: Vec<_> = names.known().keys().map(String::as_str).collect();
        assert_eq!(left, ["n3", "n60000", "n7"]);
    }
}
