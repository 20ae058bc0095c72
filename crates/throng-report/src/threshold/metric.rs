//! The names that a threshold may begin with, and what each is measured in.

use crate::{LatencySummary, Summary};

/// What a value is measured in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// Microseconds, written as a duration.
    Micros,
    Count,
    /// Per second.
    Rate,
    /// 1 is 100 %.
    Share,
    Bytes,
}

/// A measurement that has a name.
#[derive(Clone, Debug)]
pub(super) enum Metric {
    Latency(fn(&Summary) -> LatencySummary, fn(&LatencySummary) -> u64),
    Fixed(Unit, fn(&Summary) -> Option<f64>),
    Errors,
    ErrorsOfKind(String),
    FailedConnects(String),
}

impl Metric {
    pub(super) fn named(name: &str) -> Option<Self> {
        if name == "errors" {
            return Some(Self::Errors);
        }
        if let Some((_, unit, get)) = FIXED.iter().find(|(known, ..)| *known == name) {
            return Some(Self::Fixed(*unit, *get));
        }
        for (prefix, of) in LATENCIES {
            if let Some(stat) = name.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('.')) {
                let stat = if stat == "p99.9" { "p999" } else { stat };
                if let Some((_, get)) = STATS.iter().find(|(known, _)| *known == stat) {
                    return Some(Self::Latency(of, *get));
                }
            }
        }
        let below = |prefix| name.strip_prefix(prefix).filter(|rest| !rest.is_empty());
        let failed = below("connect.failed.").map(|errno| Self::FailedConnects(errno.to_owned()));
        let kind =
            below("errors.").filter(|kind| ERROR_KINDS.contains(kind) || is_close_code(kind));
        failed.or_else(|| kind.map(|kind| Self::ErrorsOfKind(kind.to_owned())))
    }

    /// The unit of the name, which for `errors` depends on how the limit is written.
    pub(super) fn unit(&self, limit: &str) -> Unit {
        match self {
            Self::Latency(..) => Unit::Micros,
            Self::Fixed(unit, _) => *unit,
            Self::Errors | Self::ErrorsOfKind(_) if limit.ends_with('%') => Unit::Share,
            Self::Errors | Self::ErrorsOfKind(_) | Self::FailedConnects(_) => Unit::Count,
        }
    }

    /// What the run measured; `None` when it measured nothing of this.
    pub(super) fn value(&self, unit: Unit, summary: &Summary) -> Option<f64> {
        let count = match self {
            Self::Latency(of, get) => {
                let latency = of(summary);
                return (latency.count > 0).then(|| get(&latency) as f64);
            }
            Self::Fixed(_, get) => return get(summary),
            Self::Errors => summary.errors.total(),
            Self::ErrorsOfKind(kind) => summary.errors.get(kind),
            Self::FailedConnects(errno) => summary.connect.failed.get(errno),
        } as f64;
        match (unit, summary.attempts()) {
            (Unit::Share, 0) => None,
            (Unit::Share, attempts) => Some(count / attempts as f64),
            _ => Some(count),
        }
    }
}

/// `ws_close_1011`, or `ws_close_none`.
fn is_close_code(kind: &str) -> bool {
    let code = kind.strip_prefix("ws_close_");
    code.is_some_and(|code| {
        code == "none" || (code.len() == 4 && code.bytes().all(|byte| byte.is_ascii_digit()))
    })
}

/// Every name that a threshold may begin with; `connect.failed.ERRNO` and `errors.ws_close_1011` exist besides.
pub fn names() -> Vec<String> {
    let latencies = LATENCIES
        .iter()
        .flat_map(|(prefix, _)| STATS.iter().map(move |(stat, _)| format!("{prefix}.{stat}")));
    let fixed = FIXED.iter().map(|(name, ..)| (*name).to_owned());
    let errors = ERROR_KINDS.iter().map(|kind| format!("errors.{kind}"));
    latencies.chain(["errors".to_owned()]).chain(errors).chain(fixed).collect()
}

