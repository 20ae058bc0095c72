//! Who is compared: a name, the command that starts it, and the workloads that show its point.

use super::Options;
use super::toolbox::{Erlang, Toolbox};
use super::workload::Workload;
use std::process::Command;

/// A server that answers every packet "ok".
#[derive(Clone, Debug)]
pub(super) struct Peer {
    /// `family/shape`, as in the table.
    pub(super) name: &'static str,
    program: Program,
    shown_in: ShownIn,
}

#[derive(Clone, Copy, Debug)]
enum Program {
    Bare,
    Throng,
    /// The Erlang module and its argument.
    Erlang(&'static str, &'static str),
}

/// Shapes that differ in one way only are not measured where the difference cannot show.
#[derive(Clone, Copy, Debug)]
enum ShownIn {
    All,
    Churn,
    Messages,
}

impl Peer {
    /// The kernel's limit.
    pub(super) fn bare() -> Self {
        peer(BARE, Program::Bare, ShownIn::All)
    }

    pub(super) fn takes(&self, workload: Workload) -> bool {
        match self.shown_in {
            ShownIn::All => true,
            ShownIn::Churn => workload.is_churn(),
            ShownIn::Messages => !workload.is_churn(),
        }
    }

    /// The command that serves on 127.0.0.1 until SIGTERM.
    pub(super) fn command(&self, toolbox: &Toolbox, options: &Options) -> Command {
        let (port, threads) = (options.port.to_string(), options.threads.to_string());
        match self.program {
            Program::Bare => {
                let mut command = Command::new(toolbox.bare_server());
                command.args(["--port", &port, "--threads", &threads]);
                command.args(["--backlog", BACKLOG, "--nodelay"]);
                command
            }
            Program::Throng => {
                let mut command = Command::new(toolbox.throng());
                command.args(["serve", "ok", "--listen", &format!("127.0.0.1:{port}")]);
                command.args(["--cores", &threads, "--accept", "reuseport", "--backlog", BACKLOG]);
                command
            }
            Program::Erlang(module, shape) => {
                let mut command = Command::new("erl");
                command.args(["+S", &format!("{threads}:{threads}")]).args(NO_BUSY_WAIT);
                // `+Bd`: Ctrl-C, which reaches the whole process group, ends it too.
                command.args(["+Bd", "-noinput"]);
                for folder in toolbox.erlang_paths() {
                    command.arg("-pa").arg(folder);
                }
                command.args(["-run", module, "main", shape, &port]);
                command
            }
        }
    }
}

/// Every peer there is, in the order of the table.
pub(super) fn all() -> Vec<Peer> {
    use ShownIn::{All, Churn, Messages};
    let erlang =
        |name, module, shape, shown_in| peer(name, Program::Erlang(module, shape), shown_in);
    vec![
        Peer::bare(),
        peer(THRONG, Program::Throng, All),
        erlang("gen_tcp/one", "gen_tcp_ok", "one", All),
        erlang("gen_tcp/several", "gen_tcp_ok", "several", Churn),
        erlang("gen_tcp/sleep", "gen_tcp_ok", "sleep", All),
        erlang("gen_tcp/several+sleep", "gen_tcp_ok", "several_sleep", Churn),
        erlang("gen_tcp/readers", "gen_tcp_ok", "readers", All),
        erlang("gen_tcp/responders", "gen_tcp_ok", "responders", Messages),
        erlang("ranch/one_sup", "ranch_ok", "one_sup", Churn),
        erlang(RANCH_PLAIN, "ranch_ok", "many_sups", All),
        erlang("ranch/listeners", "ranch_ok", "listeners", Churn),
        erlang("ranch/sleep", "ranch_ok", "sleep", All),
    ]
}

/// The peers that can run here and were asked for, and a sentence for each reason why others are missing.
pub(super) fn available(
    toolbox: &Toolbox,
    options: &Options,
) -> Result<(Vec<Peer>, Vec<String>), String> {
    let known = |wanted: &String| {
        wanted == "generator" || all().iter().any(|p| p.name.starts_with(wanted.as_str()))
    };
    if let Some(unknown) = options.only.iter().find(|wanted| !known(wanted)) {
        let names = all().iter().map(|p| p.name).collect::<Vec<_>>().join(", ");
        return Err(format!("no peer is called {unknown}; there are {names}, generator"));
    }
    let mut missing = Vec::new();
    let mut note = |reason: String| {
        if !missing.contains(&reason) {
            missing.push(reason);
        }
    };
    let mut peers = Vec::new();
    for peer in all() {
        if peer.name != BARE && !is_chosen(peer.name, &options.only) {
            continue;
        }
        match peer.program {
            Program::Throng if !toolbox.has_throng() => {
                note(format!("throng: {} does not exist", toolbox.throng().display()));
            }
            Program::Erlang(module, _) => match toolbox.erlang() {
                Erlang::Missing(why) => note(format!("gen_tcp and ranch: {why}")),
                Erlang::WithoutRanch(why) if module == "ranch_ok" => note(format!("ranch: {why}")),
                _ => peers.push(peer),
            },
            _ => peers.push(peer),
        }
    }
    Ok((peers, missing))
}

/// Whether `name` begins with one of those asked for; everything is chosen when nothing was asked for.
pub(super) fn is_chosen(name: &str, only: &[String]) -> bool {
    only.is_empty() || only.iter().any(|wanted| name.starts_with(wanted.as_str()))
}

/// Whether a row is Ranch answering as soon as it can. The sleeping shape trades 20 ms for its CPU, so
/// nothing is measured against it.
pub(super) fn is_comparable_ranch(name: &str) -> bool {
    name.starts_with("ranch/") && name != "ranch/sleep"
}

pub(super) const BARE: &str = "bare";
pub(super) const THRONG: &str = "throng";
/// Ranch with its own defaults.
pub(super) const RANCH_PLAIN: &str = "ranch/many_sups";

const BACKLOG: &str = "4096";
/// Schedulers that spin while they wait would be charged for it; without, Erlang looks its best here.
const NO_BUSY_WAIT: [&str; 6] = ["+sbwt", "none", "+sbwtdcpu", "none", "+sbwtdio", "none"];

fn peer(name: &'static str, program: Program, shown_in: ShownIn) -> Peer {
    Peer { name, program, shown_in }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_is_chosen_by_the_start_of_its_name() {
        let only = vec!["ranch".to_string(), "gen_tcp/one".to_string()];
        assert!(is_chosen("ranch/sleep", &only));
        assert!(is_chosen("gen_tcp/one", &only));
        assert!(!is_chosen("gen_tcp/several", &only));
        assert!(is_chosen("throng", &[]));
    }

    #[test]
    fn every_workload_has_the_rows_that_ratios_need() {
        for workload in Workload::ALL {
            for needed in [BARE, THRONG, RANCH_PLAIN] {
                let found = all().into_iter().find(|p| p.name == needed).unwrap();
                assert!(found.takes(workload), "{needed} in {}", workload.name());
            }
        }
    }

    #[test]
    fn sleeping_ranch_is_not_what_others_are_measured_against() {
        assert!(is_comparable_ranch(RANCH_PLAIN));
        assert!(!is_comparable_ranch("ranch/sleep"));
        assert!(!is_comparable_ranch("gen_tcp/one"));
    }
}
