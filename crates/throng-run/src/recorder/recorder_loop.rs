//! The recorder's thread: records one interval after the other until the run is over.

use std::io::Write;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use throng_base::units::show_duration;
use throng_driver::Clock;
use throng_measure::runfile::{AppendOutcome, RunEnd, RunEndReason, RunFileWriter, Truncate};
use throng_measure::validity::LAG_DEGRADED_US;
use throng_measure::{Interval, LoadInterval, RunEvent, RunEventKind, ServerSnapshot};

use super::RecordedBefore;
use super::command::RecorderCommand;
use super::lock::lock;
use super::options::RecorderOptions;
use super::outcome::Outcome;
use super::probes::{GeneratorProbe, Interruption, KernelProbe};
use super::run_probes::RunProbes;
use super::server_poller::ServerPoller;
use crate::RunContent;

pub(super) type Progress = Box<dyn FnMut(&Interval, Option<&Interval>) + Send>;

/// The state of the recorder's thread.
pub(super) struct RecorderLoop<W> {
    options: RecorderOptions,
    out: Option<RunFileWriter<W>>,
    generator: Box<dyn GeneratorProbe>,
    server: Option<ServerPoller>,
    kernel: Box<dyn KernelProbe>,
    /// The process id that the kernel's probe knows. It stays while the server is silent.
    server_pid: Option<u32>,
    content: RunContent,
    progress: Progress,
    latest: Arc<Mutex<Option<Interval>>>,
    previous: Option<Interval>,
    began: Instant,
    /// The run's beginning on the clock of the generator's cores, in milliseconds.
    began_ms: u64,
    /// Events for the next interval.
    events: Vec<RunEvent>,
    /// Events of lines that could not be written: the next written line contains them.
    unwritten: Vec<RunEvent>,
    /// The request to stop the run, once there is one.
    stopping: Option<StopRequest>,
    /// The source of a request to end the run that another process had.
    interrupted_by: Option<String>,
    /// The end of the first interval of a pause, while the load is paused.
    paused_since: Option<Instant>,
    /// The end of the first interval with refused connects, while no connect had another result.
    refused_since: Option<Instant>,
    /// The users' successes when the server was lost; none while it is not lost.
    successes_when_lost: Option<u64>,
}

/// A request to stop the run.
struct StopRequest {
    by: String,
    /// The end of the wait for the generator.
    until: Instant,
    /// The reason for the end of the run.
    reason: RunEndReason,
}

/// The reason for which the thread woke up.
enum WakeReason {
    /// The next interval is due.
    Boundary,
    /// The run is over.
    RunEnded { reason: RunEndReason, detail: Option<String> },
}

impl<W: Write + Truncate> RecorderLoop<W> {
    pub(super) fn new(
        options: RecorderOptions,
        out: Option<RunFileWriter<W>>,
        probes: RunProbes,
        latest: Arc<Mutex<Option<Interval>>>,
        progress: Progress,
    ) -> Self {
        // Whatever the probes take: the load runs from now on.
        let (began, began_ms) = (Instant::now(), Clock.now().as_nanos() / 1_000_000);
        let lost_after = options.server_lost_after;
        Self {
            content: RunContent::new(options.header.clone(), options.thresholds.clone()),
            options,
            out,
            generator: probes.generator,
            server: probes.server.map(|probe| ServerPoller::new(probe, lost_after)),
            kernel: (probes.kernel)(),
            server_pid: None,
            progress,
            latest,
            previous: None,
            began,
            began_ms,
            events: Vec::new(),
            unwritten: Vec::new(),
            stopping: None,
            interrupted_by: None,
            paused_since: None,
            refused_since: None,
            successes_when_lost: None,
        }
    }

    /// Goes on with a run that another process has recorded so far.
    pub(super) fn go_on_from(&mut self, before: RecordedBefore) {
        let since = Clock.now().since(before.began);
        self.began = Instant::now().checked_sub(since).unwrap_or(self.began);
        self.began_ms = before.began.as_nanos() / 1_000_000;
        before.intervals.iter().for_each(|interval| self.content.add(interval));
        let mut events = before.intervals.iter().flat_map(|interval| &interval.events);
        self.interrupted_by = events.find_map(|event| match &event.kind {
            RunEventKind::Interrupted { by } => Some(by.clone()),
            _ => None,
        });
        self.previous = before.intervals.into_iter().next_back();
    }

