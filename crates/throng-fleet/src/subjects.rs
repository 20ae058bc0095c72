//! The subjects of one group of agents. Groups on one bus do not hear each other.

use throng_bus::{NotAName, check_name};

/// The subjects of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupSubjects {
    group: String,
}

impl GroupSubjects {
    /// Returns the subjects of a group.
    ///
    /// # Errors
    /// Its name has other characters than letters, digits, `-` and `_`, none, or more than 64.
    pub fn new(group: &str) -> Result<Self, NotAName> {
        check_name(group).map(|()| Self { group: group.to_owned() })
    }

    /// Returns the name of the group.
    pub fn group(&self) -> &str {
        &self.group
    }

    /// Questions to all agents.
    pub fn questions(&self) -> String {
        format!("throng.{}.questions", self.group)
    }

    /// What agents say about themselves.
    pub fn hellos(&self) -> String {
        format!("throng.{}.hellos", self.group)
    }

    /// What observers say about themselves.
    pub fn observers(&self) -> String {
        format!("throng.{}.observers", self.group)
    }

    /// The samples of an observer.
    pub fn samples(&self, observer: &str) -> String {
        format!("throng.{}.samples.{observer}", self.group)
    }

    /// Packets to an agent.
    pub fn to_agent(&self, name: &str) -> String {
        format!("throng.{}.agent.{name}", self.group)
    }

    /// Requests to an agent outside a run.
    pub fn requests(&self, name: &str) -> String {
        format!("throng.{}.request.{name}", self.group)
    }

    /// Answers to the process that asked.
    pub fn answers(&self, asker: &str) -> String {
        format!("throng.{}.answer.{asker}", self.group)
    }

    /// Packets to a coordinator.
    pub fn to_coordinator(&self, coordinator: &str) -> String {
        format!("throng.{}.coordinator.{coordinator}", self.group)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_has_subjects_of_its_own() {
        let ours = GroupSubjects::new("team-a").unwrap();
        let theirs = GroupSubjects::new("team-b").unwrap();
        assert_eq!(ours.to_agent("web_1"), "throng.team-a.agent.web_1");
        assert_ne!(ours.hellos(), theirs.hellos());
        for wrong in ["", "a.b", "a b", "*", ">", &"x".repeat(65)] {
            assert!(GroupSubjects::new(wrong).is_err(), "{wrong}");
        }
    }
}
