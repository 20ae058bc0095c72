//! The catalogue of events: what happened in a run that a counter alone does not tell.
//!
//! Server, engine and generator emit them, the run file keeps them, the CLI prints them.

use std::fmt;

use serde::{Deserialize, Serialize};
use throng_base::units::brief_micros;

/// How the reason of [`EventKind::ServerLost`] begins when the server is still there.
pub const SERVER_SILENT: &str = "no answer on its control socket";

/// An event and when it happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunEvent {
    /// Milliseconds since the run began.
    pub at_ms: u64,
    /// What happened.
    #[serde(flatten)]
    pub kind: RunEventKind,
}

impl RunEvent {
    /// `kind`, at `at_ms` milliseconds since the run began.
    pub fn new(at_ms: u64, kind: RunEventKind) -> Self {
        Self { at_ms, kind }
    }
}

impl fmt::Display for RunEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{} s: {}", self.at_ms / 1000, self.at_ms % 1000 / 100, self.kind)
    }
}

/// What happened. In JSON, `{"event": "fd_table_full", …}` with the fields beside it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum RunEventKind {
    /// A core stopped accepting because an fd table was full, or for want of what else the errno names. Raise
    /// `RLIMIT_NOFILE` (`fs.file-max` when the errno is `ENFILE`, `fs.epoll.max_user_watches` when it is `ENOSPC`), or give
    /// the server more cores with private tables.
    FdTableFull {
        /// The core that stopped.
        core: u32,
        /// `EMFILE`: this process or core; `ENFILE`: the whole system; `ENOSPC`: the epoll watches of its user.
        errno: String,
        /// Connections that the core held.
        open: u64,
    },
    /// A core that had stopped accepting accepts again. Nothing to do.
    AcceptResumed {
        /// The core.
        core: u32,
        /// How long it had stopped, in milliseconds.
        paused_ms: u64,
    },
    /// The server holds `connections_max` connections and stopped accepting. Raise it if there is memory.
    ConnectionsMaxReached {
        /// The limit over all cores.
        connections_max: u64,
    },
    /// A callback of the application panicked; its connection was closed, the core goes on. A bug in the handler.
    HandlerPanicked {
        /// The core.
        core: u32,
        /// What the panic said.
        message: String,
    },
    /// A server stopped taking new connections and lets the open ones end. Nothing to do.
    Draining {
        /// Connections open when it began.
        open: u64,
    },
    /// A line could not be written to the run file; the run goes on. Make room on the disk.
    RunFileFailed {
        /// What the operating system said.
        error: String,
    },
    /// The run file takes lines again. The lost seconds are missing from every number.
    RunFileResumed {
        /// Lines that are missing.
        lines_lost: u64,
    },
    /// The server's control socket does not answer any more: it ended, was killed, or stalls. Look at its own output.
    ServerLost {
        /// What was tried and what it said; it begins with [`SERVER_SILENT`] where the socket is there and nothing comes.
        reason: String,
    },
    /// The server answers again; its counters may have begun at zero.
    ServerBack {
        /// Its process id.
        pid: u32,
    },
    /// The process that serves was found, or another one took its place. Nothing to do.
    ServerProcess {
        /// Its process id.
        pid: u32,
        /// The program's name.
        program: String,
    },
    /// The process that served has ended. Look at its own output, and into dmesg.
    ServerProcessEnded {
        /// Its process id.
        pid: u32,
        /// The program's name.
        program: String,
    },
    /// Nobody listens on the target's port, and a connection has it as its source port, so that no
    /// server can take it. Keep the port out of the ephemeral range with
    /// `net.ipv4.ip_local_reserved_ports`.
    PortTaken {
        /// The port.
        port: u16,
        /// Both ends of that connection, `127.0.0.1:40050 -> 127.0.0.1:7999`.
        connection: String,
        /// Who has it: `python3 (pid 4711)`, or that it is closed and in TIME-WAIT.
        holder: String,
    },
    /// The first error of this kind, with what was wrong. What it means depends on the kind.
    FirstError {
        /// The kind, as in `errors` and `connect_failed`.
        kind: String,
        /// What was to come, cut and escaped.
        expected: String,
        /// What came, cut and escaped.
        got: String,
    },
    /// The stream of the server's facts (`throng doctor --watch --listen`) ended or fell silent; the run goes on without them, and
    /// asks for it again each second. Look at the server's host and the way to it.
    FactsLost {
        /// Whom it came from.
        address: String,
        /// What happened to it.
        reason: String,
    },
    /// The server's facts come again. What the kernel counted meanwhile is in the next of them.
    FactsBack {
        /// Whom they come from.
        address: String,
    },
    /// The generator is full and starts no more users. Use more machines, or `--source` addresses, or a smaller load.
    UserLimit {
        /// How many it can hold.
        users_max: u64,
    },
    /// No source port was free for a connect (`EADDRNOTAVAIL`). Add `--source` addresses, or let sockets leave TIME-WAIT.
    PortsExhausted {
        /// The source address that had none left.
        source: String,
    },
    /// The generator's own fd table was full. Raise `RLIMIT_NOFILE` of the generator.
    GeneratorFdsExhausted {
        /// The core.
        core: u32,
    },
    /// A connect met itself: nobody listened, and the kernel chose the target's own port as its
    /// source. It counts as failed (`self_connected`). Keep the port out of
    /// `net.ipv4.ip_local_port_range` with `net.ipv4.ip_local_reserved_ports`, or connect from
    /// another address with `--source`.
    SelfConnected {
        /// The target's ports, `50051`.
        ports: String,
    },
    /// The generator did things later than it should; what it measured in this interval is doubtful. Use fewer users or more CPUs.
    GeneratorBehind {
        /// 99 % of its steps were at most this late, in microseconds.
        lag_us_p99: u64,
    },
    /// Somebody steered the run over its control socket. Nothing to do.
    Steered {
        /// The verb and its arguments, `start 100`.
        command: String,
    },
    /// The run was asked to end early (Ctrl-C, SIGTERM) and ramps down.
    Interrupted {
        /// The signal, or who asked.
        by: String,
    },
    /// An event of a newer throng.
    #[serde(other)]
    Unknown,
}

