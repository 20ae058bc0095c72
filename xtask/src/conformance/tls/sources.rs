//! The sources of suites that no registry of packages has.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::conformance::python::{root, run_quietly};

/// Part of a repository at one commit.
pub(super) struct Sources {
    name: &'static str,
    url: &'static str,
    commit: &'static str,
    paths: &'static [&'static str],
}

pub(super) const BORINGSSL: Sources = Sources {
    name: "boringssl",
    url: "https://github.com/google/boringssl",
    commit: "a0689af29e8e460f1e5380e0fb74cef1b342e810",
    paths: &["/ssl/test/runner", "/util/testresult", "/util/testconfig", "/go.mod", "/go.sum"],
};

pub(super) const TLSFUZZER: Sources = Sources {
    name: "tlsfuzzer",
    url: "https://github.com/tlsfuzzer/tlsfuzzer",
    commit: "14555fe211456c46deccc4b2d94751dbd894aece",
    paths: &["/scripts", "/tlsfuzzer"],
};

impl Sources {
    /// Returns the folder of the sources: `given`, or one under `target/`, which is fetched when it
    /// is first needed.
    pub(super) fn find(&self, given: Option<&Path>) -> Result<PathBuf, String> {
        if let Some(folder) = given {
            let folder = folder.canonicalize();
            return folder.map_err(|error| format!("--{}: {error}", self.name));
        }
        let folder = root().join("target").join(format!("{}-{}", self.name, &self.commit[..12]));
        if !folder.is_dir() {
            let part = folder.with_extension("part");
            let _ = std::fs::remove_dir_all(&part);
            self.fetch(&part).map_err(|error| {
                format!("cannot fetch {} (--{} DIR has a copy): {error}", self.url, self.name)
            })?;
            std::fs::rename(&part, &folder).map_err(|error| error.to_string())?;
        }
        Ok(folder)
    }

    fn fetch(&self, folder: &Path) -> Result<(), String> {
        std::fs::create_dir_all(folder).map_err(|error| error.to_string())?;
        let git = |arguments: &[&str]| {
            let mut git = Command::new("git");
            run_quietly(git.arg("-C").arg(folder).env("GIT_TERMINAL_PROMPT", "0").args(arguments))
        };
        git(&["init", "--quiet"])?;
        git(&["remote", "add", "origin", self.url])?;
        git(&[&["sparse-checkout", "set", "--no-cone"], self.paths].concat())?;
        git(&["fetch", "--quiet", "--depth=1", "--filter=blob:none", "origin", self.commit])?;
        git(&["checkout", "--quiet", "FETCH_HEAD"])
    }
}
