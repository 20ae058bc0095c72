//! Chat servers on other WebSocket libraries: how to build and start each.

use super::erlang;
use super::install::{Folders, create_folder, run_quietly, with_packages};
use std::path::PathBuf;
use std::process::Command;

/// A server that sends every text message to all clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Chat {
    Haskell,
    Cowboy,
    Tungstenite,
    Gobwas,
    UWebSockets,
}

impl Chat {
    /// Builds the server; the error is the reason why it cannot be built here.
    pub(super) fn prepare(self, folders: &Folders) -> Result<(), String> {
        let source = folders.sources.join("peers").join(self.folder());
        let target = self.target(folders);
        create_folder(&target)?;
        match self {
            Self::Haskell => with_packages(HASKELL_PACKAGES, || {
                let mut ghc = Command::new("ghc");
                ghc.args(["-O2", "-threaded", "-rtsopts", "-outputdir"]).arg(&target);
                run_quietly(ghc.arg("-o").arg(target.join("chat")).arg(source.join("Chat.hs")))
            }),
            Self::Cowboy => erlang::compile(folders, "cowboy_chat", &cowboy_paths(folders)?),
            Self::Tungstenite => {
                let mut cargo = Command::new(env!("CARGO"));
                cargo.args(["build", "--release", "--locked", "--manifest-path"]);
                cargo.arg(source.join("Cargo.toml")).arg("--target-dir").arg(target);
                run_quietly(&mut cargo)
            }
            Self::Gobwas => {
                let mut go = Command::new("go");
                run_quietly(
                    go.args(["build", "-o"]).arg(target.join("chat")).arg(".").current_dir(source),
                )
            }
            Self::UWebSockets => {
                for file in ["chat.js", "package.json", "package-lock.json"] {
                    std::fs::copy(source.join(file), target.join(file))
                        .map_err(|e| format!("cannot copy {file}: {e}"))?;
                }
                let runs = || {
                    let mut node = Command::new("node");
                    node.args(["-e", "require('uwebsockets')"]).current_dir(&target);
                    run_quietly(&mut node)
                };
                runs().or_else(|_| {
                    let mut npm = Command::new("npm");
                    run_quietly(npm.args(["ci", "--ignore-scripts"]).current_dir(&target))?;
                    runs()
                })
            }
        }
    }

    /// Returns the command that serves on 127.0.0.1 until SIGTERM.
    pub(super) fn command(self, folders: &Folders, port: &str, threads: u16) -> Command {
        let target = self.target(folders);
        match self {
            Self::Haskell => {
                let mut command = Command::new(target.join("chat"));
                command.args([port, "+RTS", &format!("-N{threads}")]);
                command
            }
            Self::Cowboy => {
                let paths = cowboy_paths(folders).unwrap_or_default();
                let mut command = erlang::run(folders, "cowboy_chat", &paths, threads);
                command.arg(port);
                command
            }
            Self::Tungstenite => {
                let mut command = Command::new(target.join("release/throng-bench-tungstenite"));
                command.args([port, &threads.to_string()]);
                command
            }
            Self::Gobwas => {
                let mut command = Command::new(target.join("chat"));
                command.arg(port).env("GOMAXPROCS", threads.to_string());
                command
            }
            Self::UWebSockets => {
                let mut command = Command::new("node");
                command.arg(target.join("chat.js")).args([port, &threads.to_string()]);
                command
            }
        }
    }

    fn folder(self) -> &'static str {
        match self {
            Self::Haskell => "haskell",
            Self::Cowboy => "cowboy",
            Self::Tungstenite => "tungstenite",
            Self::Gobwas => "go",
            Self::UWebSockets => "uwebsockets",
        }
    }

    fn target(self, folders: &Folders) -> PathBuf {
        folders.target.join("peers").join(self.folder())
    }
}

/// Returns the paths of Ranch and Cowboy, as Debian compiled them for RabbitMQ, and of the SHA-1
/// for the handshake.
fn cowboy_paths(folders: &Folders) -> Result<Vec<PathBuf>, String> {
    let mut paths = erlang::rabbit_plugins(folders, &["ranch", "cowlib", "cowboy"])?;
    paths.extend(erlang::libraries(folders, &["erlang-crypto"])?);
    Ok(paths)
}

const HASKELL_PACKAGES: &[&str] = &["ghc", "libghc-websockets-dev", "libghc-async-dev"];
