//! Recorder of what the users of one core count and measure.

use throng_base::Instant;
use throng_proto::phoenix::PhoenixPayload;
use throng_report::{Histogram, UnansweredWaits};

use super::core_stats::CoreStats;
use super::error_samples::{
    EXPECTED_CONSENT, ErrorSamples, describe_expected, other_expect, printable,
};
use crate::program::{LatencyKind, Program};
use crate::user::{ErrorKind, IterationEnd, MissedTurns, Record, Sample, close_code_name};

/// Recorder of the events of one user.
pub(super) struct Recorder<'a> {
    pub(super) stats: &'a mut CoreStats,
    pub(super) samples: &'a mut ErrorSamples,
    pub(super) program: &'a Program,
    pub(super) now: Instant,
    /// Class of the user.
    pub(super) class: u16,
}

impl Recorder<'_> {
    /// Records an event.
    pub(super) fn record(&mut self, record: Record<'_>) {
        let now = self.now;
        let stats = &mut *self.stats;
        let counters = &mut stats.counters;
        match record {
            Record::Begin => {
                counters.iterations += 1;
                stats.classes[usize::from(self.class)].users_started += 1;
            }
            Record::End(end) => self.end(end),
            Record::TcpConnected { from, timing } => {
                timing.record(from, &mut stats.tcp, &mut stats.arrival.tcp);
            }
            Record::Connected { from, timing } => {
                stats.count_connect((from, timing), self.class);
                stats.incidents.connect_succeeded(now);
            }
            Record::ConnectFailed(why) => stats.count_connect_failure(why),
            Record::ConnectRefused => stats.incidents.connect_refused(now),
            Record::ConnectionLost => stats.incidents.count_lost_connection(now),
            Record::PeerClosed { code, reason } => {
                stats.incidents.count_lost_connection(now);
                stats.count_close(code);
                self.sample_close(code, reason);
            }
            Record::ChannelsLost(count) => counters.joined -= count,
            Record::Answered { timing, from } => {
                // An answer to another request still shows that the target is alive.
                let asked = from.unwrap_or(timing.arrived_at());
                stats.incidents.answered(timing.arrived_at(), asked);
                stats.count_answer(from.map(|from| (from, timing)), self.class);
            }
            Record::Replied { timing, from } => {
                stats.incidents.answered(timing.arrived_at(), from);
            }
            Record::Joined { from, timing } => stats.count_join(from, timing),
            Record::Pushed { from, timing } => stats.count_push(from, timing),
            Record::Unasked(at) => stats.incidents.unasked_received(at),
            Record::Skipped(message) => {
                stats.incidents.unasked_received(now);
                self.samples.note_skipped(message);
            }
            Record::Error(kind) => stats.errors[kind as usize] += 1,
            Record::Sample(sample) => self.sample(sample),
            Record::Unanswered { kind, is_tcp_part, from } => {
                let waited_us = now.micros_since(from);
                if let Some(kind) = kind {
                    histogram(&mut stats.unanswered, kind).record_us(waited_us);
                }
                if is_tcp_part {
                    stats.unanswered.tcp.record_us(waited_us);
                }
            }
            Record::TurnsDue(count) => counters.turns_intended += count,
            Record::MissedTurns(missed) => self.missed_turns(&missed),
            Record::Late(due) => stats.lag.record_us(now.micros_since(due)),
            Record::RestBegun => stats.resting += 1,
            Record::RestOver => stats.resting -= 1,
        }
    }

    fn end(&mut self, end: IterationEnd) {
        let counters = &mut self.stats.counters;
        let class = &mut self.stats.classes[usize::from(self.class)];
        let (all, of_class) = match end {
            IterationEnd::Finished => (&mut counters.users_finished, &mut class.users_finished),
            IterationEnd::Failed => (&mut counters.users_failed, &mut class.users_failed),
            IterationEnd::Cut => (&mut counters.users_cut, &mut class.users_cut),
        };
        *all += 1;
        *of_class += 1;
    }

    fn missed_turns(&mut self, missed: &MissedTurns) {
        let counters = &mut self.stats.counters;
        let count = missed.end - missed.first;
        if missed.has_failed {
            counters.turns_failed += count;
        } else {
            counters.turns_waiting += count;
        }
        if let Some(kind) = missed.kind {
            record_turns(histogram(&mut self.stats.unanswered, kind), missed, self.now);
        }
    }

    fn sample(&mut self, sample: Sample<'_>) {
        let (samples, program) = (&mut *self.samples, self.program);
        let kept = match sample {
            Sample::Mismatch { pc, got } => samples.first(
                ErrorKind::ExpectMismatch.name(),
                || describe_expected(program, pc),
                || match other_expect(program, pc, got) {
                    true => format!("{}, which another `expect` waits for", printable(got)),
                    false => printable(got),
                },
            ),
            Sample::Timeout { pc, matched } => {
                let skipped = samples.first_skipped.clone();
                let got = || match (matched, skipped) {
                    (0, None) => "nothing".to_owned(),
                    (0, Some(first)) => format!("others, the first: {first}"),
                    (bytes, _) => format!("the first {bytes} bytes of it"),
                };
                let kind = ErrorKind::ExpectTimeout.name();
                samples.first(kind, || describe_expected(program, pc), got)
            }
            Sample::Violation(violation) => samples.first(
                ErrorKind::WebSocketViolation.name(),
                || "a WebSocket".to_owned(),
                || violation.description().to_owned(),
            ),
            Sample::UpgradeViolation(violation, head) => samples.first(
                &crate::user::ConnectFailure::Violation.to_string(),
                || EXPECTED_CONSENT.to_owned(),
                || format!("{}: {}", printable(head), violation.description()),
            ),
            Sample::BadMessage(message) => samples.first(
                ErrorKind::BadMessage.name(),
                || "a message of Phoenix Channels".to_owned(),
                || printable(message),
            ),
            Sample::Refusal(kind, reply) => samples.first(
                kind.name(),
                || "status ok".to_owned(),
                || match &reply.response {
                    PhoenixPayload::Json(text) => {
                        format!("{} {}", reply.status, printable(text.as_bytes()))
                    }
                    PhoenixPayload::Binary(bytes) => {
                        format!("{} {}", reply.status, printable(bytes))
                    }
                },
            ),
        };
        self.stats.samples.extend(kept);
    }

    fn sample_close(&mut self, code: Option<u16>, reason: &str) {
        let got = || {
            let code = code.map_or_else(|| "no code".to_owned(), |code| code.to_string());
            match reason {
                "" => format!("a close with {code}"),
                reason => format!("a close with {code}, {}", printable(reason.as_bytes())),
            }
        };
        let expected = || "an open connection".to_owned();
        let kept = self.samples.first(&close_code_name(code), expected, got);
        self.stats.samples.extend(kept);
    }
}

fn histogram(unanswered: &mut UnansweredWaits, kind: LatencyKind) -> &mut Histogram {
    match kind {
        LatencyKind::Connect => &mut unanswered.connect,
        LatencyKind::Message => &mut unanswered.message,
        LatencyKind::Join => &mut unanswered.join,
        LatencyKind::Push => &mut unanswered.push,
    }
}

/// Records how long each of these turns has been due. If there are very many, groups of neighbours
/// count as the last of their group.
fn record_turns(histogram: &mut Histogram, missed: &MissedTurns, now: Instant) {
    let MissedTurns { looping, begun_at, mut first, end, .. } = *missed;
    let together = (end - first).div_ceil(TURNS_RECORDED_MAX).max(1);
    while first < end {
        let next = end.min(first.saturating_add(together));
        let last_due_ns = looping.turn_begin_ns(next - 1, 0).unwrap_or(0);
        let due_at = begun_at + std::time::Duration::from_nanos(last_due_ns);
        let count = u32::try_from(next - first).unwrap_or(u32::MAX);
        histogram.record_n(now.micros_since(due_at), count);
        first = next;
    }
}

/// Values recorded for the turns of one loop of one user.
const TURNS_RECORDED_MAX: u64 = 1_000;