impl fmt::Display for RunEventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FdTableFull { core, errno, open } => {
                let lacking = match errno.as_str() {
                    "EMFILE" => "fd table full",
                    "ENFILE" => "no open files left in the system",
                    "ENOSPC" => "no epoll watches left",
                    _ => "the kernel refuses",
                };
                write!(
                    f,
                    "core {core} stopped accepting with {open} connections open: {lacking} ({errno})"
                )
            }
            Self::AcceptResumed { core, paused_ms } => {
                write!(f, "core {core} accepts again after {paused_ms} ms")
            }
            Self::ConnectionsMaxReached { connections_max } => {
                write!(f, "connections_max reached ({connections_max}): accepting is paused")
            }
            Self::HandlerPanicked { core, message } => {
                write!(f, "the handler panicked on core {core}, one connection closed: {message}")
            }
            Self::Draining { open } => write!(f, "draining {open} connections"),
            Self::RunFileFailed { error } => {
                write!(f, "the run file cannot be written: {error}; the run goes on")
            }
            Self::RunFileResumed { lines_lost } => {
                write!(f, "the run file is written again; {lines_lost} lines are missing")
            }
            Self::ServerLost { reason } => write!(f, "the server does not answer: {reason}"),
            Self::ServerBack { pid } => write!(f, "the server answers again (pid {pid})"),
            Self::ServerProcess { pid, program } => {
                write!(f, "the server is {program} (pid {pid})")
            }
            Self::ServerProcessEnded { pid, program } => {
                write!(f, "the server's process {program} (pid {pid}) has ended")
            }
            Self::PortTaken { port, connection, holder } => {
                write!(f, "port {port} is taken as a source port: {connection} ({holder})")
            }
            Self::FirstError { kind, expected, got } => {
                write!(f, "the first {kind}: wanted {expected}, came {got}")
            }
            Self::FactsLost { address, reason } => {
                write!(f, "no facts about the server from {address}: {reason}; the run goes on")
            }
            Self::FactsBack { address } => {
                write!(f, "facts about the server come again from {address}")
            }
            Self::UserLimit { users_max } => {
                write!(f, "the generator is full with {users_max} users and starts no more")
            }
            Self::PortsExhausted { source } => write!(f, "no free port on {source}"),
            Self::GeneratorFdsExhausted { core } => {
                write!(f, "the generator's fd table is full on core {core}")
            }
            Self::SelfConnected { ports } => write!(
                f,
                "nobody listened, and a socket was connected to itself: port {ports} is one of the ports that the kernel \
                 gives to connections; sysctl -w net.ipv4.ip_local_reserved_ports={ports}, or --source another address"
            ),
            Self::GeneratorBehind { lag_us_p99 } => {
                write!(f, "the generator is late by {} (p99)", brief_micros(*lag_us_p99))
            }
            Self::Steered { command } => write!(f, "steered: {command}"),
            Self::Interrupted { by } => write!(f, "interrupted by {by}, ramping down"),
            Self::Unknown => write!(f, "an event that this version does not know"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_flat_object_and_comes_back() {
        let event = RunEvent::new(
            12_340,
            RunEventKind::FdTableFull { core: 1, errno: "EMFILE".into(), open: 1017 },
        );
        let json = serde_json::to_string(&event).unwrap();
        assert_eq!(
            json,
            r#"{"at_ms":12340,"event":"fd_table_full","core":1,"errno":"EMFILE","open":1017}"#
        );
        assert_eq!(serde_json::from_str::<RunEvent>(&json).unwrap(), event);
        assert_eq!(
            event.to_string(),
            "12.3 s: core 1 stopped accepting with 1017 connections open: fd table full (EMFILE)"
        );
        let watches = RunEventKind::FdTableFull { core: 0, errno: "ENOSPC".into(), open: 349 };
        assert!(watches.to_string().ends_with("no epoll watches left (ENOSPC)"), "{watches}");
    }

    #[test]
    fn an_event_of_a_newer_version_is_kept_as_unknown() {
        let event: RunEvent =
            serde_json::from_str(r#"{"at_ms":1,"event":"moon_rose","height":3}"#).unwrap();
        assert_eq!(event.kind, RunEventKind::Unknown);
    }
}
