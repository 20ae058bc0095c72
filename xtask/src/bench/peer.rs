//! The peers of the comparison: a name, the start command, and the workloads that show the
//! difference.

use super::Options;
use super::chat::Chat;
use super::toolbox::Toolbox;
use super::workload::{Kind, Workload};
use std::process::Command;

/// A server that answers every packet with "ok", or a chat server, or both.
#[derive(Clone, Debug)]
pub(super) struct Peer {
    /// The name `family/shape`, as in the table.
    pub(super) name: &'static str,
    pub(super) program: Program,
    /// The kinds of workload that the peer runs. A shape that differs in one way only is not
    /// measured where the difference cannot show.
    kinds: &'static [Kind],
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Program {
    Bare,
    Throng,
    /// An Erlang module and its argument.
    Erlang(&'static str, &'static str),
    Chat(Chat),
}

impl Program {
    /// Returns the name of the program, which is built once for all its shapes.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Bare => BARE,
            Self::Throng => THRONG,
            Self::Erlang("ranch_ok", _) => "ranch",
            Self::Erlang(..) => "gen_tcp",
            Self::Chat(Chat::Haskell) => "haskell",
            Self::Chat(Chat::Cowboy) => "cowboy",
            Self::Chat(Chat::Tungstenite) => "tungstenite",
            Self::Chat(Chat::Gobwas) => "gobwas",
            Self::Chat(Chat::UWebSockets) => "uwebsockets",
        }
    }
}

impl Peer {
    /// Returns the bare loop, which shows the limit of the kernel.
    pub(super) fn bare() -> Self {
        peer(BARE, Program::Bare, ALL)
    }

    pub(super) fn supports(&self, workload: Workload) -> bool {
        self.kinds.contains(&workload.kind())
    }

    /// Returns the command that serves a workload on 127.0.0.1 until SIGTERM.
    pub(super) fn command(
        &self,
        workload: Workload,
        toolbox: &Toolbox,
        options: &Options,
    ) -> Command {
        let (port, threads) = (options.port.to_string(), options.threads.to_string());
        match self.program {
            Program::Bare => {
                let chat = workload.is_websocket();
                let program = toolbox.bare(if chat { "ws_server" } else { "server" });
                let mut command = Command::new(program);
                command.args(["--port", &port, "--threads", &threads, "--backlog", BACKLOG]);
                if !chat {
                    command.arg("--nodelay");
                }
                command
            }
            Program::Throng => {
                let kind = if workload.is_websocket() { "chat" } else { "ok" };
                let mut command = Command::new(toolbox.throng());
                command.args(["serve", kind, "--listen", &format!("127.0.0.1:{port}")]);
                command.args(["--cores", &threads, "--accept", "reuseport", "--backlog", BACKLOG]);
                command
            }
            Program::Erlang(module, shape) => {
                let mut command = toolbox.erlang(module, options.threads);
                command.args([shape, &port]);
                command
            }
            Program::Chat(chat) => toolbox.chat(chat, &port, options.threads),
        }
    }
}

/// Returns every peer, in the order of the table.
pub(super) fn all() -> Vec<Peer> {
    use Kind::{Churn, Messages, WebSockets};
    let erlang = |name, module, shape, takes| peer(name, Program::Erlang(module, shape), takes);
    let chat = |name, chat| peer(name, Program::Chat(chat), &[WebSockets]);
    vec![
        Peer::bare(),
        peer(THRONG, Program::Throng, ALL),
        erlang("gen_tcp/one", "gen_tcp_ok", "one", TCP),
        erlang("gen_tcp/several", "gen_tcp_ok", "several", &[Churn]),
        erlang("gen_tcp/sleep", "gen_tcp_ok", "sleep", TCP),
        erlang("gen_tcp/several+sleep", "gen_tcp_ok", "several_sleep", &[Churn]),
        erlang("gen_tcp/readers", "gen_tcp_ok", "readers", TCP),
        erlang("gen_tcp/responders", "gen_tcp_ok", "responders", &[Messages]),
        erlang("ranch/one_sup", "ranch_ok", "one_sup", &[Churn]),
        erlang(RANCH_PLAIN, "ranch_ok", "many_sups", TCP),
        erlang("ranch/listeners", "ranch_ok", "listeners", &[Churn]),
        erlang("ranch/sleep", "ranch_ok", "sleep", TCP),
        chat("uwebsockets", Chat::UWebSockets),
        chat("tungstenite", Chat::Tungstenite),
        chat("gobwas", Chat::Gobwas),
        chat("haskell", Chat::Haskell),
        chat("cowboy", Chat::Cowboy),
    ]
}

