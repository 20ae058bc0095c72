use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use throng_measure::runfile::{RunEndReason, RunFile, RunHeader, read};
use throng_measure::{
    Grade, LoadInterval, MachineUse, Metric, Operation, ProcessUse, RunEvent, ServerSnapshot,
};
use throng_report::{RunExit, Summary};

use super::*;

/// A generator that makes ten connects by each snapshot, and is finished when a test says so.
#[derive(Clone, Default)]
struct Fake(Arc<FakeState>);

#[derive(Default)]
struct FakeState {
    connects: AtomicU64,
    /// True when connects no longer succeed.
    is_refused: AtomicBool,
    /// True while all users leave.
    is_leaving: AtomicBool,
    is_paused: AtomicBool,
    /// Refused connects of each snapshot, and of all.
    refused_each: AtomicU64,
    refused: AtomicU64,
    is_finished: AtomicBool,
    has_ramped_down: AtomicBool,
    /// True when a ramp-down finishes the load at once.
    ends_on_ramp_down: AtomicBool,
    /// True when another process has ended the load.
    is_interrupted: AtomicBool,
}

impl GeneratorProbe for Fake {
    fn snapshot(&mut self) -> LoadInterval {
        let is_leaving = self.0.is_leaving.load(Ordering::Relaxed);
        let phase = if is_leaving { throng_measure::LEAVING } else { "hold" };
        let mut load = LoadInterval { phase: phase.into(), cores: 1, ..Default::default() };
        let more = if self.0.is_refused.load(Ordering::Relaxed) { 0 } else { 10 };
        load.counters.connects_ok = self.0.connects.fetch_add(more, Ordering::Relaxed) + more;
        load.times[Operation::Connect].record_us(500);
        let refused = self.0.refused_each.load(Ordering::Relaxed);
        let refused = self.0.refused.fetch_add(refused, Ordering::Relaxed) + refused;
        load.connect_failed.add("ECONNREFUSED", refused);
        load.paused = self.0.is_paused.load(Ordering::Relaxed);
        load
    }

    fn is_finished(&self) -> bool {
        self.0.is_finished.load(Ordering::Relaxed)
    }

    fn ramp_down(&mut self) {
        self.0.has_ramped_down.store(true, Ordering::Relaxed);
        let ends = self.0.ends_on_ramp_down.load(Ordering::Relaxed);
        self.0.is_finished.fetch_or(ends, Ordering::Relaxed);
    }

    fn interruption(&self) -> Option<Interruption> {
        let is_interrupted = self.0.is_interrupted.load(Ordering::Relaxed);
        is_interrupted.then(|| Interruption { by: "another process".into(), at_ms: 100 })
    }
}

/// A kernel that counts how often the recorder set the server's process.
#[derive(Default)]
struct FakeKernel {
    pids_set: i64,
}

impl KernelProbe for FakeKernel {
    fn sample(&mut self) -> KernelReading {
        let machine = MachineUse { cpus: 2, ..Default::default() };
        let counters = [(Metric::LISTENER_SYN_RECV, 3), (Metric::LISTENER_COUNT, self.pids_set)];
        KernelReading {
            machine: Some(machine),
            counters: counters.into(),
            ..KernelReading::default()
        }
    }

    fn set_server_pid(&mut self, pid: u32) {
        assert_eq!(pid, 77);
        self.pids_set += 1;
    }
}

/// A server that hangs while `hangs` is set, and fails while `fails` is set.
#[derive(Clone, Default)]
struct FakeServer {
    hangs: Arc<AtomicBool>,
    fails: Arc<AtomicBool>,
    requests: Arc<AtomicU64>,
}

impl ServerProbe for FakeServer {
    fn snapshot(&mut self) -> Result<ServerSnapshot, String> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        while self.hangs.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(5));
        }
        if self.fails.load(Ordering::Relaxed) {
            return Err("connection refused".into());
        }
        let process = ProcessUse { pid: 77, ..Default::default() };
        Ok(ServerSnapshot { handler: "ok".into(), process, ..Default::default() })
    }
}

fn options(interval_ms: u64) -> RecorderOptions {
    RecorderOptions {
        interval: Duration::from_millis(interval_ms),
        server_lost_after: Duration::from_secs(60),
        ramp_down_timeout: Duration::from_secs(10),
        ..Default::default()
    }
}

fn probes(fake: &Fake, server: Option<&FakeServer>) -> RunProbes {
    let server = server.map(|server| Box::new(server.clone()) as Box<dyn ServerProbe>);
    RunProbes {
        generator: Box::new(fake.clone()),
        server,
        kernel: Box::new(|| Box::<FakeKernel>::default()),
    }
}

