use throng_measure::runfile::RunFile;
use throng_measure::validity::Grade;
use throng_measure::{
    CoreCounters, ErrorKind, LoadCounters, LoadInterval, MachineUse, Operation, ProcessMetric,
    ProcessUse, RunEvent, ServerCounters, ServerSnapshot,
};

use super::*;
use crate::summary::MEMORY_CONNECTIONS_MIN;

pub(super) fn load(counters: LoadCounters, cpu_us: u64, rss_bytes: u64) -> LoadInterval {
    let process = ProcessUse {
        pid: 1,
        cpu_user_us: cpu_us / 4,
        cpu_system_us: cpu_us - cpu_us / 4,
        rss_bytes,
        rss_bytes_at_start: 1_000_000,
    };
    LoadInterval { cores: 2, counters, process, ..Default::default() }
}

fn server(pid: u32, counters: ServerCounters, cpu_us: u64) -> ServerSnapshot {
    let process = ProcessUse {
        pid,
        cpu_system_us: cpu_us,
        rss_bytes: 2_000_000 + counters.open * 200,
        rss_bytes_at_start: 2_000_000,
        ..Default::default()
    };
    ServerSnapshot { counters, process, core: CoreCounters::default(), ..Default::default() }
}

/// Returns a run with the baseline line at 0 and the given lines, each a second after the line
/// before.
pub(super) fn run(lines: Vec<Interval>) -> Summary {
    run_of(RunHeader::default(), lines)
}

pub(super) fn run_of(header: RunHeader, lines: Vec<Interval>) -> Summary {
    let line = |(i, interval): (usize, Interval)| Interval {
        at_ms: i as u64 * 1000,
        span_ms: if i == 0 { 0 } else { 1000 },
        ..interval
    };
    let file = RunFile {
        header,
        intervals: lines.into_iter().enumerate().map(line).collect(),
        end: Some(RunEnd::default()),
        lines_torn: 0,
        warnings: Vec::new(),
    };
    Summary::of(&file)
}

pub(super) fn of_load(load: LoadInterval) -> Interval {
    Interval { load: Some(load), ..Default::default() }
}

/// Returns a run of a thousand arrivals in the first second, then 50 messages a second.
fn connects_then_messages() -> Summary {
    let at = |connects: u64, answered: u64| LoadCounters {
        users_intended: 1000,
        users_started: connects,
        connects_started: connects,
        connects_ok: connects,
        connected: connects,
        messages_sent: answered,
        messages_answered: answered,
        turns_intended: answered,
        turns_started: answered,
        ..Default::default()
    };
    let mut first = load(at(1000, 0), 30_000, 1_250_000);
    first.times[Operation::Connect].record_n(400, 1000);
    first.lag.record_n(20, 1000);
    run(vec![
        of_load(load(LoadCounters { users_intended: 0, ..at(0, 0) }, 10_000, 1_000_000)),
        of_load(first),
        of_load(load(at(1000, 50), 30_500, 1_256_000)),
        of_load(load(at(1000, 100), 31_000, 1_255_000)),
    ])
}

#[test]
fn connects_are_charged_what_was_used_while_connecting() {
    let summary = connects_then_messages();
    assert_eq!(summary.generator.cpu_us_per_connect, Some(20.0));
    assert_eq!(summary.generator.cpu_us_per_message, Some(10.0));
    assert_eq!(summary.generator.cpu_cores_used, Some(0.007));
    assert_eq!(summary.generator.cores, 2);
}

#[test]
fn lost_lines_do_not_make_the_next_line_look_fast() {
    let at = |connects_ok| load(LoadCounters { connects_ok, ..Default::default() }, connects_ok, 0);
    let mut fold = SummaryFold::new(&RunHeader::default());
    for (at_ms, connects) in [(0, 0), (1000, 100), (11_000, 1100), (12_000, 1200)] {
        fold.add(&Interval { at_ms, span_ms: at_ms.min(1000), ..of_load(at(connects)) });
    }
    let summary = fold.finish(None, 9);
    assert_eq!(summary.connect.rate_most, Some(100.0));
    assert_eq!(summary.connect.rate_mean, Some(100.0));
}

#[test]
fn memory_is_per_user_at_the_most_connections_from_before_the_first() {
    assert_eq!(connects_then_messages().generator.rss_bytes_per_user, Some(256.0));
}