/// Where the target stood still at the end, who still waited counts too: each percentile that they would be above is at least their wait.
fn with_waiting(latency: LatencySummary, summary: &Summary) -> LatencySummary {
    if summary.overdue().is_none() {
        return latency;
    }
    let (waiting, waited_us) = (summary.users.waiting, summary.users.waiting_us_most);
    let share = waiting as f64 / (latency.count + waiting) as f64;
    let at = |us: u64, above: f64| if share > above { us.max(waited_us) } else { us };
    LatencySummary {
        p50: at(latency.p50, 0.5),
        p90: at(latency.p90, 0.1),
        p99: at(latency.p99, 0.01),
        p999: at(latency.p999, 0.001),
        max: latency.max.max(waited_us),
        ..latency
    }
}

type LatencyOf = fn(&Summary) -> LatencySummary;
type StatOf = fn(&LatencySummary) -> u64;
type ValueOf = fn(&Summary) -> Option<f64>;

const LATENCIES: [(&str, LatencyOf); 7] = [
    ("connect", |s| s.connect.latency_us),
    ("tcp", |s| s.connect.tcp_latency_us),
    ("join", |s| s.join.as_ref().map(|join| join.latency_us).unwrap_or_default()),
    ("push", |s| s.push.as_ref().map(|push| with_waiting(push.latency_us, s)).unwrap_or_default()),
    ("broadcast", |s| {
        s.broadcast.as_ref().map(|broadcast| broadcast.latency_us).unwrap_or_default()
    }),
    ("message", |s| with_waiting(s.message.latency_us, s)),
    ("generator.lag", |s| s.generator.lag_us),
];

const STATS: [(&str, StatOf); 6] = [
    ("p50", |l| l.p50),
    ("p90", |l| l.p90),
    ("p99", |l| l.p99),
    ("p999", |l| l.p999),
    ("max", |l| l.max),
    ("mean", |l| l.mean),
];

/// Failed connects, and what the generator calls its other errors.
const ERROR_KINDS: [&str; 24] = [
    "connect",
    "closed_by_peer",
    "reset_by_peer",
    "expect_timeout",
    "expect_mismatch",
    "send_failed",
    "send_overflow",
    "inbox_overflow",
    "not_connected",
    "socket_error",
    "internal",
    "ws_violation",
    "bad_message",
    "heartbeat_timeout",
    "join_refused",
    "join_timeout",
    "push_refused",
    "push_timeout",
    "leave_refused",
    "leave_timeout",
    "not_joined",
    "channel_error",
    "channel_closed",
    "probe_refused",
];

