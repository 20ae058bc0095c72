//! A fleet on the hosts: a NATS server, two echo servers, three agents, and runs of them.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use super::hosts::{BUS, Host, Hosts, skip};
use super::process::{Process, until};
use super::sums::Recorded;

/// A fleet whose agents wait for a run. The fields are dropped in this order: the processes first.
pub(crate) struct Fleet {
    pub(crate) agents: Vec<Process>,
    _servers: Vec<Process>,
    nats: Option<Process>,
    pub(crate) hosts: Hosts,
    pub(crate) folder: TempDir,
}

/// A run, and the file in which it is recorded.
pub(crate) struct FleetRun {
    pub(crate) process: Process,
    pub(crate) record: PathBuf,
}

impl Fleet {
    /// Starts a fleet with three agents; `None` if this machine cannot have one, which is said.
    pub(crate) fn start(test: &str) -> Option<Self> {
        let mut fleet = Self::without_agents(test)?;
        for number in 0..3 {
            fleet.start_agent(number, &format!("agent-{number}"), &[]);
        }
        Some(fleet)
    }

    /// Starts the bus and the servers.
    pub(crate) fn without_agents(test: &str) -> Option<Self> {
        if let Err(error) = Command::new(nats_server()).arg("--version").output() {
            skip(test, &format!("nats-server: {error}: run `make clients`"));
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let hosts = match Hosts::new(folder.path()) {
            Ok(hosts) => hosts,
            Err(why) => {
                skip(test, &why);
                return None;
            }
        };
        let servers = hosts.servers.iter().map(|host| start_server(host, folder.path()));
        let servers: Vec<_> = servers.collect();
        let mut fleet = Self { agents: Vec::new(), _servers: servers, nats: None, hosts, folder };
        fleet.start_bus();
        Some(fleet)
    }

    /// Starts the NATS server.
    pub(crate) fn start_bus(&mut self) {
        let mut command = self.hosts.bus.command(&nats_server().to_string_lossy());
        command.args(["--addr", BUS, "--port", "4222"]);
        self.nats = Some(Process::start(command, self.folder.path(), "nats"));
        let log = self.folder.path().join("nats.err");
        until("a NATS server", || {
            std::fs::read_to_string(&log).unwrap_or_default().contains("Server is ready")
        });
    }

    /// Kills the NATS server.
    pub(crate) fn stop_bus(&mut self) {
        self.nats.take().expect("it runs").kill();
    }

    /// Starts an agent on a host, by a command prefix such as `prlimit`.
    pub(crate) fn start_agent(&mut self, host: usize, name: &str, prefix: &[&str]) {
        let own = [env!("CARGO_BIN_EXE_throng")];
        let mut words = prefix.iter().chain(&own);
        let mut command = self.hosts.agents[host].command(words.next().expect("a program"));
        command.args(words).args(["agent", "--bus", &bus_url(), "--name", name, "--no-calibrate"]);
        command.arg("--exit-with-parent").env("XDG_RUNTIME_DIR", self.folder.path());
        let file = format!("{name}-{}", self.agents.len());
        let mut agent = Process::start(command, self.folder.path(), &file);
        agent.until_it_says("waiting for a run");
        self.agents.push(agent);
    }

    /// Writes a scenario whose target are the two servers, and returns its path.
    pub(crate) fn scenario(&self, text: &str) -> PathBuf {
        let path = self.folder.path().join("scenario.yaml");
        std::fs::write(&path, format!("target: tcp://servers:5555\n{text}")).expect("a file");
        path
    }

    /// Starts a run on the host of the bus, which is recorded in a file of this name.
    pub(crate) fn run(&self, scenario: &Path, record: &str, flags: &[&str]) -> FleetRun {
        let record = self.folder.path().join(record);
        self.run_on(&self.hosts.bus, scenario, record, flags)
    }

    /// Starts a run on a host.
    pub(crate) fn run_on(
        &self,
        host: &Host,
        scenario: &Path,
        record: PathBuf,
        flags: &[&str],
    ) -> FleetRun {
        let mut command = host.command(env!("CARGO_BIN_EXE_throng"));
        command.arg("run").arg(scenario).arg("--record").arg(&record);
        command.args(["--no-calibrate", "--exit-with-parent", "--interval", "200ms"]);
        command.args(flags).env("XDG_RUNTIME_DIR", self.folder.path());
        let name = record.file_name().expect("a name").to_string_lossy().into_owned();
        let name = format!("{name}-{}", flags.concat().replace(['/', ':'], ""));
        let process = Process::start(command, self.folder.path(), &name);
        FleetRun { process, record: host.path(&record) }
    }

    /// Starts a run of all three agents, with two cores each. Lost ones are awaited so long.
    pub(crate) fn run_of_all(&self, scenario: &Path, lost_wait: &str) -> FleetRun {
        let flags = ["--bus", &bus_url(), "--agents", "3", "--cores", "2"];
        self.run(scenario, "run.jsonl", &[&flags[..], &["--lost-wait", lost_wait]].concat())
    }
}

impl FleetRun {
    /// Waits until what is recorded is so.
    #[track_caller]
    pub(crate) fn until(&mut self, what: &str, is_so: impl Fn(&Recorded) -> bool) {
        until(what, || {
            let has_ended = self.process.has_ended();
            let is_so = Recorded::read(&self.record).is_some_and(|recorded| is_so(&recorded));
            assert!(is_so || !has_ended, "{what}: it has ended: {}", self.output());
            is_so
        });
    }

    /// Waits for its end, and returns what is recorded.
    #[track_caller]
    pub(crate) fn finish(&mut self) -> Recorded {
        self.process.finish();
        Recorded::read(&self.record).unwrap_or_else(|| panic!("no run: {}", self.output()))
    }

    /// Returns all that it has printed.
    pub(crate) fn output(&self) -> String {
        format!("{}\n{}", self.process.stdout(), self.process.stderr())
    }
}

/// The address of the bus, for a flag.
pub(crate) fn bus_url() -> String {
    format!("nats://{BUS}:4222")
}

fn start_server(host: &Host, folder: &Path) -> Process {
    let mut command = host.command(env!("CARGO_BIN_EXE_throng"));
    let listen = format!("{}:5555", host.address);
    command.args(["serve", "echo", "--cores", "2", "--listen", &listen, "--exit-with-parent"]);
    command.arg("--json").env("XDG_RUNTIME_DIR", folder);
    let mut server = Process::start(command, folder, &format!("server-{}", host.address));
    server.until_it_says("listening");
    server
}

fn nats_server() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/clients/nats-server")
}
