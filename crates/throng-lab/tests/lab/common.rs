//! Finds the program that runs as a lab's server and generator.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

/// Returns the `throng` of this build: the one that `make test` names, or else one that this
/// function builds.
pub(crate) fn throng() -> PathBuf {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    let find = || {
        if let Some(built) = std::env::var_os("THRONG_PROGRAM") {
            return PathBuf::from(built);
        }
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
