//! `throng man`: prints the manual, made from the same definitions as `--help`.

use std::path::PathBuf;

use clap::{Args, CommandFactory};
use clap_mangen::Man as Page;

use crate::{Exit, Failure, Throng, output};

/// Print a manual page, or write the pages of all commands to a folder
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Man {
    /// The command of the page [default: throng itself]
    command: Option<String>,
    /// Write throng.1, throng-serve.1, … to this folder, creating it if needed
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    dir: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  throng man | man -l -
  throng man serve | man -l -
  throng man --dir ~/.local/share/man/man1";

impl Man {
    pub(crate) fn run(&self) -> Result<Exit, Failure> {
        if let Some(dir) = &self.dir {
            let written = std::fs::create_dir_all(dir)
                .and_then(|()| clap_mangen::generate_to(without_help(Throng::command()), dir));
            written.map_err(|error| {
                Failure::new(format!("cannot write to {}: {error}", dir.display()))
            })?;
            return Ok(Exit::Met);
        }
        let mut throng = Throng::command();
        throng.build();
        let command = match &self.command {
            None => throng,
            Some(name) => find(&throng, name)?,
        };
        let mut page = Vec::new();
        Page::new(command).render(&mut page).expect("writing to memory does not fail");
        output::say_document(String::from_utf8_lossy(&page));
        Ok(Exit::Met)
    }
}

/// Removes the `help` commands, which would get a page for each command that they can explain.
fn without_help(throng: clap::Command) -> clap::Command {
    throng
        .disable_help_subcommand(true)
        .mut_subcommands(|command| command.disable_help_subcommand(true))
}

fn find(throng: &clap::Command, name: &str) -> Result<clap::Command, Failure> {
    throng.find_subcommand(name).cloned().ok_or_else(|| {
        let names: Vec<_> = throng.get_subcommands().map(clap::Command::get_name).collect();
        let meant = match throng_base::units::nearest(name, names.iter().copied()) {
            Some(meant) => format!("; did you mean `{meant}`?"),
            None => format!("; the commands are {}", names.join(", ")),
        };
        Failure::new(format!("unknown command `{name}`{meant}"))
    })
}
