//! A counter of a running server or generator.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::child_process::ChildProcess;

/// Asks a process of throng for one of its counters.
pub(super) fn counter(throng: &Path, process: &ChildProcess, name: &str) -> Result<u64, String> {
    let mut ctl = Command::new(throng);
    ctl.args(["ctl", "snapshot", "--pid", &process.id().to_string()]);
    let output = ctl.output().map_err(|e| format!("throng ctl: {e}"))?;
    let snapshot: Value =
        serde_json::from_slice(&output.stdout).map_err(|e| format!("throng ctl snapshot: {e}"))?;
    let counter = snapshot["counters"][name].as_u64();
    counter.ok_or_else(|| format!("the snapshot has no counter {name}"))
}
