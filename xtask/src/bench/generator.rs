//! throng's generator compared with the bare client: CPU per connection of the same work on the
//! same server.
//!
//! Both open connections evenly at 40 % of the bare loop's maximum, exchange a byte for "ok" and
//! close. Each is measured as a whole process from start to end, by the CPU time that the kernel
//! charged when the process has ended and is not yet reaped (in ticks of 10 ms, below 1 % of the
//! measured time).

pub(super) mod users;

use super::peer::Peer;
use super::result::{median, median_of_some};
use super::server::PeerServer;
use super::workload::{Workload, WorkloadLimits};
use super::{Bench, cpu, table};
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use std::fmt::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// The sample of one generator in one round.
#[derive(Clone, Debug, serde::Serialize)]
pub(super) struct Sample {
    pub(super) generator: &'static str,
    pub(super) round: u32,
    pub(super) connections: u64,
    pub(super) cpu_us: f64,
}

pub(super) const BARE_CLIENT: &str = "bare client";
pub(super) const THRONG_RUN: &str = "throng run";

/// Measures both in alternating order, each against a new bare server.
pub(super) fn compare(
    bench: &Bench<'_>,
    limits: &WorkloadLimits,
    round: u32,
) -> Result<Vec<Sample>, String> {
    let rate = Workload::Churn40.rate(limits).expect("this workload has a rate").round();
    let seconds = bench.size.seconds.ceil() * 2.0;
    let mut kinds: [Measure; 2] = [bare_client, throng_run];
    if round % 2 == 1 {
        kinds.reverse();
    }
    kinds.into_iter().map(|measure| measure(bench, rate, seconds, round)).collect()
}

