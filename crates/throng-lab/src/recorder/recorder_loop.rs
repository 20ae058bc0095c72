//! The recorder's thread: one interval after the other until the run is over.

use std::io::Write;
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use throng_doctor::{History, diagnose};
use throng_driver::Clock;
use throng_report::runfile::{AppendOutcome, RunEnd, RunEndReason, RunFileWriter, Truncate};
use throng_report::validity::LAG_DEGRADED_US;
use throng_report::{
    Interval, LoadInterval, RunEvent, RunEventKind, ServerSnapshot, SummaryFold, Threshold,
};

use super::server::ServerPoller;
use super::{
    GeneratorProbe, KernelProbe, Outcome, Receiver, RecorderCommand, RecorderOptions, RunProbes,
    lock,
};

pub(super) type Progress = Box<dyn FnMut(&Interval, Option<&Interval>) + Send>;

/// All that the thread owns.
pub(super) struct RecorderLoop<W> {
    options: RecorderOptions,
    out: Option<RunFileWriter<W>>,
    generator: Box<dyn GeneratorProbe>,
    server: Option<ServerPoller>,
    kernel: Box<dyn KernelProbe>,
    /// The server's process, as it was last told to the kernel's probe. A server that is silent for a while stays the same.
    server_pid: Option<u32>,
    fold: SummaryFold,
    history: History,
    progress: Progress,
    latest: Arc<Mutex<Option<Interval>>>,
    previous: Option<Interval>,
    began: Instant,
    /// The same on the clock of the generator's cores, in milliseconds.
    began_ms: u64,
    /// Events for the next interval.
    events: Vec<RunEvent>,
    /// Events of lines that could not be written: they go into the next line that can.
    unwritten: Vec<RunEvent>,
    /// Set once the run was asked to end.
    stopping: Option<StopRequest>,
    /// What users had achieved when the server was lost; none while it is not.
    successes_when_lost: Option<u64>,
}

/// Somebody has asked for the end.
struct StopRequest {
    by: String,
    /// How long to wait for it.
    until: Instant,
    /// Everybody was leaving already: the plan was over.
    after_plan: bool,
}

/// Why the thread woke up.
enum WakeReason {
    Boundary,
    RunEnded { reason: RunEndReason, detail: Option<String> },
}

impl<W: Write + Truncate> RecorderLoop<W> {
    pub(super) fn new(
        options: RecorderOptions,
        out: Option<RunFileWriter<W>>,
        sources: RunProbes,
        latest: Arc<Mutex<Option<Interval>>>,
        progress: Progress,
    ) -> Self {
        let patience = options.server_lost_after;
        let mut fold = SummaryFold::new(&options.header);
        fold.judge_by(&options.thresholds);
        Self {
            fold,
            history: History::new(options.header.clone()),
            options,
            out,
            generator: sources.generator,
            server: sources.server.map(|probe| ServerPoller::new(probe, patience)),
            kernel: (sources.kernel)(),
            server_pid: None,
            progress,
            latest,
            previous: None,
            began: Instant::now(),
            began_ms: Clock.now().as_nanos() / 1_000_000,
            events: Vec::new(),
            unwritten: Vec::new(),
            stopping: None,
            successes_when_lost: None,
        }
    }

    pub(super) fn run(mut self, told: &Receiver<RecorderCommand>) -> Outcome {
        self.record(self.began);
        let mut boundary = self.began + self.options.interval;
        let (reason, detail) = loop {
            match self.sleep_until(boundary, told) {
                WakeReason::Boundary => {
                    let now = Instant::now();
                    self.record(now);
                    // An interval that took longer than one is followed by the next boundary, not by two.
                    while boundary <= now {
                        boundary += self.options.interval;
                    }
                }
                WakeReason::RunEnded { reason, detail } => break (reason, detail),
            }
        };
        let now = Instant::now();
        let recorded_ms = self.previous.as_ref().map_or(0, |previous| previous.at_ms);
        if self.at_ms(now) > recorded_ms + SLIVER_MS || !self.events.is_empty() {
            self.record(now);
        }
        self.finish(reason, detail)
    }

