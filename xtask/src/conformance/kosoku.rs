//! The package `kosoku`, which drives the cases.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// `kosoku` in a virtual environment of its own.
pub(super) struct Kosoku {
    program: PathBuf,
}

impl Kosoku {
    /// Installs the package under `target/` unless it is there. The error names what is not
    /// available.
    pub(super) fn install() -> Result<Self, String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."));
        let target = root.join("target");
        let venv = target.join("kosoku");
        let program = venv.join("bin/kosoku");
        std::fs::create_dir_all(&target).map_err(|error| error.to_string())?;
        // Two runs must not install at the same time.
        let lock = File::create(target.join("kosoku.lock")).map_err(|error| error.to_string())?;
        lock.lock().map_err(|error| error.to_string())?;
        let is_usable = |program: &Path| run_quietly(Command::new(program).arg("--help")).is_ok();
        if !is_usable(&program) {
            run_quietly(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&venv))
                .map_err(|error| format!("Python 3.10 with venv is not available: {error}"))?;
            let requirements = root.join("conformance/requirements.txt");
            let mut pip = Command::new(venv.join("bin/pip"));
            run_quietly(pip.args(["install", "--quiet", "-r"]).arg(requirements))
                .map_err(|error| format!("cannot install kosoku from PyPI: {error}"))?;
        }
        Ok(Self { program })
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

/// Runs a command to its end. The error is the last line of its output, or the reason why it did
/// not start.
fn run_quietly(command: &mut Command) -> Result<(), String> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    Err(text.lines().last().unwrap_or("the command failed without output").to_owned())
}
