use throng_measure::runfile::{Ceiling, RunEnd, RunHeader};
use throng_measure::validity::Grade;
use throng_measure::{CueWaits, Interval, LoadCounters, LoadInterval, RunEvent, RunEventKind};

use crate::Summary;
use crate::summary::fold::tests::{load, of_load, run, run_of};

use super::*;

#[test]
fn a_barrier_could_still_have_opened_in_a_run_that_was_interrupted() {
    let run_of = |events| {
        let mut waits = load(LoadCounters::default(), 0, 0);
        waits.cues =
            vec![CueWaits { name: "go".into(), users: Some(2), waits: 1, ..Default::default() }];
        run(vec![
            of_load(load(LoadCounters::default(), 0, 0)),
            Interval { events, ..of_load(waits) },
        ])
    };
    let whole = run_of(Vec::new()).validity.reasons.join("; ");
    assert!(whole.contains("never opened"), "{whole}");
    let interrupted = RunEventKind::Interrupted { by: "Ctrl-C".into() };
    let ended = run_of(vec![RunEvent::new(900, interrupted)]).validity.reasons.join("; ");
    assert!(!ended.contains("never opened"), "{ended}");
}

/// Returns the share of the ceiling, and the grade, of a run that made 8,000 connects and 30,000
/// messages in its busiest second.
fn measured_against(ceiling: Option<Ceiling>) -> (Option<f64>, Grade) {
    let at = |connects_ok, messages: u64| {
        let counters = LoadCounters {
            connects_ok,
            messages_sent: messages,
            messages_answered: messages / 2,
            pushes_ok: messages / 2,
            ..Default::default()
        };
        of_load(load(counters, 0, 0))
    };
    let lines = vec![at(0, 0), at(8_000, 30_000), at(9_000, 40_000), at(15_000, 50_000)];
    let summary = run_of(RunHeader { ceiling, ..RunHeader::default() }, lines);
    (summary.generator.ceiling_share, summary.validity.grade)
}

#[test]
fn connects_and_messages_share_one_ceiling() {
    let of = |connects_per_s, messages_per_s| {
        measured_against(Some(Ceiling { connects_per_s, messages_per_s, ..Default::default() }))
    };
    assert_eq!(measured_against(None), (None, Grade::Valid));
    assert_eq!(of(None, None), (None, Grade::Valid));
    assert_eq!(of(Some(40_000.0), None), (Some(0.2), Grade::Valid));
    assert_eq!(of(None, Some(100_000.0)), (Some(0.3), Grade::Valid));
    assert_eq!(of(Some(20_000.0), Some(100_000.0)), (Some(0.7), Grade::Valid));
    assert_eq!(of(Some(16_000.0), Some(80_000.0)), (Some(0.875), Grade::Degraded));
    assert_eq!(of(Some(0.0), Some(100_000.0)), (Some(0.3), Grade::Valid));
}

#[test]
fn full_and_resumed_handshakes_take_different_shares_of_one_ceiling() {
    let share = |over_tls, resumed_per_s| {
        let at = |second: u64| {
            let counters = LoadCounters {
                connects_ok: 1_000 * second,
                tls_ok: 1_000 * second,
                tls_resumed: 600 * second,
                ..Default::default()
            };
            of_load(load(counters, 0, 0))
        };
        let connects_per_s = Some(2_000.0);
        let ceiling = Ceiling { over_tls, connects_per_s, resumed_per_s, ..Default::default() };
        let header = RunHeader { ceiling: Some(ceiling), ..RunHeader::default() };
        run_of(header, vec![at(0), at(1), at(2)]).generator.ceiling_share
    };
    assert_eq!(share(true, Some(6_000.0)), Some(0.3), "400 of 2,000, and 600 of 6,000");
    assert_eq!(share(true, None), Some(0.5), "no rate of resumed ones is known");
    assert_eq!(share(false, None), Some(0.5), "of plain connects");
}

