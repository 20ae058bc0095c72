//! Finds the program whose `serve` and `run` are a lab's two ends.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

/// The `throng` of this build. A workspace-wide test has built it already; for this crate alone
/// it is built here.
pub(crate) fn throng() -> PathBuf {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    let find = || {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--quiet", "--offline", "-p", "throng-cli", "--bin", "throng"]);
        let test = std::env::current_exe().unwrap();
        let folder = test.ancestors().nth(2).unwrap();
        if folder.ends_with("release") {
            cargo.arg("--release");
        }
        let built = cargo.current_dir(env!("CARGO_MANIFEST_DIR")).status().unwrap();
        assert!(built.success(), "cannot build throng-cli");
        folder.join("throng")
    };
    PROGRAM.get_or_init(find).clone()
}
