//! `docs/run-file.md` names every field of the run file and of the summary, and none besides.

mod document;
mod events;

use std::collections::BTreeSet;

use serde_json::Value;
use throng_measure::ArrivalLatencies;
use throng_measure::SpokenProtocol;
use throng_measure::runfile::{
    Ceiling, ImportedFrom, RunEnd, RunEndReason, RunHeader, ScenarioSource,
};
use throng_measure::watch::{CounterDelta, WATCH_LINE_BYTES_MAX, WatchEnd};
use throng_measure::{
    AddressConnects, AnswerFault, AnswerGap, ClassCounters, EarlyClose, EndpointFacts,
    ErrorExchange, ErrorKind, ErrorTimes, ExchangeSummary, FollowedAnswers, Histogram, Interval,
    KernelCounters, LEAVING, LatencyStats, LoadInterval, MachineInterval, MachineUse, Metric,
    Operation, OperationCounts, OperationInterval, OperationTimes, Outage, PerOperation,
    ProbeCounters, ProbeReport, ProcessMetric, ProgramUse, RunEvent, RunEventKind, RunMachine,
    ServerSnapshot, StepInterval, Tally, WatchHeader, WatchLine, validity,
};
use throng_report::summary::{
    BroadcastSummary, ClassSummary, CueSummary, LostTime, MEMORY_CONNECTIONS_MIN, OperationSummary,
    RunMachineSummary,
};
use throng_report::{Judgement, Summary};

use document::{ANY, check, document, names};
use events::events;

#[test]
fn every_field_of_the_header_is_documented() {
    // No field is left to `..Default`: a new field does not compile until this test names it.
    let header = RunHeader {
        schema: String::new(),
        id: Some(String::new()),
        started: String::new(),
        throng_version: String::new(),
        command: Vec::new(),
        scenario: ScenarioSource::default(),
        target: String::new(),
        users_planned: 0,
        planned_ms: Some(1),
        capacity: Some(1),
        target_is_here: true,
        server_is_part: true,
        tls_unverified: true,
        tls_resume: Some(1.0),
        ceiling: Some(any_ceiling()),
        machine: [(ANY.to_owned(), String::new())].into(),
        client_facts: Some(any_facts()),
        server_facts: Some(any_facts()),
        imported: Some(any_import()),
        machines: vec![RunMachine {
            capacity: Some(1),
            ceiling: Some(any_ceiling()),
            facts: Some(any_facts()),
            ..RunMachine::default()
        }],
    };
    check("The header", &serde_json::to_value(header).unwrap());
}

#[test]
fn what_was_written_before_is_read_and_written_again_byte_for_byte() {
    // Each has every field, and each field has a value of its own.
    let [line, summary] = [include_str!("kept_interval.json"), include_str!("kept_summary.json")];
    let interval: Interval = serde_json::from_str(line).unwrap();
    assert_eq!(serde_json::to_string(&interval).unwrap(), line.trim_end());
    let read: Summary = serde_json::from_str(summary).unwrap();
    assert_eq!(serde_json::to_string(&read).unwrap(), summary.trim_end());
}

#[test]
fn every_kind_of_error_is_documented() {
    let text = document();
    for kind in ErrorKind::all() {
        // A value may stand behind the name.
        let written = ["`", "_", "."].map(|end| format!("`{kind}{end}"));
        assert!(written.iter().any(|name| text.contains(name)), "`{kind}` is missing");
    }
}

fn any_ceiling() -> Ceiling {
    Ceiling {
        over_tls: true,
        connects_per_s: Some(1.0),
        resumed_per_s: Some(1.0),
        messages_per_s: Some(1.0),
        timer_error_us_p99: Some(1),
        bytes_per_user: Some(1.0),
    }
}

/// Returns a wait for each operation that has waits.
fn any_waits(latency: &Histogram) -> PerOperation<Histogram> {
    let mut waits = PerOperation::default();
    Operation::with_waits().for_each(|operation| waits[operation] = latency.clone());
    waits
}

/// Returns facts without an unknown one.
fn any_facts() -> EndpointFacts {
    let mut facts = EndpointFacts {
        reserved_ports: Some(Vec::new()),
        listen: vec![String::new()],
        backlog_asked: Some(1),
        ..EndpointFacts::default()
    };
    facts.complete_kernel(|_| Some(1));
    facts.complete_process(|_| Some(1));
    facts
}

