//! The test binaries, as cargo reports them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;

use super::job::Job;

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
    /// Builds the workspace and returns its test binaries.
    pub(super) fn build() -> Result<Self, String> {
        let output = Command::new(super::cargo())
            .args(["test", "--locked", "--workspace", "--no-run", "--quiet"])
            .arg("--message-format=json-render-diagnostics")
            .stderr(Stdio::inherit())
            .output()
            .map_err(|error| format!("cannot start cargo: {error}"))?;
        if !output.status.success() {
            return Err("cargo cannot build the tests".to_owned());
        }
        Ok(Self::parse(&String::from_utf8_lossy(&output.stdout)))
    }

    /// Parses cargo's messages, one for each line.
    fn parse(messages: &str) -> Self {
        let mut built = Self::default();
        let messages =
            messages.lines().filter_map(|line| serde_json::from_str::<CargoMessage>(line).ok());
        for message in messages.filter(|message| message.reason == "compiler-artifact") {
            let (Some(path), Some(folder)) = (message.executable, message.manifest_path.parent())
            else {
                continue;
            };
            let package = folder.file_name().unwrap_or_default().to_string_lossy();
            if message.profile.test {
                let name = format!("{package} {}", message.target.kind());
                built.binaries.push(TestBinary { name, path, folder: folder.to_path_buf() });
            } else if message.target.name == "throng" {
                built.throng = Some(path);
            }
        }
        built
    }

    /// Returns a job for each test binary.
    pub(super) fn jobs(&self) -> Vec<Job> {
        self.binaries.iter().map(|binary| self.job(binary)).collect()
    }

    fn job(&self, binary: &TestBinary) -> Job {
        let mut command = Command::new(&binary.path);
        // The output of passed tests shows what they skipped.
        command.arg("--show-output").current_dir(&binary.folder);
        command.env("CARGO_MANIFEST_DIR", &binary.folder).env("CARGO", super::cargo());
        if let Some(throng) = &self.throng {
            command.env("THRONG_PROGRAM", throng);
        }
        let job = Job::new(&binary.name, command);
        if EXCLUSIVE.contains(&binary.name.as_str()) { job.exclusive() } else { job }
    }
}

/// The tests that change sysctls of the whole machine for some seconds, or measure the CPUs.
const EXCLUSIVE: [&str; 3] = ["throng-cli diseases", "throng-cli preflight", "throng-cli walls"];

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
struct CargoTarget {
    name: String,
    kind: Vec<String>,
    #[serde(default)]
    src_path: PathBuf,
}

impl CargoTarget {
    /// Returns `lib`, `bin`, or the name of the test.
    fn kind(&self) -> &str {
        match self.kind.first().map(String::as_str) {
            Some("test") => &self.name,
            Some("bin") if self.src_path.ends_with(Path::new("src/main.rs")) => "bin",
            Some("bin") => &self.name,
            _ => "lib",
        }
    }
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
        let found = TestBinaries::parse(&messages.join("\n"));
        let names: Vec<_> = found.binaries.iter().map(|binary| binary.name.as_str()).collect();
        assert_eq!(names, ["throng-cli bin", "throng-cli walls"]);
        assert_eq!(found.binaries[0].folder, Path::new("/w/crates/throng-cli"));
        assert_eq!(found.throng.as_deref(), Some(Path::new("/w/target/debug/throng")));
        let alone: Vec<_> = found.jobs().into_iter().map(|job| job.is_exclusive).collect();
        assert_eq!(alone, [false, true]);
    }
}
