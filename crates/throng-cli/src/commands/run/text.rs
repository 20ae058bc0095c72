//! The text before and after a run.

use throng_base::units::{show_count, show_duration};
use throng_load::program::{Broadcast, Probe};
use throng_measure::Tally;
use throng_measure::runfile::{RunEnd, RunEndReason};
use throng_report::Summary;
use throng_report::render::{Align, Table, percent, rate};
use throng_tls::{CLIENT_FULL_US, CLIENT_RESUMED_US};

use super::observer::ObservedServer;
use super::plan::RunPlan;
use super::{calibrate, fleet, preflight};
use crate::interrupt::By;

/// Returns the first lines of a run.
pub(super) fn beginning(plan: &RunPlan, server: Option<&ObservedServer>) -> String {
    let capacity = &plan.load.capacity;
    let machines = &plan.header.machines;
    let mut text = format!(
        "{}: {} connections at most by the plan, {}; room for {}",
        plan.target,
        show_count(capacity.demand.connections),
        show_duration(plan.load.length),
        show_count(plan.header.capacity.unwrap_or(0)),
    );
    if machines.is_empty() {
        for warning in preflight::warnings(&plan.preflight) {
            text += &format!("\nwarning: {warning}");
        }
    } else {
        text += &format!("\n{}", fleet::describe(machines));
    }
    if let Some(ceiling) = &plan.header.ceiling {
        text += &format!("\n{}", calibrate::describe(ceiling));
    }
    if let Some(ObservedServer { snapshot, .. }) = server {
        text += &format!(
            "\nserver: throng serve {} (pid {}); recording its counters",
            snapshot.handler, snapshot.process.pid
        );
    }
    text
}

/// Returns the text of `--dry-run`: the plan, and its requirements.
pub(super) fn plan(plan: &RunPlan) -> String {
    let load = &plan.load;
    let capacity = &load.capacity;
    let mut table = Table::new().aligned(&[Align::Left, Align::Left]);
    let targets: Vec<_> = load.targets.iter().map(ToString::to_string).collect();
    table.row(["target".to_owned(), format!("{} ({})", plan.target, targets.join(", "))]);
    table.row(["protocol".to_owned(), protocol(plan)]);
    if let Some(share) = load.resume_share() {
        table.row(["TLS".to_owned(), handshakes(capacity.demand.begins_per_s, share)]);
    }
    table.row([
        "load".to_owned(),
        format!("{}; {} in total", load.load_outline(), show_duration(load.length)),
    ]);
    if let Some(probe) = load.program().probe() {
        table.row(["probe".to_owned(), describe_probe(probe)]);
    }
    for threshold in &plan.scenario.thresholds {
        table.row(["threshold", threshold.text()]);
    }
    table.row(["cores".to_owned(), capacity.cores.to_string()]);
    format!("{table}\n{}", plan.preflight)
}

/// Describes the cost of handshakes at `per_s` connects, of which this share may resume a session.
fn handshakes(per_s: f64, share: f64) -> String {
    let cpus = |us: u32| format!("{:.2}", per_s * f64::from(us) / 1e6);
    let resumed = match share > 0.0 {
        true => format!(", {} if each resumes a session", cpus(CLIENT_RESUMED_US)),
        false => String::new(),
    };
    format!(
        "{} of the connects offer a session; at most {} handshakes: they take this generator about \
         {} CPUs if all are full{resumed}",
        percent(share),
        rate(per_s),
        cpus(CLIENT_FULL_US)
    )
}

/// Describes the protocol, and the cost of its heartbeats.
fn protocol(plan: &RunPlan) -> String {
    let program = plan.load.program();
    let name = program.protocol().name();
    let Some(heartbeat) = program.heartbeat() else { return name.to_owned() };
    let users = plan.load.capacity.demand.connections;
    let per_second = users as f64 / heartbeat.as_secs_f64();
    format!("{name}, a heartbeat every {}: {} in total", show_duration(heartbeat), rate(per_second))
}

