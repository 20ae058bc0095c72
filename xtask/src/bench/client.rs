//! The bare client, and the CPU time of all processes over its measured window.

use super::cpu::{Machine, Process};
use super::memory;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// The result of one run of the client, and the CPU time within the window.
#[derive(Debug)]
pub(super) struct ClientResult {
    pub(super) summary: Summary,
    pub(super) server_ns: u64,
    pub(super) machine_busy_ns: u64,
    pub(super) machine_total_ns: u64,
    /// The growth of the server's memory from the start of the window until the opened connections
    /// had been idle for a while; only for loads that do that.
    pub(super) server_grew_bytes: Option<i64>,
}

/// The summary on the client's last line.
#[derive(Debug, serde::Deserialize)]
pub(super) struct Summary {
    /// The offered rate a second; 0 when saturated.
    pub(super) offered: f64,
    /// The connections or messages within the window.
    pub(super) done: u64,
    pub(super) rate: f64,
    pub(super) p50_us: f64,
    pub(super) p99_us: f64,
    /// The time at which the last receiver had a broadcast: the median over the messages.
    #[serde(default)]
    pub(super) last_us: f64,
    pub(super) errors: Errors,
    /// The client's own CPU time within the window.
    pub(super) cpu_us: u64,
    /// The connections or messages of the whole run, not only of the window.
    pub(super) total_done: u64,
}

/// Errors by kind, over the whole run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
pub(super) struct Errors {
    connecting: u64,
    reset: u64,
    closed: u64,
    unanswered: u64,
    /// Wrong answers; only where answers are compared.
    #[serde(default)]
    wrong: u64,
}

impl Errors {
    pub(super) fn sum(self) -> u64 {
        self.connecting + self.reset + self.closed + self.unanswered + self.wrong
    }
}

/// Runs the client to its end against the server with process id `server`.
pub(super) fn run(mut command: Command, server: u32) -> Result<ClientResult, String> {
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|e| format!("cannot start the client: {e}"))?;
    let mut child = KillOnDrop(child);
    let output = child.0.stdout.take().ok_or("the client has no output")?;
    let (mut start, mut end, mut held, mut summary) = (None, None, None, None);
    for line in BufReader::new(output).lines() {
        let line = line.map_err(|e| format!("cannot read from the client: {e}"))?;
        match line.as_str() {
            r#"{"event":"start"}"# => start = Some(Reading::take(server)?),
            r#"{"event":"end"}"# => end = Some(Reading::take(server)?),
            r#"{"event":"held"}"# => held = Some(memory::private_bytes(server)?),
            _ => summary = Some(line),
        }
    }
    let status = child.0.wait().map_err(|e| format!("cannot wait for the client: {e}"))?;
    let (Some(start), Some(end), Some(summary)) = (start, end, summary) else {
        return Err(format!("the client ended early: {status}"));
    };
    let summary: Summary = serde_json::from_str(&summary)
        .map_err(|e| format!("the client's summary does not parse: {e}"))?;
    if summary.done == 0 {
        return Err("nothing was answered".into());
    }
    let (machine_busy_ns, machine_total_ns) = end.machine.since(&start.machine);
    Ok(ClientResult {
        summary,
        server_ns: end.server.since(&start.server),
        machine_busy_ns,
        machine_total_ns,
        server_grew_bytes: held.map(|held| held.cast_signed() - start.memory.cast_signed()),
    })
}

struct Reading {
    server: Process,
    machine: Machine,
    memory: u64,
}

impl Reading {
    fn take(server: u32) -> Result<Self, String> {
        let memory = memory::private_bytes(server)?;
        Ok(Self { server: Process::read(server)?, machine: Machine::read()?, memory })
    }
}

/// A client process that is killed when this is dropped.
struct KillOnDrop(Child);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        if matches!(self.0.try_wait(), Ok(None)) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUMMARY: &str = concat!(
        r#"{"offered":0.0,"done":9,"rate":4.5,"p50_us":1.0,"p99_us":2.0,"#,
        r#""errors":{"connecting":1,"reset":2,"closed":3,"unanswered":4},"#,
        r#""cpu_us":5,"total_done":12}"#
    );

    fn run_script(script: &str) -> Result<ClientResult, String> {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        run(command, std::process::id())
    }

    #[test]
    fn the_window_and_the_summary_are_read() {
        let script = format!(
            r#"echo '{{"event":"start"}}'; sleep 0.05
               echo '{{"event":"end"}}'; sleep 0.05; echo '{SUMMARY}'"#
        );
        let measured = run_script(&script).unwrap();
        assert_eq!(measured.summary.done, 9);
        assert_eq!(measured.summary.errors.sum(), 10);
        assert!(measured.machine_total_ns > 0);
        assert_eq!(measured.server_grew_bytes, None);
    }

    #[test]
    fn memory_is_read_when_connections_have_been_held() {
        let script = format!(
            r#"for e in start end held; do echo "{{\"event\":\"$e\"}}"; done; echo '{SUMMARY}'"#
        );
        assert!(run_script(&script).unwrap().server_grew_bytes.is_some());
    }

    #[test]
    fn a_client_that_dies_is_an_error() {
        let error = run_script(r#"echo '{"event":"start"}'; exit 2"#).unwrap_err();
        assert!(error.contains("ended early"), "{error}");
    }
}