/// Shared memory with a limit like a disk's.
#[derive(Clone, Debug)]
struct Disk {
    bytes: Arc<Mutex<Vec<u8>>>,
    room: Arc<AtomicU64>,
}

impl Disk {
    fn new() -> Self {
        Self { bytes: Arc::default(), room: Arc::new(AtomicU64::new(u64::MAX)) }
    }

    fn read(&self) -> RunFile {
        read(&mut lock(&self.bytes).as_slice()).unwrap()
    }
}

impl Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut held = lock(&self.bytes);
        if (held.len() + bytes.len()) as u64 > self.room.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        held.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Truncate for Disk {
    fn truncate_to(&mut self, len: u64) -> io::Result<()> {
        lock(&self.bytes).truncate_to(len)
    }
}

fn sleep_ms(ms: u64) {
    std::thread::sleep(Duration::from_millis(ms));
}

/// Waits until `is_so` returns true, a minute at most.
#[track_caller]
fn until(mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(60), "it did not happen");
        sleep_ms(5);
    }
}

fn names(file: &RunFile) -> Vec<&'static str> {
    let name = |event: &RunEvent| match event.kind {
        RunEventKind::ServerLost { .. } => "lost",
        RunEventKind::ServerBack { .. } => "back",
        RunEventKind::RunFileFailed { .. } => "file_failed",
        RunEventKind::RunFileResumed { .. } => "file_resumed",
        RunEventKind::Interrupted { .. } => "interrupted",
        RunEventKind::Steered { .. } => "steered",
        _ => "other",
    };
    file.intervals.iter().flat_map(|interval| &interval.events).map(name).collect()
}

#[test]
fn a_run_is_written_as_it_goes_and_summed_up_at_its_end() {
    let (fake, disk) = (Fake::default(), Disk::new());
    let seen = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&seen);
    let mut options = options(50);
    let thresholds = ["connect.p99 < 1ms", "connect.rate_most > 1000000/s"];
    options.thresholds = thresholds.map(|text| text.parse().unwrap()).to_vec();
    let recording = Recorder::to(disk.clone(), options)
        .unwrap()
        .start(probes(&fake, Some(&FakeServer::default())), move |_, _| {
            _ = count.fetch_add(1, Ordering::Relaxed)
        });
    let handle = recording.handle();
    until(|| disk.read().intervals.len() >= 4);
    assert!(handle.latest().is_some() && !recording.is_finished());
    fake.0.is_finished.store(true, Ordering::Relaxed);
    let outcome = recording.wait();

    let file = disk.read();
    assert_eq!(file.intervals[0].at_ms, 0, "the counters before the run");
    assert_eq!(file.intervals.len() as u64, seen.load(Ordering::Relaxed));
    assert_eq!(file.intervals[1].kernel[Metric::LISTENER_SYN_RECV], 3);
    let mut snapshots = file.intervals.iter().filter_map(|interval| interval.server.as_ref());
    assert!(snapshots.next().is_some_and(|server| server.process.pid == 77));
    assert_eq!(file.end.as_ref().unwrap().reason, RunEndReason::Finished);
    assert_eq!(outcome.result.summary.connect.ok, 10 * file.intervals.len() as u64);
    assert_eq!(outcome.result.summary, Summary::of(&file), "the file and the recorder agree");
    assert_eq!(outcome.result.judgements.iter().map(|j| j.met).collect::<Vec<_>>(), [true, false]);
    assert_eq!(outcome.result.exit(), RunExit::Missed);
}

#[test]
fn intervals_keep_to_their_boundaries_while_the_server_hangs() {
    let (fake, server, disk) = (Fake::default(), FakeServer::default(), Disk::new());
    let options = RecorderOptions { server_lost_after: LOST_AFTER, ..options(300) };
    let recording =
        Recorder::to(disk.clone(), options).unwrap().start(probes(&fake, Some(&server)), |_, _| {});
    until(|| disk.read().intervals.len() >= 2);
    server.hangs.store(true, Ordering::Relaxed);
    let (requests, begun) = (server.requests.load(Ordering::Relaxed), disk.read().intervals.len());
    until(|| disk.read().intervals.len() >= begun + 5);
    assert!(server.requests.load(Ordering::Relaxed) <= requests + 1, "one request at a time");
    server.hangs.store(false, Ordering::Relaxed);
    let hung = disk.read().intervals[begun..].to_vec();
    until(|| disk.read().intervals.len() >= begun + 8);
    fake.0.is_finished.store(true, Ordering::Relaxed);
    recording.wait();

    assert_eq!(names(&disk.read())[..2], ["lost", "back"]);
    // A recorder that waited for the server would be late each time. A busy machine makes a few
    // late.
    let late_ms = hung.iter().map(|interval| interval.at_ms % 300).min();
    assert!(late_ms < Some(LOST_AFTER.as_millis() as u64), "{hung:#?}");
}

