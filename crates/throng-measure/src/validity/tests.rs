//! Each rule with facts that it grades and facts that it does not.

use super::*;

fn sound() -> ValidityFacts {
    ValidityFacts {
        intervals: 10,
        arrivals_intended: 1000,
        arrivals_achieved: 1000,
        ..ValidityFacts::default()
    }
}

fn late(p99: u64) -> LatencySummary {
    LatencySummary { p99, p999: p99, max: p99, count: 100_000, ..Default::default() }
}

/// Facts of a stall of two seconds in ten minutes: 0.33 % of all steps.
fn stalled(latency_us_p999: u64, count: u64, judged: &[&'static str]) -> ValidityFacts {
    let lag_us =
        LatencySummary { p99: 80, p999: 1_400_000, max: 2_000_000, count, ..Default::default() };
    let us = LatencySummary {
        p50: 300,
        p99: 900,
        p999: latency_us_p999,
        max: latency_us_p999.max(2_000_000),
        count,
        ..Default::default()
    };
    let latency = ShownLatency {
        name: "message",
        us,
        judged: judged.iter().map(ToString::to_string).collect(),
        ..ShownLatency::default()
    };
    let lag_most_at_ms = Some(312_400);
    ValidityFacts { lag_us, lag_most_at_ms, latencies: vec![latency], ..sound() }
}

#[test]
fn a_stall_of_the_generator_that_dominates_the_slowest_is_a_reason_with_its_time() {
    check(
        stalled(1_500_000, 600_000, &[]),
        Grade::Degraded,
        "p99.9 and above (message) are the generator's own: it was late by 2.00 s at 312 s",
    );
    check(stalled(30_000_000, 600_000, &[]), Grade::Valid, "");
    // The lag was that of other steps than messages.
    check(stalled(200_000, 600_000, &[]), Grade::Valid, "");
}

#[test]
fn the_slowest_of_a_few_count_where_a_threshold_judges_them() {
    check(stalled(1_500_000, 500, &[]), Grade::Valid, "");
    check(stalled(1_500_000, 500, &["p99"]), Grade::Valid, "");
    check(
        stalled(1_500_000, 500, &["p99", "max"]),
        Grade::Degraded,
        "message.max, which a threshold judges, is the generator's own",
    );
    check(stalled(1_500_000, 500, &["p999"]), Grade::Degraded, "message.p999, which");
}

#[track_caller]
fn check(facts: ValidityFacts, grade: Grade, reason: &str) {
    let validity = Validity::of(&facts);
    assert_eq!(validity.grade, grade, "{validity:?}");
    match reason {
        "" => assert_eq!(validity.reasons, [""; 0]),
        _ => assert!(validity.reasons[0].contains(reason), "{validity:?}"),
    }
}

#[test]
fn a_generator_on_time_is_valid_up_to_the_thresholds() {
    check(sound(), Grade::Valid, "");
    let edge = ValidityFacts { lag_us: late(LAG_DEGRADED_US), arrivals_achieved: 990, ..sound() };
    check(edge, Grade::Valid, "");
}

#[test]
fn lag_degrades_above_ten_and_invalidates_above_a_hundred_milliseconds() {
    check(ValidityFacts { lag_us: late(10_001), ..sound() }, Grade::Degraded, "late by 10.0 ms");
    check(ValidityFacts { lag_us: late(100_000), ..sound() }, Grade::Degraded, "late by 100 ms");
    check(ValidityFacts { lag_us: late(100_001), ..sound() }, Grade::Invalid, "late by 100 ms");
}

/// Facts of a run in which the kernel timed the arrival of answers; `p99_us` is the smallest
/// p99.
fn timed_by_kernel(lag_us: u64, p99_us: u64) -> ValidityFacts {
    let latency = |name, p99| ShownLatency { name, us: late(p99), ..ShownLatency::default() };
    let latencies = vec![latency("message", p99_us), latency("join", 30_000_000)];
    ValidityFacts { lag_us: late(lag_us), arrivals_are_known: true, latencies, ..sound() }
}

#[test]
fn where_arrivals_are_known_lag_counts_for_the_part_that_it_is_of_a_latency() {
    check(timed_by_kernel(15_000, 400_000), Grade::Valid, "");
    let reason = "late by 15.0 ms (p99): up to 38 % of the p99 of message may be its lateness";
    check(timed_by_kernel(15_000, 40_000), Grade::Degraded, reason);
    check(timed_by_kernel(15_000, 16_000), Grade::Degraded, "up to 94 %");
    check(timed_by_kernel(200_000, 5_000_000), Grade::Valid, "");
    check(timed_by_kernel(200_000, 900_000), Grade::Degraded, "up to 22 %");
    check(timed_by_kernel(200_000, 300_000), Grade::Invalid, "up to 67 %");
    let unknown = ValidityFacts { arrivals_are_known: false, ..timed_by_kernel(15_000, 400_000) };
    check(unknown, Grade::Degraded, "late by 15.0 ms (p99)");
    let nothing_shown = ValidityFacts { latencies: Vec::new(), ..timed_by_kernel(15_000, 1) };
    check(nothing_shown, Grade::Degraded, "late by 15.0 ms (p99)");
}

#[test]
fn answers_to_other_requests_degrade_above_one_and_invalidate_above_five_per_cent() {
    let doubtful = |answers_doubtful| ValidityFacts { answers: 1000, answers_doubtful, ..sound() };
    check(doubtful(10), Grade::Valid, "");
    check(
        doubtful(11),
        Grade::Degraded,
        "11 of 1000 answers (1.1 %) may belong to another request",
    );
    check(doubtful(50), Grade::Degraded, "50 of 1000");
    check(doubtful(51), Grade::Invalid, "51 of 1000");
}

#[test]
fn answers_without_a_latency_invalidate_only_if_they_are_most() {
    let late =
        |answers_out_of_step| ValidityFacts { answers: 1000, answers_out_of_step, ..sound() };
    check(late(10), Grade::Valid, "");
    check(late(282), Grade::Degraded, "282 of 1000 answers (28.2 %) have no latency");
    check(late(500), Grade::Degraded, "500 of 1000");
    check(late(501), Grade::Invalid, "501 of 1000");
}

#[test]
fn answers_that_may_be_greetings_are_told_with_the_step_that_takes_a_greeting() {
    let greeted = |answers_after_greeting| ValidityFacts {
        answers: 1000,
        answers_doubtful: 100,
        answers_after_greeting,
        ..sound()
    };
    let begin = "100 of 1000 answers (10.0 %) may be no answers, but what the server says first";
    check(greeted(51), Grade::Invalid, begin);
    check(greeted(50), Grade::Invalid, "100 of 1000 answers (10.0 %) may belong to another");
    let (_, why) = greeted(51).doubtful_answers_grade().unwrap();
    assert!(why.contains("`receive`"), "{why}");
}

#[test]
fn http_answers_that_no_request_asked_for_degrade_above_one_per_cent() {
    let unasked = |http_unasked| ValidityFacts { http_answers: 1000, http_unasked, ..sound() };
    check(unasked(10), Grade::Valid, "");
    check(unasked(11), Grade::Degraded, "11 times in 1000 HTTP answers (1.1 %)");
    check(unasked(2000), Grade::Degraded, "2000 times in 2000 HTTP answers (100.0 %)");
}

#[test]
fn missing_arrivals_degrade_above_one_and_invalidate_above_five_per_cent() {
    check(
        ValidityFacts { arrivals_achieved: 989, ..sound() },
        Grade::Degraded,
        "11 of 1000 arrivals (1.1 %)",
    );
    check(ValidityFacts { arrivals_achieved: 950, ..sound() }, Grade::Degraded, "50 of 1000");
    check(ValidityFacts { arrivals_achieved: 949, ..sound() }, Grade::Invalid, "51 of 1000");
    check(ValidityFacts { arrivals_achieved: 2000, ..sound() }, Grade::Valid, "");
}

#[test]
fn turns_that_the_generator_missed_count_as_arrivals_do() {
    let facts = ValidityFacts { turns_intended: 100, turns_missed: 6, ..sound() };
    check(facts, Grade::Invalid, "6 of 100 turns of `every`");
}

#[test]
fn unsent_probes_and_unaccounted_deliveries_are_reasons() {
    let facts = ValidityFacts { probes_intended: 50, probes_sent: 49, ..sound() };
    check(facts, Grade::Degraded, "1 of 50 probes");
    check(
        ValidityFacts { probes_intended: 10, probes_sent: 9, ..sound() },
        Grade::Invalid,
        "1 of 10",
    );
    check(
        ValidityFacts { deliveries_unaccounted: 3, ..sound() },
        Grade::Invalid,
        "3 probe deliveries",
    );
}

#[test]
fn losses_and_exhaustion_degrade() {
    check(ValidityFacts { lines_lost: 2, ..sound() }, Grade::Degraded, "2 lines");
    check(ValidityFacts { ports_exhausted: 1, ..sound() }, Grade::Degraded, "no free port");
    check(ValidityFacts { fds_exhausted: 1, ..sound() }, Grade::Degraded, "no free fd");
    check(
        ValidityFacts { watches_exhausted: 84, ..sound() },
        Grade::Degraded,
        "84 connects found no free epoll watch in the generator",
    );
    check(ValidityFacts { memory_exhausted: 1, ..sound() }, Grade::Degraded, "no memory");
    check(ValidityFacts { end_missing: true, ..sound() }, Grade::Degraded, "killed");
    let cues_unopened = vec!["the barrier `go` never opened".to_owned()];
    check(ValidityFacts { cues_unopened, ..sound() }, Grade::Degraded, "barrier `go`");
}

#[test]
fn a_run_near_the_generators_ceiling_is_degraded_though_nothing_was_late() {
    check(ValidityFacts { ceiling_share: Some(0.2), ..sound() }, Grade::Valid, "");
    check(
        ValidityFacts { ceiling_share: Some(CEILING_SHARE_DEGRADED), ..sound() },
        Grade::Valid,
        "",
    );
    check(ValidityFacts { ceiling_share: Some(0.81), ..sound() }, Grade::Degraded, "used 81 %");
    check(ValidityFacts { ceiling_share: Some(1.2), ..sound() }, Grade::Degraded, "used 120 %");
}

#[test]
fn the_worst_reason_comes_first() {
    let facts = ValidityFacts { lines_lost: 1, arrivals_achieved: 0, ..sound() };
    check(facts, Grade::Invalid, "arrivals");
    check(ValidityFacts::default(), Grade::Invalid, "reported nothing");
}

#[test]
fn a_lost_machine_is_named_with_its_part_and_its_time() {
    let missing =
        |name: &str, percent| MissingMachine { name: name.into(), percent, from_ms: 12_300 };
    let of = |machines: &[MissingMachine]| {
        let machines_missing = machines.to_vec();
        Validity::of(&ValidityFacts { intervals: 1, machines_missing, ..Default::default() })
    };
    let one = of(&[missing("b", 33)]);
    assert_eq!(one.grade, Grade::Degraded);
    assert_eq!(one.reasons, ["the agent b, 33 % of the load, is missing from 12 s on"]);
    assert_eq!(of(&[missing("b", 33), missing("c", 33)]).grade, Grade::Invalid);
}

#[test]
fn answers_that_were_read_late_and_together_are_uncertain() {
    let facts = |arrived_us, share| {
        let [arrived_us, seen_us] = [late(arrived_us), late(11_800)];
        let latency = ShownLatency {
            name: "message",
            us: arrived_us,
            arrived_us,
            seen_us,
            ..Default::default()
        };
        let by_kernels_clock = Some(share);
        ValidityFacts {
            latencies: vec![latency],
            arrivals_are_known: share >= 0.99,
            by_kernels_clock,
            ..sound()
        }
    };
    check(
        facts(5_000, 0.2),
        Grade::Degraded,
        "the generator read answers late, and the kernel timed the arrival of only 20 % of them: \
         the p99 of message may be too large by about 6.80 ms",
    );
    check(facts(5_000, 0.995), Grade::Valid, "");
    check(facts(11_700, 0.2), Grade::Valid, "");
}