const FIXED: [(&str, Unit, ValueOf); 54] = [
    ("connected_most", Unit::Count, |s| Some(s.users.connected_most as f64)),
    ("active_most", Unit::Count, |s| Some(s.users.active_most as f64)),
    ("users.connected_most", Unit::Count, |s| Some(s.users.connected_most as f64)),
    ("users.active_most", Unit::Count, |s| Some(s.users.active_most as f64)),
    ("users.started", Unit::Count, |s| Some(s.users.started as f64)),
    ("users.iterations", Unit::Count, |s| Some(s.users.iterations as f64)),
    ("users.finished", Unit::Count, |s| Some(s.users.finished as f64)),
    ("users.failed", Unit::Count, |s| Some(s.users.failed as f64)),
    ("users.waiting", Unit::Count, |s| Some(s.users.waiting as f64)),
    ("connect.ok", Unit::Count, |s| Some(s.connect.ok as f64)),
    ("connect.failed", Unit::Count, |s| Some(s.connect.failed.total() as f64)),
    ("connect.rate_most", Unit::Rate, |s| s.connect.rate_most),
    ("connect.rate_mean", Unit::Rate, |s| s.connect.rate_mean),
    ("message.sent", Unit::Count, |s| Some(s.message.sent as f64)),
    ("message.answered", Unit::Count, |s| Some(s.message.answered as f64)),
    ("message.rate_most", Unit::Rate, |s| s.message.rate_most),
    ("message.rate_mean", Unit::Rate, |s| s.message.rate_mean),
    ("message.received", Unit::Count, |s| Some(s.message.received as f64)),
    ("message.received_rate_most", Unit::Rate, |s| s.message.received_rate_most),
    ("joined_most", Unit::Count, |s| Some(s.users.joined_most as f64)),
    ("users.joined_most", Unit::Count, |s| Some(s.users.joined_most as f64)),
    ("join.ok", Unit::Count, |s| Some(s.join.as_ref()?.ok as f64)),
    ("join.failed", Unit::Count, |s| Some(s.join.as_ref()?.failed as f64)),
    ("join.rate_most", Unit::Rate, |s| s.join.as_ref()?.rate_most),
    ("join.rate_mean", Unit::Rate, |s| s.join.as_ref()?.rate_mean),
    ("push.sent", Unit::Count, |s| Some(s.push.as_ref()?.sent as f64)),
    ("push.ok", Unit::Count, |s| Some(s.push.as_ref()?.ok as f64)),
    ("push.failed", Unit::Count, |s| Some(s.push.as_ref()?.failed as f64)),
    ("push.rate_most", Unit::Rate, |s| s.push.as_ref()?.rate_most),
    ("push.rate_mean", Unit::Rate, |s| s.push.as_ref()?.rate_mean),
    ("heartbeat.sent", Unit::Count, |s| Some(s.heartbeat.as_ref()?.sent as f64)),
    ("heartbeat.missed", Unit::Count, |s| Some(s.heartbeat.as_ref()?.missed as f64)),
    ("broadcast.sent", Unit::Count, |s| Some(s.broadcast.as_ref()?.counters.sent as f64)),
    ("broadcast.expected", Unit::Count, |s| Some(s.broadcast.as_ref()?.counters.expected as f64)),
    ("broadcast.delivered", Unit::Count, |s| Some(s.broadcast.as_ref()?.counters.delivered as f64)),
    ("broadcast.left", Unit::Count, |s| Some(s.broadcast.as_ref()?.counters.left as f64)),
    ("broadcast.missing", Unit::Count, |s| Some(s.broadcast.as_ref()?.counters.missing as f64)),
    ("broadcast.late", Unit::Count, |s| Some(s.broadcast.as_ref()?.counters.late as f64)),
    ("broadcast.duplicates", Unit::Count, |s| {
        Some(s.broadcast.as_ref()?.counters.duplicates as f64)
    }),
    ("broadcast.out_of_order", Unit::Count, |s| {
        Some(s.broadcast.as_ref()?.counters.out_of_order as f64)
    }),
    ("broadcast.first", Unit::Micros, |s| Some(s.broadcast.as_ref()?.first_us? as f64)),
    ("broadcast.last", Unit::Micros, |s| Some(s.broadcast.as_ref()?.last_us? as f64)),
    ("arrivals.ratio", Unit::Share, |s| s.arrivals.ratio),
    ("generator.cpu_us_per_connect", Unit::Micros, |s| s.generator.cpu_us_per_connect),
    ("generator.cpu_us_per_message", Unit::Micros, |s| s.generator.cpu_us_per_message),
    ("generator.rss_bytes_per_user", Unit::Bytes, |s| s.generator.rss_bytes_per_user),
    ("machine.cpu_busy_share", Unit::Share, |s| s.machine.cpu_busy_share),
    ("machine.cpu_stolen_share", Unit::Share, |s| s.machine.cpu_stolen_share),
    ("machine.cpu_us_per_connect", Unit::Micros, |s| s.machine.cpu_us_per_connect),
    ("machine.cpu_us_per_message", Unit::Micros, |s| s.machine.cpu_us_per_message),
    ("server.open_most", Unit::Count, |s| Some(s.server.as_ref()?.open_most as f64)),
    ("server.cpu_us_per_connection", Unit::Micros, |s| s.server.as_ref()?.cpu_us_per_connection),
    ("server.cpu_us_per_message", Unit::Micros, |s| s.server.as_ref()?.cpu_us_per_message),
    ("server.rss_bytes_per_connection", Unit::Bytes, |s| {
        s.server.as_ref()?.rss_bytes_per_connection
    }),
];
