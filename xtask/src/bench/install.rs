//! Installation of the peers' tools: from apt, from a Debian package, or by their own builders.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The source and target folders of builds.
pub(super) struct Folders {
    /// The folder for builds: `target/bench`.
    pub(super) target: PathBuf,
    /// The folder of sources: `bench`.
    pub(super) sources: PathBuf,
}

/// Runs `attempt`. If it fails and the harness runs as root, installs the packages and runs it
/// again.
pub(super) fn with_packages(
    packages: &[&str],
    attempt: impl Fn() -> Result<(), String>,
) -> Result<(), String> {
    let Err(why) = attempt() else { return Ok(()) };
    if !rustix::process::getuid().is_root() {
        return Err(format!("{why} (apt-get install {})", packages.join(" ")));
    }
    eprintln!("installing {}", packages.join(" "));
    let install = || {
        let mut apt = Command::new("apt-get");
        apt.env("DEBIAN_FRONTEND", "noninteractive");
        run_quietly(apt.args(["install", "-y", "--no-install-recommends"]).args(packages))
    };
    install().or_else(|_| {
        run_quietly(Command::new("apt-get").arg("update"))?;
        install()
    })?;
    attempt()
}

/// Downloads a Debian package and unpacks it into `folder`, without installing it. Does nothing if
/// it is there.
pub(super) fn unpack(package: &str, folder: &Path) -> Result<(), String> {
    if folder.join("usr").is_dir() {
        return Ok(());
    }
    create_folder(folder)?;
    eprintln!("fetching Debian's {package}");
    run_quietly(Command::new("apt-get").args(["download", package]).current_dir(folder))?;
    let archive = entries(folder)
        .into_iter()
        .find(|path| path.extension().is_some_and(|e| e == "deb"))
        .ok_or("apt-get download left no package")?;
    run_quietly(Command::new("dpkg-deb").arg("-x").arg(archive).arg(folder))
}

pub(super) fn create_folder(folder: &Path) -> Result<(), String> {
    std::fs::create_dir_all(folder).map_err(|e| format!("cannot make {}: {e}", folder.display()))
}

pub(super) fn entries(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder)
        .map(|listing| listing.filter_map(|entry| Some(entry.ok()?.path())).collect())
        .unwrap_or_default()
}

/// Runs a tool with the time limit of a build. Its output is shown only if it fails.
pub(super) fn run_quietly(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = with_timeout(command)
        .stdin(Stdio::null())
        .output()
        .map_err(|e| format!("cannot run {name}: {e}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("{name} failed: {}", said.trim().lines().last().unwrap_or("no output")))
}

/// Returns the same command under coreutils' `timeout`.
fn with_timeout(command: &Command) -> Command {
    let mut bounded = Command::new("timeout");
    bounded.args(["--foreground", TOOL_MAX_S]).arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => bounded.env(name, value),
            None => bounded.env_remove(name),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        bounded.current_dir(folder);
    }
    bounded
}

/// The time limit of a tool, in seconds. The build of k6 takes some minutes.
const TOOL_MAX_S: &str = "1800";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_that_fails_is_quoted() {
        let error =
            run_quietly(Command::new("sh").args(["-c", "echo why >&2; exit 3"])).unwrap_err();
        assert_eq!(error, "sh failed: why");
        let missing = run_quietly(&mut Command::new("no-such-tool")).unwrap_err();
        assert!(missing.contains("no-such-tool failed"), "{missing}");
    }

    #[test]
    fn a_tool_keeps_its_environment_and_its_folder() {
        let mut command = Command::new("sh");
        command.args(["-c", "test \"$BENCH_COLOUR\" = red && test \"$(pwd)\" = /"]);
        assert!(run_quietly(command.env("BENCH_COLOUR", "red").current_dir("/")).is_ok());
    }

    #[test]
    fn an_attempt_that_succeeds_needs_no_packages() {
        assert_eq!(with_packages(&["no-such-package"], || Ok(())), Ok(()));
    }
}
