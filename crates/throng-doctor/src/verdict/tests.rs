use throng_measure::{AnswerGap, CueWaits, ErrorKind, Metric, Operation, ProcessMetric};
use throng_report::Threshold;

use super::*;
use crate::diagnose;
use crate::rules::fixture::Run;

#[test]
fn turns_that_did_not_begin_are_a_plan_that_was_not_met() {
    let turns = |started| {
        Run::quiet()
            .loaded(move |load, second| {
                load.counters.turns_intended = 100 * second;
                load.counters.turns_started = started * second;
            })
            .verdict()
    };
    assert!(turns(99).starts_with("Nothing stopped it: the plan was met"), "{}", turns(99));
    let expected = "users kept only 400 of 1k due turns of `every` (40.0 %)";
    assert!(turns(40).starts_with("Slowed down on the"), "{}", turns(40));
    assert!(turns(40).contains(expected), "{}", turns(40));
}

#[test]
fn the_verdict_names_cause_side_load_and_remedy() {
    let run = Run::quiet()
        .with(Metric::LISTENER_BACKLOG, 128)
        .growing(Metric::TCPEXT_LISTEN_OVERFLOWS, 0, 40, 2)
        .loaded(|load, second| {
            load.connect_failed.add(ErrorKind::ConnectTimeout, u64::from(second > 8))
        });
    let verdict = run.verdict();
    let begin = "Failed in part on the server side at 600 connections, 200/s connects and 1k/s \
                 messages: the server's accept queue, which holds 129, overflowed 320 times; \
                 do: raise the backlog, 128 now, that the server passes to listen(2) to 65535";
    assert!(verdict.starts_with(begin), "{verdict}");
    let stopped = run.loaded(|load, _| load.counters.connected = 600);
    assert!(stopped.verdict().starts_with("Stopped on the server side"));
}

#[test]
fn a_plan_that_was_met_is_told_with_its_headroom() {
    assert_eq!(
        Run::quiet().verdict(),
        "Nothing stopped it: the plan was met with 85 % headroom (the CPUs of this machine \
         were busy for 15 % at most)."
    );
}

#[test]
fn a_target_that_stood_still_at_the_end_is_not_praised() {
    let waiting = |us: u64| {
        let run = Run::quiet().loaded(|load, second| {
            let ends = u64::from(second >= 9);
            load.counters.users_waiting = 400 * ends;
            load.counters.users_waiting_us_most = us * ends;
        });
        run.verdict()
    };
    let verdict = waiting(4_900_000);
    let begin = "Slowed down on the server side at 1k connections and 1k/s messages: the \
                 server was slow: 400 users were waiting for an answer when the run ended, one of \
                 them for 4.90 s";
    assert!(verdict.starts_with(begin), "{verdict}");
    assert!(waiting(300_000).starts_with("Nothing stopped it"), "{}", waiting(300_000));
}

#[test]
fn a_run_that_is_not_to_be_believed_is_not_praised() {
    let late = Run::quiet().loaded(|load, second| {
        load.counters.users_intended = 260 * second.min(5);
    });
    let verdict = late.verdict();
    assert!(
        verdict.starts_with(
            "No known cause stopped it, but the run is invalid: the generator did not start"
        ),
        "{verdict}"
    );
    let failed = Run::quiet().loaded(|load, second| {
        load.errors.add(ErrorKind::SendFailed, 3 * second);
        load.errors.add(ErrorKind::NotJoined, second);
    });
    let verdict = failed.verdict();
    assert!(
        verdict
            .starts_with("No cause was found for its 40 errors, 30 of them send_failed (the CPUs"),
        "{verdict}"
    );
}

#[test]
fn what_ended_early_has_not_met_its_plan() {
    let (history, mut summary) = Run::quiet().whole();
    let mut check = |end, begin: &str| {
        summary.run.end = Some(end);
        let verdict = diagnose(&history, &summary, &[]).verdict;
        assert!(verdict.starts_with(begin), "{verdict}");
    };
    check(RunEndReason::Finished, "Nothing stopped it: the plan was met with 85 % headroom");
    check(
        RunEndReason::Interrupted,
        "Nothing stopped it before it was interrupted, with 85 % headroom",
    );
    check(
        RunEndReason::Failed,
        "No known cause stopped it, but the generator failed before the run ended.",
    );
    check(RunEndReason::TargetLost, "No known cause stopped it, but the target was lost");
}

