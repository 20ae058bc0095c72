//! The text before and after a run.

use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use throng_base::units::{show_count, show_duration};
use throng_load::program::{Broadcast, Probe};
use throng_report::render::{Align, Table, rate};
use throng_report::{Diagnosis, Judgement, Summary, Tally};

use super::observer::ObservedServer;
use super::plan::RunPlan;
use super::{calibrate, preflight};

/// Returns the first lines of a run.
pub(super) fn beginning(plan: &RunPlan, server: Option<&ObservedServer>) -> String {
    let capacity = &plan.load.capacity;
    let mut text = format!(
        "{}: {} connections at most, {}; room for {}",
        plan.target,
        show_count(capacity.demand.connections),
        show_duration(plan.load.length),
        show_count(plan.header.capacity.unwrap_or(0)),
    );
    for warning in preflight::warnings(&plan.preflight) {
        text += &format!("\nwarning: {warning}");
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
    let phases = load.phase_names();
    table.row([
        "load".to_owned(),
        format!("{}; {} in total", phases.join(", "), show_duration(load.length)),
    ]);
    if let Some(probe) = load.program().probe() {
        table.row(["probe".to_owned(), describe_probe(probe)]);
    }
    for threshold in &plan.thresholds {
        table.row(["threshold", threshold.text()]);
    }
    table.row(["cores".to_owned(), capacity.cores.to_string()]);
    format!("{table}\n{}", plan.preflight)
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
    let to = match &probe.broadcast {
        Broadcast::Push { topic, .. } => format!("all users that have joined {topic}"),
        Broadcast::Text(_) | Broadcast::Json(_) => "all users".to_owned(),
    };
    let (every, timeout) = (show_duration(probe.every), show_duration(probe.timeout));
    format!("every {every} to {to}; missing after {timeout}")
}

/// Returns the summary as JSON, with the judgements of the thresholds and the diagnosis.
pub(crate) fn summary_json(
    summary: &Summary,
    judgements: &[Judgement],
    diagnosis: &Diagnosis,
) -> Value {
    let mut value = serde_json::to_value(summary).expect("plain data becomes JSON");
    if let Value::Object(fields) = &mut value {
        fields.insert("thresholds".to_owned(), json!(judgements));
        fields.insert("diagnosis".to_owned(), json!(diagnosis));
    }
    value
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
        (_, is_websocket) => {
            let server = if is_websocket { "channels" } else { "ok" };
            format!(
                "no process listens at {target}; start the server first, for instance with \
                 `throng serve {server}`"
            )
        }
    };
    let failed = match connect.failed.total() {
        0 => format!("{} still waiting at the end", connect.intended),
        _ => by_name(&connect.failed),
    };
    Some(format!("no connection to the target was ever established ({failed})\n  {advice}"))
}

/// Lists counts by name: `ECONNREFUSED 12, timeout 3`.
fn by_name(tally: &Tally) -> String {
    tally.0.iter().map(|(name, n)| format!("{name} {n}")).collect::<Vec<_>>().join(", ")
}

/// Formats a time as RFC 3339: `2026-11-21T06:06:57Z`.
pub(crate) fn rfc3339(time: SystemTime) -> String {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let (days, seconds) = ((since.as_secs() / 86_400) as i64, since.as_secs() % 86_400);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Returns the date of a day counted from 1970-01-01. The calendar's years begin in March, so the
/// leap day comes last.
fn date(days: i64) -> (i64, i64, i64) {
    let day = days + DAYS_FROM_0000_03_01;
    let era = day.div_euclid(DAYS_OF_400_YEARS);
    let of_era = day.rem_euclid(DAYS_OF_400_YEARS);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (era * 400 + year_of_era + next, month, day)
}

const DAYS_FROM_0000_03_01: i64 = 719_468;
const DAYS_OF_400_YEARS: i64 = 146_097;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_shown_as_rfc_3339() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_799, "2000-02-29T23:59:59Z"),
            (1_709_251_199, "2024-02-29T23:59:59Z"),
            (1_709_251_200, "2024-03-01T00:00:00Z"),
            (4_107_542_399, "2100-02-28T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(rfc3339(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)), text);
        }
    }
}