    fn sleep_until(&mut self, boundary: Instant, told: &Receiver<RecorderCommand>) -> WakeReason {
        loop {
            if let Some(over) = self.end_reason() {
                return over;
            }
            for kind in self.kernel.step() {
                self.add_event(kind);
            }
            let now = Instant::now();
            if now >= boundary {
                return WakeReason::Boundary;
            }
            match told.recv_timeout((boundary - now).min(LOOK_EVERY)) {
                Ok(RecorderCommand::AddEvent(kind)) => self.add_event(kind),
                Ok(RecorderCommand::Stop(by)) => self.stop(by),
                Err(RecvTimeoutError::Timeout) => {}
                // Nobody is left who could say anything; the run goes on to its end.
                Err(RecvTimeoutError::Disconnected) => {
                    std::thread::sleep((boundary - now).min(LOOK_EVERY));
                }
            }
        }
    }

    fn end_reason(&self) -> Option<WakeReason> {
        if let Some(why) = self.generator.failure() {
            return Some(WakeReason::RunEnded { reason: RunEndReason::Failed, detail: Some(why) });
        }
        let finished = self.generator.is_finished();
        match &self.stopping {
            Some(StopRequest { by, until, after_plan }) if finished || Instant::now() >= *until => {
                let detail = match finished {
                    true => by.clone(),
                    false => format!("{by}; not every user had ended"),
                };
                let reason = match after_plan {
                    true => RunEndReason::Finished,
                    false => RunEndReason::Interrupted,
                };
                Some(WakeReason::RunEnded { reason, detail: Some(detail) })
            }
            None if finished && self.is_target_lost() => {
                let detail = "the server does not answer any more".to_owned();
                Some(WakeReason::RunEnded {
                    reason: RunEndReason::TargetLost,
                    detail: Some(detail),
                })
            }
            None if finished => {
                Some(WakeReason::RunEnded { reason: RunEndReason::Finished, detail: None })
            }
            _ => None,
        }
    }

    fn stop(&mut self, by: String) {
        if let Some(stopping) = &mut self.stopping {
            stopping.until = Instant::now();
            return;
        }
        self.generator.ramp_down();
        let load = self.previous.as_ref().and_then(|interval| interval.load.as_ref());
        let after_plan = load.is_some_and(LoadInterval::is_leaving);
        if !after_plan {
            self.add_event(RunEventKind::Interrupted { by: by.clone() });
        }
        let until = Instant::now() + self.options.ramp_down_timeout;
        self.stopping = Some(StopRequest { by, until, after_plan });
    }

    /// Whether the server was lost before everybody began to leave, and nobody got anything from
    /// the target since. One that was started anew answers users, and has another control socket.
    fn is_target_lost(&self) -> bool {
        let load = self.previous.as_ref().and_then(|interval| interval.load.as_ref());
        self.successes_when_lost
            .is_some_and(|done_then| load.is_none_or(|load| successes(load) <= done_then))
    }

    fn track_server_loss(&mut self, load: &LoadInterval) {
        if !self.server.as_ref().is_some_and(ServerPoller::is_lost) {
            self.successes_when_lost = None;
        } else if self.successes_when_lost.is_none() && !load.is_leaving() {
            self.successes_when_lost = Some(successes(load));
        }
    }

    /// Asks everybody and writes what they said. The generator is asked first: its histograms end with
    /// the interval, and a server that hangs must not stretch them.
    fn record(&mut self, now: Instant) {
        let at_ms = self.at_ms(now);
        let mut load = self.generator.snapshot();
        if let Some(gap) = load.answer_gap {
            let [from, to] =
                [gap.from_ms, gap.to_ms].map(|ms| throng_base::Instant::from_nanos(ms * 1_000_000));
            self.kernel.measure_between(from, to);
        }
        load.rebase(self.began_ms);
        for kind in self.generator.events() {
            self.add_event(kind);
        }
        let server = self.poll_server(at_ms);
        let sample = self.kernel.sample();
        let server = server.or(sample.server);
        self.events.extend(sample.events.into_iter().map(|kind| RunEvent::new(at_ms, kind)));
        self.add_counter_events(at_ms, &load, server.as_ref());
        self.track_server_loss(&load);

        let span_ms = at_ms - self.previous.as_ref().map_or(0, |previous| previous.at_ms);
        let interval = Interval {
            at_ms,
            span_ms,
            load: Some(load),
            server,
            machine: sample.machine,
            kernel: sample.counters,
            server_kernel: sample.server_counters,
            server_machine: sample.server_machine,
            programs: sample.programs,
            server_programs: sample.server_programs,
            unseen: sample.unseen,
            events: std::mem::take(&mut self.events),
        };
        self.write(&interval);
        self.fold.add(&interval);
        self.history.add(&interval);
        (self.progress)(&interval, self.previous.as_ref());
        *lock(&self.latest) = Some(interval.clone());
        self.previous = Some(interval);
    }