/// The time without an answer after which the recorder above calls a server lost.
const LOST_AFTER: Duration = Duration::from_millis(250);

#[test]
fn a_server_that_is_silent_for_a_moment_is_not_lost() {
    let (fake, server, disk) = (Fake::default(), FakeServer::default(), Disk::new());
    let recording = Recorder::to(disk.clone(), options(50))
        .unwrap()
        .start(probes(&fake, Some(&server)), |_, _| {});
    let last_is_answered =
        || disk.read().intervals.last().is_some_and(|interval| interval.server.is_some());
    until(last_is_answered);
    server.hangs.store(true, Ordering::Relaxed);
    until(|| !last_is_answered());
    server.hangs.store(false, Ordering::Relaxed);
    until(last_is_answered);
    assert_eq!(
        disk.read().intervals.last().unwrap().kernel[Metric::LISTENER_COUNT],
        1,
        "it is the same server"
    );
    fake.0.is_finished.store(true, Ordering::Relaxed);
    assert_eq!(recording.wait().end.reason, RunEndReason::Finished);
    assert_eq!(names(&disk.read()), [""; 0]);
}

/// Returns the end of a run whose server ends in the middle.
fn end_without_a_server(is_refused: bool, is_leaving: bool) -> (RunEndReason, RunExit) {
    let (fake, server, disk) = (Fake::default(), FakeServer::default(), Disk::new());
    let recording = Recorder::to(disk.clone(), options(50))
        .unwrap()
        .start(probes(&fake, Some(&server)), |_, _| {});
    until(|| disk.read().intervals.len() >= 2);
    fake.0.is_refused.store(is_refused, Ordering::Relaxed);
    fake.0.is_leaving.store(is_leaving, Ordering::Relaxed);
    let lines = disk.read().intervals.len();
    until(|| disk.read().intervals.len() >= lines + 2);
    server.fails.store(true, Ordering::Relaxed);
    until(|| names(&disk.read()) == ["lost"]);
    let lines = disk.read().intervals.len();
    until(|| disk.read().intervals.len() >= lines + 2);
    fake.0.is_finished.store(true, Ordering::Relaxed);
    let outcome = recording.wait();
    (outcome.end.reason, outcome.result.exit())
}

#[test]
fn a_server_that_ends_is_lost_and_the_run_says_so() {
    assert_eq!(end_without_a_server(true, false), (RunEndReason::TargetLost, RunExit::Missed));
}

#[test]
fn a_target_that_answers_users_is_there_though_its_first_process_is_gone() {
    assert_eq!(end_without_a_server(false, false), (RunEndReason::Finished, RunExit::Met));
}

#[test]
fn a_server_that_ends_when_the_users_leave_is_not_missed() {
    assert_eq!(end_without_a_server(true, true), (RunEndReason::Finished, RunExit::Met));
}

#[test]
fn an_interruption_is_incomplete_until_the_users_leave_and_nothing_after_that() {
    for is_leaving in [false, true] {
        let (fake, disk) = (Fake::default(), Disk::new());
        fake.0.ends_on_ramp_down.store(true, Ordering::Relaxed);
        fake.0.is_leaving.store(is_leaving, Ordering::Relaxed);
        let header = RunHeader { planned_ms: Some(600_000), ..RunHeader::default() };
        let options = RecorderOptions { header, ..options(50) };
        let recording =
            Recorder::to(disk.clone(), options).unwrap().start(probes(&fake, None), |_, _| {});
        until(|| disk.read().intervals.len() >= 3);
        recording.handle().stop("SIGTERM");
        let outcome = recording.wait();
        let incomplete = outcome.result.summary.run.incomplete.as_deref().unwrap_or_default();
        if is_leaving {
            assert_eq!(
                (outcome.end.reason, outcome.result.exit()),
                (RunEndReason::Finished, RunExit::Met)
            );
            assert_eq!((incomplete, names(&disk.read()).len()), ("", 0));
        } else {
            assert_eq!(outcome.end.reason, RunEndReason::Interrupted);
            assert_eq!(outcome.result.exit(), RunExit::Incomplete);
            assert!(incomplete.starts_with("SIGTERM ended it after 0."), "{incomplete}");
            assert!(incomplete.ends_with(" s of its 600 s"), "{incomplete}");
        }
        assert_eq!(Summary::of(&disk.read()), outcome.result.summary, "the file says the same");
    }
}

