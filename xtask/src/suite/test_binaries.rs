//! The test binaries, as cargo reports them.

use std::path::PathBuf;
use std::process::Command;

use serde::Deserialize;

use super::job::Job;
use super::selection::{CargoTarget, Selection};
use super::table::{Suite, SuiteKind};

/// The test binaries that `cargo test` runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct TestBinaries {
    binaries: Vec<TestBinary>,
    /// The `throng` program, which some tests start.
    throng: Option<PathBuf>,
}

/// A test binary.
#[derive(Clone, Debug, PartialEq)]
struct TestBinary {
    /// The name: `throng-cli walls`, `throng-lab lib`.
    name: String,
    path: PathBuf,
    /// The working directory: the folder of the package, as under `cargo test`.
    folder: PathBuf,
}

impl TestBinaries {
    /// Adds what a build made, from cargo's messages, one for each line.
    pub(super) fn add(&mut self, messages: &str) {
        let messages =
            messages.lines().filter_map(|line| serde_json::from_str::<CargoMessage>(line).ok());
        for message in messages.filter(|message| message.reason == "compiler-artifact") {
            let (Some(path), Some(folder)) = (message.executable, message.manifest_path.parent())
            else {
                continue;
            };
            let package = folder.file_name().unwrap_or_default().to_string_lossy();
            if message.profile.test {
                let Some(suite) = message.target.suite() else { continue };
                let name = format!("{package} {suite}");
                self.binaries.push(TestBinary { name, path, folder: folder.to_path_buf() });
            } else if message.target.name == "throng" {
                self.throng = Some(path);
            }
        }
    }

    /// Returns a job for each test binary that is selected.
    pub(super) fn jobs(&self, selection: &Selection) -> Vec<Job> {
        let job = |binary: &TestBinary| {
            let filters = selection.filters(&binary.name)?;
            Some(self.job(binary, filters))
        };
        self.binaries.iter().filter_map(job).collect()
    }

    fn job(&self, binary: &TestBinary, filters: &[String]) -> Job {
        let suite = Suite::of(&binary.name);
        let mut command = Command::new(&binary.path);
        // The output of passed tests shows what they skipped.
        command.arg("--show-output").current_dir(&binary.folder);
        // A harness of causes takes one filter.
        let filters =
            if suite.kind == SuiteKind::Judgements && filters.len() > 1 { &[] } else { filters };
        command.args(filters);
        command.env("CARGO_MANIFEST_DIR", &binary.folder).env("CARGO", crate::cargo());
        if let Some(threads) = suite.threads {
            command.arg(format!("--test-threads={threads}"));
        }
        if let Some(throng) = &self.throng {
            command.env("THRONG_PROGRAM", throng);
        }
        let mut job = Job::new(&binary.name, command).with(suite.traits());
        job.is_filtered = !filters.is_empty();
        job
    }
}

/// A message of cargo about one artifact.
#[derive(Deserialize)]
struct CargoMessage {
    reason: String,
    #[serde(default)]
    manifest_path: PathBuf,
    #[serde(default)]
    target: CargoTarget,
    #[serde(default)]
    profile: CargoProfile,
    #[serde(default)]
    executable: Option<PathBuf>,
}

#[derive(Default, Deserialize)]
struct CargoProfile {
    test: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_binaries_are_found_in_the_messages_of_cargo() {
        let artifact = |name: &str, kind: &str, test: bool, executable: &str| {
            format!(
                concat!(
                    r#"{{"reason":"compiler-artifact","#,
                    r#""manifest_path":"/w/crates/throng-cli/Cargo.toml","#,
                    r#""target":{{"kind":["{kind}"],"name":"{name}","#,
                    r#""src_path":"/w/crates/throng-cli/src/main.rs"}},"#,
                    r#""profile":{{"test":{test}}},"executable":{executable}}}"#
                ),
                kind = kind,
                name = name,
                test = test,
                executable = executable
            )
        };
        let messages = [
            artifact("serde", "lib", false, "null"),
            artifact("throng", "bin", false, "\"/w/target/debug/throng\""),
            artifact("throng", "bin", true, "\"/w/target/debug/deps/throng-1\""),
            artifact("walls", "test", true, "\"/w/target/debug/deps/walls-1\""),
            r#"{"reason":"build-finished","success":true}"#.to_owned(),
            "not json".to_owned(),
        ];
        let mut found = TestBinaries::default();
        found.add(&messages.join("\n"));
        let names: Vec<_> = found.binaries.iter().map(|binary| binary.name.as_str()).collect();
        assert_eq!(names, ["throng-cli bin", "throng-cli walls"]);
        assert_eq!(found.binaries[0].folder, PathBuf::from("/w/crates/throng-cli"));
        assert_eq!(found.throng, Some(PathBuf::from("/w/target/debug/throng")));
        let jobs = found.binaries.iter().map(|binary| found.job(binary, &[]));
        let alone: Vec<_> = jobs.map(|job| job.traits.is_exclusive).collect();
        assert_eq!(alone, [false, true]);
    }
}
