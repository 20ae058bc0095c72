//! Erlang, and the parts of it that are unpacked from Debian packages without installing them.

use super::install::{Folders, create_folder, entries, run_quietly, unpack, with_packages};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Compiles a module of `bench/erlang` with the compiled modules in `paths`. As root, installs
/// Erlang if it is missing.
pub(super) fn compile(folders: &Folders, module: &str, paths: &[PathBuf]) -> Result<(), String> {
    let compiled = compiled(folders);
    create_folder(&compiled)?;
    with_packages(&["erlang-base"], || {
        let mut erlc = Command::new("erlc");
        for path in paths {
            erlc.arg("-pa").arg(path);
        }
        let source = folders.sources.join("erlang").join(module).with_extension("erl");
        run_quietly(erlc.arg("-o").arg(&compiled).arg(source))
    })
}

/// Returns the command that runs `main` of a compiled module. Schedulers do not spin while they
/// wait, because the spinning would count as their CPU time.
pub(super) fn run(folders: &Folders, module: &str, paths: &[PathBuf], threads: u16) -> Command {
    let mut command = Command::new("erl");
    command.args(["+S", &format!("{threads}:{threads}")]).args(NO_BUSY_WAIT);
    // `+Bd`: Ctrl-C, which reaches the whole process group, ends Erlang too.
    command.args(["+Bd", "-noinput"]);
    command.arg("-pa").arg(compiled(folders));
    for path in paths {
        command.arg("-pa").arg(path);
    }
    command.args(["-run", module, "main"]);
    command
}

/// Returns the folders of the compiled modules of these plugins of Debian's `rabbitmq-server`:
/// `ranch`, `cowboy`, ...
pub(super) fn rabbit_plugins(folders: &Folders, names: &[&str]) -> Result<Vec<PathBuf>, String> {
    let package = folders.target.join("rabbitmq");
    unpack("rabbitmq-server", &package)?;
    let rabbit = starting(&package.join("usr/lib/rabbitmq/lib"), "rabbitmq_server-")
        .ok_or("the package rabbitmq-server contains no server")?;
    let plugin = |name: &&str| {
        starting(&rabbit.join("plugins"), &format!("{name}-"))
            .map(|plugin| plugin.join("ebin"))
            .filter(|ebin| ebin.join(format!("{name}.app")).is_file())
            .ok_or_else(|| format!("the package rabbitmq-server contains no {name}"))
    };
    names.iter().map(plugin).collect()
}

/// Returns the folders of the compiled modules of Debian packages such as `erlang-crypto`.
pub(super) fn libraries(folders: &Folders, packages: &[&str]) -> Result<Vec<PathBuf>, String> {
    let mut paths = Vec::new();
    for package in packages {
        let folder = folders.target.join("otp").join(package);
        unpack(package, &folder)?;
        paths.extend(entries(&folder.join("usr/lib/erlang/lib")).iter().map(|l| l.join("ebin")));
    }
    Ok(paths)
}

fn compiled(folders: &Folders) -> PathBuf {
    folders.target.join("erlang")
}

fn starting(folder: &Path, name: &str) -> Option<PathBuf> {
    entries(folder)
        .into_iter()
        .find(|path| path.file_name().and_then(|n| n.to_str()).is_some_and(|n| n.starts_with(name)))
}

const NO_BUSY_WAIT: [&str; 6] = ["+sbwt", "none", "+sbwtdcpu", "none", "+sbwtdio", "none"];
