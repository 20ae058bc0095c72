//! The programs that a run needs, built and found under `target/bench`.

use super::Options;
use super::chat::Chat;
use super::erlang;
use super::install::{Folders, create_folder, run_quietly};
use super::peer::{Peer, Program};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The programs of a run.
pub(super) struct Toolbox {
    folders: Folders,
    throng: PathBuf,
    /// The reason why a program cannot run here, by its name.
    missing: BTreeMap<&'static str, String>,
}

impl Toolbox {
    /// Compiles the bare programs and the programs of the selected peers. As root, installs missing
    /// compilers with apt. Packages that are only read are unpacked and not installed.
    pub(super) fn prepare(options: &Options, wanted: &[Peer]) -> Result<Self, String> {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../bench");
        let target = std::env::var_os("CARGO_TARGET_DIR")
            .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../target"), PathBuf::from);
        let folders = Folders { target: target.join("bench"), sources };
        create_folder(&folders.target)?;
        for program in ["server", "client", "ws_server", "ws_client"] {
            let source = folders.sources.join("bare").join(program).with_extension("c");
            let mut cc = Command::new("cc");
            cc.args(["-O2", "-Wall", "-Wextra", "-pthread", "-o"]);
            run_quietly(cc.arg(folders.target.join(program)).arg(source))?;
        }
        let mut missing = BTreeMap::new();
        let mut prepared = Vec::new();
        for peer in wanted {
            let name = peer.program.name();
            if prepared.contains(&name) {
                continue;
            }
            prepared.push(name);
            let ready = match peer.program {
                Program::Erlang(module, _) => prepare_erlang(&folders, module),
                Program::Chat(chat) => chat.prepare(&folders),
                Program::Throng if !options.throng.is_file() => {
                    Err(format!("{} does not exist", options.throng.display()))
                }
                Program::Bare | Program::Throng => Ok(()),
            };
            if let Err(why) = ready {
                eprintln!("skipping {name}: {why}");
                missing.insert(name, why);
            }
        }
        Ok(Self { folders, throng: options.throng.clone(), missing })
    }

    pub(super) fn folders(&self) -> &Folders {
        &self.folders
    }

    /// Returns the folder for builds and results.
    pub(super) fn folder(&self) -> &Path {
        &self.folders.target
    }

    /// Returns the path of a bare program: `server`, `client`, `ws_server`, `ws_client`.
    pub(super) fn bare(&self, program: &str) -> PathBuf {
        self.folders.target.join(program)
    }

    pub(super) fn throng(&self) -> &Path {
        &self.throng
    }

    pub(super) fn has_throng(&self) -> bool {
        self.throng.is_file()
    }

    /// Returns the reason why a program cannot run here, if there is one.
    pub(super) fn missing(&self, program: Program) -> Option<&str> {
        self.missing.get(program.name()).map(String::as_str)
    }

    /// Returns the command of an Erlang module for raw TCP. The caller appends the shape and the
    /// port.
    pub(super) fn erlang(&self, module: &str, threads: u16) -> Command {
        let paths = erlang_paths(&self.folders, module).unwrap_or_default();
        erlang::run(&self.folders, module, &paths, threads)
    }

    pub(super) fn chat(&self, chat: Chat, port: &str, threads: u16) -> Command {
        chat.command(&self.folders, port, threads)
    }
}

fn prepare_erlang(folders: &Folders, module: &str) -> Result<(), String> {
    erlang::compile(folders, module, &erlang_paths(folders, module)?)
}

fn erlang_paths(folders: &Folders, module: &str) -> Result<Vec<PathBuf>, String> {
    if module == "ranch_ok" { erlang::rabbit_plugins(folders, &["ranch"]) } else { Ok(vec![]) }
}
