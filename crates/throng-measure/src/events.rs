//! The catalogue of events: incidents of a run that a counter alone does not show.
//!
//! The server, the engine and the generator emit events, the run file stores them, the CLI prints
//! them.

use std::fmt;

use serde::{Deserialize, Serialize};
use throng_base::units::{brief_micros, plural};

use crate::{ErrorExchange, Limit, TargetTls};

/// The beginning of the reason of [`RunEventKind::ServerLost`] when the server's process still
/// exists.
pub const SERVER_SILENT: &str = "no answer on its control socket";

/// An event and its time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunEvent {
    /// Milliseconds since the run began.
    pub at_ms: u64,
    /// The kind of event, with its fields.
    #[serde(flatten)]
    pub kind: RunEventKind,
}

impl RunEvent {
    /// Returns an event of this `kind`, `at_ms` milliseconds after the start of the run.
    pub fn new(at_ms: u64, kind: RunEventKind) -> Self {
        Self { at_ms, kind }
    }
}

impl fmt::Display for RunEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{} s: {}", self.at_ms / 1000, self.at_ms % 1000 / 100, self.kind)
    }
}

/// The kinds of events. In JSON, `{"event": "fd_table_full", …}` with the fields beside it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum RunEventKind {
    /// A core stopped accepting because an fd table was full, or another resource that the errno
    /// names ran out. Raise the [limit of that errno](Limit::of_errno), or give the server more
    /// cores with private tables.
    FdTableFull {
        /// The core that stopped.
        core: u32,
        /// `EMFILE`: this process or core; `ENFILE`: the whole system; `ENOSPC`: the epoll watches
        /// of the process's user.
        errno: String,
        /// Connections that the core held.
        open: u64,
    },
    /// A core that had stopped accepting accepts again. No action is needed.
    AcceptResumed {
        /// The core that accepts again.
        core: u32,
        /// The duration of the pause, in milliseconds.
        paused_ms: u64,
    },
    /// The server holds `connections_max` connections and stopped accepting. Raise the limit if
    /// there is memory.
    ConnectionsMaxReached {
        /// The limit over all cores.
        connections_max: u64,
    },
    /// A callback of the application panicked. Its connection was closed; the core goes on. This is
    /// a bug in the handler.
    HandlerPanicked {
        /// The core of the connection.
        core: u32,
        /// The panic's message.
        message: String,
    },
    /// A server stopped accepting connections and lets the open ones end. No action is needed.
    Draining {
        /// Connections open when the drain began.
        open: u64,
    },
    /// A line could not be written to the run file; the run goes on. Free space on the disk.
    RunFileFailed {
        /// The operating system's error.
        error: String,
    },
    /// The run file accepts lines again. The lost seconds are missing from every number.
    RunFileResumed {
        /// Lines that are missing.
        lines_lost: u64,
    },
    /// The server's control socket no longer answers: the server ended, was killed, or stalls. Look
    /// at its own output.
    ServerLost {
        /// The attempt and its result; begins with [`SERVER_SILENT`] if the socket exists and sends
        /// nothing.
        reason: String,
    },
    /// The server answers again; its counters may have restarted at zero.
    ServerBack {
        /// The server's process id.
        pid: u32,
    },
    /// The server's process was found, or another process replaced it. No action is needed.
    ServerProcess {
        /// The server's process id.
        pid: u32,
        /// The program's name.
        program: String,
        /// The runtime with a garbage collector that its threads or its executable show: `dotnet`,
        /// `go`, `java`, `node`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        runtime: Option<String>,
    },
    /// The server's process has ended. Look at its own output, and in dmesg.
    ServerProcessEnded {
        /// The process id.
        pid: u32,
        /// The program's name.
        program: String,
    },
    /// The fd table of the server's process is full, or nearly: accept() will fail with EMFILE. See
    /// what the fds are: close those that leak, or raise [`Limit::FDS`] of the server. Reported
    /// once for each process.
    ServerFdsFull {
        /// The process's id.
        pid: u32,
        /// Open fds.
        open: u64,
        /// The most fds that it may have.
        fds_max: u64,
        /// Sockets among them, in any state.
        sockets: u64,
        /// The part of the sockets that their peers have closed and the server has not.
        close_wait: u64,
        /// Files and devices.
        files: u64,
        /// The path that most of the files have, or else the folder that most are in.
        path: Option<String>,
        /// Files with this path, or in this folder.
        of_path: u64,
    },
    /// A process of the server ended while its first one ran on: a worker, whose supervisor may
    /// hold the listener. Look at the supervisor's log, and in dmesg. Reported of the first 32.
    ServerWorkerEnded {
        /// The process id.
        pid: u32,
        /// The program's name.
        program: String,
    },
    /// A thread of the server ran for more than 800 thousandths of the time, and is another than
    /// the one that was reported before. Its name says what it does. Reported 16 times at most.
    ServerThreadBusy {
        /// The process id.
        pid: u32,
        /// The program's name.
        program: String,
        /// The thread's name.
        thread: String,
        /// True for the first thread of the process.
        is_main: bool,
        /// The share of the time, in thousandths.
        permille: u64,
    },
    /// No process listens on the target's port, and a connection uses it as its source port, so no
    /// server can bind it. Keep the port out of the ephemeral range with
    /// `net.ipv4.ip_local_reserved_ports`.
    PortTaken {
        /// The target's port.
        port: u16,
        /// The two addresses of that connection, `127.0.0.1:40050 -> 127.0.0.1:7999`.
        connection: String,
        /// The process that holds the port: `python3 (pid 4711)`; or a note that the connection is
        /// closed and in TIME-WAIT.
        holder: String,
    },
    /// No process listens at the target's address, and one listens on the same port at another
    /// address. Correct the target, or let the server listen at the target's address.
    ServerElsewhere {
        /// The target's address, `127.0.0.1:7999`.
        target: String,
        /// The addresses that have a listener, `[::1]:7999`.
        listens_at: Vec<String>,
        /// The process that holds the listener, if it is known: `python3, pid 4711`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        holder: Option<String>,
    },
    /// The first error of this kind, with the exchange that it ended. The meaning depends on the
    /// kind.
    FirstError(ErrorExchange),
    /// The first handshakes over TLS show more of the target: its certificate, what was agreed, the
    /// first failure. No action is needed.
    TargetTls(TargetTls),
    /// The stream of facts about the server (`throng doctor --watch --listen`) ended or fell
    /// silent. The run goes on without them and reconnects each second. Look at the server's host
    /// and the path to it.
    FactsLost {
        /// The address that sent the facts.
        address: String,
        /// The stream's error.
        reason: String,
    },
    /// The facts about the server arrive again. The next line includes what the kernel counted in
    /// between.
    FactsBack {
        /// The address that sends the facts.
        address: String,
    },
    /// A machine of the run was lost: its agent is silent, or its load has failed. The others go
    /// on. Look at that machine and the path to the bus.
    AgentLost {
        /// The name of its agent.
        agent: String,
        /// Its part of the load, in percent.
        percent: u64,
        /// The end of what it has reported, in milliseconds since the load began.
        from_ms: u64,
        /// What is known of it.
        reason: String,
    },
    /// A machine of the run that was lost is back: what it measured meanwhile arrives now.
    AgentBack {
        /// The name of its agent.
        agent: String,
    },
    /// Another server shares topics with this one from now on. No action is needed.
    NodeFound {
        /// Its name.
        node: String,
    },
    /// Another server that shared topics with this one has ended in order. No action is needed.
    NodeEnded {
        /// Its name.
        node: String,
    },
    /// Another server that shared topics with this one is silent; its members have left. Look at
    /// its machine, and at the path to the bus.
    NodeLost {
        /// Its name.
        node: String,
    },
    /// Another server was started with the name of this one, whose presence the others now ignore.
    /// Start each with a `--node` of its own.
    NodeNameTaken {
        /// The name.
        node: String,
    },
    /// The bus of a server cannot be reached: publications do not cross to other servers until it
    /// is back. Look at the NATS server, and at the path to it.
    NodeBusLost,
    /// The bus of a server can be reached again. No action is needed.
    NodeBusBack,
    /// The bus does not let a server publish or subscribe: topics are not shared, or in part. Give
    /// its user the permission.
    NodeBusDenied {
        /// What the user may not do, and the permission that it needs.
        reason: String,
    },
    /// The bus of the fleet cannot be reached from the machine that records the run. The agents go
    /// on, and deliver afterwards what they measure. Look at the NATS server.
    BusLost,
    /// The bus can be reached again.
    BusBack,
    /// The generator is full and starts no more users. Use more machines, more `--source`
    /// addresses, or a smaller load.
    UserLimit {
        /// The number of users that the generator can hold.
        users_max: u64,
    },
    /// No source port was free for a connect (`EADDRNOTAVAIL`). Add `--source` addresses, or wait
    /// until sockets leave TIME-WAIT.
    PortsExhausted {
        /// The source address whose ports are all in use.
        source: String,
    },
    /// The generator's own fd table was full. Raise [`Limit::FDS`] of the generator.
    GeneratorFdsExhausted {
        /// The core that needed an fd.
        core: u32,
    },
    /// The Unix user of the generator had no epoll watch left for a connect (`ENOSPC`). Raise
    /// [`Limit::EPOLL_WATCHES`], or end other programs of that user.
    GeneratorWatchesExhausted {
        /// `fs.epoll.max_user_watches` at that moment; `None` if unknown.
        watches_max: Option<u64>,
    },
    /// A connection was connected to itself: no process listened, and the kernel chose the target's
    /// own port as the source port. The connect counts as failed (`self_connected`). Keep the port
    /// out of [`Limit::PORTS`] with [`Limit::RESERVED_PORTS`], or connect from another address with
    /// `--source`.
    SelfConnected {
        /// The target's ports, `50051`.
        ports: String,
    },
    /// The generator acted later than intended; its measurements in this interval are doubtful. Use
    /// fewer users or more CPUs.
    GeneratorBehind {
        /// The lag that 99 % of its steps did not exceed, in microseconds.
        lag_us_p99: u64,
    },
    /// A user of the control socket changed the run. No action is needed.
    Steered {
        /// The verb and its arguments, `start 100`.
        command: String,
    },
    /// The run received a request to end early (Ctrl-C, SIGTERM) and ramps down.
    Interrupted {
        /// The signal, or the source of the request.
        by: String,
    },
    /// An event of a newer version of throng.
    #[serde(other)]
    Unknown,
}