#[test]
fn unanswered_connects_are_reported() {
    let hanging = |each_second: u64| {
        Run::quiet()
            .loaded(|load, second| {
                let hang = each_second * second.min(5);
                load.counters.connects_ok -= hang;
                load.counters.connected -= hang;
            })
            .verdict()
    };
    let met = "Nothing stopped it: the plan was met";
    assert!(hanging(10).starts_with(met), "under way: {}", hanging(10));
    let begin = "No known cause stopped it, but";
    let verdict = hanging(20);
    assert!(
        verdict.starts_with(&format!("{begin} 100 of its 1k connects had no answer")),
        "{verdict}"
    );
    let verdict = hanging(200);
    assert!(
        verdict.starts_with(&format!("{begin} 1k of its 1k connects had no answer")),
        "{verdict}"
    );
}

#[test]
fn one_error_in_very_many_is_no_reason_to_say_nothing_else() {
    let failing = |errors: u64, messages: u64| {
        Run::quiet()
            .loaded(|load, second| {
                load.counters.messages_sent = messages * second;
                load.counters.messages_answered = messages * second;
                load.errors.add(ErrorKind::SendFailed, if second == 10 { errors } else { 0 });
            })
            .verdict()
    };
    let verdict = failing(9, 1_000);
    assert!(
        verdict.starts_with(
            "The plan was met but for 9 errors (send_failed) in 11k attempts, with 85 % \
             headroom"
        ),
        "{verdict}"
    );
    let verdict = failing(11, 1_000);
    assert!(verdict.starts_with("No cause was found for its 11 errors, 11 of them"), "{verdict}");
    let verdict = failing(1, 0);
    assert!(verdict.starts_with("No cause was found for its only error, send_failed"), "{verdict}");
}

/// Returns the verdict of a run that is judged by thresholds.
fn judged(run: &Run, thresholds: &[&str]) -> String {
    judged_with_cause(run, thresholds).0
}

/// Returns the verdict of a run that is judged by thresholds, and the id of its cause.
fn judged_with_cause(run: &Run, thresholds: &[&str]) -> (String, Option<String>) {
    let (history, summary) = run.whole();
    let judge = |text: &&str| text.parse::<Threshold>().unwrap().judge(&summary);
    let judgements: Vec<_> = thresholds.iter().map(judge).collect();
    let found = diagnose(&history, &summary, &judgements);
    (found.verdict, found.cause)
}

#[test]
fn a_missed_threshold_comes_first_with_its_cause() {
    let slow =
        Run::quiet().growing(ProcessMetric::CPU_US.server, 0, 20_000, 0).loaded(|load, _| {
            load.times[Operation::Message].clear();
            load.times[Operation::Message].record_n(51_200, 1_000);
        });
    assert!(slow.verdict().starts_with("Nothing stopped it"), "below what a person notices");
    let (verdict, cause) = judged_with_cause(&slow, &["message.p99 < 10ms", "connect.p99 < 1s"]);
    assert_eq!(cause.as_deref(), Some("server_slow"));
    let begin = "Missed: message.p99 51.2 ms, required < 10ms at 200 connections, 200/s connects \
                 and 1k/s messages: the server was slow: messages took 51.2 ms (p99 of \
                 the worst interval) while the server used 0.02 of the 2 CPUs that it \
                 may use; do: find where";
    assert!(verdict.starts_with(begin), "{verdict}");
    let verdict = judged(&slow, &["message.p99 < 10ms", "message.p50 < 1ms", "message.max < 20ms"]);
    assert!(
        verdict.starts_with(
            "Missed: message.p99 51.2 ms, required < 10ms (missed too: message.p50, message.max) at"
        ),
        "{verdict}"
    );
    assert!(judged(&slow, &["message.p99 < 60ms"]).starts_with("Nothing stopped it"));
}

