//! Recorder of what the users of one core count and measure.

use throng_base::Instant;
use throng_measure::{EarlyClose, ErrorExchange, Histogram, Operation, OperationInterval};

use super::core_stats::CoreStats;
use super::error_facts::{reader_line, with_facts};
use super::error_name::ErrorName;
use super::error_samples::{
    ErrorPlace, ErrorSamples, describe_close, describe_connect_failure, describe_error,
    describe_reason, describe_sample,
};
use super::followed::EARLY_CLOSES_MAX;
use crate::program::{IncomingMessage, Op, VariableScope};
use crate::protocols::http::request::HttpDifference;
use crate::user::{
    AnswerTiming, ConnectFailure, ErrorKind, IterationEnd, MissedTurns, Record, Sample,
    violation_error,
};

/// Recorder of the events of one user.
pub(super) struct Recorder<'a> {
    pub(super) stats: &'a mut CoreStats,
    pub(super) samples: &'a mut ErrorSamples,
    pub(super) now: Instant,
    /// User and its step.
    pub(super) place: ErrorPlace<'a>,
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
                stats.classes[usize::from(self.place.class)].users_started += 1;
            }
            Record::End(end) => self.end(end),
            Record::Connected { from, timing } => {
                stats.count_connect((from, timing), self.place.class);
                stats.incidents.connect_succeeded(now);
                self.time_for_class(Operation::Connect, from, timing);
            }
            Record::RequestConnected { from, timing } => self.request_connected(from, timing),
            Record::HttpAnswered { status, difference, from, sent, timing } => {
                // The server cannot answer a request before its connection is established.
                stats.incidents.answered(timing.arrived_at(), sent);
                stats.count_status(status);
                self.http_answered(status, difference, from, timing);
            }
            Record::ConnectFailed { why, is_upgrade } => self.connect_failed(why, is_upgrade),
            Record::HandshakeCut { why, from } => self.handshake_cut(why, from),
            Record::ConnectRefused => stats.incidents.connect_refused(now),
            Record::ConnectionLost => stats.incidents.count_lost_connection(now),
            Record::PeerClosed { code, reason } => self.peer_closed(code, reason),
            Record::ChannelsLost(count) => counters.joined -= count,
            Record::Answered { timing, from } => {
                // An answer to another request still shows that the target is alive.
                let asked = from.unwrap_or(timing.arrived_at());
                stats.incidents.answered(timing.arrived_at(), asked);
                stats.count_answer(from.map(|from| (from, timing)), self.place.class);
                if let Some(from) = from {
                    self.time_for_class(Operation::Message, from, timing);
                }
            }
            Record::Replied { timing, from } | Record::Ponged { timing, from } => {
                stats.incidents.answered(timing.arrived_at(), from);
            }
            Record::Done { operation, from, timing } => {
                stats.count_done(operation, (from, timing), self.place.class);
                self.time_for_class(operation, from, timing);
            }
            Record::Skipped(message) | Record::SkippedKept(message) => self.note_skipped(message),
            Record::Error(kind) => self.error(kind),
            Record::Sample(sample, scope) => self.sample(&sample, scope),
            Record::Unanswered { kind, is_tcp_part, from } => {
                self.unanswered(kind, is_tcp_part, from);
            }
            Record::StepDone { step, from, timing } => stats.count_step(step, from, timing),
            Record::StepFailed(step) => stats.step(step).errors += 1,
            Record::StepCut(step) => stats.step(step).waiting += 1,
            Record::StepUnanswered { step, from } => {
                stats.step(step).unanswered.record_us(now.micros_since(from));
            }
            Record::TurnsDue(count) => counters.turns_intended += count,
            Record::MissedTurns(missed) => self.missed_turns(&missed),
            Record::Late(due) => stats.lag.record_us(now.micros_since(due)),
            Record::TurnGiven { limit, turn } => stats.limits[usize::from(limit)].count(turn, now),
            Record::CueWaitBegun { cue, waiting } => stats.cue(cue).begin(waiting),
            Record::CueWaitEnded { cue, from } => {
                counters.cue_waiting -= 1;
                counters.cue_waits_us += now.micros_since(from);
                stats.cue(cue).end(now.micros_since(from));
            }
            Record::CueWaitCut { cue, from } => stats.cue(cue).cut(now.micros_since(from)),
            Record::CueOpened { cue } => stats.cue(cue).opened += 1,
            Record::RestBegun => stats.resting += 1,
            Record::RestOver => stats.resting -= 1,
        }
    }

    fn request_connected(&mut self, from: Instant, timing: AnswerTiming) {
        let protocol = self.place.program.protocol();
        self.stats.count_request_connect((from, timing), self.place.class, protocol);
        self.stats.incidents.connect_succeeded(self.now);
        if protocol.opens_itself {
            self.time_for_class(Operation::Connect, from, timing);
        }
    }

    fn http_answered(
        &mut self,
        status: u16,
        difference: Option<HttpDifference>,
        from: Instant,
        timing: AnswerTiming,
    ) {
        match difference {
            None => {
                self.stats.count_done(Operation::Http, (from, timing), self.place.class);
                self.time_for_class(Operation::Http, from, timing);
            }
            Some(HttpDifference::Status) => {
                self.stats.statuses.count_unexpected(status);
                self.stats.error_log.note(ErrorName::HttpStatus(status), self.now);
            }
            Some(HttpDifference::Body | HttpDifference::Field(_)) => {}
        }
    }

    /// Returns an operation of the user's class, if a threshold is about the class.
    fn of_class(&mut self, operation: Operation) -> Option<&mut OperationInterval> {
        let judged = self.place.program.classes()[usize::from(self.place.class)].judged?;
        Some(&mut self.stats.judged_classes[judged][operation])
    }

    /// Records a latency for the user's class, if a threshold is about the class.
    fn time_for_class(&mut self, operation: Operation, from: Instant, timing: AnswerTiming) {
        if let Some(of_class) = self.of_class(operation) {
            timing.record(from, &mut of_class.latency, &mut of_class.arrival);
        }
    }

    fn connect_failed(&mut self, why: ConnectFailure, is_upgrade: bool) {
        self.stats.count_connect_failure(why);
        if self.place.program.opens_connection(self.place.pc) {
            self.stats.counters.http_connects_failed += 1;
        }
        self.note_error(ErrorName::Connect(why), |place| {
            describe_connect_failure(place, why, is_upgrade)
        });
    }

    /// Keeps the age of a connection that ended during the handshake of TLS.
    fn handshake_cut(&mut self, why: ConnectFailure, from: Instant) {
        let open_ms = self.now.micros_since(from) / 1000;
        if self.stats.early_closes.len() < EARLY_CLOSES_MAX {
            let error = why.to_string();
            let close = EarlyClose { error, open_ms, idle_ms: open_ms, idle_ms_before: 0 };
            self.stats.early_closes.push(close);
        }
    }

    fn peer_closed(&mut self, code: Option<u16>, reason: &str) {
        self.stats.incidents.count_lost_connection(self.now);
        self.stats.count_close(code);
        let place = self.place;
        let first =
            self.note_error(ErrorName::Close(code), |place| describe_close(place, code, reason));
        if let Some(first) = first {
            first.close_reason = describe_reason(place, reason);
        }
    }

    fn error(&mut self, kind: ErrorKind) {
        self.stats.errors[kind as usize] += 1;
        // An unexpected status is noted where it is known: with its answer.
        if kind == ErrorKind::HttpStatus {
            return;
        }
        let place = self.place;
        if let Some(first) =
            self.note_error(ErrorName::Kind(kind), |place| describe_error(place, kind))
        {
            first.reader_line = reader_line(place, kind);
        }
    }

    fn unanswered(&mut self, kind: Option<Operation>, is_tcp_part: bool, from: Instant) {
        let waited_us = self.now.micros_since(from);
        for operation in kind.into_iter().chain(is_tcp_part.then_some(Operation::Tcp)) {
            self.stats.times.unanswered[operation].record_us(waited_us);
            if let Some(of_class) = self.of_class(operation) {
                of_class.unanswered.record_us(waited_us);
            }
        }
    }

    fn note_skipped(&mut self, message: IncomingMessage<'_>) {
        let ErrorPlace { program, pc, .. } = self.place;
        self.samples.note_skipped(program, pc, message);
    }

    fn end(&mut self, end: IterationEnd) {
        let counters = &mut self.stats.counters;
        let class = &mut self.stats.classes[usize::from(self.place.class)];
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
            record_turns(&mut self.stats.times.unanswered[kind], missed, self.now);
            let now = self.now;
            if let Some(of_class) = self.of_class(kind) {
                record_turns(&mut of_class.unanswered, missed, now);
            }
        }
        for step in self.place.program.steps_of_turn(&missed.looping) {
            record_turns(&mut self.stats.step(step).unanswered, missed, self.now);
        }
    }

    /// Keeps an error whose data is known, if it is the first of its kind.
    fn sample(&mut self, sample: &Sample<'_>, scope: VariableScope<'_>) {
        let name = match sample {
            Sample::Timeout { .. } => ErrorName::Kind(ErrorKind::ExpectTimeout),
            Sample::Violation(violation) => ErrorName::Kind(violation_error(*violation)),
            Sample::TlsFailure(kind @ ErrorKind::TransportFailed, _) => ErrorName::Kind(*kind),
            Sample::TlsFailure(kind, _) => ErrorName::Connect(ConnectFailure::Tls(*kind)),
            Sample::UpgradeViolation(..) => ErrorName::Connect(ConnectFailure::Violation),
            Sample::UpgradeRefused(answer, _) => {
                ErrorName::Connect(ConnectFailure::Http(answer.status))
            }
            Sample::BadMessage(_) => ErrorName::Kind(ErrorKind::BadMessage),
            Sample::HttpResponse(ErrorKind::HttpStatus, _, response) => {
                ErrorName::HttpStatus(response.head.status)
            }
            Sample::Mismatch { kind, .. }
            | Sample::Refusal(kind, _)
            | Sample::HttpResponse(kind, ..)
            | Sample::HttpViolation(kind, ..)
            | Sample::HttpPart(kind, _) => ErrorName::Kind(*kind),
            Sample::HttpUnasked(_) => ErrorName::Kind(ErrorKind::HttpUnasked),
            Sample::Unsendable(_) => match self.place.program.op(self.place.pc) {
                Op::Connect { .. } => ErrorName::Connect(ConnectFailure::BadValue),
                _ => ErrorName::Kind(ErrorKind::BadValue),
            },
        };
        let place = self.place;
        let describe = |samples: &ErrorSamples| {
            let values = place.program.known_values(place.pc, scope);
            describe_sample(samples, place, sample, &values)
        };
        let first = self.samples.first(name, place, describe);
        let first = first.map(|first| with_facts(first, place, sample, self.samples));
        self.stats.samples.extend(first);
    }

    /// Notes the moment of an error. Keeps and returns it if it is the first of its kind.
    fn note_error(
        &mut self,
        name: ErrorName,
        describe: impl FnOnce(ErrorPlace<'_>) -> (String, String),
    ) -> Option<&mut ErrorExchange> {
        self.stats.error_log.note(name, self.now);
        let place = self.place;
        let first = self.samples.first(name, place, |_| describe(place))?;
        self.stats.samples.push(first);
        self.stats.samples.last_mut()
    }
}