#[test]
fn every_field_of_an_interval_is_documented() {
    let mut latency = Histogram::new();
    latency.record_us(1);
    let one = latency.clone();
    let load = LoadInterval {
        phase: String::new(),
        paused: true,
        cores: 0,
        cores_silent: 0,
        grown_us: 0,
        counters: Default::default(),
        core: Default::default(),
        errors: any_tally(),
        connect_failed: any_tally(),
        http_statuses: any_tally(),
        times: OperationTimes {
            seen: PerOperation::of(|_| latency.clone()),
            from_send: latency.clone(),
            unanswered: any_waits(&latency),
        },
        probe: ProbeCounters { intended: 1, ..Default::default() },
        probes: vec![ProbeReport::default()],
        arrival: ArrivalLatencies {
            latencies: PerOperation::of(|_| latency.clone()),
            by_own_clock: 1,
        },
        steps: vec![StepInterval {
            name: String::new(),
            ok: 0,
            errors: 0,
            waiting: 0,
            latency: latency.clone(),
            arrival: latency.clone(),
            unanswered: latency.clone(),
        }],
        latency_stats: [(ANY.to_owned(), any_stats())].into(),
        lag: latency,
        answer_gap: Some(AnswerGap::default()),
        outage: Some(Outage {
            lost_ms: Some(0),
            refused_ms: Some(0),
            refused_last_ms: Some(0),
            back_ms: Some(0),
        }),
        early_closes: vec![EarlyClose::default()],
        followed: FollowedAnswers { answers: 1, repeats: 0 },
        addresses: vec![AddressConnects { failed: any_tally(), ..AddressConnects::default() }],
        limits: vec![Default::default()],
        cues: vec![Default::default()],
        error_times: [(ANY.to_owned(), ErrorTimes::default())].into(),
        process: Default::default(),
        cpu_us_per_core: vec![1],
        classes: [(ANY.to_owned(), ClassCounters::default())].into(),
        class_operations: Default::default(),
        machines: vec![MachineInterval {
            lost: true,
            totals: Some(serde_json::json!([])),
            lag_us_p99: Some(1),
            connect_us_p99: Some(1),
            message_us_p99: Some(1),
            busiest_core_permille: Some(1),
            machine: Some(MachineUse::default()),
            troubles: [(ANY.to_owned(), 1)].into(),
            ..MachineInterval::default()
        }],
    };
    let interval = Interval {
        at_ms: 0,
        span_ms: 0,
        load: Some(load),
        server: Some(ServerSnapshot {
            accept_errors: any_tally(),
            tls_errors: any_tally(),
            cpu_us_per_core: vec![1],
            mailbox_per_core: vec![1],
            ..Default::default()
        }),
        machine: Some(MachineUse::default()),
        kernel: any_counters(),
        server_kernel: any_counters(),
        server_machine: Some(MachineUse::default()),
        programs: vec![ProgramUse::default()],
        server_programs: vec![ProgramUse::default()],
        unseen: Some(vec![String::new()]),
        events: vec![RunEvent::new(1, RunEventKind::Unknown)],
    };
    let mut json = serde_json::to_value(interval).unwrap();
    // The names are those of a class and of an operation.
    json["load"]["class_operations"] = serde_json::json!({ ANY: { ANY: OperationInterval {
        counts: OperationCounts { started: 0, ok: 0, failed: 0, waiting: 0, without_answer: 1 },
        latency: one.clone(),
        arrival: one.clone(),
        unanswered: one,
    } } });
    check("An interval", &json);
}

#[test]
fn every_field_of_a_watch_is_documented() {
    let header = WatchHeader {
        schema: String::new(),
        throng_version: String::new(),
        ports: Vec::new(),
        interval_ms: 0,
        boot_id: Some(String::new()),
        net_namespace: Some(String::new()),
        facts: Some(Default::default()),
    };
    let look = WatchLine {
        at_ms: 0,
        span_ms: 0,
        machine: Some(MachineUse::default()),
        kernel: any_counters(),
        process: Some(Default::default()),
        server: Some(ServerSnapshot::default()),
        programs: vec![ProgramUse::default()],
        unseen: vec![String::new()],
    };
    let end = WatchEnd {
        verdict: String::new(),
        looks: 0,
        seconds: 0.0,
        moved: vec![CounterDelta::default()],
        findings: Vec::new(),
    };
    let mut both = serde_json::to_value(header).unwrap();
    let end = serde_json::to_value(end).unwrap();
    both.as_object_mut().unwrap().extend(end.as_object().unwrap().clone());
    let look = serde_json::to_value(look).unwrap();
    for (name, value) in look.as_object().unwrap() {
        // The fields of these are documented with the intervals of a run.
        let is_known = ["machine", "process", "server", "programs"].contains(&name.as_str());
        both[name] = if is_known { Value::Null } else { value.clone() };
    }
    let one_line = document().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(one_line.contains("A line is at most 1 MiB;") && WATCH_LINE_BYTES_MAX == 1 << 20);
    check("The stream of a watch", &both);
}