#[test]
fn a_verdict_has_the_cause_the_effect_and_the_remedy_apart() {
    let slow =
        Run::quiet().growing(ProcessMetric::CPU_US.server, 0, 20_000, 0).loaded(|load, _| {
            load.times[Operation::Message].clear();
            load.times[Operation::Message].record_n(51_200, 1_000);
        });
    let (history, summary) = slow.whole();
    let threshold: Threshold = "message.p99 < 10ms".parse().unwrap();
    let found = diagnose(&history, &summary, &[threshold.judge(&summary)]);
    assert!(found.headline.starts_with("The server was slow: messages took 51.2 ms (p99"));
    assert!(found.headline.ends_with('.') && !found.headline.contains("do: "), "{found:#?}");
    assert_eq!(
        found.effect,
        "Missed: message.p99 51.2 ms, required < 10ms at 200 connections, 200/s connects and \
         1k/s messages."
    );
    assert!(found.remedy.starts_with("find where"), "{found:#?}");
    let calm = diagnose(&history, &summary, &[]);
    assert!(calm.headline.starts_with("Nothing stopped it") && calm.headline.ends_with('.'));
    assert!(calm.verdict.starts_with(&calm.headline), "{calm:#?}");
    assert_eq!((&*calm.effect, &*calm.remedy), ("", ""));
}

#[test]
fn a_missed_threshold_is_explained_by_a_finding_of_its_kind() {
    let refusing = |us: u64| {
        Run::quiet().loaded(move |load, second| {
            load.counters.http_started = 100 * second;
            load.counters.http_4xx = 10 * second;
            load.counters.http_2xx = 90 * second;
            load.http_statuses.add("404", 10 * second);
            load.errors.add(ErrorKind::HttpStatus.with(404), 10 * second);
            load.times[Operation::Http].record_n(us, 100);
        })
    };
    let check = |us, thresholds: &[&str], parts: &[&str]| {
        let verdict = judged(&refusing(us), thresholds);
        let mut rest = verdict.as_str();
        for part in parts {
            let at = rest.find(part).unwrap_or_else(|| panic!("{part}: {verdict}"));
            rest = &rest[at + part.len()..];
        }
    };
    // Statuses delay nothing.
    let slow = "the server was slow: HTTP requests took";
    let statuses = "the server answered 100 of 1k HTTP requests with 404";
    let latency = "Missed: http.p99 51.2 ms, required < 10ms";
    check(51_200, &["http.p99 < 10ms"], &[latency, slow, "Besides, ", statuses]);
    // The gravest finding explains the second one.
    let both = ["http.p99 < 10ms", "errors < 10"];
    let errors = "Missed: errors 100, required < 10 (missed too: http.p99)";
    check(51_200, &both, &[errors, statuses]);
    // Nothing was slow for long.
    check(200, &["http.p99 < 100us"], &["Missed: http.p99", "http", "Besides, ", statuses]);
    check(200, &["http.2xx >= 950"], &["Missed: http.2xx 900, required >= 950", statuses]);
}

#[test]
fn late_answers_do_not_explain_errors_but_given_up_waits() {
    let failing = |kind: &'static str| {
        let run = Run::quiet().loaded(|load, second| {
            load.times[Operation::Message].clear();
            load.times[Operation::Message].record_n(if second > 0 { 400_000 } else { 0 }, 1_000);
            load.errors.add(kind, 30 * second);
        });
        judged(&run, &["errors < 10"])
    };
    let slow = "the server was slow";
    let verdict = failing(ErrorKind::SendFailed.name());
    assert!(verdict.starts_with("Missed: errors 300, required < 10; no cause"), "{verdict}");
    assert!(verdict.contains(&format!("Besides, {slow}")), "{verdict}");
    let verdict = failing(ErrorKind::ExpectTimeout.name());
    assert!(verdict.starts_with("Missed: errors 300, required < 10 at"), "{verdict}");
    assert!(verdict.contains(slow) && !verdict.contains("Besides"), "{verdict}");
}

/// Returns a run of a generator that was late, in which the server closed `closed` connections and
/// `given_up` users gave up waiting.
fn late_and_failing(closed: u64, given_up: u64) -> Run {
    Run::quiet().loaded(move |load, second| {
        load.lag.record_n(12_500, 900);
        load.errors.add(ErrorKind::ClosedByPeer, closed * second / 10);
        load.errors.add(ErrorKind::ExpectTimeout, given_up * second / 10);
    })
}

