//! The errors of a lab.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;

use throng_base::units::show_count;
use throng_doctor::preflight::Preflight;

use crate::isolate::IsolateError;

/// The reason why a lab has no result.
#[derive(Debug)]
pub enum LabError {
    /// No lab has this name.
    Unknown {
        /// The name from the caller.
        name: String,
        /// The most similar name of a lab.
        nearest: Option<&'static str>,
        /// The names of all labs.
        labs: Vec<&'static str>,
    },
    /// The lab has no arrival rate that [`crate::LabOptions::rate`] could set.
    NoRate {
        /// The lab's name.
        name: &'static str,
        /// The labs that have one.
        takes_rate: Vec<&'static str>,
    },
    /// Agents cannot load the lab's servers.
    NoAgents {
        /// The lab's name.
        name: &'static str,
        /// The labs whose server they can load.
        takes_agents: Vec<&'static str>,
    },
    /// The lab's servers or agents meet over a bus, and none is named.
    NoBus {
        /// The lab's name.
        name: &'static str,
        /// `servers` or `agents`.
        which: &'static str,
    },
    /// The servers of the lab have an address each on this machine's loopback interface, so the
    /// flag can have no effect.
    OnLoopback {
        /// The lab's name.
        name: &'static str,
        /// The flag.
        flag: &'static str,
    },
    /// Agents cannot connect to the address on which the server is to listen.
    Listen(IpAddr),
    /// The machine is too small for the users that the options name.
    TooBig(Box<Preflight>),
    /// The kernel or `ip` refused the network namespaces.
    Isolate(IsolateError),
    /// Server or generator did not start, or ended too early.
    Process {
        /// `server` or `generator`.
        name: &'static str,
        /// The failure, and the last lines of the process's output.
        message: String,
    },
    /// The lab's own file has a mistake.
    Definition {
        /// The lab's name.
        lab: &'static str,
        /// The mistake.
        message: String,
    },
    /// A file cannot be written or read.
    File(PathBuf, std::io::Error),
}

impl From<IsolateError> for LabError {
    fn from(error: IsolateError) -> Self {
        Self::Isolate(error)
    }
}

impl fmt::Display for LabError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { name, nearest, labs } => {
                write!(f, "there is no lab `{name}`")?;
                match nearest {
                    Some(nearest) => write!(f, "; did you mean `{nearest}`?"),
                    None => write!(f, "; the labs are {}", labs.join(", ")),
                }
            }
            Self::NoRate { name, takes_rate } => write!(
                f,
                "the lab {name} has no arrival rate to set; --rate is for {}",
                takes_rate.join(", ")
            ),
            Self::NoAgents { name, takes_agents } => write!(
                f,
                "no agents can load the servers of the lab {name}; --agents is for {}",
                takes_agents.join(", ")
            ),
            Self::NoBus { name, which } => write!(
                f,
                "the {which} of the lab {name} meet over a bus: start `nats-server`, and pass \
                 --bus nats://127.0.0.1:4222"
            ),
            Self::OnLoopback { name, flag } => write!(
                f,
                "{flag} cannot be used with the lab {name}: each of its servers has an address of \
                 its own on this machine's loopback interface, 127.0.0.1 and the next ones; leave \
                 {flag} out"
            ),
            Self::Listen(address) => write!(
                f,
                "--listen {address}: agents cannot connect to this address; name the one at which \
                 they reach this machine, such as --listen 10.0.0.2"
            ),
            Self::TooBig(preflight) => {
                write!(f, "{}", preflight.refusal())?;
                if let Some(holds) = preflight.holds() {
                    writeln!(f, "  --users {}", show_count(holds))?;
                }
                f.write_str("the lab did not start; --force runs it anyway")
            }
            Self::Isolate(error) => error.fmt(f),
            Self::Process { name, message } => write!(f, "the {name} {message}"),
            Self::Definition { lab, message } => {
                write!(f, "labs/{lab}.yaml has a mistake, which is one of this program: {message}")
            }
            Self::File(path, error) => write!(f, "{}: {error}", path.display()),
        }
    }
}

impl std::error::Error for LabError {}