/// Returns the selected peers that support one of the workloads.
pub(super) fn selected(only: &[String], workloads: &[Workload]) -> Result<Vec<Peer>, String> {
    let known = |wanted: &String| {
        wanted == GENERATOR || all().iter().any(|p| p.name.starts_with(wanted.as_str()))
    };
    if let Some(unknown) = only.iter().find(|wanted| !known(wanted)) {
        let names = all().iter().map(|p| p.name).collect::<Vec<_>>().join(", ");
        return Err(format!("unknown peer `{unknown}`; the peers are {names}, {GENERATOR}"));
    }
    let mut peers = all();
    peers.retain(|peer| {
        (peer.name == BARE || is_selected(peer.name, only))
            && workloads.iter().any(|&workload| peer.supports(workload))
    });
    Ok(peers)
}

/// Returns the peers that can run here, and a sentence for each reason why others are missing.
pub(super) fn available(peers: Vec<Peer>, toolbox: &Toolbox) -> (Vec<Peer>, Vec<String>) {
    let mut missing = Vec::new();
    let mut there = Vec::new();
    for peer in peers {
        let Some(why) = toolbox.missing(peer.program) else {
            there.push(peer);
            continue;
        };
        let reason = format!("{}: {why}", peer.program.name());
        if !missing.contains(&reason) {
            missing.push(reason);
        }
    }
    (there, missing)
}

/// Reports whether `name` begins with one of the selected names. Without a selection every name is
/// selected.
pub(super) fn is_selected(name: &str, only: &[String]) -> bool {
    only.is_empty() || only.iter().any(|wanted| name.starts_with(wanted.as_str()))
}

/// Reports whether a row is a shape of Ranch that answers as soon as it can. The sleeping shape
/// trades 20 ms of latency for its CPU, so nothing is compared with it.
pub(super) fn is_comparable_ranch(name: &str) -> bool {
    name.starts_with("ranch/") && name != "ranch/sleep"
}

pub(super) const BARE: &str = "bare";
pub(super) const THRONG: &str = "throng";
/// Ranch with its own defaults.
pub(super) const RANCH_PLAIN: &str = "ranch/many_sups";

/// The rows of generators, which are not servers.
pub(super) const GENERATOR: &str = "generator";

const BACKLOG: &str = "4096";
const TCP: &[Kind] = &[Kind::Churn, Kind::Messages];
const ALL: &[Kind] = &[Kind::Churn, Kind::Messages, Kind::WebSockets];

fn peer(name: &'static str, program: Program, takes: &'static [Kind]) -> Peer {
    Peer { name, program, kinds: takes }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_is_chosen_by_the_start_of_its_name() {
        let only = vec!["ranch".to_string(), "gen_tcp/one".to_string()];
        assert!(is_selected("ranch/sleep", &only));
        assert!(is_selected("gen_tcp/one", &only));
        assert!(!is_selected("gen_tcp/several", &only));
        assert!(is_selected("throng", &[]));
    }

    #[test]
    fn every_workload_has_the_rows_that_ratios_need() {
        for workload in Workload::ALL {
            let ranch = (!workload.is_websocket()).then_some(RANCH_PLAIN);
            for needed in [BARE, THRONG].into_iter().chain(ranch) {
                let found = all().into_iter().find(|p| p.name == needed).unwrap();
                assert!(found.supports(workload), "{needed} in {}", workload.name());
            }
        }
    }

    #[test]
    fn only_peers_that_support_the_workload_are_selected() {
        let names = |only: &[String], workload| -> Vec<&str> {
            selected(only, &[workload]).unwrap().iter().map(|p| p.name).collect()
        };
        let only = ["haskell".to_string(), "ranch".to_string()];
        assert_eq!(names(&only, Workload::WsBroadcast), [BARE, "haskell"]);
        assert_eq!(names(&["ranch/sleep".into()], Workload::Churn25), [BARE, "ranch/sleep"]);
        assert!(!names(&[], Workload::Messages25).contains(&"cowboy"));
        let error = selected(&["hask3ll".into()], &Workload::ALL).unwrap_err();
        assert!(error.contains("unknown peer `hask3ll`; the peers are bare, throng"), "{error}");
    }

    #[test]
    fn no_row_is_compared_with_the_sleeping_ranch() {
        assert!(is_comparable_ranch(RANCH_PLAIN));
        assert!(!is_comparable_ranch("ranch/sleep"));
        assert!(!is_comparable_ranch("gen_tcp/one"));
    }
}
