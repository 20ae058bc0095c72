//! `throng ctl`: inspects and controls the throng processes on this machine.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use throng_control::{ControlClient, ControlRequest, Process, ProcessList, Verb};

use crate::certificates::{self, CertificateFacts};
use crate::control_path::{control_path, does_not_answer, refused_folder, table};
use crate::{Exit, Failure, output, quantity};

/// Inspect or control a running throng process on this machine
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub(crate) struct Ctl {
    /// Process id of the process; not needed by a command that changes nothing, if only one process
    /// matches
    #[arg(long, global = true, value_name = "N")]
    pid: Option<u32>,
    /// Path of the process's control socket
    #[arg(long, global = true, value_name = "PATH", conflicts_with = "pid")]
    control: Option<PathBuf>,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: CtlCommand,
}

#[derive(Debug, Subcommand)]
enum CtlCommand {
    /// List the throng processes of this user
    #[command(after_help = "Examples:\n  throng ctl list\n  throng ctl list --json")]
    List,
    /// Count users or connections
    #[command(after_help = "Examples:\n  throng ctl count\n  throng ctl count --pid 4242")]
    Count,
    /// Start N more users
    #[command(after_help = "Examples:\n  throng ctl start 100 --pid 4242")]
    Start {
        /// Number of users
        #[arg(value_parser = quantity::count)]
        n: usize,
    },
    /// Stop N users
    #[command(after_help = "Examples:\n  throng ctl stop 50 --pid 4242")]
    Stop {
        /// Number of users
        #[arg(value_parser = quantity::count)]
        n: usize,
    },
    /// Start no more users, or accept no more connections, until `resume`
    #[command(after_help = "Examples:\n  throng ctl pause --pid 4242")]
    Pause,
    /// Undo `pause`
    #[command(after_help = "Examples:\n  throng ctl resume --pid 4242")]
    Resume,
    /// Read the certificates and ticket keys of a server again; its open connections go on
    #[command(after_help = "Examples:\n  throng ctl reload --pid 4242")]
    Reload,
    /// Let open connections end, and start or accept nothing more
    #[command(after_help = "Examples:\n  throng ctl drain --pid 4242")]
    Drain,
    /// Drain, report and end the process
    #[command(after_help = "Examples:\n  throng ctl shutdown --pid 4242")]
    Shutdown,
    /// Print all counters
    #[command(after_help = "Examples:\n  throng ctl snapshot | jq .counters")]
    Snapshot,
}

const EXAMPLES: &str = "\
Examples:
  throng ctl list
  throng ctl start 100 --pid 4242
  throng ctl count --json
  throng ctl snapshot --pid 4242";

impl Ctl {
    pub(crate) fn run(&self) -> Result<Exit, Failure> {
        let request = match &self.command {
            CtlCommand::List => return self.list(),
            CtlCommand::Count => ControlRequest::new(Verb::Count),
            CtlCommand::Start { n } => ControlRequest::with_n(Verb::Start, *n as u64),
            CtlCommand::Stop { n } => ControlRequest::with_n(Verb::Stop, *n as u64),
            CtlCommand::Pause => ControlRequest::new(Verb::Pause),
            CtlCommand::Resume => ControlRequest::new(Verb::Resume),
            CtlCommand::Reload => ControlRequest::new(Verb::Reload),
            CtlCommand::Drain => ControlRequest::new(Verb::Drain),
            CtlCommand::Shutdown => ControlRequest::new(Verb::Shutdown),
            CtlCommand::Snapshot => ControlRequest::new(Verb::Snapshot),
        };
        let socket = control_path(self.control.as_deref(), self.pid, request.verb)?;
        let mut client = ControlClient::connect(socket)?.with_timeout(ANSWER_TIMEOUT);
        let data = client.request(&request)?.data;
        match (self.json, request.verb) {
            (true, _) => output::say_json(&data),
            (false, Verb::Reload) => output::say(reloaded(&data)),
            (false, Verb::Snapshot) => output::say(format!("{data:#}")),
            (false, _) => output::say(as_text(&data)),
        }
        Ok(Exit::Met)
    }

    fn list(&self) -> Result<Exit, Failure> {
        let ProcessList { processes: found, silent, refused } = throng_control::find();
        if let Some(why) = refused {
            return Err(Failure::new(refused_folder(&why)));
        }
        silent.iter().for_each(|pid| output::print_error(does_not_answer(*pid)));
        if self.json {
            let one = |p: &Process| {
                let Process { pid, role, title, path } = p;
                json!({"pid": pid, "role": role, "title": title, "control": path})
            };
            output::say_json(&found.iter().map(one).collect::<Vec<_>>());
        } else if found.is_empty() && silent.is_empty() {
            output::say("no throng process of this user runs on this machine");
        } else if !found.is_empty() {
            output::say(table(&found).to_string());
        }
        Ok(Exit::Met)
    }
}

/// The time within which a process must answer; a drain may take this long.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// Lists the certificates that a server has read, and warns of those that expire soon.
fn reloaded(data: &Value) -> String {
    let facts = serde_json::from_value::<Vec<CertificateFacts>>(data["certificates"].clone());
    let facts = facts.unwrap_or_default();
    let reloaded = format!("reloaded {}", certificates::show(&facts));
    let warnings = facts.iter().filter_map(CertificateFacts::warning);
    [reloaded].into_iter().chain(warnings).collect::<Vec<_>>().join("\n")
}

/// Lists the fields of a reply: `users 1100, connected 1000`.
fn as_text(data: &Value) -> String {
    match data {
        Value::Object(fields) => {
            let word = |(name, value): (&String, &Value)| format!("{name} {value}");
            fields.iter().map(word).collect::<Vec<_>>().join(", ")
        }
        Value::Null => "done".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
