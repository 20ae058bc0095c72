//! The flags of a run that agents make.

use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use throng_base::units::plural;
use throng_fleet::KnownAgent;

use crate::bus::BusFlags;
use crate::quantity;

/// The flags of a run of several machines.
#[derive(Debug, Args)]
pub(crate) struct FleetFlags {
    #[command(flatten)]
    pub(super) bus: BusFlags,
    /// Agents that generate the load: a number, `all`, or those with a label, `label=eu`; this
    /// machine only coordinates them
    #[arg(long, value_name = "N|all|label=NAME")]
    pub(super) agents: Option<AgentChoice>,
    /// Record the server's side from this observer (`throng agent --observe`) [default: with
    /// --agents, one that observes the target's port]
    #[arg(long, value_name = "NAME", requires = "bus", conflicts_with = "server_facts")]
    pub(super) observer: Option<String>,
    /// Take over the run with this id, whose `throng run` has died: collect what its agents have
    /// measured since, into the run file of --record
    #[arg(long, value_name = "ID", conflicts_with = "agents", requires = "bus")]
    pub(super) resume: Option<String>,
    /// Time to wait for lost agents once all others have finished
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = quantity::duration)]
    pub(super) lost_wait: Duration,
}

/// The agents that make a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AgentChoice {
    /// As many as there are.
    All,
    /// So many.
    Count(usize),
    /// All with this label.
    Label(String),
}

impl FleetFlags {
    /// Reports whether agents make the run.
    pub(super) fn is_used(&self) -> bool {
        self.agents.is_some() || self.resume.is_some()
    }
}

impl FromStr for AgentChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "all" {
            return Ok(Self::All);
        }
        if let Some(label) = text.strip_prefix("label=").filter(|label| !label.is_empty()) {
            return Ok(Self::Label(label.to_owned()));
        }
        match text.parse() {
            Ok(count @ 1..) => Ok(Self::Count(count)),
            _ => Err("expected a number from 1, all, or label=NAME".to_owned()),
        }
    }
}

impl AgentChoice {
    /// Returns the agents that it means, by their names.
    ///
    /// # Errors
    /// There are too few of them.
    pub(super) fn choose<'a>(
        &self,
        idle: &[&'a KnownAgent],
    ) -> Result<Vec<&'a KnownAgent>, String> {
        let chosen: Vec<_> = match self {
            Self::All => idle.to_vec(),
            Self::Count(count) => idle.iter().copied().take(*count).collect(),
            Self::Label(label) => {
                let has_label = |agent: &&&KnownAgent| {
                    agent.hello.facts.labels.iter().any(|own| own.as_str() == label)
                };
                idle.iter().filter(has_label).copied().collect()
            }
        };
        match self {
            Self::Count(count) if chosen.len() < *count => {
                let (are, n) = (plural(idle.len() as u64, "agent is", "agents are"), idle.len());
                Err(format!("--agents {count}: only {n} {are} free"))
            }
            Self::Label(label) if chosen.is_empty() => {
                Err(format!("--agents label={label}: no free agent has this label"))
            }
            _ if chosen.is_empty() => Err("no agent is free".to_owned()),
            _ => Ok(chosen),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_are_chosen_by_number_or_label() {
        assert_eq!("20".parse(), Ok(AgentChoice::Count(20)));
        assert_eq!("all".parse(), Ok(AgentChoice::All));
        assert_eq!("label=eu".parse(), Ok(AgentChoice::Label("eu".into())));
        for wrong in ["0", "label=", "some", "-1"] {
            assert!(wrong.parse::<AgentChoice>().is_err(), "{wrong}");
        }
    }
}