fn describe_probe(probe: &Probe) -> String {
    let to = match (&probe.broadcast, &probe.members) {
        (Broadcast::Push { topic, .. }, _) => format!("all users that have joined {topic}"),
        (_, Some(members)) => format!("the users with `{members}`"),
        (Broadcast::Text(_) | Broadcast::Json(_), None) => "all users".to_owned(),
    };
    let (every, timeout) = (show_duration(probe.every), show_duration(probe.timeout));
    format!("every {every} to {to}; missing after {timeout}")
}

/// Returns advice if no connect succeeded.
pub(super) fn unreached(summary: &Summary) -> Option<String> {
    let connect = &summary.connect;
    // A run that was ended at once has not shown that the target does not answer.
    let is_early = connect.failed.total() == 0 && summary.run.incomplete.is_some();
    if !summary.is_unreached() || is_early {
        return None;
    }
    let target = &summary.run.target;
    let (is_websocket, tcp) = (target.starts_with("ws"), connect.tcp_latency_us.count);
    let advice = match (connect.failed.get("ECONNREFUSED"), is_websocket) {
        (0, true) if tcp > 0 => {
            format!(
                "TCP to {target} was established; the upgrade to a WebSocket was not answered with \
                 101"
            )
        }
        (0, _) => format!("is {target} the right address, and can this machine reach it?"),
        (_, true) => {
            format!("no process listens at {target}; start the server first, or correct --target")
        }
        (_, false) => format!(
            "no process listens at {target}; start the server first (to try throng: `throng serve \
             ok`), or correct --target"
        ),
    };
    let failed = match connect.failed.total() {
        0 => format!("{} still waiting at the end", connect.intended),
        _ => by_name(&connect.failed),
    };
    Some(format!("no connection to the target was ever established ({failed})\n  {advice}"))
}

/// Says why the run ended before its plan did, or that a request to end came after the plan.
/// Nothing of a generator that failed: that is an error.
pub(super) fn early_end(end: &RunEnd, requested: Option<By>) -> Option<String> {
    match end.reason {
        RunEndReason::Failed => None,
        RunEndReason::Interrupted => {
            let by = end.detail.as_deref().unwrap_or("a request");
            Some(format!("interrupted by {by}: the report covers the part that ran"))
        }
        RunEndReason::Unreached => {
            let why = end.detail.as_deref().unwrap_or("no connect succeeded");
            Some(format!("the run ended before its plan did: {why}"))
        }
        RunEndReason::Finished | RunEndReason::TargetLost | RunEndReason::Unknown => {
            requested.map(|by| format!("{by} arrived after the plan was over"))
        }
    }
}

/// Lists counts by name: `ECONNREFUSED 12, timeout 3`.
fn by_name(tally: &Tally) -> String {
    tally.0.iter().map(|(name, n)| format!("{name} {n}")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_ended_a_run_is_named_as_its_end() {
        let end = |reason, detail: &str, requested| {
            let detail = (!detail.is_empty()).then(|| detail.to_owned());
            early_end(&RunEnd { reason, detail, ..RunEnd::default() }, requested)
        };
        let interrupted = "interrupted by throng ctl shutdown: the report covers the part that ran";
        for requested in [None, Some(By::Sigint)] {
            let said = end(RunEndReason::Interrupted, "throng ctl shutdown", requested);
            assert_eq!(said.as_deref(), Some(interrupted));
            assert_eq!(end(RunEndReason::Failed, "core 1 panicked", requested), None);
        }
        let refused = end(RunEndReason::Unreached, "all connects were refused for 10s", None);
        let early = "the run ended before its plan did: all connects were refused for 10s";
        assert_eq!(refused.as_deref(), Some(early));
        let late = end(RunEndReason::Finished, "Ctrl-C", Some(By::Sigint));
        assert_eq!(late.as_deref(), Some("Ctrl-C arrived after the plan was over"));
        assert_eq!(end(RunEndReason::Finished, "", None), None);
    }
}
