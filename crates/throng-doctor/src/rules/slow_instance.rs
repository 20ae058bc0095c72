//! A constant share of the answers was slow, and all others were fast.

use throng_measure::{Finding, Severity, Side};
use throng_report::render::micros;

use super::{
    Rule, RuleTrait, known_delays, latency_grows, proxy_saturated, server_at_capacity,
    server_stalled,
};
use crate::cpus::whole_percent;
use crate::history::Sample;
use crate::median::median;
use crate::run_view::RunView;
use crate::steady_load::answers;
use crate::two_modes::TwoModes;

pub(super) const RULE: Rule = Rule::new("slow_instance", find)
    .with(&[RuleTrait::ServerFault, RuleTrait::LacksCpu, RuleTrait::OnlyDelays])
    .explains(&["server_slow"]);

/// Looks for two kinds of answers with nothing between them, in the same shares in each interval:
/// as from several instances, one of which is slow. Load, pauses and queues delay answers by
/// anything between nothing and much, and not in all intervals alike.
fn find(run: &RunView<'_>) -> Option<Finding> {
    let asked: Vec<_> =
        run.samples().iter().filter(|sample| answers(sample).1.count >= ANSWERS_MIN).collect();
    let split: Vec<(&Sample, TwoModes)> =
        asked.iter().filter_map(|sample| Some((*sample, sample.answer_modes?))).collect();
    let shares = || split.iter().map(|(_, modes)| modes.share());
    let spread = shares().fold(0.0, f64::max) - shares().fold(1.0, f64::min);
    let others = [&server_stalled::RULE, &server_at_capacity::RULE, &latency_grows::RULE];
    let is_other = || others.iter().any(|rule| rule.find(run).is_some());
    let late: Vec<_> = split.iter().map(|(sample, modes)| (*sample, modes.slow_us)).collect();
    if spread > SPREAD_MOST || is_other() || known_delays::explain(run, &late) {
        return None;
    }
    let (first, _) = split.first()?;
    let all: u64 = asked.iter().map(|sample| answers(sample).1.count).sum();
    let share = split.iter().map(|(_, modes)| modes.slow).sum::<u64>() as f64 / all.max(1) as f64;
    let [fast_us, slow_us] = [|modes: &TwoModes| modes.fast_us, |modes: &TwoModes| modes.slow_us]
        .map(|of| median(split.iter().map(|(_, modes)| of(modes))).unwrap_or(0));
    let is_fixed = split.iter().all(|(_, modes)| modes.is_fixed && is_near(modes.slow_us, slow_us));
    let is_retry = is_fixed && share < RETRY_SHARE_MOST;
    // Where they are rare, some intervals have too few.
    let is_seldom = split.len() * 4 < asked.len() * if is_retry { 2 } else { 3 };
    let is_rare = !is_retry && share < RETRY_SHARE_MOST;
    if split.len() < INTERVALS_MIN || is_seldom || is_rare {
        return None;
    }
    let whose = if proxy_saturated::passes_on(run) {
        "The program that listens opens one more connection for each of a user, as a balancer does."
    } else {
        "The balancer, if there is one, cannot be seen from here."
    };
    let when = match split.len() {
        all if all == asked.len() => "each second".to_owned(),
        some => format!("{some} of {} intervals", asked.len()),
    };
    let (slow, fast) = (micros(slow_us), micros(fast_us));
    let (cause, remedy) = if is_retry {
        (
            "a few wait for a time of fixed length. A time-out after which the server asks again \
             looks so, and so do a few users who are always slow. Hardly any lay between them."
                .to_owned(),
            format!(
                "look in the server for a time-out or wait of {slow} (a database, a resolver, a \
                 service that it calls), and find why so many of its first attempts get no answer; \
                 if the same users are always slow, compare their data with that of others"
            ),
        )
    } else {
        (
            format!(
                "one of several instances or workers is slow, or one kind of request, or the same \
                 users each time. Hardly any lay between them. {whose}"
            ),
            INSTANCE_REMEDY.to_owned(),
        )
    };
    let text = format!(
        "{} answers took {slow}, in {when} alike, and the others {fast} (p50 of each): {cause}",
        show_share(share)
    );
    let finding = Finding::new(RULE.id, Side::Server, text)
        .with_severity(Severity::Slowed)
        .with_confidence(0.75)
        .shown_by("load.message_us", fast_us as f64, slow_us as f64, first.interval.at_ms)
        .remedied_by(remedy);
    Some(finding)
}

/// Reports whether a time is nearly this one.
fn is_near(us: u64, other_us: u64) -> bool {
    us.abs_diff(other_us) <= other_us / FIXED_NEAR_ONE_IN
}

