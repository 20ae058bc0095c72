//! The output of a watch: a line per sample and a summary, or JSON lines.

use std::net::SocketAddr;

use serde_json::json;
use throng_doctor::trouble_between;
use throng_machine::ListenerScope;
use throng_measure::watch::{WatchEnd, WatchHeader, WatchLine};
use throng_measure::{Diagnosis, Interval, KernelCounters, Metric, ProcessMetric};
use throng_report::render::{bytes, count, findings, or_dash, rate};
use throng_run::watch::HostWatch;

use super::summary::{SUDO, WatchSummary};
use crate::output;

/// Prints the samples of one watch.
pub(super) struct Lines {
    json: bool,
    /// Lines since the heading.
    since_heading: usize,
    /// Whether the server is a throng server, which reports its own number of connections.
    is_throng: bool,
    /// Whether the watch has no listeners of its own: `connected` is that of the namespace.
    counts_namespace: bool,
    /// Established connections of the watched listeners, as they were last counted.
    established: Option<i64>,
}

impl Lines {
    pub(super) fn new(json: bool) -> Self {
        Self {
            json,
            since_heading: HEADING_EVERY,
            is_throng: false,
            counts_namespace: false,
            established: None,
        }
    }

    /// Prints the target of the watch.
    pub(super) fn begin(
        &mut self,
        header: &WatchHeader,
        watch: &HostWatch,
        at: Option<SocketAddr>,
    ) {
        if self.json {
            output::say_json(header);
        }
        let say = |text: String| output::say_beside(self.json, text);
        let ports: Vec<_> = header.ports.iter().map(ToString::to_string).collect();
        let ports = match ports.len() {
            0 => "all listeners".to_owned(),
            1 => format!("port {}", ports[0]),
            _ => format!("ports {}", ports.join(", ")),
        };
        say(match watch.owner() {
            Ok(owner) => {
                let others = match owner.others.len() {
                    0 => String::new(),
                    1 => " and 1 more process".to_owned(),
                    n => format!(" and {n} more processes; this one used the most CPU time"),
                };
                format!(
                    "watching {ports}: {} (pid {}){others}; Ctrl-C ends it",
                    owner.program, owner.pid
                )
            }
            Err(why) if why.is_refused() => format!(
                "watching {ports}; Ctrl-C ends it\n  the process that listens cannot be seen \
                 ({why}): {SUDO}, to see its CPU and memory"
            ),
            Err(why) => format!("watching {ports}; Ctrl-C ends it\n  {why}"),
        });
        for other in watch.owner().iter().flat_map(|owner| &owner.beside) {
            let at: Vec<_> = other.listens_at.iter().map(ToString::to_string).collect();
            say(format!(
                "  another server listens at {}: {} (pid {pid}); --pid {pid} watches that one",
                at.join(", "),
                other.program,
                pid = other.pid
            ));
        }
        self.counts_namespace = watch.scope() == ListenerScope::All;
        if !watch.reads_server_counters() && self.counts_namespace {
            say("`connected` counts all established connections in this namespace, both ends of \
                 those on loopback; with --port it counts those of the server"
                .to_owned());
        }
        if let Some(at) = at {
            let reach = if at.ip().is_loopback() { " (from this machine only)" } else { "" };
            say(format!(
                "facts available at {at}{reach}: throng run SCENARIO.yaml --server-facts HOST:{}",
                at.port()
            ));
        }
    }

    /// Prints one sample, compared with the previous one.
    pub(super) fn line(&mut self, line: &WatchLine, before: Option<&Interval>) {
        if self.json {
            return output::say_json(line);
        }
        // They are not counted in each sample, and always in the first.
        self.established = line.kernel.get(Metric::LISTENER_ESTABLISHED).or(self.established);
        // The first sample has no predecessor.
        let Some(before) = before else { return };
        if self.since_heading >= HEADING_EVERY {
            self.since_heading = 0;
            output::say(HEADING);
        }
        self.since_heading += 1;
        self.is_throng |= line.server.is_some();
        let connected = match &line.server {
            Some(server) => Some(server.counters.open as i64),
            // For a throng server that was silent once, another number would look like its own.
            None if self.is_throng => None,
            None if self.counts_namespace => line.kernel.get(Metric::TCP_CURR_ESTAB),
            None => self.established,
        };
        output::say(row(line, before, connected));
    }

