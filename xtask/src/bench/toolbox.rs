//! Builds and finds the programs that a run needs, under `target/bench`.

use super::Options;
use super::peer::is_chosen;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The programs of a run.
pub(super) struct Toolbox {
    folder: PathBuf,
    throng: PathBuf,
    erlang: Erlang,
}

/// What of Erlang is here, and why the rest is not.
pub(super) enum Erlang {
    Missing(String),
    WithoutRanch(String),
    Ready { ranch: PathBuf },
}

impl Toolbox {
    /// Compiles the bare programs and, where rows ask for it, the Erlang ones. As root, a missing Erlang
    /// is installed with apt; Ranch is unpacked from Debian's `rabbitmq-server`, which is not installed.
    pub(super) fn prepare(options: &Options) -> Result<Self, String> {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../bench");
        let target = std::env::var_os("CARGO_TARGET_DIR")
            .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../target"), PathBuf::from);
        let folder = target.join("bench");
        std::fs::create_dir_all(&folder)
            .map_err(|e| format!("cannot make {}: {e}", folder.display()))?;
        for program in ["server", "client"] {
            let source = sources.join("bare").join(program).with_extension("c");
            let mut cc = Command::new("cc");
            cc.args(["-O2", "-Wall", "-Wextra", "-pthread", "-o"]);
            quietly(cc.arg(folder.join(program)).arg(source))?;
        }
        let wants_erlang = ["gen_tcp/one", "ranch/one_sup"]
            .iter()
            .any(|name| options.only.is_empty() || options.only.iter().any(|o| related(name, o)));
        let erlang = if wants_erlang {
            prepare_erlang(&folder, &sources.join("erlang"))
        } else {
            Erlang::Missing("not asked for".into())
        };
        let throng = options.throng.clone();
        Ok(Self { folder, throng, erlang })
    }

    /// Where results go too.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn bare_server(&self) -> PathBuf {
        self.folder.join("server")
    }

    pub(super) fn bare_client(&self) -> PathBuf {
        self.folder.join("client")
    }

    pub(super) fn throng(&self) -> &Path {
        &self.throng
    }

    pub(super) fn has_throng(&self) -> bool {
        self.throng.is_file()
    }

    pub(super) fn erlang(&self) -> &Erlang {
        &self.erlang
    }

    /// The folders with compiled modules.
    pub(super) fn erlang_paths(&self) -> Vec<PathBuf> {
        let own = self.folder.join("erlang");
        match &self.erlang {
            Erlang::Ready { ranch } => vec![own, ranch.clone()],
            _ => vec![own],
        }
    }
}

/// Whether what was asked for reaches the family of `name`.
fn related(name: &str, asked: &str) -> bool {
    let family = name.split('/').next().unwrap_or(name);
    asked.starts_with(family) || is_chosen(name, &[asked.to_string()])
}

fn prepare_erlang(folder: &Path, sources: &Path) -> Erlang {
    if !has_erlang()
        && let Err(why) = install_erlang()
    {
        return Erlang::Missing(why);
    }
    let compiled = folder.join("erlang");
    if let Err(e) = std::fs::create_dir_all(&compiled) {
        return Erlang::Missing(format!("cannot make {}: {e}", compiled.display()));
    }
    let compile = |module: &str, ranch: Option<&Path>| {
        let mut erlc = Command::new("erlc");
        if let Some(ranch) = ranch {
            erlc.arg("-pa").arg(ranch);
        }
        quietly(erlc.arg("-o").arg(&compiled).arg(sources.join(module)))
    };
    if let Err(why) = compile("gen_tcp_ok.erl", None) {
        return Erlang::Missing(why);
    }
    let ready = unpack_ranch(folder)
        .and_then(|ranch| compile("ranch_ok.erl", Some(&ranch)).map(|()| Erlang::Ready { ranch }));
    ready.unwrap_or_else(Erlang::WithoutRanch)
}

fn has_erlang() -> bool {
    ["erl", "erlc"].iter().all(|program| {
        std::env::var_os("PATH")
            .is_some_and(|path| std::env::split_paths(&path).any(|p| p.join(program).is_file()))
    })
}

fn install_erlang() -> Result<(), String> {
    if !rustix::process::getuid().is_root() {
        return Err("erl is not installed (apt-get install erlang-base)".into());
    }
    eprintln!("installing erlang-base");
    let install = || {
        let mut apt = Command::new("apt-get");
        apt.env("DEBIAN_FRONTEND", "noninteractive");
        quietly(apt.args(["install", "-y", "--no-install-recommends", "erlang-base"]))
    };
    install().or_else(|_| {
        quietly(Command::new("apt-get").arg("update"))?;
        install()
    })
}

/// The folder of Ranch's compiled modules.
fn unpack_ranch(folder: &Path) -> Result<PathBuf, String> {
    let package = folder.join("rabbitmq");
    if let Some(found) = find_ranch(&package) {
        return Ok(found);
    }
    std::fs::create_dir_all(&package)
        .map_err(|e| format!("cannot make {}: {e}", package.display()))?;
    eprintln!("fetching Debian's rabbitmq-server for the Ranch in it");
    quietly(Command::new("apt-get").args(["download", "rabbitmq-server"]).current_dir(&package))?;
    let archive = entries(&package)
        .into_iter()
        .find(|path| path.extension().is_some_and(|e| e == "deb"))
        .ok_or("apt-get download left no package")?;
    quietly(Command::new("dpkg-deb").arg("-x").arg(archive).arg(&package))?;
    find_ranch(&package).ok_or_else(|| "the package holds no Ranch".into())
}

fn find_ranch(package: &Path) -> Option<PathBuf> {
    let starting = |folder: &Path, name: &str| {
        entries(folder).into_iter().find(|path| {
            path.file_name().and_then(|n| n.to_str()).is_some_and(|n| n.starts_with(name))
        })
    };
    let rabbit = starting(&package.join("usr/lib/rabbitmq/lib"), "rabbitmq_server-")?;
    let ebin = starting(&rabbit.join("plugins"), "ranch-")?.join("ebin");
    ebin.join("ranch.app").is_file().then_some(ebin)
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder)
        .map(|listing| listing.filter_map(|entry| Some(entry.ok()?.path())).collect())
        .unwrap_or_default()
}

/// Runs a tool; what it prints is shown only when it fails.
fn quietly(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output =
        command.stdin(Stdio::null()).output().map_err(|e| format!("cannot run {name}: {e}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("{name} failed: {}", said.trim().lines().last().unwrap_or("it said nothing")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn erlang_is_prepared_only_for_rows_that_need_it() {
        assert!(related("ranch/one_sup", "ranch"));
        assert!(related("ranch/one_sup", "ranch/sleep"));
        assert!(related("gen_tcp/one", "gen"));
        assert!(!related("ranch/one_sup", "throng"));
        assert!(!related("gen_tcp/one", "generator"));
    }

    #[test]
    fn a_tool_that_fails_is_quoted() {
        let error = quietly(Command::new("sh").args(["-c", "echo why >&2; exit 3"])).unwrap_err();
        assert_eq!(error, "sh failed: why");
        assert!(quietly(&mut Command::new("no-such-tool")).unwrap_err().contains("cannot run"));
    }
}
