//! What a user did, in a few words.

use throng_base::Instant;
use throng_engine::Deadline;
use throng_measure::{LoadCounters, Operation};

use crate::user::{IterationEnd, Record, UserAction};

/// Reports whether the counters show an action, or none does.
pub(super) fn is_in_counters(action: &UserAction<'_>) -> bool {
    matches!(action, UserAction::Trace(..) | UserAction::Record(_, Record::CueWaitBegun { .. }))
}

/// Describes an action in a few words.
pub(super) fn shown(action: &UserAction<'_>, now: Instant) -> String {
    let ms = |at: Instant| at.as_nanos() / 1_000_000;
    let since = |from: Instant| now.since(from).as_millis();
    match action {
        UserAction::Connect { .. } => "connect".to_owned(),
        UserAction::Close => "close".to_owned(),
        UserAction::CloseFinished => "close finished".to_owned(),
        UserAction::Reset => "reset".to_owned(),
        UserAction::HalfClose => "half-close".to_owned(),
        UserAction::WaitUntil(Deadline::Never) => "no deadline".to_owned(),
        UserAction::WaitUntil(Deadline::Coarse(at)) => format!("time-out {}", ms(*at)),
        UserAction::WaitUntil(Deadline::Exact(at)) => format!("until {}", ms(*at)),
        UserAction::Remove => "remove".to_owned(),
        UserAction::Count(_) => String::new(),
        UserAction::Trace(..) => String::new(),
        UserAction::Record(_, record) => match record {
            Record::Begin => "begin".to_owned(),
            Record::End(IterationEnd::Finished) => "end finished".to_owned(),
            Record::End(IterationEnd::Failed) => "end failed".to_owned(),
            Record::End(IterationEnd::Cut) => "end cut".to_owned(),
            Record::Done { operation: Operation::Tcp, from, .. } => {
                format!("TCP connected {}", since(*from))
            }
            Record::Connected { from, .. } => format!("connected {}", since(*from)),
            Record::RequestConnected { from, .. } => format!("HTTP connected {}", since(*from)),
            Record::HttpAnswered { status, difference, from, .. } => {
                let what = if difference.is_none() { "answer" } else { "wrong answer" };
                format!("{what} {status} {}", since(*from))
            }
            Record::ConnectFailed { why, .. } => format!("connect failed {why}"),
            Record::ConnectRefused => "refused".to_owned(),
            Record::ConnectionLost => "lost".to_owned(),
            Record::HandshakeCut { why, .. } => format!("handshake cut: {why}"),
            Record::PeerClosed { code, .. } => format!("peer closed {}", code.unwrap()),
            Record::ChannelsLost(count) => format!("channels lost {count}"),
            Record::Answered { from: Some(from), .. } => format!("answered {}", since(*from)),
            Record::Answered { from: None, .. } => "answered unmeasured".to_owned(),
            Record::Replied { from, .. } => format!("replied {}", since(*from)),
            Record::Ponged { from, .. } => format!("pong {}", since(*from)),
            Record::Done { operation, .. } => operation.done().to_owned(),
            Record::Skipped(_) => "skipped".to_owned(),
            Record::SkippedKept(_) => "skipped kept".to_owned(),
            Record::Error(kind) => format!("error {}", kind.name()),
            Record::Sample(..) => "sample".to_owned(),
            Record::Unanswered { from, .. } => format!("unanswered {}", since(*from)),
            Record::StepDone { step, from: Some(from), timing } => {
                format!("step {} {}", step.get(), timing.seen_at.since(*from).as_millis())
            }
            Record::StepDone { step, from: None, .. } => format!("step {} unmeasured", step.get()),
            Record::StepFailed(step) => format!("step {} failed", step.get()),
            Record::StepCut(step) => format!("step {} cut", step.get()),
            Record::StepUnanswered { step, from } => {
                format!("step {} unanswered {}", step.get(), since(*from))
            }
            Record::TurnsDue(count) => format!("turns due {count}"),
            Record::MissedTurns(missed) => format!("missed {}", missed.end - missed.first),
            Record::TurnGiven { turn, .. } => format!("turn {}", ms(*turn)),
            Record::CueWaitBegun { .. } => String::new(),
            Record::CueWaitEnded { from, .. } => format!("waited {}", since(*from)),
            Record::CueWaitCut { from, .. } => format!("cut off after {}", since(*from)),
            Record::CueOpened { .. } => "opens".to_owned(),
            Record::Late(due) => format!("late {}", since(*due)),
            Record::RestBegun => "rest".to_owned(),
            Record::RestOver => "rest over".to_owned(),
        },
    }
}

/// Returns the counters that differ, with their differences, but for [`OF_SERVED`].
pub(super) fn differences(before: &LoadCounters, after: &LoadCounters) -> Vec<String> {
    let fields = |counters: &LoadCounters| match serde_json::to_value(counters).unwrap() {
        serde_json::Value::Object(fields) => fields,
        other => panic!("{other}"),
    };
    let count = |fields: &serde_json::Map<String, serde_json::Value>, name: &str| {
        fields.get(name).and_then(serde_json::Value::as_i64).unwrap_or(0)
    };
    let (before, after) = (fields(before), fields(after));
    let differs = |name: &String| {
        let difference = count(&after, name) - count(&before, name);
        (difference != 0).then(|| format!("{name} {difference:+}"))
    };
    let names = after.keys().filter(|name| !OF_SERVED.contains(&name.as_str()));
    names.filter_map(differs).collect()
}

/// Counters that each first answer, each time-out and each early close changes. The tests of
/// `served` read them.
const OF_SERVED: [&str; 4] = ["served", "timeouts_unserved", "timeouts_served", "closed_unserved"];
