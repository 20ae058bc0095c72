//! Autobahn's cases without compression, and a sample of those with it, against server and client.
//! `make conformance` runs all of them.

use std::process::Command;

#[test]
fn server_and_client_pass_the_cases() {
    let out = concat!(env!("CARGO_TARGET_TMPDIR"), "/conformance");
    let run = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args(["conformance", "--quick", "--out", out])
        .output()
        .unwrap();
    let stdout = String::from_utf8_lossy(&run.stdout);
    let stderr = String::from_utf8_lossy(&run.stderr);
    match run.status.code() {
        Some(0) => {
            assert_eq!(stdout.matches("313 cases").count(), 2, "{stdout}");
        }
        // Python or its package is not available.
        Some(77) => eprintln!("{stderr}"),
        _ => panic!("{stdout}{stderr}"),
    }
}
