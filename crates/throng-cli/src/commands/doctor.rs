//! `throng doctor`: the limits of this machine as connections meet them, and whether it can hold so many.

mod apply;
mod confines;
mod preflight;
mod sysctl;
mod watch;

use std::collections::BTreeMap;
use std::path::Path;

use clap::Args;
use throng_doctor::limits::Rlimit;
use throng_doctor::meminfo::MachineMemory;
use throng_doctor::ports::LocalPorts;
use throng_doctor::{Fact, MachineFacts, ProcRoot};
use throng_report::render::{Align, Table, bytes};

use crate::{Exit, Failure, output};

/// Say whether this machine can hold so many connections, and with which commands it could
///
/// Without --for it shows the limits alone. With --for each limit on the way is held against what so
/// many connections need of it: ok, tight (it runs, but slower or with a risk), short (it cannot work)
/// or unknown, with the reason. What is unknown stands against nothing.
///
/// With --watch it looks on while somebody loads a server on this machine, whichever server that is, and
/// changes nothing. --listen sends what it sees to a generator elsewhere; anybody who can connect there can
/// read it, and nobody can do more.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Doctor {
    #[command(flatten)]
    preflight: preflight::Flags,
    #[command(flatten)]
    watch: watch::WatchFlags,
    /// The process whose limits are meant; this one without it. With --watch the server's [default: whoever listens]
    #[arg(long, value_name = "N")]
    pid: Option<u32>,
    /// Where the server listens [default: the targets' ports, or 5555]; with --watch it may be given several times
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    port: Vec<u16>,
    /// Print JSON; without --for an object of strings, `null` for what is not known
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
  0  they fit, as far as the limits are known    2  a limit is short, or it could not run";

impl Doctor {
    pub(crate) fn run(&self) -> Result<Exit, Failure> {
        let pid = self.pid.unwrap_or_else(std::process::id);
        // Where all of `/proc` is hidden, this process exists all the same.
        if self.pid.is_some() && !Path::new(&format!("/proc/{pid}")).exists() {
            return Err(Failure::new(format!(
                "there is no process {pid}; `throng ctl list` shows those of throng"
            )));
        }
        if self.watch.watch {
            return self.watch.run(&self.port, self.pid, self.json);
        }
        if self.port.len() > 1 {
            return Err(Failure::new("several --port belong to --watch; without it there is one"));
        }
        if self.preflight.is_asked() {
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

/// `32768 to 60999, 28232 not reserved`.
fn show_ports(ports: &LocalPorts) -> String {
    format!("{} to {}, {} not reserved", ports.first, ports.last, ports.count())
}

/// `1024, can be raised to 20000`.
fn limit(limit: &Rlimit) -> String {
    let show = |value: Option<u64>| value.map_or_else(|| "unlimited".to_owned(), |n| n.to_string());
    match limit.soft == limit.hard {
        true => show(limit.soft),
        false => format!("{}, can be raised to {}", show(limit.soft), show(limit.hard)),
    }
}
