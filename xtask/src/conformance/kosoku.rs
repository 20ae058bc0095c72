//! The package `kosoku`, which drives the cases.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::conformance::python;

/// `kosoku` in a virtual environment of its own.
pub(super) struct Kosoku {
    program: PathBuf,
}

impl Kosoku {
    /// Installs the package under `target/` unless it is there. The error names what is not
    /// available.
    pub(super) fn install() -> Result<Self, String> {
        let venv = python::environment("kosoku", "requirements.txt", &["kosoku", "--help"])?;
        Ok(Self { program: venv.join("bin/kosoku") })
    }

    /// Returns the command of a run that leaves its report in `folder`.
    pub(super) fn command(
        &self,
        mode: &str,
        address: &str,
        cases: &[&str],
        folder: &Path,
    ) -> Command {
        let mut command = Command::new(&self.program);
        command.args(["--mode", mode, address, "--outdir"]).arg(folder);
        for case in cases {
            command.args(["--include", case]);
        }
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command
    }
}
