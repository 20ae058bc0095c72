//! Autobahn's cases without compression, and a sample of those with it, against both of our ends.
//! `make conformance` runs all of them.

use std::process::Command;

#[test]
fn both_ends_pass_the_cases() {
    let out = concat!(env!("CARGO_TARGET_TMPDIR"), "/conformance");
    let run = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args(["conformance", "--quick", "--out", out])
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&run.stdout);
    let complaint = String::from_utf8_lossy(&run.stderr);
    match run.status.code() {
        Some(0) => {
            assert_eq!(told.matches("313 cases").count(), 2, "{told}");
        }
        // Python or its package cannot be had.
        Some(77) => eprintln!("{complaint}"),
        _ => panic!("{told}{complaint}"),
    }
}