#[test]
fn a_generator_that_hears_far_more_than_it_asks_for_has_no_share_of_its_ceiling() {
    let share = |received: u64| {
        let at = |n: u64| {
            let counters = LoadCounters {
                messages_answered: 20 * n,
                messages_received: received * n,
                ..Default::default()
            };
            of_load(load(counters, 0, 0))
        };
        let ceiling = Some(Ceiling { messages_per_s: Some(1_000.0), ..Default::default() });
        let summary =
            run_of(RunHeader { ceiling, ..RunHeader::default() }, vec![at(0), at(1), at(2)]);
        summary.generator.ceiling_share
    };
    assert_eq!(share(20), Some(0.02));
    assert_eq!(share(200_000), None);
}

/// Returns a second in which 100 turns were due and 80 began, with this lag.
fn eighty_of_a_hundred_turns(lag_us: u64) -> Summary {
    let counters = LoadCounters { turns_intended: 100, turns_started: 80, ..Default::default() };
    let mut second = load(counters, 0, 0);
    second.lag.record_us(lag_us);
    run(vec![Interval::default(), of_load(second)])
}

#[test]
fn turns_that_wait_for_a_slow_target_do_not_degrade_the_run() {
    assert_eq!(eighty_of_a_hundred_turns(1_000).validity.grade, Grade::Valid);
}

#[test]
fn turns_that_a_late_generator_missed_invalidate_the_run() {
    let validity = eighty_of_a_hundred_turns(50_000).validity;
    assert_eq!(validity.grade, Grade::Invalid);
    assert!(validity.reasons[0].contains("20 of 100 turns"), "{validity:?}");
}

#[test]
fn exhausted_ports_degrade_the_run_from_counters_or_events() {
    let mut counted = load(LoadCounters::default(), 0, 0);
    counted.connect_failed.add("EADDRNOTAVAIL", 4);
    let mut named = load(LoadCounters::default(), 0, 0);
    named.connect_failed.add("EADDRINUSE", 1);
    let event = Interval {
        events: vec![RunEvent::new(5, RunEventKind::PortsExhausted { source: "127.0.0.1".into() })],
        ..of_load(load(LoadCounters::default(), 0, 0))
    };
    for line in [of_load(counted), of_load(named), event] {
        let validity = run(vec![Interval::default(), line]).validity;
        assert_eq!(validity.grade, Grade::Degraded);
        assert!(validity.reasons[0].contains("no free port"), "{validity:?}");
    }
}

#[test]
fn a_file_without_an_end_or_with_torn_lines_is_degraded() {
    let mut fold = SummaryFold::new(&RunHeader::default());
    fold.add(&Interval {
        at_ms: 1000,
        span_ms: 1000,
        ..of_load(load(LoadCounters::default(), 0, 0))
    });
    assert_eq!(fold.finish_read(Some(&RunEnd::default()), 0).validity.grade, Grade::Valid);
    assert_eq!(fold.finish_read(Some(&RunEnd::default()), 1).validity.grade, Grade::Degraded);
    assert_eq!(fold.finish_read(None, 0).validity.grade, Grade::Degraded);
    assert_eq!(fold.finish(None, 0).validity.grade, Grade::Valid, "while the run goes on");
}

#[test]
fn answers_to_other_requests_invalidate_a_run() {
    let counters = LoadCounters {
        messages_answered: 900,
        messages_unasked: 30_000,
        answers_doubtful: 700,
        ..LoadCounters::default()
    };
    let summary = run(vec![of_load(LoadInterval::default()), of_load(load(counters, 0, 0))]);
    assert_eq!(summary.validity.grade, Grade::Invalid);
    let text = crate::render::render_details(&summary, &[], None);
    assert!(text.contains("700 of 900 answers (77.8 %) may belong to another request"), "{text}");
    assert!(text.contains("30k other messages arrived (broadcasts, presence)."), "{text}");
}