impl fmt::Display for RunEventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = self.of_server().or_else(|| self.of_machines()).or_else(|| self.of_generator());
        f.write_str(words.as_deref().unwrap_or(UNKNOWN))
    }
}

impl RunEventKind {
    /// Returns the words of an event of the server, of its process or of its facts.
    fn of_server(&self) -> Option<String> {
        Some(match self {
            Self::FdTableFull { core, errno, open } => {
                let lacking = Limit::of_errno(errno).map_or("the kernel refused", Limit::lack);
                format!(
                    "core {core} stopped accepting with {open} connections open: {lacking} \
                     ({errno})"
                )
            }
            Self::AcceptResumed { core, paused_ms } => {
                format!("core {core} accepts again after {paused_ms} ms")
            }
            Self::ConnectionsMaxReached { connections_max } => {
                format!("connections_max reached ({connections_max}): accepting is paused")
            }
            Self::HandlerPanicked { core, message } => {
                format!("the handler panicked on core {core}, one connection closed: {message}")
            }
            Self::Draining { open } => {
                format!("draining {open} {}", plural(*open, "connection", "connections"))
            }
            Self::ServerLost { reason } => format!("the server does not answer: {reason}"),
            Self::ServerBack { pid } => format!("the server answers again (pid {pid})"),
            Self::ServerProcess { pid, program, .. } => {
                format!("the server is {program} (pid {pid})")
            }
            Self::ServerProcessEnded { pid, program } => {
                format!("the server's process {program} (pid {pid}) has ended")
            }
            Self::ServerFdsFull { pid, open, fds_max, sockets, close_wait, files, .. } => {
                format!(
                    "the server's process (pid {pid}) has {open} of {fds_max} fds open: {sockets} \
                     sockets ({close_wait} in CLOSE_WAIT), {files} files"
                )
            }
            Self::ServerWorkerEnded { pid, program } => {
                format!("a worker of the server, {program} (pid {pid}), has ended")
            }
            Self::ServerThreadBusy { pid, program, thread, permille, .. } => {
                let share = permille / 10;
                format!("the thread {thread} of {program} (pid {pid}) is busy for {share} %")
            }
            Self::PortTaken { port, connection, holder } => {
                format!("port {port} is taken as a source port: {connection} ({holder})")
            }
            Self::ServerElsewhere { target, listens_at, holder } => {
                let at = listens_at.join(", ");
                let holder = holder.as_ref().map_or_else(String::new, |who| format!(" ({who})"));
                format!("no process listens at {target}, but one at {at}{holder}")
            }
            Self::FactsLost { address, reason } => {
                format!("no server facts from {address}: {reason}; the run goes on")
            }
            Self::FactsBack { address } => {
                format!("server facts arrive again from {address}")
            }
            _ => return None,
        })
    }