#[test]
fn a_load_that_another_process_ended_is_incomplete_from_that_moment() {
    let (fake, disk) = (Fake::default(), Disk::new());
    let recording =
        Recorder::to(disk.clone(), options(50)).unwrap().start(probes(&fake, None), |_, _| {});
    fake.0.is_interrupted.store(true, Ordering::Relaxed);
    until(|| disk.read().intervals.len() >= 4);
    fake.0.is_finished.store(true, Ordering::Relaxed);
    let outcome = recording.wait();
    assert_eq!(outcome.end.reason, RunEndReason::Interrupted);
    assert_eq!(outcome.end.detail.as_deref(), Some("another process"));
    assert_eq!(outcome.result.exit(), RunExit::Incomplete);
    assert_eq!(names(&disk.read()), ["interrupted"]);
    let why = outcome.result.summary.run.incomplete.unwrap();
    assert!(why.starts_with("another process ended it after 0.1"), "{why}");
}

#[test]
fn a_second_request_to_end_does_not_make_an_interrupted_run_complete() {
    let (fake, disk) = (Fake::default(), Disk::new());
    fake.0.ends_on_ramp_down.store(true, Ordering::Relaxed);
    fake.0.is_interrupted.store(true, Ordering::Relaxed);
    fake.0.is_leaving.store(true, Ordering::Relaxed);
    let recording =
        Recorder::to(disk.clone(), options(50)).unwrap().start(probes(&fake, None), |_, _| {});
    until(|| disk.read().intervals.len() >= 4);
    recording.handle().stop("SIGTERM");
    let outcome = recording.wait();
    assert_eq!(outcome.end.reason, RunEndReason::Interrupted);
    assert_eq!(outcome.end.detail.as_deref(), Some("another process"));
    assert_eq!(outcome.result.exit(), RunExit::Incomplete);
    assert_eq!(names(&disk.read()), ["interrupted"]);
}

#[test]
fn a_full_disk_costs_lines_and_not_the_run() {
    let (fake, disk) = (Fake::default(), Disk::new());
    let seen = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&seen);
    let recording = Recorder::to(disk.clone(), options(50))
        .unwrap()
        .start(probes(&fake, None), move |_, _| _ = count.fetch_add(1, Ordering::Relaxed));
    until(|| disk.read().intervals.len() >= 2);
    disk.room.store(lock(&disk.bytes).len() as u64 + 5, Ordering::Relaxed);
    let before = disk.read().intervals.len();
    let seen_before = seen.load(Ordering::Relaxed);
    until(|| seen.load(Ordering::Relaxed) >= seen_before + 3);
    assert!(!recording.is_finished());
    disk.room.store(u64::MAX, Ordering::Relaxed);
    until(|| disk.read().intervals.len() > before + 1);
    fake.0.is_finished.store(true, Ordering::Relaxed);
    let outcome = recording.wait();

    let file = disk.read();
    assert_eq!(names(&file), ["file_failed", "file_resumed"]);
    assert!(outcome.end.lines_lost >= 1 && outcome.run_file_error.is_some());
    assert_eq!(file.end.unwrap().lines_lost, outcome.end.lines_lost);
    assert_eq!(outcome.end.validity.grade, Grade::Degraded);
}

#[test]
fn stop_ramps_down_and_a_second_stop_does_not_wait_for_it() {
    let (fake, disk) = (Fake::default(), Disk::new());
    let recording =
        Recorder::to(disk.clone(), options(50)).unwrap().start(probes(&fake, None), |_, _| {});
    recording.handle().stop("SIGINT");
    recording.handle().add_event(RunEventKind::Steered { command: "count".into() });
    until(|| fake.0.has_ramped_down.load(Ordering::Relaxed));
    sleep_ms(100);
    assert!(!recording.is_finished(), "its users have not ended yet");
    recording.handle().stop("SIGINT");
    let outcome = recording.wait();
    assert_eq!(outcome.end.reason, RunEndReason::Interrupted);
    assert_eq!(outcome.end.detail.as_deref(), Some("SIGINT; some users had not ended"));
    assert_eq!(names(&disk.read()), ["interrupted", "steered"]);
}

