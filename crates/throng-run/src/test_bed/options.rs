//! The options of a test bed.

use std::ffi::OsString;
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The options of a test bed.
#[derive(Clone, Debug, Default)]
pub struct TestBedOptions {
    /// The program that runs as `serve` and `run`. Default: this program.
    pub program: Option<PathBuf>,
    /// The folder that keeps scenarios, run files and the output of server and generator. Default:
    /// none.
    pub keep_files: Option<PathBuf>,
    /// The number of users for which server and generator get a network namespace each; needs
    /// root. Default: they stay in this process's namespace.
    pub isolated_users: Option<u64>,
    /// The address on which the server listens. Default: 127.0.0.1.
    pub listen: Option<IpAddr>,
    /// The bus of [`Self::agents`], and of servers that share topics.
    pub bus: Option<BusAccess>,
    /// The agents that load the server, as `throng run --agents` takes them. Default: this machine
    /// loads it.
    pub agents: Option<String>,
    /// Servers and loads are over TLS: each server shows a certificate that no authority issued,
    /// and no load verifies it.
    pub over_tls: bool,
    /// Runs a size that does not fit.
    pub force: bool,
    /// Set to end a load early: it ramps down.
    pub stop: Arc<AtomicBool>,
}

/// The bus between machines, as the processes of a test bed get it.
#[derive(Clone, Default)]
pub struct BusAccess {
    /// The address of the NATS server. It may hold a password, so it goes to a process as the
    /// variable [`BUS_VARIABLE`], and not into its command line.
    pub address: String,
    /// The other flags of the bus, such as `--bus-group` and its value.
    pub flags: Vec<OsString>,
}

impl BusAccess {
    /// Gives a command the bus.
    pub(super) fn add_to(&self, command: &mut Command) {
        command.env(BUS_VARIABLE, &self.address).args(&self.flags);
    }
}

impl fmt::Debug for BusAccess {
    /// Leaves out the address, which may hold a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { address: _, flags } = self;
        f.debug_struct("BusAccess").field("flags", flags).finish_non_exhaustive()
    }
}

/// The environment's variable for `--bus`.
pub const BUS_VARIABLE: &str = "THRONG_BUS";