type Measure = fn(&Bench<'_>, f64, f64, u32) -> Result<Sample, String>;

/// Returns the table of both; empty without samples.
pub(super) fn markdown(samples: &[Sample]) -> String {
    let Some(ratio) = ratio(samples) else { return String::new() };
    let mut text = "\n| generator | CPU us per connection | connections | x bare |\n\
                    |---|--:|--:|--:|\n"
        .to_string();
    for (generator, ratio) in [(BARE_CLIENT, 1.0), (THRONG_RUN, ratio)] {
        let of = || samples.iter().filter(|s| s.generator == generator);
        _ = writeln!(
            text,
            "| {generator} | {:.1} | {} | {ratio:.2} |",
            median(of().map(|s| s.cpu_us).collect()),
            table::grouped(of().map(|s| s.connections as f64).sum()),
        );
    }
    text
}

/// Returns throng's CPU relative to the bare client's: the median of the ratios within each round.
pub(super) fn ratio(samples: &[Sample]) -> Option<f64> {
    median_of_some(samples.iter().filter(|s| s.generator == THRONG_RUN).filter_map(|throng| {
        let bare =
            samples.iter().find(|s| s.generator == BARE_CLIENT && s.round == throng.round)?;
        Some(throng.cpu_us / bare.cpu_us)
    }))
}

fn bare_client(bench: &Bench<'_>, rate: f64, seconds: f64, round: u32) -> Result<Sample, String> {
    let mut command = Command::new(bench.toolbox.bare("client"));
    command
        .args(["churn", "--connections", "4000", "--warmup", "0"])
        .args(["--rate", &rate.to_string(), "--seconds", &seconds.to_string()])
        .args(["--port", &bench.options.port.to_string()])
        .args(["--threads", &bench.options.threads.to_string()]);
    let (output, cpu_ns) = against_bare_server(bench, command)?;
    let summary: super::client::Summary = output
        .lines()
        .last()
        .and_then(|line| serde_json::from_str(line).ok())
        .ok_or("the client's summary does not parse")?;
    Sample::new(BARE_CLIENT, round, summary.total_done, cpu_ns)
}

fn throng_run(bench: &Bench<'_>, rate: f64, seconds: f64, round: u32) -> Result<Sample, String> {
    let scenario = bench.toolbox.folder().join("generator.yaml");
    let summary = bench.toolbox.folder().join("generator.json");
    std::fs::write(&scenario, scenario_text(bench.options.port, rate, seconds))
        .map_err(|e| format!("cannot write {}: {e}", scenario.display()))?;
    _ = std::fs::remove_file(&summary);
    let mut command = Command::new(bench.toolbox.throng());
    command.arg("run").arg(&scenario).arg("--no-calibrate").arg("--json").arg(&summary);
    let (_, cpu_ns) = against_bare_server(bench, command)?;
    Sample::new(THRONG_RUN, round, connected(&summary)?, cpu_ns)
}

fn scenario_text(port: u16, rate: f64, seconds: f64) -> String {
    format!(
        "target: tcp://127.0.0.1:{port}\n\
         load:\n\
         \x20 - arrivals: {{rate: {rate}/s, for: {seconds}s, spacing: even}}\n\
         user:\n\
         \x20 - connect\n\
         \x20 - send: \"x\"\n\
         \x20 - expect: {{bytes: 2}}\n\
         \x20 - close\n"
    )
}

/// Returns `connect.ok` of throng's own summary.
fn connected(summary: &Path) -> Result<u64, String> {
    let text = std::fs::read_to_string(summary)
        .map_err(|e| format!("cannot read {}: {e}", summary.display()))?;
    let json: serde_json::Value =
        serde_json::from_str(&text).map_err(|e| format!("throng's summary does not parse: {e}"))?;
    json["connect"]["ok"].as_u64().ok_or_else(|| "throng's summary has no connect.ok".into())
}

/// Runs a generator against a bare server. Returns its output, and its CPU time from start to end.
fn against_bare_server(bench: &Bench<'_>, mut command: Command) -> Result<(String, u64), String> {
    let bare = Peer::bare().command(Workload::Churn40, &bench.toolbox, bench.options);
    let server = PeerServer::start(bare, bench.options.port)?;
    let name = command.get_program().to_string_lossy().into_owned();
    let output = bench.toolbox.folder().join("generator.out");
    let file = std::fs::File::create(&output)
        .map_err(|e| format!("cannot write {}: {e}", output.display()))?;
    let mut child = command
        .stdin(Stdio::null())
        .stdout(file)
        .stderr(Stdio::null())
        .spawn()
        .map_err(|e| format!("cannot start {name}: {e}"))?;
    let pid = Pid::from_raw(child.id().cast_signed()).ok_or("a process without an id")?;
    waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)
        .map_err(|e| format!("cannot wait for {name}: {e}"))?;
    let cpu_ns = cpu::ended_ns(child.id());
    let status = child.wait().map_err(|e| format!("cannot wait for {name}: {e}"))?;
    server.stop()?;
    // A run on a busy machine is graded invalid (exit code 3) for its latencies; its CPU time is
    // valid anyway.
    if !status.success() && status.code() != Some(3) {
        return Err(format!("{name} failed: {status}"));
    }
    let text = std::fs::read_to_string(&output)
        .map_err(|e| format!("cannot read {}: {e}", output.display()))?;
    Ok((text, cpu_ns?))
}

impl Sample {
    fn new(
        generator: &'static str,
        round: u32,
        connections: u64,
        cpu_ns: u64,
    ) -> Result<Self, String> {
        if connections == 0 {
            return Err(format!("{generator} made no connections"));
        }
        if cpu_ns == 0 {
            return Err(format!(
                "{generator} has no CPU time: it is not the process that did the work"
            ));
        }
        let cpu_us = cpu_ns as f64 / 1e3 / connections as f64;
        Ok(Self { generator, round, connections, cpu_us })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) fn sample(generator: &'static str, cpu_us: f64) -> Sample {
        Sample { generator, round: 0, connections: 1_000, cpu_us }
    }

    #[test]
    fn throng_is_compared_with_the_bare_client_of_its_round() {
        let samples = [sample(BARE_CLIENT, 20.0), sample(THRONG_RUN, 22.0)];
        assert!((ratio(&samples).unwrap() - 1.1).abs() < 1e-9);
        assert!(markdown(&samples).contains("| throng run | 22.0 | 1,000 | 1.10 |"));
        assert_eq!(ratio(&samples[1..]), None);
        assert_eq!(markdown(&[]), "");
    }

    #[test]
    fn the_scenario_is_indented_as_yaml_wants() {
        let text = scenario_text(23_000, 5_000.0, 4.0);
        assert!(
            text.contains("\n  - arrivals: {rate: 5000/s, for: 4s, spacing: even}\n"),
            "{text}"
        );
        assert!(text.ends_with("  - close\n"), "{text}");
    }
}