#[test]
fn the_generators_lag_explains_no_connection_that_the_server_closed() {
    let closes = "the server closed 1 of 1k connections early";
    let late = "the generator was late by 12.5 ms";
    let one = judged(&late_and_failing(1, 0), &["errors == 0"]);
    assert!(one.starts_with("Missed: errors 1, required == 0 at"), "{one}");
    let cause = one.split_once(": the server closed").expect("the cause").1;
    assert!(cause.starts_with(" 1 of 1k connections early"), "{one}");
    // A latency is another matter.
    let latency = judged(&late_and_failing(1, 0), &["message.p99 < 100us"]);
    assert!(latency.starts_with("Missed: message.p99"), "{latency}");
    assert!(latency.contains(late) && !latency.contains(closes), "{latency}");
    // Without a threshold on errors, one close in a thousand says nothing.
    assert!(!late_and_failing(1, 0).verdict().contains(closes));
}

#[test]
fn delays_explain_errors_that_are_mostly_waits_given_up() {
    let is_told = |closed, given_up, threshold: &str| {
        let verdict = judged(&late_and_failing(closed, given_up), &[threshold]);
        let missed = verdict.split(" Besides,").next().unwrap();
        missed.contains("the generator was late")
    };
    assert!(is_told(0, 4, "errors == 0"));
    assert!(is_told(4, 4, "errors.expect_timeout == 0"));
    assert!(!is_told(4, 2, "errors == 0"));
    assert!(!is_told(2, 4, "errors.closed_by_peer == 0"));
}

#[test]
fn errors_of_one_kind_are_not_explained_by_those_of_another() {
    let run = Run::quiet().loaded(|load, second| {
        load.errors.add(ErrorKind::ClosedByPeer, 40 * second);
        load.errors.add(ErrorKind::SendFailed, second);
    });
    let closed = "the server closed 400 of 1k connections early";
    let verdict = judged(&run, &["errors.send_failed == 0"]);
    let begin = "Missed: errors.send_failed 10, required == 0; no cause was found";
    assert!(verdict.starts_with(begin), "{verdict}");
    assert!(verdict.contains(&format!("Besides, {closed}")), "{verdict}");
    let verdict = judged(&run, &["errors.send_failed == 0", "errors.closed_by_peer < 9"]);
    let begin = "Missed: errors.closed_by_peer 400, required < 9 (missed too: errors.send_failed)";
    assert!(verdict.starts_with(begin) && verdict.contains(closed), "{verdict}");
}

#[test]
fn a_missed_threshold_without_a_cause_says_so() {
    let quiet = Run::quiet();
    assert_eq!(
        judged(&quiet, &["message.rate_mean > 5000/s"]),
        "Missed: message.rate_mean 1k/s, required > 5000/s; no cause was found (the CPUs of this \
         machine were busy for 15 % at most)."
    );
    let verdict = judged(&quiet, &["push.p99 < 1s"]);
    assert!(
        verdict.starts_with("Missed: push.p99 could not be measured, required < 1s; no cause"),
        "{verdict}"
    );
    let failing =
        Run::quiet().loaded(|load, second| load.errors.add(ErrorKind::NotJoined, second / 10));
    assert!(
        failing
            .verdict()
            .starts_with("The plan was met but for 1 error (not_joined) in 11k attempts")
    );
    let (verdict, cause) = judged_with_cause(&failing, &["errors == 0"]);
    assert!(
        verdict.starts_with("Missed: errors 1, required == 0; no cause was found"),
        "{verdict}"
    );
    assert_eq!(cause, None);
}

#[test]
fn a_machine_without_cpu_time_is_the_likely_cause() {
    let full = Run::quiet().changed(|interval, second| {
        let machine = interval.machine.as_mut().unwrap();
        let busy_us = 300_000 * second + if second > 5 { 1_680_000 } else { 0 };
        (machine.cpu_busy_us, machine.cpu_idle_us) = (busy_us, 2_000_000 * second - busy_us);
        interval.load.as_mut().unwrap().process.cpu_user_us = busy_us;
    });
    assert_eq!(
        judged(&full, &["message.rate_mean > 5000/s"]),
        "Missed: message.rate_mean 1k/s, required > 5000/s; most likely for lack of CPU time: the \
         CPUs of this machine were busy for 99 % at most; do: run it with less load, or on more \
         CPUs."
    );
}

#[test]
fn a_second_without_any_answer_is_reported() {
    let run = Run::quiet().loaded(|load, second| {
        if second == 6 {
            // The generator was late too, so that no rule names a culprit.
            load.lag.record_n(1_200_000, 1);
            load.answer_gap = Some(AnswerGap { from_ms: 4_100, to_ms: 5_400 });
        }
    });
    let verdict = run.verdict();
    assert!(
        verdict.starts_with(
            "No known cause stopped it, but no user got an answer for 1.30 s, from 4.1 s on"
        ),
        "{verdict}"
    );
}