    pub(super) fn run(mut self, commands: &Receiver<RecorderCommand>) -> Outcome {
        if self.previous.is_none() {
            self.record(self.began);
        }
        let mut boundary = self.began + self.options.interval;
        while boundary <= Instant::now() {
            boundary += self.options.interval;
        }
        let (reason, detail) = loop {
            match self.sleep_until(boundary, commands) {
                WakeReason::Boundary => {
                    let now = Instant::now();
                    self.record(now);
                    // After an interval that took too long, the loop skips the boundaries it
                    // missed.
                    while boundary <= now {
                        boundary += self.options.interval;
                    }
                }
                WakeReason::RunEnded { reason, detail } => break (reason, detail),
            }
        };
        let now = Instant::now();
        let recorded_ms = self.previous.as_ref().map_or(0, |previous| previous.at_ms);
        if self.at_ms(now) > recorded_ms + SHORT_INTERVAL_MS || !self.events.is_empty() {
            self.record(now);
        }
        self.finish(reason, detail)
    }

    fn sleep_until(
        &mut self,
        boundary: Instant,
        commands: &Receiver<RecorderCommand>,
    ) -> WakeReason {
        loop {
            if let Some(ended) = self.end_reason() {
                return ended;
            }
            for kind in self.kernel.step() {
                self.add_event(kind);
            }
            let now = Instant::now();
            if now >= boundary {
                return WakeReason::Boundary;
            }
            match commands.recv_timeout((boundary - now).min(POLL_INTERVAL)) {
                Ok(RecorderCommand::AddEvent(kind)) => self.add_event(*kind),
                Ok(RecorderCommand::Stop(by)) => self.stop(by),
                Err(RecvTimeoutError::Timeout) => {}
                // No handle is left to send a command; the run goes on to its end.
                Err(RecvTimeoutError::Disconnected) => {
                    std::thread::sleep((boundary - now).min(POLL_INTERVAL));
                }
            }
        }
    }

    fn end_reason(&self) -> Option<WakeReason> {
        if let Some(failure) = self.generator.failure() {
            let reason = RunEndReason::Failed;
            return Some(WakeReason::RunEnded { reason, detail: Some(failure) });
        }
        let finished = self.generator.is_finished();
        match &self.stopping {
            Some(StopRequest { by, until, reason }) if finished || Instant::now() >= *until => {
                let detail =
                    if finished { by.clone() } else { format!("{by}; some users had not ended") };
                Some(WakeReason::RunEnded { reason: *reason, detail: Some(detail) })
            }
            None if finished => Some(self.end_of_load()),
            _ => None,
        }
    }

    /// Returns why a load is over that this process was not asked to end.
    fn end_of_load(&self) -> WakeReason {
        let (reason, detail) = match &self.interrupted_by {
            Some(by) => (RunEndReason::Interrupted, Some(by.clone())),
            None if self.is_target_lost() => {
                (RunEndReason::TargetLost, Some("the server no longer answers".to_owned()))
            }
            None => (RunEndReason::Finished, None),
        };
        WakeReason::RunEnded { reason, detail }
    }

    fn stop(&mut self, by: String) {
        if let Some(stopping) = &mut self.stopping {
            stopping.until = Instant::now();
            return;
        }
        self.generator.ramp_down();
        let load = self.previous.as_ref().and_then(|interval| interval.load.as_ref());
        let is_leaving = load.is_some_and(LoadInterval::is_leaving);
        if !is_leaving {
            self.add_event(RunEventKind::Interrupted { by: by.clone() });
        }
        // Users who leave because of an earlier request have not ended by the plan.
        let earlier = self.interrupted_by.clone().filter(|_| is_leaving);
        let after_plan = is_leaving && earlier.is_none();
        let by = earlier.unwrap_or(by);
        let reason = if after_plan { RunEndReason::Finished } else { RunEndReason::Interrupted };
        let until = Instant::now() + self.options.ramp_down_timeout;
        self.stopping = Some(StopRequest { by, until, reason });
    }

    /// Reports whether the server was lost before the users began to leave, and no user had a
    /// success since. A restarted server answers users, but on another control socket.
    fn is_target_lost(&self) -> bool {
        let load = self.previous.as_ref().and_then(|interval| interval.load.as_ref());
        self.successes_when_lost
            .is_some_and(|before| load.is_none_or(|load| successes(load) <= before))
    }

    fn track_server_loss(&mut self, load: &LoadInterval) {
        if !self.server.as_ref().is_some_and(ServerPoller::is_lost) {
            self.successes_when_lost = None;
        } else if self.successes_when_lost.is_none() && !load.is_leaving() {
            self.successes_when_lost = Some(successes(load));
        }
    }

    /// Reads all probes and writes an interval. The generator comes first: its histograms end with
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
        self.note_interruption();
        let server = self.poll_server(at_ms);
        let reading = self.kernel.sample();
        let server = server.or(reading.server);
        self.events.extend(reading.events.into_iter().map(|kind| RunEvent::new(at_ms, kind)));
        self.add_counter_events(at_ms, &load, server.as_ref());
        self.track_server_loss(&load);