#[test]
fn memory_of_few_connections_is_not_reported() {
    let with = |connected: u64| {
        let counters = LoadCounters { connected, ..Default::default() };
        let of_server = ServerCounters { open: connected, ..Default::default() };
        let line = Interval {
            server: Some(server(7, of_server, 0)),
            ..of_load(load(counters, 0, 1_000_000 + connected * 300))
        };
        let summary = run(vec![Interval::default(), line]);
        (summary.generator.rss_bytes_per_user, summary.server.unwrap().rss_bytes_per_connection)
    };
    assert_eq!(with(1), (None, None));
    assert_eq!(with(MEMORY_CONNECTIONS_MIN - 1), (None, None));
    assert_eq!(with(MEMORY_CONNECTIONS_MIN), (Some(300.0), Some(200.0)));
}

/// Returns a run of two seconds of a hundred arrivals each; then all users leave while late
/// connects are established and the schedule still counts users that should have begun.
fn two_seconds_and_all_users_leave(events: Vec<RunEvent>) -> Summary {
    let at = |intended, started, connects_ok| LoadCounters {
        users_intended: intended,
        users_started: started,
        iterations: started * 3,
        connects_started: started,
        connects_ok,
        ..Default::default()
    };
    let leaving = |counters, cpu_us| {
        of_load(LoadInterval {
            phase: throng_measure::LEAVING.to_owned(),
            ..load(counters, cpu_us, 0)
        })
    };
    run(vec![
        of_load(load(at(0, 0, 0), 0, 0)),
        of_load(load(at(100, 100, 100), 1_000, 0)),
        of_load(load(at(200, 199, 190), 1_900, 0)),
        Interval { events, ..leaving(at(290, 240, 195), 9_000) },
        leaving(at(300, 240, 240), 99_000),
    ])
}

#[test]
fn when_all_users_leave_totals_go_on_and_rates_and_costs_do_not() {
    let summary = two_seconds_and_all_users_leave(Vec::new());
    assert_eq!(summary.connect.ok, 240);
    assert_eq!((summary.users.started, summary.users.iterations), (240, 720));
    assert_eq!(summary.connect.rate_most, Some(100.0));
    assert_eq!(summary.connect.rate_mean, Some(95.0));
    assert_eq!(summary.generator.cpu_us_per_connect, Some(10.0));
    assert_eq!(summary.generator.cpu_cores_used, Some(0.00095));
    assert_eq!(summary.duration_s, 4.0);
    assert_eq!(summary.validity.grade, Grade::Invalid, "a schedule to its end owes every arrival");
}

#[test]
fn a_run_that_was_interrupted_owes_no_arrivals_of_later() {
    let interrupted = RunEventKind::Interrupted { by: "Ctrl-C".into() };
    let summary = two_seconds_and_all_users_leave(vec![RunEvent::new(2400, interrupted)]);
    assert_eq!((summary.arrivals.intended, summary.arrivals.achieved), (241, 240));
    assert_eq!((summary.users.intended, summary.connect.intended), (241, 241));
    assert_eq!(summary.validity.grade, Grade::Valid);
}

#[test]
fn rates_and_latencies_are_those_of_the_lines() {
    let summary = connects_then_messages();
    assert_eq!(summary.duration_s, 3.0);
    assert_eq!(summary.connect.rate_most, Some(1000.0));
    assert_eq!(summary.connect.latency_us.p99, 400);
    assert_eq!(summary.message.rate_mean, Some(50.0));
    assert_eq!(summary.message.intended_rate, Some(50.0));
    assert_eq!(summary.arrivals.ratio, Some(1.0));
    assert_eq!(summary.users.connected_most, 1000);
    assert_eq!(summary.validity, Validity::default());
    assert_eq!(summary.server, None);
}

#[test]
fn sent_messages_count_where_nothing_is_expected() {
    let counters = LoadCounters { messages_sent: 30, ..Default::default() };
    let summary = run(vec![Interval::default(), of_load(load(counters, 300, 0))]);
    assert_eq!(summary.message.rate_most, Some(30.0));
    assert_eq!(summary.generator.cpu_us_per_message, Some(10.0));
    assert_eq!(summary.generator.rss_bytes_per_user, None);
}