#[test]
fn what_the_generators_lag_cannot_explain_is_told_beside_it() {
    let late = |run: Run| run.loaded(|load, _| load.lag.record_n(34_000, 900));
    let leak = late(Run::quiet().changed(|interval, second| {
        let bytes = 100_000_000 + 8_388_608 * second as i64;
        interval.kernel.set(ProcessMetric::RSS_BYTES.server, bytes);
    }));
    leak.check_all(&["generator_saturated", "memory_grows"]);
    let verdict = leak.verdict();
    assert!(verdict.starts_with("Slowed down on the client side"), "{verdict}");
    assert!(verdict.contains(" Next: the server's memory grew by 8.00 MiB a second"), "{verdict}");
    let barrier = late(Run::quiet().loaded(|load, second| {
        load.counters.cue_waits = second;
        let waits = CueWaits { name: "go".to_owned(), waits: second, ..CueWaits::default() };
        load.cues = vec![CueWaits { users: Some(20), ..waits }];
    }));
    barrier.check_all(&["cues_unopened", "generator_saturated"]);
    assert!(barrier.verdict().contains(": the barrier `go`"), "{}", barrier.verdict());
    // A generator that is far too late measures nothing.
    let void = barrier.loaded(|load, _| load.lag.record_n(250_000, 900));
    void.check_all(&["generator_saturated", "cues_unopened"]);
}

#[test]
fn what_most_users_got_comes_before_a_missed_threshold_on_the_others() {
    let refusing = |refused: u64| {
        let run = Run::quiet().loaded(move |load, second| {
            let counters = &mut load.counters;
            (counters.messages_sent, counters.messages_answered) = (0, 0);
            load.times[Operation::Message].clear();
            counters.http_started = 1_000 * second;
            counters.http_5xx = refused * second;
            counters.http_2xx = (1_000 - refused) * second;
            load.http_statuses.add("503", refused * second);
            load.http_statuses.add("200", (1_000 - refused) * second);
            load.errors.add(ErrorKind::HttpStatus.with(503), refused * second);
            load.times[Operation::Http].record_n(300_000, 400);
        });
        judged(&run, &["http.p99 < 100ms"])
    };
    let statuses = "the server answered 8k of 10k HTTP requests with 503";
    let verdict = refusing(800);
    let begin = "Stopped on the server side at 200 connections, 200/s connects and";
    assert!(verdict.starts_with(begin) && verdict.contains(statuses), "{verdict}");
    let [first, second] = [statuses, "Missed: http.p99"].map(|part| verdict.find(part).unwrap());
    assert!(first < second, "{verdict}");
    assert!(!verdict.contains("Besides"), "{verdict}");
    assert!(refusing(100).starts_with("Missed: http.p99"), "{}", refusing(100));
}

#[test]
fn a_second_remark_does_not_begin_as_the_first() {
    let run = Run::quiet()
        .growing(ProcessMetric::CPU_US.server, 0, 20_000, 0)
        .loaded(|load, second| {
            load.counters.http_started = 100 * second;
            load.counters.http_4xx = 10 * second;
            load.http_statuses.add("404", 10 * second);
            load.errors.add(ErrorKind::HttpStatus.with(404), 10 * second);
        })
        .changed(|interval, second| {
            let machine = interval.machine.as_mut().unwrap();
            (machine.cpu_busy_us, machine.cpu_idle_us) = (2_000_000 * second, 0);
        });
    let verdict = judged(&run, &["message.p99 < 100us"]);
    assert_eq!(verdict.matches("Besides,").count(), 1, "{verdict}");
    assert_eq!(verdict.matches("Also,").count(), 1, "{verdict}");
}

#[test]
fn a_run_in_which_nothing_failed_has_not_failed_in_part() {
    let late = Run::quiet().loaded(|load, second| {
        load.lag.record_n(250_000, 900);
        load.counters.messages_sent = 1_000 * second;
    });
    let verdict = late.verdict();
    assert!(verdict.starts_with("Disturbed on the client side at"), "{verdict}");
    let failing = late.loaded(|load, second| load.errors.add(ErrorKind::SendFailed, second));
    assert!(failing.verdict().starts_with("Failed in part on the"), "{}", failing.verdict());
}