#[test]
fn every_field_of_the_last_line_is_documented() {
    let end = RunEnd {
        reason: RunEndReason::Finished,
        detail: Some(String::new()),
        lines_lost: 0,
        validity: Default::default(),
    };
    check("The last line", &serde_json::json!({ "end": end }));
}

#[test]
fn every_field_of_the_summary_is_documented() {
    let mut summary = Summary {
        schema: String::new(),
        run: Default::default(),
        duration_s: 0.0,
        paused_s: 0.0,
        validity: Default::default(),
        users: Default::default(),
        connect: Default::default(),
        deflate: Some(Default::default()),
        message: Default::default(),
        plain: PerOperation::of(|of| {
            [Operation::Tls, Operation::Join, Operation::Push].contains(&of).then(Default::default)
        }),
        http: Some(Default::default()),
        heartbeat: Some(Default::default()),
        on_message: Some(Default::default()),
        broadcast: Some(BroadcastSummary {
            probes: vec![ProbeReport::default()],
            ..Default::default()
        }),
        steps: vec![Default::default()],
        errors: any_tally(),
        exchanges: vec![any_exchange()],
        arrivals: Default::default(),
        turns: Some(Default::default()),
        cues: Some(CueSummary { each: vec![Default::default()], ..Default::default() }),
        limits: vec![Default::default()],
        generator: Default::default(),
        machines: vec![RunMachineSummary {
            lost: vec![LostTime::default()],
            ..RunMachineSummary::default()
        }],
        machine: Default::default(),
        server: Some(Default::default()),
        foreign_server: Some(Default::default()),
        classes: [(ANY.to_owned(), ClassCounters::default())].into(),
        class_operations: Default::default(),
        latency_stats: [(ANY.to_owned(), any_stats())].into(),
        latencies: Default::default(),
    };
    summary.run.imported = Some(any_import());
    (summary.run.lines_lost, summary.run.tls_unverified) = (1, true);
    summary.run.tls_resume = Some(1.0);
    summary.generator.ceiling_over_tls = true;
    summary.connect.tls_resumed = 1;
    summary.connect.failed = any_tally();
    let operations = PerOperation::of(|of| (of == Operation::Join).then(OperationSummary::default));
    let of_class = serde_json::to_value(ClassSummary { operations }).unwrap();
    let mut json = serde_json::to_value(summary).unwrap();
    // The names are those of a class and of an operation.
    json["class_operations"] = serde_json::json!({ ANY: { ANY: of_class["join"] } });
    let judgement =
        Judgement { threshold: String::new(), met: true, value: None, measured: String::new() };
    // The command line adds the judgements of the thresholds.
    json["thresholds"] = serde_json::json!([judgement]);
    json["warnings"] = serde_json::json!([{ "line": 1, "title": "", "label": "", "help": null }]);
    json["teardown"] = serde_json::json!({ "ok": true, "error": null });
    check("The summary", &json);
}

#[test]
fn every_event_is_documented_with_its_fields() {
    let document = document();
    for kind in events() {
        let Value::Object(event) = serde_json::to_value(&kind).unwrap() else { panic!("{kind:?}") };
        let name = event["event"].as_str().unwrap();
        let row = document.lines().find(|line| line.starts_with(&format!("| `{name}` | ")));
        let row = row.unwrap_or_else(|| panic!("no row for the event {name}"));
        let named = names(row.split('|').nth(2).unwrap());
        let fields = event.keys().filter(|key| *key != "event").cloned();
        assert_eq!(BTreeSet::from_iter(named), BTreeSet::from_iter(fields), "{name}");
        assert_ne!(kind.to_string(), RunEventKind::Unknown.to_string(), "{name} has no words");
    }
}