    /// Prints the result of the watch.
    pub(super) fn end(&self, summary: &WatchSummary) {
        let end = summary.end();
        if self.json {
            return output::say_json(&json!({ "end": end }));
        }
        let WatchEnd { verdict, looks, seconds, moved, findings: found } = end;
        output::say(format!("\n{verdict}\n\n{looks} samples in {seconds:.1} s"));
        if moved.is_empty() {
            output::say("no trouble counter moved");
        } else {
            output::say("trouble counters that moved (flat on a healthy server):");
            for m in &moved {
                let from = m.began_ms as f64 / 1000.0;
                output::say(format!("  {} +{} from {from:.1} s on: {}", m.counter, m.by, m.means));
            }
        }
        let unseen = summary.unseen().to_vec();
        let diagnosis = Diagnosis { verdict, findings: found, unseen, ..Diagnosis::default() };
        output::say(findings(&diagnosis));
    }
}

/// Returns one sample as a row under [`HEADING`].
fn row(line: &WatchLine, before: &Interval, connected: Option<i64>) -> String {
    let seconds = line.at_ms.saturating_sub(before.at_ms).max(1) as f64 / 1000.0;
    let gauge = |metric| line.kernel.get(metric);
    let grown = |metric| Some((gauge(metric)? - before.server_kernel.get(metric)?).max(0));
    let per_second = |metric| or_dash(grown(metric), |n| rate(n as f64 / seconds));
    let queue = match (gauge(Metric::LISTENER_ACCEPT_QUEUE_MOST), gauge(Metric::LISTENER_BACKLOG)) {
        (Some(queue), Some(backlog)) => format!("{queue}/{backlog}"),
        _ => "-".to_owned(),
    };
    let cpu = cpu_shares(line, before);
    let process = line.process.as_ref();
    let server_cpus = grown(ProcessMetric::RUN_US.server).map(|us| us as f64 / 1e6 / seconds);
    let now = as_server_side(&line.kernel);
    let overflows = grown(Metric::TCPEXT_LISTEN_OVERFLOWS).unwrap_or(0) as u64;
    let has_column = |what: &str, n: u64| match what {
        "overflows" | "retransmits" => true,
        // Every overflow is a drop as well.
        "listen drops" => n == overflows,
        _ => false,
    };
    let others = trouble_between(before, &now)
        .into_iter()
        .filter(|(what, n)| !has_column(what, *n))
        .map(|(what, n)| format!("{what} +{n}"));
    let cells = [
        format!("{:>8.1}", line.at_ms as f64 / 1000.0),
        format!("{:>10}", or_dash(connected, |n| count(n as f64))),
        format!("{queue:>14}"),
        format!("{:>9}", or_dash(gauge(Metric::LISTENER_SYN_RECV), |n| n.to_string())),
        format!("{:>11}", per_second(Metric::TCPEXT_LISTEN_OVERFLOWS)),
        format!("{:>13}", per_second(Metric::TCP_RETRANS_SEGS)),
        format!("{:>7}", or_dash(cpu, |(busy, _)| whole_percent(busy))),
        format!("{:>7}", or_dash(cpu, |(_, stolen)| whole_percent(stolen))),
        format!("{:>10}", or_dash(server_cpus, |cpus| format!("{cpus:.2}"))),
        format!("{:>13}", or_dash(process, |process| bytes(process.rss_bytes as f64))),
    ];
    format!("{}  {}", cells.concat(), others.collect::<Vec<_>>().join(", ")).trim_end().to_owned()
}

const HEADING: &str = "       s connected  accept queue SYN-RECV  overflows  retransmits    CPU \
                       stolen  srv CPUs   srv memory  other counters";

/// Returns the shares of CPU time that were busy and stolen, over all CPUs.
fn cpu_shares(line: &WatchLine, before: &Interval) -> Option<(f64, f64)> {
    let (now, before) = (line.machine.as_ref()?, before.server_machine.as_ref()?);
    let busy = now.cpu_busy_us.saturating_sub(before.cpu_busy_us) as f64;
    let stolen = now.cpu_stolen_us.saturating_sub(before.cpu_stolen_us) as f64;
    let idle = now.cpu_idle_us.saturating_sub(before.cpu_idle_us) as f64;
    let all = busy + stolen + idle;
    (all > 0.0).then(|| (busy / all, stolen / all))
}

/// Formats a share without decimals, for which a line has no room.
fn whole_percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

fn as_server_side(kernel: &KernelCounters) -> Interval {
    Interval { server_kernel: kernel.clone(), ..Interval::default() }
}

/// Lines between two headings.
const HEADING_EVERY: usize = 20;