#[test]
fn a_run_that_is_paused_for_too_long_ends_and_says_why() {
    let (fake, disk) = (Fake::default(), Disk::new());
    fake.0.ends_on_ramp_down.store(true, Ordering::Relaxed);
    let options = RecorderOptions { pause_max: Duration::from_millis(1), ..options(20) };
    let recording =
        Recorder::to(disk.clone(), options).unwrap().start(probes(&fake, None), |_, _| {});
    until(|| fake.0.connects.load(Ordering::Relaxed) >= 50);
    assert!(!fake.0.has_ramped_down.load(Ordering::Relaxed), "it is not paused");
    fake.0.is_paused.store(true, Ordering::Relaxed);
    let outcome = recording.wait();
    assert_eq!(outcome.end.reason, RunEndReason::Interrupted);
    assert_eq!(outcome.end.detail.as_deref(), Some("a pause of 1ms (--pause-max)"));
    assert_eq!(names(&disk.read()), ["interrupted"]);
    let why = outcome.result.summary.run.incomplete.unwrap();
    assert!(why.starts_with("a pause of 1ms (--pause-max) ended it after "), "{why}");
    assert_eq!(RunExit::of(&Summary::of(&disk.read()), &[]), RunExit::Incomplete);
}

/// Returns the reason for the end of a run in which ten connects an interval are refused, and all
/// others succeed if there are others (`some_succeed`).
fn end_of_refused(refused_max: Option<Duration>, some_succeed: bool) -> RunEndReason {
    let fake = Fake::default();
    fake.0.ends_on_ramp_down.store(true, Ordering::Relaxed);
    fake.0.is_refused.store(!some_succeed, Ordering::Relaxed);
    fake.0.refused_each.store(10, Ordering::Relaxed);
    let options = RecorderOptions { refused_max, ..options(20) };
    let recording =
        Recorder::to(Disk::new(), options).unwrap().start(probes(&fake, None), |_, _| {});
    if refused_max.is_none() || some_succeed {
        until(|| fake.0.refused.load(Ordering::Relaxed) >= 60);
        assert!(!fake.0.has_ramped_down.load(Ordering::Relaxed));
        fake.0.is_finished.store(true, Ordering::Relaxed);
    }
    let end = recording.wait().end;
    if end.reason == RunEndReason::Unreached {
        let why = end.detail.unwrap();
        assert!(why.starts_with("every connect was refused for 30ms"), "{why}");
    }
    end.reason
}

#[test]
fn a_run_whose_connects_are_all_refused_ends_unless_it_keeps_trying() {
    let after = Some(Duration::from_millis(30));
    assert_eq!(end_of_refused(after, false), RunEndReason::Unreached);
    assert_eq!(end_of_refused(None, false), RunEndReason::Finished);
    assert_eq!(end_of_refused(after, true), RunEndReason::Finished);
}

#[test]
fn a_generator_that_ends_on_ramp_down_is_not_waited_for() {
    let fake = Fake::default();
    fake.0.ends_on_ramp_down.store(true, Ordering::Relaxed);
    let recording =
        Recorder::to(Disk::new(), options(60_000)).unwrap().start(probes(&fake, None), |_, _| {});
    let began = Instant::now();
    recording.handle().stop("SIGTERM");
    let outcome = recording.wait();
    assert_eq!(outcome.end.detail.as_deref(), Some("SIGTERM"));
    assert!(began.elapsed() < Duration::from_secs(55), "it noticed after {:?}", began.elapsed());
}

#[test]
fn a_run_file_that_another_run_writes_is_refused_and_left_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.jsonl");
    let create =
        || Recorder::create(RecorderOptions { run_file: Some(path.clone()), ..Default::default() });
    let first = create().unwrap();
    let written = std::fs::read(&path).unwrap();
    let error = create().unwrap_err().to_string();
    assert!(error.contains("another run is writing it; wait until that run ends"), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), written);
    drop(first);
    drop(create().expect("it is free again"));
    let null = RecorderOptions { run_file: Some("/dev/null".into()), ..Default::default() };
    Recorder::create(null).expect("there is nothing to lock");
}

#[test]
fn a_run_file_that_cannot_be_written_is_refused_at_once() {
    let path = PathBuf::from("/nonexistent/run.jsonl");
    let error = Recorder::create(RecorderOptions { run_file: Some(path), ..Default::default() });
    let error = error.unwrap_err();
    assert!(error.to_string().starts_with("cannot write the run file /nonexistent/run.jsonl"));
}