#[test]
fn failed_connects_are_errors_of_the_kind_connect() {
    let mut failing = load(LoadCounters { connects_failed: 3, ..Default::default() }, 1, 1);
    failing.connect_failed.add("ECONNREFUSED", 3);
    failing.errors.add(ErrorKind::ExpectTimeout, 2);
    let summary = run(vec![of_load(failing)]);
    assert_eq!(summary.errors.get(ErrorKind::Connect), 3);
    assert_eq!(summary.errors.total(), 5);
    assert_eq!(summary.connect.failed.get("ECONNREFUSED"), 3);
}

#[test]
fn a_server_is_charged_only_for_this_run() {
    let at = |accepted, open, received| ServerCounters {
        accepted,
        open,
        messages_received: received,
        registry_mailbox_most: open / 100,
        ..Default::default()
    };
    let line = |s: ServerSnapshot| Interval { server: Some(s), ..Default::default() };
    let summary = run(vec![
        line(server(7, at(5000, 0, 100), 900_000)),
        line(server(7, at(6000, 1000, 100), 916_000)),
        line(server(7, at(6000, 400, 300), 918_000)),
    ]);
    let server = summary.server.unwrap();
    assert_eq!(
        (server.counters.accepted, server.counters.open, server.open_most),
        (1000, 400, 1000)
    );
    assert_eq!(server.counters.registry_mailbox_most, 10);
    assert_eq!(server.cpu_us_per_connection, Some(16.0));
    assert_eq!(server.cpu_us_per_message, Some(10.0));
    assert_eq!(server.rss_bytes_per_connection, Some(200.0));
    assert_eq!(server.cpu_cores_used, Some(0.009));
}

#[test]
fn a_restarted_server_goes_on_counting_from_zero() {
    let accepted = |accepted| ServerCounters { accepted, ..Default::default() };
    let line = |s: ServerSnapshot| Interval { server: Some(s), ..Default::default() };
    let summary = run(vec![
        line(server(7, accepted(100), 50_000)),
        line(server(7, accepted(150), 51_000)),
        line(server(8, accepted(30), 600)),
        line(server(8, accepted(70), 1_400)),
    ]);
    let server = summary.server.unwrap();
    assert_eq!(server.counters.accepted, 50 + 70);
    assert_eq!(server.cpu_us_per_connection, Some(20.0));
}

#[test]
fn the_machine_is_measured_between_the_first_and_the_last_line() {
    let line = |busy, idle, stolen, connects_ok| Interval {
        machine: Some(MachineUse {
            cpus: 2,
            cpu_busy_us: busy,
            cpu_idle_us: idle,
            cpu_stolen_us: stolen,
        }),
        ..of_load(load(LoadCounters { connects_ok, ..Default::default() }, 0, 0))
    };
    let summary = run(vec![line(5_000, 7_000, 100, 0), line(8_000, 13_000, 1_100, 100)]);
    assert_eq!(summary.machine.cpu_busy_share, Some(0.3));
    assert_eq!(summary.machine.cpu_stolen_share, Some(0.1));
    assert_eq!(summary.machine.cpu_us_per_connect, Some(30.0));
    assert_eq!(summary.machine.cpu_us_per_message, None);
}

#[test]
fn the_json_has_the_documented_fields_and_comes_back() {
    let mut file_lines = vec![Interval::default(), of_load(load(LoadCounters::default(), 5, 5))];
    file_lines[1].server = Some(server(1, ServerCounters::default(), 0));
    let summary = run(file_lines);
    let json = serde_json::to_value(&summary).unwrap();
    for path in [
        "/validity/grade",
        "/validity/reasons",
        "/users/connected_most",
        "/connect/ok",
        "/connect/failed",
        "/connect/intended",
        "/connect/rate_most",
        "/connect/latency_us/p999",
        "/message/intended_rate",
        "/message/latency_us/max",
        "/errors",
        "/arrivals/ratio",
        "/generator/cpu_us_per_connect",
        "/generator/rss_bytes_per_user",
        "/generator/lag_us/p99",
        "/machine/cpu_busy_share",
        "/machine/cpu_stolen_share",
        "/server/accepted",
        "/server/rss_bytes_per_connection",
        "/duration_s",
    ] {
        assert!(json.pointer(path).is_some(), "{path} in {json:#}");
    }
    // JSON has no histograms.
    let without_histograms = Summary { latencies: Default::default(), ..summary };
    assert_eq!(serde_json::from_value::<Summary>(json).unwrap(), without_histograms);
}