    fn poll_server(&mut self, at_ms: u64) -> Option<ServerSnapshot> {
        let events = &mut self.events;
        let watch = self.server.as_mut()?;
        let snapshot = watch.snapshot(&mut |kind| events.push(RunEvent::new(at_ms, kind)))?;
        let pid = snapshot.process.pid;
        if self.server_pid.replace(pid) != Some(pid) {
            self.kernel.set_server_pid(pid);
        }
        Some(snapshot)
    }

    /// Events that follow from counters.
    fn add_counter_events(
        &mut self,
        at_ms: u64,
        load: &LoadInterval,
        server: Option<&ServerSnapshot>,
    ) {
        let before = self.previous.as_ref();
        let late = |load: &LoadInterval| load.lag.percentile(99.0) > LAG_DEGRADED_US;
        let was_late = before.and_then(|interval| interval.load.as_ref()).is_some_and(late);
        if late(load) && !was_late {
            let lag_us_p99 = load.lag.percentile(99.0);
            self.events.push(RunEvent::new(at_ms, RunEventKind::GeneratorBehind { lag_us_p99 }));
        }
        let server_before = before.and_then(|interval| interval.server.as_ref());
        if let (Some(server), Some(before)) = (server, server_before)
            && server.counters.paused_cores > 0
            && server.counters.pauses_max > before.counters.pauses_max
        {
            let connections_max = server.connections_max;
            let kind = RunEventKind::ConnectionsMaxReached { connections_max };
            self.events.push(RunEvent::new(at_ms, kind));
        }
    }

    fn write(&mut self, interval: &Interval) {
        let Some(out) = &mut self.out else { return };
        let appended = if self.unwritten.is_empty() {
            out.interval(interval)
        } else {
            let events = [&self.unwritten[..], &interval.events[..]].concat();
            out.interval(&Interval { events, ..interval.clone() })
        };
        if matches!(appended, AppendOutcome::Failed { .. } | AppendOutcome::StillFailing) {
            self.unwritten.extend_from_slice(&interval.events);
        } else {
            self.unwritten.clear();
        }
        match appended {
            AppendOutcome::Whole | AppendOutcome::StillFailing => {}
            AppendOutcome::Resumed { lines_lost } => {
                self.add_event(RunEventKind::RunFileResumed { lines_lost })
            }
            AppendOutcome::Failed { error } => {
                self.add_event(RunEventKind::RunFileFailed { error })
            }
        }
    }

    fn finish(mut self, reason: RunEndReason, detail: Option<String>) -> Outcome {
        let lines_lost = self.out.as_ref().map_or(0, RunFileWriter::lines_lost);
        let validity = self.fold.finish(Some(reason), lines_lost).validity;
        let mut end = RunEnd { reason, detail, lines_lost, validity };
        if let Some(out) = &mut self.out {
            let _ = out.end(&end);
            end.lines_lost = out.lines_lost();
        }
        let summary = self.fold.finish(Some(reason), end.lines_lost);
        end.validity = summary.validity.clone();
        let judge = |threshold: &Threshold| threshold.judge(&summary);
        let judgements: Vec<_> = self.options.thresholds.iter().map(judge).collect();
        let run_file_error = self.out.as_ref().and_then(|out| out.error().map(str::to_owned));
        let diagnosis = diagnose(&self.history, &summary, &judgements);
        Outcome { summary, judgements, diagnosis, end, run_file_error }
    }

    fn add_event(&mut self, kind: RunEventKind) {
        self.events.push(RunEvent::new(self.at_ms(Instant::now()), kind));
    }

    fn at_ms(&self, now: Instant) -> u64 {
        now.duration_since(self.began).as_millis() as u64
    }
}

/// Everything that users got from the target.
fn successes(load: &LoadInterval) -> u64 {
    let counters = &load.counters;
    counters.connects_ok
        + counters.messages_answered
        + counters.messages_received
        + counters.joins_ok
        + counters.pushes_ok
}

/// A last interval shorter than this is not worth a line: its rates would be noise.
const SLIVER_MS: u64 = 10;

/// How soon the recorder notices that a run is over.
const LOOK_EVERY: Duration = Duration::from_millis(20);
