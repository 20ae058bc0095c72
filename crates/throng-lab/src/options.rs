//! A lab's description, and the options of its run.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde::Serialize;
use throng_run::test_bed::{BusAccess, TestBedOptions};

/// The description of a lab.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LabInfo {
    /// The name to type: `stressgrid-100k`.
    pub name: &'static str,
    /// The article that the lab repeats.
    pub article: String,
    /// The lab's question, in a sentence.
    pub summary: String,
    /// True when users arrive at a steady rate, which [`LabOptions::rate`] sets.
    pub takes_rate: bool,
    /// True when agents of a bus can load the lab's server, which [`LabOptions::agents`] says.
    pub takes_agents: bool,
    /// True when server and load can be over TLS, which [`LabOptions::over_tls`] says.
    pub takes_tls: bool,
    /// The servers that share topics over a bus; 1 of a lab that needs no bus.
    pub nodes: u8,
}

/// The options of a lab's run.
#[derive(Clone, Debug, Default)]
pub struct LabOptions {
    /// Users. Default: as many as suit the machine and the lab, up to the article's number.
    pub users: Option<u64>,
    /// Seconds that the load of each row lasts, without a calibration and without fixed phases.
    /// Default: the whole lab takes a minute or two.
    pub seconds: Option<u64>,
    /// Gives server and generator a network namespace each; needs root.
    pub isolate: bool,
    /// Keeps server and generator in the machine's own network namespace even where the users
    /// crowd its connection table. Default: as root, the lab takes a namespace with a larger table.
    pub no_namespace: bool,
    /// Users that arrive each second, in a lab with a steady arrival rate. Default: a rate that
    /// this machine handles easily.
    pub rate: Option<u64>,
    /// The bus of [`Self::agents`], and of servers that share topics.
    pub bus: Option<BusAccess>,
    /// The agents that load the server, as `throng run --agents` takes them. Default: this machine
    /// loads it.
    pub agents: Option<String>,
    /// The address on which the server listens for agents. Default: 127.0.0.1.
    pub listen: Option<IpAddr>,
    /// Server and load are over TLS, with a certificate that no load verifies.
    pub over_tls: bool,
    /// The folder that keeps scenarios, run files and the output of server and generator. Default:
    /// none.
    pub keep_files: Option<PathBuf>,
    /// The program that runs as `serve` and `run`. Default: this program.
    pub program: Option<PathBuf>,
    /// Leaves the articles' own servers out even where they could run.
    pub only_throng: bool,
    /// Runs a size that does not fit.
    pub force: bool,
    /// Set to end the lab early: the load ramps down, and the report covers the part that ran.
    pub stop: Arc<AtomicBool>,
}

impl LabOptions {
    /// Returns the options of the lab's test bed.
    pub(crate) fn test_bed(&self) -> TestBedOptions {
        TestBedOptions {
            program: self.program.clone(),
            keep_files: self.keep_files.clone(),
            isolated_users: self.isolate.then(|| self.users.unwrap_or(0)),
            listen: self.listen,
            bus: self.bus.clone(),
            agents: self.agents.clone(),
            over_tls: self.over_tls,
            force: self.force,
            stop: Arc::clone(&self.stop),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bus_is_shown_without_its_password() {
        let bus = BusAccess {
            address: "nats://ada:secret@one:4222".to_owned(),
            flags: vec!["--bus-group".into(), "team".into()],
        };
        let shown = format!("{:?}", LabOptions { bus: Some(bus), ..LabOptions::default() });
        assert!(!shown.contains("secret") && !shown.contains("ada"), "{shown}");
        assert!(shown.contains("team"), "{shown}");
    }
}
