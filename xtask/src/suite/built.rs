//! The test binaries that cargo has built, by asking it once more.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;

use super::job::Job;

/// A test binary.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Binary {
    /// `throng-cli walls`, `throng-lab lib`.
    pub(super) name: String,
    pub(super) path: PathBuf,
    /// Where it runs: the folder of its package, as under `cargo test`.
    pub(super) folder: PathBuf,
}

/// Returns all test binaries of the workspace; builds what is not built.
pub(super) fn binaries() -> Result<Vec<Binary>, String> {
    let output = Command::new(super::cargo())
        .args(["test", "--locked", "--workspace", "--no-run", "--quiet"])
        .arg("--message-format=json-render-diagnostics")
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("cannot start cargo: {error}"))?;
    if !output.status.success() {
        return Err("the tests do not build".to_owned());
    }
    Ok(parse(&String::from_utf8_lossy(&output.stdout)))
}

/// Reads cargo's messages, one a line.
fn parse(messages: &str) -> Vec<Binary> {
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Message>(line).ok())
        .filter(|message| message.reason == "compiler-artifact" && message.profile.test)
        .filter_map(|message| {
            let folder = message.manifest_path.parent()?.to_path_buf();
            let package = folder.file_name()?.to_string_lossy().into_owned();
            let path = message.executable?;
            Some(Binary { name: format!("{package} {}", message.target.kind()), path, folder })
        })
        .collect()
}

impl From<Binary> for Job {
    fn from(binary: Binary) -> Self {
        let mut command = Command::new(&binary.path);
        // What tests that pass have printed tells what was skipped.
        command.arg("--show-output").current_dir(&binary.folder);
        command.env("CARGO_MANIFEST_DIR", &binary.folder).env("CARGO", super::cargo());
        Job::new(binary.name, command)
    }
}

/// What cargo says of each thing that it has built.
#[derive(Deserialize)]
struct Message {
    reason: String,
    #[serde(default)]
    manifest_path: PathBuf,
    #[serde(default)]
    target: Target,
    #[serde(default)]
    profile: Profile,
    #[serde(default)]
    executable: Option<PathBuf>,
}

#[derive(Default, Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
    #[serde(default)]
    src_path: PathBuf,
}

impl Target {
    /// `lib`, `bin`, or the name of the test.
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
struct Profile {
    test: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_binaries_are_found_among_what_cargo_says() {
        let artifact = |name: &str, kind: &str, test: bool, executable: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","manifest_path":"/w/crates/throng-cli/Cargo.toml","target":{{"kind":["{kind}"],"name":"{name}","src_path":"/w/crates/throng-cli/src/main.rs"}},"profile":{{"test":{test}}},"executable":{executable}}}"#
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
        let found = parse(&messages.join("\n"));
        let names: Vec<_> = found.iter().map(|binary| binary.name.as_str()).collect();
        assert_eq!(names, ["throng-cli bin", "throng-cli walls"]);
        assert_eq!(found[0].folder, Path::new("/w/crates/throng-cli"));
    }
}
