//! Virtual environments of Python under `target/`.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Installs what a file of `conformance/` requires, unless `check` runs already: a program of the
/// environment with its arguments. Returns the folder of the environment. The error names what is
/// not available.
pub(super) fn environment(
    name: &str,
    requirements: &str,
    check: &[&str],
) -> Result<PathBuf, String> {
    let target = root().join("target");
    let venv = target.join(name);
    std::fs::create_dir_all(&target).map_err(|error| error.to_string())?;
    // Two runs must not install at the same time.
    let lock = File::create(target.join(format!("{name}.lock")));
    let lock = lock.map_err(|error| error.to_string())?;
    lock.lock().map_err(|error| error.to_string())?;
    let [program, arguments @ ..] = check else { return Err("no check".into()) };
    if run_quietly(Command::new(venv.join("bin").join(program)).args(arguments)).is_err() {
        run_quietly(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&venv))
            .map_err(|error| format!("Python 3.10 with venv is not available: {error}"))?;
        let requirements = root().join("conformance").join(requirements);
        let mut pip = Command::new(venv.join("bin/pip"));
        run_quietly(pip.args(["install", "--quiet", "-r"]).arg(requirements))
            .map_err(|error| format!("cannot install {name} from PyPI: {error}"))?;
    }
    Ok(venv)
}

/// Returns the root of the repository.
pub(super) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."))
}

/// Runs a command to its end. The error is the last line of its output, or the reason why it did
/// not start.
pub(super) fn run_quietly(command: &mut Command) -> Result<(), String> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    Err(text.lines().last().unwrap_or("the command failed without output").to_owned())
}