const INSTANCE_REMEDY: &str = "compare the instances behind the address, each by itself \
                               (--target), or the workers of the server, and end the slow one or \
                               take it out of the balancer; if all are alike, give each kind of \
                               request a class of its own in the scenario";

/// Formats a share as one in a small number if it is near to that.
fn show_share(share: f64) -> String {
    let parts = (1.0 / share).round();
    let is_near = (1.0 / parts - share).abs() <= NEAR && (2.0..=12.0).contains(&parts);
    if is_near { format!("One in {parts:.0}") } else { format!("{} of the", whole_percent(share)) }
}

/// The fewest answers in an interval that tell two kinds apart.
const ANSWERS_MIN: u64 = 20;

/// The fewest intervals with two kinds.
const INTERVALS_MIN: usize = 4;

/// The largest difference between the shares of two intervals.
const SPREAD_MOST: f64 = 0.2;

/// The largest share of answers that are tried again: an instance has more of them, as a balancer
/// seldom has so many.
const RETRY_SHARE_MOST: f64 = 1.0 / 12.0;

/// The part of a fixed time, one in so many, by which the medians of intervals differ at most.
const FIXED_NEAR_ONE_IN: u64 = 8;

/// The farthest distance from one in a whole number.
const NEAR: f64 = 0.03;

#[cfg(test)]
mod tests {
    use throng_measure::Operation;

    use super::super::fixture::Run;
    use super::*;

    /// A run with so many slow answers of a thousand in each second.
    fn slow(of_thousand: impl Fn(u64) -> u32) -> Run {
        Run::quiet().growing(throng_measure::ProcessMetric::CPU_US.server, 0, 20_000, 0).loaded(
            move |load, second| {
                load.times[Operation::Message].clear();
                if second > 0 {
                    let slow = of_thousand(second);
                    load.times[Operation::Message].record_n(400_000, slow);
                    load.times[Operation::Message].record_n(900, 1_000 - slow);
                }
            },
        )
    }

    #[test]
    fn a_constant_share_of_slow_answers_is_one_instance_of_several() {
        let found = slow(|second| 320 + 5 * (second as u32 % 5)).speaks(&RULE);
        assert!(
            found.text.starts_with("One in 3 answers took 401 ms, in each second alike")
                || found.text.starts_with("One in 3 answers took 400 ms, in each second alike"),
            "{found}"
        );
        slow(|_| 330).check_all(&["slow_instance", "server_slow"]);
        let found = slow(|_| 400).speaks(&RULE);
        assert!(found.text.starts_with("40 % of the answers took"), "{found}");
    }

    #[test]
    fn a_few_answers_that_all_take_the_same_time_are_tried_again_after_a_time_out() {
        let found = slow(|_| 50).speaks(&RULE);
        assert!(found.text.starts_with("5 % of the answers took 40"), "{found}");
        assert!(found.text.contains("A time-out after which the server asks again"), "{found}");
        assert!(found.remedy.contains("its first attempts get no answer"), "{found}");
        // Those of an instance are more.
        assert!(slow(|_| 200).speaks(&RULE).text.contains("one of several instances"));
    }

    #[test]
    fn answers_to_http_requests_are_of_two_kinds_too() {
        let run = slow(|_| 250).loaded(|load, _| {
            load.times[Operation::Http] = std::mem::take(&mut load.times[Operation::Message]);
            let counters = &mut load.counters;
            (counters.http_started, counters.messages_sent) = (counters.messages_sent, 0);
            (counters.http_ok, counters.messages_answered) = (counters.messages_answered, 0);
        });
        let found = run.speaks(&RULE);
        assert!(found.text.starts_with("One in 4 answers took 40"), "{found}");
    }

    #[test]
    fn answers_of_one_time_that_are_rare_are_not_in_every_interval() {
        let rare = slow(|second| if second % 3 == 0 { 0 } else { 20 });
        let found = rare.speaks(&RULE);
        assert!(found.text.starts_with("1 % of the answers took 40"), "{found}");
        assert!(found.text.contains("in 7 of 10 intervals alike"), "{found}");
    }

    #[test]
    fn turns_that_begin_late_because_of_a_slow_answer_are_not_slow() {
        let run = slow(|_| 250).loaded(|load, second| {
            if second > 0 {
                load.times.from_send.record_n(1_000_000, 50);
                load.times.from_send.record_n(900, 950);
            }
        });
        assert!(run.speaks(&RULE).text.starts_with("5 % of the answers took 1.00 s"));
    }

    #[test]
    fn a_share_that_changes_and_answers_of_one_kind_are_none() {
        slow(|second| if second % 2 == 0 { 500 } else { 100 }).is_silent(&RULE);
        slow(|_| 1_000).is_silent(&RULE);
        slow(|_| 8).is_silent(&RULE);
        slow(|second| if second > 7 { 300 } else { 0 }).is_silent(&RULE);
    }
}
