//! The errors of a lab.

use std::net::IpAddr;

use throng_base::units::show_count;
use throng_doctor::preflight::Preflight;
use throng_run::test_bed::TestBedError;

/// The reason why a lab has no result.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// No lab has this name.
    #[error("there is no lab `{name}`; {}", suggestion(.nearest, .labs))]
    Unknown {
        /// The name from the caller.
        name: String,
        /// The most similar name of a lab.
        nearest: Option<&'static str>,
        /// The names of all labs.
        labs: Vec<&'static str>,
    },
    /// The lab has no arrival rate that [`crate::LabOptions::rate`] could set.
    #[error("the lab {name} has no arrival rate to set; --rate is for {}", .takes_rate.join(", "))]
    NoRate {
        /// The lab's name.
        name: &'static str,
        /// The labs that have one.
        takes_rate: Vec<&'static str>,
    },
    /// Agents cannot load the lab's servers.
    #[error(
        "no agents can load the servers of the lab {name}; --agents is for {}",
        .takes_agents.join(", ")
    )]
    NoAgents {
        /// The lab's name.
        name: &'static str,
        /// The labs whose server they can load.
        takes_agents: Vec<&'static str>,
    },
    /// The lab has servers that throng does not start, or that are always plain.
    #[error("the lab {name} has no form over TLS; --tls is for {}", .takes_tls.join(", "))]
    NoTls {
        /// The lab's name.
        name: &'static str,
        /// The labs that have one.
        takes_tls: Vec<&'static str>,
    },
    /// The lab's servers or agents meet over a bus, and none is named.
    #[error(
        "the {which} of the lab {name} meet over a bus: start `nats-server`, and pass --bus \
         nats://127.0.0.1:4222"
    )]
    NoBus {
        /// The lab's name.
        name: &'static str,
        /// `servers` or `agents`.
        which: &'static str,
    },
    /// The servers of the lab have an address each on this machine's loopback interface, so the
    /// flag can have no effect.
    #[error(
        "{flag} cannot be used with the lab {name}: each of its servers has an address of its own \
         on this machine's loopback interface, 127.0.0.1 and the next ones; leave {flag} out"
    )]
    OnLoopback {
        /// The lab's name.
        name: &'static str,
        /// The flag.
        flag: &'static str,
    },
    /// Agents cannot connect to the address on which the server is to listen.
    #[error(
        "--listen {0}: agents cannot connect to this address; name the one at which they reach \
         this machine, such as --listen 10.0.0.2"
    )]
    Listen(IpAddr),
    /// The machine is too small for the users that the options name.
    #[error("{}{}the lab did not start; --force runs it anyway", .0.refusal(), smaller(.0))]
    TooBig(Box<Preflight>),
    /// Server or generator did not run.
    #[error(transparent)]
    TestBed(#[from] TestBedError),
    /// The lab's own file has a mistake.
    #[error("labs/{lab}.yaml has a mistake, which is one of this program: {message}")]
    Definition {
        /// The lab's name.
        lab: &'static str,
        /// The mistake.
        message: String,
    },
}

/// Names the most similar lab, or all of them.
fn suggestion(nearest: &Option<&str>, labs: &[&str]) -> String {
    match nearest {
        Some(nearest) => format!("did you mean `{nearest}`?"),
        None => format!("the labs are {}", labs.join(", ")),
    }
}

/// Returns a line with the number of users that the machine holds, if it holds some.
fn smaller(preflight: &Preflight) -> String {
    preflight.holds().map_or(String::new(), |holds| format!("  --users {}\n", show_count(holds)))
}