/// Records how long each of these turns has been due.
fn record_turns(histogram: &mut Histogram, missed: &MissedTurns, now: Instant) {
    for (due_at, count) in turn_groups(missed) {
        histogram.record_n(now.micros_since(due_at), count);
    }
}

/// Returns when these turns were due, and how many at a time. If there are very many, groups of
/// neighbours count as the last of their group.
fn turn_groups(missed: &MissedTurns) -> impl Iterator<Item = (Instant, u32)> {
    let MissedTurns { looping, begun_at, mut first, end, .. } = *missed;
    let together = end.saturating_sub(first).div_ceil(TURNS_RECORDED_MAX).max(1);
    std::iter::from_fn(move || {
        if first >= end {
            return None;
        }
        let next = end.min(first.saturating_add(together));
        let last_due_ns = looping.turn_begin_ns(next - 1, 0).unwrap_or(0);
        let count = u32::try_from(next - first).unwrap_or(u32::MAX);
        first = next;
        Some((begun_at + std::time::Duration::from_nanos(last_due_ns), count))
    })
}

/// Values recorded for the turns of one loop of one user.
const TURNS_RECORDED_MAX: u64 = 1_000;

#[cfg(test)]
mod tests {

    use super::super::incidents::gap_of_all;
    use super::*;
    use crate::program::{Op, Program};
    use crate::scenario::Scenario;

