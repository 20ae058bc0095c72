//! The start of agents on other machines over ssh.

use std::fs::File;
use std::path::Path;

use throng_base::input_file::{self, CREDENTIALS_BYTES_MAX};
use throng_fleet::random_id;
use throng_report::render::bytes;

use super::program::Program;
use super::remote_host::RemoteHost;
use super::script::{self, AgentFile, AgentLook, AgentStart, HostFacts};
use super::ssh::Ssh;
use super::up::Up;
use crate::Failure;
use crate::bus::{BUS_VARIABLE, BusFlags};

/// What all agents are started with.
pub(super) struct Launch {
    ssh: Ssh,
    /// The programs that can be copied.
    programs: Vec<Program>,
    bus: String,
    flags: Vec<String>,
    files: Vec<AgentFile>,
}

/// An agent that was started, and is not known to run yet.
pub(super) struct Started {
    pub(super) host: RemoteHost,
    pid: u32,
    /// What was copied, for the user.
    pub(super) copied: Option<String>,
}

impl Launch {
    /// Reads all that the agents need.
    ///
    /// # Errors
    /// A file cannot be read, or no bus was named.
    pub(super) fn new(up: &Up) -> Result<Self, Failure> {
        let this = Path::new("/proc/self/exe");
        let paths = up.binary.iter().map(AsRef::as_ref).chain([this]);
        let programs: Result<Vec<_>, _> = paths.map(Program::read).collect();
        let mut flags = vec!["--bus-group".to_owned(), up.bus.bus_group.clone()];
        for label in &up.label {
            flags.extend(["--label".to_owned(), label.clone()]);
        }
        for network in &up.targets {
            flags.extend(["--targets".to_owned(), network.to_string()]);
        }
        Ok(Self {
            ssh: Ssh { command: up.ssh.clone() },
            programs: programs.map_err(Failure::new)?,
            bus: up.bus.address()?.to_owned(),
            flags,
            files: files(&up.bus)?,
        })
    }

    /// Starts an agent on a machine, with a copy of the program if the machine lacks this version.
    ///
    /// # Errors
    /// The machine cannot be reached, or lacks something. The text says which.
    pub(super) fn start(&self, host: RemoteHost) -> Result<Started, String> {
        let found = self.ssh.run_script(&host.address, &script::find())?;
        let found = HostFacts::parse(&found).ok_or("its shell does not say what system it is")?;
        if found.system != "Linux" {
            return Err(format!("it is {}, and agents run on Linux", found.system));
        }
        let is_ours = |program: &&Program| program.elf.machine == found.machine;
        let ours = self.programs.iter().find(is_ours);
        let is_installed = found.installed.as_deref() == Some(VERSION);
        let mut copied = None;
        let program = match ours {
            Some(ours) if found.copies.contains(&ours.name) => script::copied_program(&ours.name),
            _ if is_installed => "throng".to_owned(),
            Some(ours) => {
                self.copy(&host, ours)?;
                copied = Some(format!("{VERSION} copied ({})", bytes(ours.bytes as f64)));
                script::copied_program(&ours.name)
            }
            None => {
                return Err(format!(
                    "it lacks {VERSION}, and is {}: build it for that with `make dist`, and name \
                     the file with --binary",
                    found.machine
                ));
            }
        };
        let end_mark = format!("THRONG-{}", random_id());
        let start = AgentStart {
            program,
            name: &host.name,
            variables: &[(BUS_VARIABLE, &self.bus)],
            flags: &self.flags,
            files: &self.files,
            end_mark: &end_mark,
        };
        let said = self.ssh.run_script(&host.address, &start.script())?;
        let pid = script::pid(&said).ok_or("its shell did not start the agent")?;
        Ok(Started { host, pid, copied })
    }

    fn copy(&self, host: &RemoteHost, program: &Program) -> Result<(), String> {
        let path = program.path.display();
        let file = File::open(&program.path).map_err(|error| format!("{path}: {error}"))?;
        let line = script::copy(&program.name, program.bytes);
        let said = self.ssh.run_with(&host.address, &line, file).map_err(|why| {
            let hint = match program.elf.is_static {
                true => "",
                false => {
                    "\n  this program needs the libraries of its machine; a static one runs \
                     everywhere: `make dist`, and name the file with --binary"
                }
            };
            format!("{why}{hint}")
        })?;
        match script::copied_version(&said) {
            Some(version) if version == VERSION => Ok(()),
            version => {
                let version = version.unwrap_or("of no version");
                Err(format!("{path} is {version}, and this is {VERSION}"))
            }
        }
    }

    /// Says why an agent is not on the bus, if it never will be: it has ended, or `is_over`, which
    /// ends it.
    pub(super) fn why_not_up(&self, started: &Started, is_over: bool) -> Option<String> {
        let Started { host, pid, .. } = started;
        let look = script::look(&host.name, *pid, is_over);
        let look = match self.ssh.run_script(&host.address, &look) {
            Ok(text) => AgentLook::parse(&text),
            Err(why) => return is_over.then_some(why),
        };
        let why = match look.is_alive {
            false => "the agent has ended",
            true if is_over => "the agent does not answer on the bus, and was ended",
            true => return None,
        };
        Some(format!("{why}: {}", look.log.join("\n  ")))
    }
}

/// Reads the files of the bus, which the agents get, too.
fn files(bus: &BusFlags) -> Result<Vec<AgentFile>, Failure> {
    let all = [
        ("bus-credentials", &bus.bus_credentials),
        ("bus-ca", &bus.bus_ca),
        ("bus-cert", &bus.bus_cert),
        ("bus-key", &bus.bus_key),
    ];
    let given = all.into_iter().filter_map(|(flag, path)| Some((flag, path.as_ref()?)));
    let read = given.map(|(flag, path)| match input_file::read_text(path, CREDENTIALS_BYTES_MAX) {
        Ok(text) => Ok(AgentFile { flag, text }),
        Err(error) => Err(Failure::new(format!("--{flag} {}: {error}", path.display()))),
    });
    read.collect()
}

/// What `throng --version` prints.
const VERSION: &str = concat!("throng ", env!("CARGO_PKG_VERSION"));
