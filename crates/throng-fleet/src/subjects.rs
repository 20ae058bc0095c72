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

    /// What all agents say about themselves: a pattern.
    pub fn hellos(&self) -> String {
        self.hello("*")
    }

    /// What an agent says about itself.
    pub fn hello(&self, agent: &str) -> String {
        format!("throng.{}.hellos.{agent}", self.group)
    }

    /// What all observers say about themselves: a pattern.
    pub fn observers(&self) -> String {
        self.observer("*")
    }

    /// What an observer says about itself.
    pub fn observer(&self, observer: &str) -> String {
        format!("throng.{}.observers.{observer}", self.group)
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

    /// Answers of all agents to the process that asked: a pattern.
    pub fn answers(&self, asker: &str) -> String {
        self.answer(asker, "*")
    }

    /// Answers of an agent to the process that asked.
    pub fn answer(&self, asker: &str, agent: &str) -> String {
        format!("throng.{}.answer.{asker}.{agent}", self.group)
    }

    /// Packets of all agents to a coordinator: a pattern.
    pub fn from_agents(&self, coordinator: &str) -> String {
        self.to_coordinator(coordinator, "*")
    }

    /// Packets of an agent to a coordinator.
    pub fn to_coordinator(&self, coordinator: &str, agent: &str) -> String {
        format!("throng.{}.coordinator.{coordinator}.{agent}", self.group)
    }

    /// Reports whether a message under `subject` is what an agent says about itself.
    pub fn is_hello(&self, subject: &str) -> bool {
        subject.split('.').nth(2) == Some("hellos")
    }
}

/// Returns the name of the process that speaks under a subject: its last part. A bus with users
/// lets each process speak under its own name alone, so a message that names another one is forged.
pub(crate) fn speaker(subject: &str) -> &str {
    subject.rsplit('.').next().unwrap_or_default()
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
        for own in [ours.hello("a"), ours.to_coordinator("c", "a"), ours.answer("c", "a")] {
            assert_eq!(speaker(&own), "a");
        }
        assert!(ours.is_hello(&ours.hello("a")) && !ours.is_hello(&ours.to_coordinator("c", "a")));
        for wrong in ["", "a.b", "a b", "*", ">", &"x".repeat(65)] {
            assert!(GroupSubjects::new(wrong).is_err(), "{wrong}");
        }
    }
}