        let recorded_ms = self.previous.as_ref().map_or(0, |previous| previous.at_ms);
        let span_ms = at_ms.saturating_sub(recorded_ms);
        let interval = Interval {
            at_ms,
            span_ms,
            load: Some(load),
            server,
            machine: reading.machine,
            kernel: reading.counters,
            server_kernel: reading.server_counters,
            server_machine: reading.server_machine,
            programs: reading.programs,
            server_programs: reading.server_programs,
            unseen: reading.unseen,
            events: std::mem::take(&mut self.events),
        };
        self.write(&interval);
        self.content.add(&interval);
        (self.progress)(&interval, self.previous.as_ref());
        *lock(&self.latest) = Some(interval.clone());
        self.previous = Some(interval);
        self.end_long_pause(now);
        self.end_refused(now);
    }

    /// Notes a request to end the run that another process had, once.
    fn note_interruption(&mut self) {
        if self.interrupted_by.is_some() || self.stopping.is_some() {
            return;
        }
        if let Some(Interruption { by, at_ms }) = self.generator.interruption() {
            self.interrupted_by = Some(by.clone());
            self.events.push(RunEvent::new(at_ms, RunEventKind::Interrupted { by }));
        }
    }

    /// Ends a run that has been paused for too long: users hold connections that nothing watches.
    fn end_long_pause(&mut self, now: Instant) {
        let load = self.previous.as_ref().and_then(|interval| interval.load.as_ref());
        if !load.is_some_and(|load| load.paused) {
            self.paused_since = None;
            return;
        }
        let since = *self.paused_since.get_or_insert(now);
        let pause_max = self.options.pause_max;
        if now.duration_since(since) >= pause_max && self.stopping.is_none() {
            self.stop(format!("a pause of {} (--pause-max)", show_duration(pause_max)));
        }
    }

    /// Ends a run whose connects have all been refused for too long: nothing listens at the target,
    /// and the rest of the plan would show nothing else.
    fn end_refused(&mut self, now: Instant) {
        let load = self.previous.as_ref().and_then(|interval| interval.load.as_ref());
        if !load.is_some_and(is_refused) {
            self.refused_since = None;
            return;
        }
        let since = *self.refused_since.get_or_insert(now);
        let Some(refused_max) = self.options.refused_max else { return };
        if now.duration_since(since) < refused_max || self.stopping.is_some() {
            return;
        }
        self.generator.ramp_down();
        let by = format!(
            "every connect was refused for {}, and none has succeeded (--keep-trying goes on)",
            show_duration(refused_max)
        );
        let until = now + self.options.ramp_down_timeout;
        self.stopping = Some(StopRequest { by, until, reason: RunEndReason::Unreached });
    }

    fn poll_server(&mut self, at_ms: u64) -> Option<ServerSnapshot> {
        let events = &mut self.events;
        let poller = self.server.as_mut()?;
        let snapshot = poller.snapshot(&mut |kind| events.push(RunEvent::new(at_ms, kind)))?;
        let pid = snapshot.process.pid;
        if self.server_pid.replace(pid) != Some(pid) {
            self.kernel.set_server_pid(pid);
        }
        Some(snapshot)
    }

    /// Adds the events that follow from counters.
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
        let validity = self.content.validity(reason, lines_lost);
        let mut end = RunEnd { reason, detail, lines_lost, validity };
        if let Some(out) = &mut self.out {
            let _ = out.end(&end);
            end.lines_lost = out.lines_lost();
        }
        let result = self.content.finish(reason, end.lines_lost);
        end.validity = result.summary.validity.clone();
        let run_file_error = self.out.as_ref().and_then(|out| out.error().map(str::to_owned));
        Outcome { result, end, run_file_error }
    }

    fn add_event(&mut self, kind: RunEventKind) {
        self.events.push(RunEvent::new(self.at_ms(Instant::now()), kind));
    }

    fn at_ms(&self, now: Instant) -> u64 {
        now.duration_since(self.began).as_millis() as u64
    }
}

/// Reports whether every connect of a load was refused so far.
fn is_refused(load: &LoadInterval) -> bool {
    let refused = load.connect_failed.get("ECONNREFUSED");
    load.counters.connects_ok == 0
        && refused >= REFUSED_MIN
        && refused == load.connect_failed.total()
        && !load.is_leaving()
}

/// Returns the number of connects, messages, joins, pushes and requests that succeeded.
fn successes(load: &LoadInterval) -> u64 {
    let counters = &load.counters;
    counters.connects_ok
        + counters.messages_received
        + counters.joins_ok
        + counters.requests_answered()
}

/// The fewest refusals that show that nothing listens: one or two are a server that starts a moment
/// after its load.
const REFUSED_MIN: u64 = 3;

/// The shortest last interval that gets a line: the rates of a shorter one would be noise.
const SHORT_INTERVAL_MS: u64 = 10;

/// The time between two checks for the end of the run.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
