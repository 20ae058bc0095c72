//! `throng doctor`: the limits of this machine for connections, and whether it can hold a given
//! number.

mod apply;
mod confines;
mod preflight;
mod sysctl;
mod watch;

use std::collections::BTreeMap;
use std::path::Path;

use clap::Args;
use throng_machine::limits::Rlimit;
use throng_machine::meminfo::MachineMemory;
use throng_machine::ports::LocalPorts;
use throng_machine::{Fact, MachineFacts, ProcRoot};
use throng_report::render::{Align, Table, bytes};

use crate::{Exit, Failure, output};

/// Check whether this machine can hold a number of connections, and print the commands to raise its
/// limits
///
/// Without --for, it shows the limits alone. With --for, it compares each limit with the
/// requirement of that many connections: ok, tight (it runs, but slower or with a risk), short (it
/// cannot work) or unknown, with the reason. An unknown limit blocks nothing.
///
/// With --watch, it observes a server on this machine, of any kind, under load from elsewhere, and
/// changes nothing. --listen sends the observations to a generator on another machine; every client
/// that can connect there can read them, and can do nothing else.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Doctor {
    #[command(flatten)]
    preflight: preflight::Flags,
    #[command(flatten)]
    watch: watch::WatchFlags,
    /// Process whose limits to check [default: this one]; with --watch the server's process
    /// [default: the listening one]
    #[arg(long, value_name = "N")]
    pid: Option<u32>,
    /// Port that the server listens on [default: the targets' ports, or 5555]; repeatable with
    /// --watch
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    port: Vec<u16>,
    /// Print JSON; without --for an object of strings, with `null` for an unknown value
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  throng doctor
  throng doctor --for 1M
  throng doctor --for 200k --role server --port 9000 --pid 4242
  throng doctor --for 500k --target ws://10.0.0.7:4000/socket --source 10.0.1.0/28 --rate 5k
  sudo throng doctor --for 1M --apply
  throng doctor --for 1M --sysctl > 90-throng.conf
  throng doctor --watch --port 9000
  throng doctor --watch --port 9000 --listen 0.0.0.0:5599
  throng doctor --json | jq '.[\"fs.nr_open\"]'

Exit codes:
  0  the connections fit the known limits    2  a limit is short, or the check could not run";

impl Doctor {
    pub(crate) fn run(&self) -> Result<Exit, Failure> {
        let pid = self.pid.unwrap_or_else(std::process::id);
        // If all of `/proc` is hidden, this process exists nevertheless.
        if self.pid.is_some() && !Path::new(&format!("/proc/{pid}")).exists() {
            return Err(Failure::new(format!(
                "there is no process {pid}; `throng ctl list` shows the throng processes"
            )));
        }
        if self.watch.watch {
            return self.watch.run(&self.port, self.pid, self.json);
        }
        if self.port.len() > 1 {
            return Err(Failure::new("--port can be repeated only with --watch"));
        }
        if self.preflight.is_requested() {
            return self.preflight.run(pid, self.port.first().copied(), self.json);
        }
        let root = ProcRoot::default();
        let facts = MachineFacts::read(&root, pid);
        let mut rows = rows(&facts);
        rows.extend(confines::rows(&root, pid, &facts));
        if self.json {
            let known: BTreeMap<_, _> =
                rows.iter().map(|(name, fact)| (name, fact.known())).collect();
            output::say_json(&known);
        } else {
            let mut table = Table::new().aligned(&[Align::Left, Align::Left]);
            rows.iter().for_each(|(name, fact)| table.row([name.clone(), fact.to_string()]));
            output::say(table.to_string());
        }
        Ok(Exit::Met)
    }
}

fn rows(facts: &MachineFacts) -> Vec<(String, Fact<String>)> {
    let mut rows = vec![
        ("kernel".to_owned(), facts.kernel.clone()),
        ("memory".to_owned(), facts.memory.clone().map(|memory| bytes(memory.total_bytes as f64))),
        ("memory available".to_owned(), facts.memory.clone().map(|memory| available(&memory))),
        ("fds of a table".to_owned(), facts.limits.clone().map(|limits| limit(&limits.open_files))),
        ("threads".to_owned(), facts.limits.clone().map(|limits| limit(&limits.processes))),
        ("locked memory".to_owned(), facts.limits.clone().map(|l| limit(&l.locked_memory_bytes))),
        (
            "open files".to_owned(),
            facts.files.clone().map(|files| format!("{} of {}", files.open, files.max)),
        ),
        ("local ports".to_owned(), facts.local_ports.clone().map(|ports| show_ports(&ports))),
        ("tracked connections".to_owned(), facts.conntrack_max.clone().map(|max| max.to_string())),
    ];
    rows.extend(facts.sysctls.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
    rows
}

fn available(memory: &MachineMemory) -> String {
    memory.available_bytes.map_or_else(|| "unknown".to_owned(), |available| bytes(available as f64))
}

/// Describes the range of local ports: `32768 to 60999, 28232 not reserved`.
fn show_ports(ports: &LocalPorts) -> String {
    format!("{} to {}, {} not reserved", ports.first, ports.last, ports.count())
}

/// Describes an rlimit: `1024, can be raised to 20000`.
fn limit(limit: &Rlimit) -> String {
    let show = |value: Option<u64>| value.map_or_else(|| "unlimited".to_owned(), |n| n.to_string());
    if limit.soft == limit.hard {
        show(limit.soft)
    } else {
        format!("{}, can be raised to {}", show(limit.soft), show(limit.hard))
    }
}
