//! Gets the peers' tools onto the machine: from apt, out of a Debian package, or by their own builders.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Where things are built, and from what.
pub(super) struct Folders {
    /// `target/bench`.
    pub(super) target: PathBuf,
    /// `bench`.
    pub(super) sources: PathBuf,
}

/// Runs `attempt`, and once more after installing the packages when it fails and the harness runs as root.
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
        quietly(apt.args(["install", "-y", "--no-install-recommends"]).args(packages))
    };
    install().or_else(|_| {
        quietly(Command::new("apt-get").arg("update"))?;
        install()
    })?;
    attempt()
}

/// Fetches a Debian package and unpacks it, without installing it, into `folder`, unless it is there.
pub(super) fn unpack(package: &str, folder: &Path) -> Result<(), String> {
    if folder.join("usr").is_dir() {
        return Ok(());
    }
    make(folder)?;
    eprintln!("fetching Debian's {package}");
    quietly(Command::new("apt-get").args(["download", package]).current_dir(folder))?;
    let archive = entries(folder)
        .into_iter()
        .find(|path| path.extension().is_some_and(|e| e == "deb"))
        .ok_or("apt-get download left no package")?;
    quietly(Command::new("dpkg-deb").arg("-x").arg(archive).arg(folder))
}

pub(super) fn make(folder: &Path) -> Result<(), String> {
    std::fs::create_dir_all(folder).map_err(|e| format!("cannot make {}: {e}", folder.display()))
}

pub(super) fn entries(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder)
        .map(|listing| listing.filter_map(|entry| Some(entry.ok()?.path())).collect())
        .unwrap_or_default()
}

/// Runs a tool, for as long as a build may take; what it prints is shown only when it fails.
pub(super) fn quietly(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = bounded(command)
        .stdin(Stdio::null())
        .output()
        .map_err(|e| format!("cannot run {name}: {e}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("{name} failed: {}", said.trim().lines().last().unwrap_or("it said nothing")))
}

/// The same command under coreutils' `timeout`.
fn bounded(command: &Command) -> Command {
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

/// Building k6 takes some minutes.
const TOOL_MAX_S: &str = "1800";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_that_fails_is_quoted() {
        let error = quietly(Command::new("sh").args(["-c", "echo why >&2; exit 3"])).unwrap_err();
        assert_eq!(error, "sh failed: why");
        let missing = quietly(&mut Command::new("no-such-tool")).unwrap_err();
        assert!(missing.contains("no-such-tool failed"), "{missing}");
    }

    #[test]
    fn a_tool_keeps_its_environment_and_its_folder() {
        let mut command = Command::new("sh");
        command.args(["-c", "test \"$BENCH_COLOUR\" = red && test \"$(pwd)\" = /"]);
        assert!(quietly(command.env("BENCH_COLOUR", "red").current_dir("/")).is_ok());
    }

    #[test]
    fn what_works_needs_no_packages() {
        assert_eq!(with_packages(&["no-such-package"], || Ok(())), Ok(()));
    }
}