    /// Returns the words of an event between machines: of agents, of nodes or of a bus.
    fn of_machines(&self) -> Option<String> {
        Some(match self {
            Self::AgentLost { agent, percent, reason, .. } => {
                format!("the agent {agent} with {percent} % of the load is lost: {reason}")
            }
            Self::AgentBack { agent } => format!("the agent {agent} is back"),
            Self::NodeFound { node } => format!("the node {node} shares topics with this one"),
            Self::NodeEnded { node } => format!("the node {node} has ended"),
            Self::NodeLost { node } => {
                format!("the node {node} is silent: its members have left")
            }
            Self::NodeNameTaken { node } => format!(
                "another node was started with the name of this one, {node}, and the others ignore \
                 this one's presence: give each its own --node"
            ),
            Self::NodeBusLost => String::from(
                "the bus is lost: publications do not cross to other nodes until it is back",
            ),
            Self::NodeBusBack => String::from("the bus between nodes is back"),
            Self::NodeBusDenied { reason } => format!("topics are not shared in full: {reason}"),
            Self::BusLost => String::from("the bus is lost; the agents go on without it"),
            Self::BusBack => String::from("the bus is back"),
            _ => return None,
        })
    }

    /// Returns the words of an event of the generator, of its users or of a run file.
    fn of_generator(&self) -> Option<String> {
        Some(match self {
            Self::RunFileFailed { error } => {
                format!("the run file cannot be written: {error}; the run goes on")
            }
            Self::RunFileResumed { lines_lost } => {
                let lines = plural(*lines_lost, "line is", "lines are");
                format!("the run file is written again; {lines_lost} {lines} missing")
            }
            Self::FirstError(exchange) => exchange.to_string(),
            Self::TargetTls(seen) => seen.to_string(),
            Self::UserLimit { users_max } => {
                format!("the generator is full with {users_max} users and starts no more")
            }
            Self::PortsExhausted { source } => format!("no free port on {source}"),
            Self::GeneratorFdsExhausted { core } => {
                format!("the generator's fd table is full on core {core}")
            }
            Self::GeneratorWatchesExhausted { watches_max } => {
                let of = watches_max.map_or(String::new(), |most| format!(" of {most}"));
                format!("the generator's user has no epoll watch left{of}")
            }
            Self::SelfConnected { ports } => format!(
                "no process listened, and a socket was connected to itself: port {ports} is in the \
                 range of source ports; sysctl -w net.ipv4.ip_local_reserved_ports={ports}, or \
                 connect from another address with --source"
            ),
            Self::GeneratorBehind { lag_us_p99 } => {
                format!("the generator is late by {} (p99)", brief_micros(*lag_us_p99))
            }
            Self::Steered { command } => format!("steered: {command}"),
            Self::Interrupted { by } => format!("interrupted by {by}, ramping down"),
            _ => return None,
        })
    }
}

/// The words of an event that this version does not know.
const UNKNOWN: &str = "unknown event of a newer version";

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
            "12.3 s: core 1 stopped accepting with 1017 connections open: an fd table was full \
             (EMFILE)"
        );
        let watches = RunEventKind::FdTableFull { core: 0, errno: "ENOSPC".into(), open: 349 };
        assert!(watches.to_string().ends_with("no epoll watches were left (ENOSPC)"), "{watches}");
    }

    #[test]
    fn an_event_of_a_newer_version_is_kept_as_unknown() {
        let event: RunEvent =
            serde_json::from_str(r#"{"at_ms":1,"event":"moon_rose","height":3}"#).unwrap();
        assert_eq!(event.kind, RunEventKind::Unknown);
    }
}