#[test]
fn every_metric_is_documented_with_its_kind_and_unit() {
    let document = document();
    let (_, section) = document.split_once("### The kernel's counters").expect("a section");
    let (machine, programs) = section.split_once("#### The two programs").expect("a section");
    let (programs, _) = programs.split_once("\n## ").expect("a section after it");
    let row = |metric: Metric, name: &str| {
        format!("| `{name}` | {} | {} | {} |", metric.kind(), metric.unit(), metric.doc())
            .replace("|  |", "| |")
    };
    let of_program = |metric: ProcessMetric| {
        row(metric.server, metric.server.name().trim_start_matches("process.server."))
    };
    for (text, table) in [
        (machine, Metric::all().map(|metric| row(metric, metric.name())).collect::<Vec<_>>()),
        (programs, ProcessMetric::all().map(of_program).collect()),
    ] {
        let documented: Vec<_> = text.lines().filter(|line| line.starts_with("| `")).collect();
        for row in &table {
            assert!(documented.contains(&row.as_str()), "docs/run-file.md needs this row:\n{row}");
        }
        assert_eq!(documented.len(), table.len(), "docs/run-file.md has rows of no metric");
    }
}

#[test]
fn every_kind_of_error_that_is_counted_is_documented() {
    let document = document();
    let kinds = throng_report::threshold::names();
    for kind in kinds.iter().filter_map(|name| name.strip_prefix("errors.")) {
        // Failed connects have a field of their own.
        assert!(kind == "connect" || document.contains(&format!("`{kind}`")), "{kind}");
    }
}

#[test]
fn constants_are_documented_as_they_are() {
    let document = document();
    assert_eq!(MEMORY_CONNECTIONS_MIN, 1_000);
    let one_line = document.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(one_line.contains("Below 1,000 connections (`MEMORY_CONNECTIONS_MIN`)"));
    assert!(document.contains(&format!("the phase `{LEAVING}`")));
    let rule = |what: &str, degraded: f64, invalid: f64, unit: &str| {
        let row = format!("| {what} | above {degraded} {unit} | above {invalid} {unit} |");
        assert!(document.contains(&row), "{row}");
    };
    let ms = |us: u64| us as f64 / 1000.0;
    rule(
        "generator lag, p99 over the run",
        ms(validity::LAG_DEGRADED_US),
        ms(validity::LAG_INVALID_US),
        "ms",
    );
    rule(
        "users or arrivals that were due and did not start",
        validity::SHORTFALL_DEGRADED * 100.0,
        validity::SHORTFALL_INVALID * 100.0,
        "%",
    );
    let part = format!(
        "such a part of the smallest p99 that is shown | above {} % | above {} % |",
        validity::LAG_PART_DEGRADED * 100.0,
        validity::LAG_PART_INVALID * 100.0
    );
    assert!(document.contains(&part), "{part}");
    rule(
        "answers that [may be another's](scenario.md#an-answer-belongs-to-its-question): \
         `doubtful`",
        validity::DOUBTFUL_DEGRADED * 100.0,
        validity::DOUBTFUL_INVALID * 100.0,
        "%",
    );
    rule(
        "answers without a latency, since they may be late ones: `out_of_step`",
        validity::OUT_OF_STEP_DEGRADED * 100.0,
        validity::OUT_OF_STEP_INVALID * 100.0,
        "%",
    );
    let ceiling = validity::CEILING_SHARE_DEGRADED * 100.0;
    assert!(document.contains(&format!("took | above {ceiling} % | |")));
}

fn any_exchange() -> ExchangeSummary {
    let any = || ANY.to_owned();
    let exchange = ErrorExchange {
        kind: any(),
        class: any(),
        step: any(),
        step_kind: any(),
        line: 1,
        user: Some(0),
        expected: any(),
        got: any(),
        skipped: Some(0),
        answer_part: Some(Box::default()),
        answer_fault: Some(Box::new(AnswerFault {
            field: Some(any()),
            protocol: Some(SpokenProtocol::Tls),
            ..AnswerFault::default()
        })),
        awaited_elsewhere: true,
        came_first: true,
        reader_line: 1,
        close_reason: Some(any()),
    };
    ExchangeSummary { exchange, times: ErrorTimes::default() }
}

fn any_tally() -> Tally {
    Tally([(ANY.to_owned(), 1)].into())
}

fn any_counters() -> KernelCounters {
    serde_json::from_value(serde_json::json!({ ANY: 1 })).unwrap()
}

fn any_import() -> ImportedFrom {
    let (tool, format, file) = (String::new(), String::new(), String::new());
    let latency_stats = [(ANY.to_owned(), any_stats())].into();
    ImportedFrom { tool, version: Some(String::new()), format, file, latency_stats }
}

fn any_stats() -> LatencyStats {
    LatencyStats {
        count: 1,
        mean_us: 1.0,
        deviation_us: Some(1.0),
        min_us: Some(1.0),
        max_us: Some(1.0),
        percentiles_us: [(ANY.to_owned(), 1.0)].into(),
    }
}