/// Returns a run of 2,000 answers that arrived after 1 ms, were read after 70 ms, and were
/// requested up to `lag_us` late.
fn read_late(lag_us: u64, by_own_clock: u64) -> Summary {
    let counters = LoadCounters { messages_answered: 2_000, ..LoadCounters::default() };
    let mut late = load(counters, 0, 0);
    late.times[Operation::Message].record_n(70_000, 2_000);
    late.arrival[Operation::Message].record_n(1_000, 2_000);
    late.arrival.by_own_clock = by_own_clock;
    late.lag.record_n(lag_us, 2_000);
    run(vec![of_load(LoadInterval::default()), of_load(late)])
}

#[test]
fn a_latency_ends_when_the_answer_arrived_and_both_clocks_are_shown() {
    let summary = read_late(50, 0);
    let message = &summary.message;
    assert!(message.latency_us.p99.abs_diff(1_000) < 20, "{message:?}");
    assert!(message.judged_us.p99.abs_diff(1_000) < 20, "{message:?}");
    assert!(message.seen_us.p99.abs_diff(70_000) < 1_000, "{message:?}");
    assert_eq!((message.latency_us.count, message.judged_us.count), (2_000, 2_000));
    assert_eq!(summary.generator.by_kernels_clock, Some(1.0));
    assert_eq!(summary.validity.grade, Grade::Valid);
    let text = crate::render::render_details(&summary, &[], None);
    assert!(text.contains("as seen") && text.contains("70."), "{text}");
}

#[test]
fn arrivals_of_a_part_of_the_answers_stand_for_no_other_answers() {
    let mut load = load(LoadCounters::default(), 0, 0);
    load.times[Operation::Message].record_n(2_000, 1_999);
    load.times[Operation::Message].record_us(5_000_000);
    load.arrival[Operation::Message].record_n(1_000, 1_999);
    assert!(!load.clocks_agree());
    let summary = run(vec![of_load(LoadInterval::default()), of_load(load)]);
    let latency = summary.message.latency_us;
    assert_eq!((latency.count, latency.p50), (2_000, summary.message.seen_us.p50));
    assert_eq!(latency.max, summary.message.seen_us.max);
    assert_eq!(summary.generator.by_kernels_clock, Some(0.0));
}

#[test]
fn a_late_generator_is_judged_by_its_part_only_where_arrivals_are_known() {
    let by_part = |summary: Summary| summary.validity.reasons.concat().contains(" of the p99 of ");
    assert!(by_part(read_late(20_000, 0)));
    assert!(by_part(read_late(20_000, 20)), "of hardly any it is not known");
    let mostly_unknown = read_late(20_000, 500);
    assert_eq!(mostly_unknown.validity.grade, Grade::Degraded);
    let text = crate::render::render_details(&mostly_unknown, &[], None);
    assert!(text.contains("The kernel timed the arrival of 75.0 % of the answers."), "{text}");
    assert!(!by_part(mostly_unknown));
}

#[test]
fn a_server_that_is_not_throngs_has_the_costs_of_its_process() {
    let second = |n: u64, cpu_us: u64| {
        let connects_ok = 1_000 * n;
        let counters = LoadCounters { connects_ok, connected: connects_ok, ..Default::default() };
        let mut interval = of_load(load(counters, 0, 0));
        interval.kernel.set(ProcessMetric::CPU_US.server, cpu_us as i64);
        interval.kernel.set(ProcessMetric::RSS_BYTES.server, 10_000_000 + 2_000_000 * n as i64);
        interval
    };
    let summary = run(vec![second(0, 70_000), second(1, 90_000), second(2, 110_000)]);
    let costs = summary.server_costs().unwrap();
    assert_eq!(costs.cpu_us_per_connection, Some(20.0));
    assert_eq!(costs.rss_bytes_per_connection, Some(2_000.0));
    assert_eq!(costs.cpu_us_per_message, None);
    assert_eq!(summary.server, None);
    // Its successor counts anew.
    let restarted = run(vec![second(0, 70_000), second(1, 90_000), second(2, 10)]);
    assert_eq!(restarted.server_costs().unwrap().cpu_us_per_connection, Some(20.0));
}
