//! `throng completions`: prints the script with which a shell completes commands and flags.

use clap::{Args, CommandFactory};
use clap_complete::{Shell, generate};

use crate::{Exit, Failure, Throng, output};

/// Print completions for a shell
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

const EXAMPLES: &str = "\
Examples:
  throng completions bash > ~/.local/share/bash-completion/completions/throng
  throng completions zsh > ~/.zfunc/_throng
  throng completions fish > ~/.config/fish/completions/throng.fish";

impl Completions {
    pub(crate) fn run(&self) -> Result<Exit, Failure> {
        let mut script = Vec::new();
        generate(self.shell, &mut Throng::command(), "throng", &mut script);
        output::say_document(String::from_utf8_lossy(&script));
        Ok(Exit::Met)
    }
}