    #[test]
    fn a_request_waits_for_the_server_only_since_its_connection_is_established() {
        let text = "target: http://h:1\nload: [{ramp: {to: 1, over: 1s}}]\nuser: [get: /]\n";
        let program = Program::compile(&Scenario::parse(text, "test").unwrap());
        let (mut stats, mut samples) = (CoreStats::new(0, 1), ErrorSamples::default());
        let at = |ms: u64| Instant::from_nanos(ms * 1_000_000);
        let mut answered = |from, sent, now| {
            let place = ErrorPlace { program: &program, class: 0, pc: 0, user: 0 };
            let (stats, samples) = (&mut stats, &mut samples);
            let timing = AnswerTiming::own(now);
            let record = Record::HttpAnswered { status: 200, difference: None, from, sent, timing };
            Recorder { stats, samples, now, place }.record(record);
            gap_of_all(&[stats.incidents], at(0)).map(|gap| (gap.from_ms, gap.to_ms))
        };
        assert_eq!(answered(at(100), at(100), at(101)), None);
        // Its SYN was dropped, and sent again a second later.
        assert_eq!(answered(at(110), at(1_110), at(1_111)), None);
        assert_eq!(answered(at(1_112), at(1_112), at(1_900)), Some((1_112, 1_900)));
    }

    #[test]
    fn millions_of_missed_turns_are_recorded_in_few_steps() {
        let text = "target: tcp://h:1\nload: [{ramp: {to: 1, over: 1s}}]\n\
                    user: [connect, every: {rate: 1M/s, do: [send: x]}]\n";
        let program = Program::compile(&Scenario::parse(text, "test").unwrap());
        let looping = program.ops().iter().find_map(|op| match op {
            Op::LoopBegin { index } => Some(*program.loop_at(*index)),
            _ => None,
        });
        for (first, end) in [(7, 7), (7, 8), (0, 1_000), (3, 30_000_003)] {
            let missed = MissedTurns {
                has_failed: false,
                kind: None,
                looping: looping.unwrap(),
                begun_at: Instant::ZERO,
                first,
                end,
            };
            let groups: Vec<_> = turn_groups(&missed).collect();
            assert!(groups.len() as u64 <= TURNS_RECORDED_MAX, "{}", groups.len());
            let counted: u64 = groups.iter().map(|(_, count)| u64::from(*count)).sum();
            assert_eq!(counted, end - first);
        }
    }
}
