//! Whether a run went on in spite of errors.

use crate::history::Sample;
use crate::rules::{RuleFinding, RuleTrait};
use crate::run_view::RunView;

/// Reports whether the run went on after what the first finding says. A fault of single users is
/// judged by what the others still did: those that it befalls may be missing to the end.
pub(crate) fn failed_in_part(run: &RunView<'_>, (rule, first): &RuleFinding) -> bool {
    if rule.has(RuleTrait::GoesOn) {
        return went_on(run);
    }
    run.went_on_after(first.began_ms())
}

/// Reports whether the run went on in spite of what failed: less than half of what was attempted
/// failed, and in its last third it still did at least half as much a second as in the third
/// before, which is no longer its ramp.
fn went_on(run: &RunView<'_>) -> bool {
    let done = |sample: &Sample| {
        sample.load().map_or(0, |load| {
            let done = &load.counters;
            let messages = done.messages_sent + done.pushes_sent + load.probe.sent;
            done.connects_ok + messages + done.joins_ok + done.http_ok
        })
    };
    let samples = while_users_begin(run.samples());
    let third = |n: usize| samples.get(samples.len() * n / 3);
    let (Some(first), Some(second), Some(last)) = (third(1), third(2), samples.last()) else {
        return false;
    };
    let per_ms = |from: &Sample, to: &Sample| {
        let ms = to.interval.at_ms.saturating_sub(from.interval.at_ms).max(1);
        done(to).saturating_sub(done(from)) as f64 / ms as f64
    };
    let failed = run.summary.errors.total();
    failed * 2 < run.summary.attempts() && per_ms(second, last) * 2.0 >= per_ms(first, second)
}

/// Returns the samples until the last users of an open model have begun. Afterwards few are left,
/// and most of them finished.
fn while_users_begin(samples: &[Sample]) -> &[Sample] {
    let counters = |sample: &Sample| sample.load().map(|load| load.counters.clone());
    let Some(last) = samples.last().and_then(counters) else { return samples };
    let most = samples.iter().filter_map(|sample| Some(counters(sample)?.users_active)).max();
    let has_few = |active: u64| active.saturating_mul(FEW_ONE_IN) < most.unwrap_or(0);
    let have_failed = last.users_failed.saturating_mul(2) >= last.users_started;
    let is_over = |sample: &Sample| {
        counters(sample).is_some_and(|now| {
            now.users_intended == last.users_intended && has_few(now.users_active)
        })
    };
    match samples.iter().position(is_over) {
        Some(end) if !have_failed => &samples[..end],
        _ => samples,
    }
}

/// The part of the most users at a time, one in so many, below which few are left.
const FEW_ONE_IN: u64 = 4;

#[cfg(test)]
mod tests {
    use crate::rules::fixture::Run;
    use throng_measure::ErrorKind;

    #[test]
    fn the_time_after_the_last_arrivals_says_nothing_of_what_went_on() {
        let arriving = |failed: u64| {
            Run::quiet().loaded(move |load, second| {
                let begun = 1_000 * second.min(6);
                load.counters.users_intended = begun;
                load.counters.users_started = begun;
                load.counters.users_failed = failed * second.min(6);
                load.counters.users_active = if second > 6 { 3 } else { 100 };
                load.counters.messages_sent = begun;
                load.counters.messages_answered = begun - load.counters.users_failed;
                load.errors.add(ErrorKind::ExpectMismatch, load.counters.users_failed);
            })
        };
        let verdict = arriving(46).verdict();
        assert!(verdict.starts_with("Failed in part on the server side"), "{verdict}");
        let verdict = arriving(900).verdict();
        assert!(verdict.starts_with("Stopped on the server side"), "{verdict}");
    }

    #[test]
    fn a_run_that_goes_on_in_spite_of_errors_has_not_stopped() {
        let closing = Run::quiet()
            .loaded(|load, second| load.errors.add(ErrorKind::CloseFrame.with(1011), 40 * second));
        let verdict = closing.verdict();
        let begin = "Failed in part on the server side at 200 connections, 200/s connects and 1k/s \
                     messages: the server closed 400 of 1k connections early with code 1011";
        assert!(verdict.starts_with(begin), "{verdict}");
        let ended = closing.loaded(|load, second| {
            load.counters.messages_sent = 1_000 * second.min(5);
        });
        assert!(ended.verdict().starts_with("Stopped on the server side"));
    }
}
