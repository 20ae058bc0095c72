//! The server takes so much a second, and refuses or drops the rest.

use throng_measure::{ErrorKind, Evidence, Finding, Side};
use throng_report::render::{percent, rate};

use super::lost_answers::{IntervalAnswers, LostAnswers};
use super::{Rule, RuleTrait};
use crate::counted::part_of;
use crate::first_error::{FirstError, cut};
use crate::history::Sample;
use crate::run_view::RunView;

pub(super) const RULE: Rule = Rule::new("rate_limited", find)
    .with(&[RuleTrait::ServerFault, RuleTrait::GoesOn, RuleTrait::DelaysNothing])
    .explains(&["server_slow", "handshakes_refused", "server_closes_early"]);

/// A limit may be told (429) or silent: then only the rate of the answers shows it. It stays the
/// same however much is asked, and below it nothing is lost.
fn find(run: &RunView<'_>) -> Option<Finding> {
    refused(run).or_else(|| dropped(run))
}

/// Returns the finding for handshakes that were refused with 429.
fn refused(run: &RunView<'_>) -> Option<Finding> {
    let growth = run.connect_failures(kind())?;
    let attempts = growth.by() + run.summary.connect_steps_ok();
    if (growth.by() as f64) < attempts as f64 * SHARE_MIN {
        return None;
    }
    let after = FirstError::of(run, kind()).and_then(|first| first.field("retry-after"));
    // Either seconds or a date (RFC 9110 section 10.2.3).
    let unit = after.map_or("", |after| if after.parse::<u64>().is_ok() { " s" } else { "" });
    let after_words = after.map(|after| format!(" (Retry-After: {}{unit})", cut(after)));
    let let_in = let_in(run);
    let text = format!(
        "The server limits connects: it refused {} with 429 Too Many Requests{}{}. They were {} \
         of all.",
        part_of(growth.by(), attempts, "handshake", "handshakes"),
        after_words.unwrap_or_default(),
        match let_in {
            Some(per_second) => format!(" and let in about {}", rate(per_second)),
            None => " and let in none".to_owned(),
        },
        percent(growth.by() as f64 / attempts as f64)
    );
    let slower = match let_in {
        Some(per_second) => format!("connect at most {}", rate(per_second)),
        None => "connect more slowly".to_owned(),
    };
    let remedy = format!(
        "raise the limit for this address, {slower} (a longer ramp), or connect from more \
         addresses (--source), if it counts by address"
    );
    let finding = Finding::new(RULE.id, Side::Server, text).with_evidence([growth.evidence()]);
    Some(finding.remedied_by(remedy))
}

/// Returns the median rate of the connects that succeeded in the intervals with refusals.
fn let_in(run: &RunView<'_>) -> Option<f64> {
    let kind = kind();
    let refused = |sample: &Sample| sample.load().map_or(0, |load| load.connect_failed.get(&kind));
    let ok = |sample: &Sample| {
        let counters = sample.load().map(|load| &load.counters);
        counters.map_or(0, |counters| counters.connects_ok.saturating_sub(counters.http_connects))
    };
    let limited = run.steps().filter(|(before, now)| refused(now) > refused(before));
    let rates = limited.map(|(before, now)| {
        ok(now).saturating_sub(ok(before)) as f64 * 1000.0 / now.interval.span_ms.max(1) as f64
    });
    let mut rates: Vec<_> = rates.filter(|rate| *rate > 0.0).collect();
    rates.sort_by(f64::total_cmp);
    rates.get(rates.len() / 2).copied()
}

/// Returns the finding for messages or requests that were dropped above a rate.
fn dropped(run: &RunView<'_>) -> Option<Finding> {
    let lost = LostAnswers::of(run)?;
    let (per_second, below) = answered_at_most(&lost.intervals)
        .filter(|(per_second, _)| is_limit(&lost.intervals, *per_second, lost.share()))?;
    let (seen_below, confidence) = match below {
        Below::AllAnswered => (" Below that rate it answered all of them.", 0.8),
        Below::NearlyAllAnswered => (" Below that rate it answered nearly all of them.", 0.8),
        Below::NotAsked => ("", 0.6),
    };
    let text = format!(
        "The server answers {} {} at most and drops the rest without a word: {} got no answer, \
         however many were asked.{seen_below}",
        rate(per_second),
        lost.questions.many,
        lost.show()
    );
    let finding = Finding::new(RULE.id, Side::Server, text).with_confidence(confidence);
    let evidence: Evidence = lost.evidence();
    Some(finding.with_evidence([evidence]).remedied_by(format!(
        "raise the server's rate limit, or send less than {} in all; ask its author whether it \
         should refuse what it does not answer",
        rate(per_second)
    )))
}

/// What happened in the intervals with fewer questions than the limit.
enum Below {
    AllAnswered,
    NearlyAllAnswered,
    /// There are none.
    NotAsked,
}

/// Returns the rate of answers above which the rest was lost: it is the same in all intervals with
/// losses, and intervals with fewer questions have hardly any. A limit that takes few questions at
/// once drops some of those that arrive together, in any interval.
fn answered_at_most(intervals: &[IntervalAnswers]) -> Option<(f64, Below)> {
    let median = steady_rate(intervals)?;
    let below = intervals.iter().filter(|interval| {
        let asked = interval.asked_rate();
        asked > median * BELOW_FROM && asked < median * BELOW_TO
    });
    let (asked, lost) = IntervalAnswers::sum(below);
    // Some questions of an interval may be answered in the next one.
    let is_few = lost <= IN_FLIGHT_FEW || lost as f64 <= asked as f64 * LOSS_SHARE;
    let below = match (asked, lost) {
        (0, _) => Below::NotAsked,
        (_, 0) => Below::AllAnswered,
        _ => Below::NearlyAllAnswered,
    };
    is_few.then_some((median, below))
}

/// Returns the rate of answers in the intervals with losses, if most of them have nearly the same.
fn steady_rate(intervals: &[IntervalAnswers]) -> Option<f64> {
    let limited = intervals.iter().filter(|interval| interval.lost_share() > LOSS_SHARE);
    let mut rates: Vec<_> = limited.map(IntervalAnswers::answered_rate).collect();
    rates.sort_by(f64::total_cmp);
    let median = *rates.get(rates.len() / 2).filter(|_| rates.len() >= INTERVALS_MIN)?;
    let near = rates.iter().filter(|rate| (**rate - median).abs() <= median * SPREAD).count();
    (near * 5 >= rates.len() * 4 && median > 0.0).then_some(median)
}

/// Reports whether a limit of this rate describes the answers of all intervals much better than the
/// loss of the same share of them at any rate. Where as much is asked all the time, both describe
/// them: then a limit is a mere guess.
fn is_limit(intervals: &[IntervalAnswers], per_second: f64, lost_share: f64) -> bool {
    let error = |answers: fn(f64, f64) -> f64, by: f64| {
        let errors = intervals.iter().map(|interval| {
            (interval.answered_rate() - answers(interval.asked_rate(), by)).powi(2)
        });
        errors.sum::<f64>()
    };
    let of_limit = error(|asked, most| asked.min(most), per_second);
    let of_share = error(|asked, lost| asked * (1.0 - lost), lost_share);
    let told_from = intervals.len() as f64 * (per_second * TOLD_APART).powi(2);
    of_limit * BETTER_TIMES <= of_share && of_share >= told_from
}

/// Returns the rate of the answers, where it may be a limit as well as what the loss of an even
/// share leaves: as much was asked all the time, and as much was answered. Losses by chance vary
/// more.
pub(super) fn possible_limit(lost: &LostAnswers) -> Option<f64> {
    let per_second = steady_rate(&lost.intervals)?;
    lost.vary_less_than_chance().then_some(per_second)
}

/// Returns the kind of a refusal with 429.
fn kind() -> String {
    ErrorKind::UpgradeStatus.with(STATUS)
}

/// The status of a refusal that tells a limit.
pub(super) const STATUS: &str = "429";

/// The smallest share of refusals that matters.
const SHARE_MIN: f64 = 0.01;

/// The share of questions without an answer above which an interval has losses.
const LOSS_SHARE: f64 = 0.05;

/// So many questions are always few.
const IN_FLIGHT_FEW: u64 = 2;

/// The fewest intervals with losses that show a rate.
const INTERVALS_MIN: usize = 3;

/// How far from their median most of the rates may be.
const SPREAD: f64 = 0.15;

/// How many times smaller the squared distances to a limit must be.
const BETTER_TIMES: f64 = 3.0;

/// The distance, as a share of the limit, from which on the loss of an even share is another
/// description than a limit.
const TOLD_APART: f64 = 0.03;

/// The rates of questions, in shares of the limit, at which nothing may be lost.
const BELOW_FROM: f64 = 0.1;
const BELOW_TO: f64 = 0.9;

#[cfg(test)]
mod tests {
    use throng_measure::{ErrorExchange, Operation, RunEvent, RunEventKind};

    use super::super::fixture::Run;
    use super::*;

    #[test]
    fn a_limit_that_is_told_is_reported_with_its_rate() {
        let run = Run::quiet()
            .loaded(|load, second| {
                load.counters.connects_ok = 20 * second;
                load.connect_failed.add(kind(), 180 * second);
            })
            .changed(|interval, second| {
                if second == 1 {
                    let event = RunEventKind::FirstError(ErrorExchange {
                        kind: kind(),
                        expected: "101 Switching Protocols".to_owned(),
                        got: "`HTTP/1.1 429\\r\\nretry-after: 30`".to_owned(),
                        ..ErrorExchange::default()
                    });
                    interval.events.push(RunEvent::new(1_000, event));
                }
            });
        assert_eq!(
            run.speaks(&RULE).first_sentence(),
            "The server limits connects: it refused 1.8k of 2k handshakes with 429 Too Many \
             Requests (Retry-After: 30 s) and let in about 20/s"
        );
        run.check_all(&["rate_limited"]);
        let all = run.loaded(|load, _| load.counters.connects_ok = 0);
        assert!(all.speaks(&RULE).text.contains("and let in none"), "{}", all.speaks(&RULE));
    }

    /// A run in which more is asked each second, and at most `most` is answered.
    fn dropping(most: u64) -> Run {
        Run::quiet().loaded(move |load, second| {
            let asked = |second: u64| 100 * second;
            load.counters.messages_sent = (1..=second).map(asked).sum();
            let answered: u64 = (1..=second).map(|second| asked(second).min(most)).sum();
            load.counters.messages_answered = answered;
            load.counters.messages_expected = load.counters.messages_sent;
            let lost = load.counters.messages_sent - answered;
            load.errors.add(ErrorKind::ExpectTimeout, lost);
            load.times.unanswered[Operation::Message].record_n(1_000_000, 100);
        })
    }

    #[test]
    fn a_silent_limit_shows_in_the_rate_of_the_answers() {
        let run = dropping(400);
        assert_eq!(
            run.speaks(&RULE).first_sentence(),
            "The server answers 400/s messages at most and drops the rest without a word: 2.1k of \
             5.5k messages (38.2 %) got no answer, however many were asked"
        );
        run.check_all(&["rate_limited"]);
    }

    #[test]
    fn a_silent_limit_of_requests_is_one_too() {
        let run = Run::quiet().loaded(|load, second| {
            let asked = |second: u64| 100 * second;
            let c = &mut load.counters;
            (c.messages_sent, c.messages_answered) = (0, 0);
            c.http_started = (1..=second).map(asked).sum();
            c.http_2xx = (1..=second).map(|second| asked(second).min(400)).sum();
            c.http_ok = c.http_2xx;
            load.errors.add(ErrorKind::HttpTimeout, c.http_started - c.http_2xx);
            load.times[Operation::Message] = Default::default();
            load.times[Operation::Http].record_n(200, 100);
            load.times.unanswered[Operation::Http].record_n(1_000_000, 100);
        });
        assert_eq!(
            run.speaks(&RULE).first_sentence(),
            "The server answers 400/s HTTP requests at most and drops the rest without a word: \
             2.1k of 5.5k HTTP requests (38.2 %) got no answer, however many were asked"
        );
    }

    /// A run in which `asked` is asked in each second, and as much as `answered` says is answered.
    fn asking(
        asked: impl Fn(u64) -> u64 + 'static,
        answered: impl Fn(u64, u64) -> u64 + 'static,
    ) -> Run {
        Run::quiet().loaded(move |load, second| {
            let sum = |of: &dyn Fn(u64) -> u64| (1..=second).map(of).sum::<u64>();
            load.counters.messages_sent = sum(&asked);
            load.counters.messages_expected = load.counters.messages_sent;
            load.counters.messages_answered = sum(&|second| answered(second, asked(second)));
            let lost = load.counters.messages_sent - load.counters.messages_answered;
            load.errors.add(ErrorKind::ExpectTimeout, lost);
            load.times.unanswered[Operation::Message].record_n(400_000, 20);
        })
    }

    #[test]
    fn a_limit_that_is_always_exceeded_shows_where_the_load_varies() {
        let varying = |second: u64| 80 + 10 * (second % 4);
        let run = asking(varying, |_, asked| asked.min(60));
        let found = run.speaks(&RULE);
        assert!(found.text.starts_with("The server answers 60/s messages at most"), "{found}");
        assert!(found.text.ends_with("however many were asked."), "{found}");
        asking(varying, |_, asked| asked * 3 / 4).is_silent(&RULE);
    }

    #[test]
    fn a_limit_that_few_questions_exceed_is_named_too() {
        for (asked, answered, limit, end) in [
            // Some that arrive together are dropped below the limit.
            (
                [0, 14, 34, 53, 64, 65, 68, 69, 71, 72, 78],
                [0, 14, 34, 50, 63, 61, 60, 60, 60, 60, 60],
                "60/s",
                "it answered nearly all of them.",
            ),
            // An answer that arrives in the next interval is not lost.
            (
                [0, 14, 34, 36, 37, 37, 42, 41, 46, 45, 49],
                [0, 13, 34, 30, 30, 30, 30, 30, 30, 30, 30],
                "30/s",
                "",
            ),
        ] {
            let run = asking(
                move |second| asked[second as usize],
                move |second, _| answered[second as usize],
            );
            let found = run.speaks(&RULE);
            let begin = format!("The server answers {limit} messages at most");
            assert!(found.text.starts_with(&begin), "{found}");
            assert!(found.text.ends_with(end), "{found}");
        }
    }

    #[test]
    fn at_a_constant_load_a_limit_may_be_an_even_loss() {
        let run = asking(|_| 80, |_, _| 60);
        run.is_silent(&RULE);
        let found = run.speaks(&super::super::answers_missing::RULE);
        let begin = "The server never answered 200 of 800 messages (25.0 %), spread evenly over";
        assert!(found.first_sentence().starts_with(begin), "{found}");
        let end = ": it takes 60/s at most, or loses a share";
        assert!(found.first_sentence().ends_with(end), "{found}");
        assert!(found.remedy.starts_with("run at half the rate"), "{found}");
        // What is lost by chance varies from second to second.
        let by_chance =
            asking(|_| 80, |second, _| 60 + [0, 5, 2, 7, 1, 4][second as usize % 6] - 3);
        let found = by_chance.speaks(&super::super::answers_missing::RULE);
        assert!(!found.text.contains("at most"), "{found}");
    }

    #[test]
    fn a_twentieth_that_is_lost_of_nearly_as_many_questions_each_second_is_no_limit() {
        // After a ramp, users that wait for lost answers ask a little less now and then.
        let asked = [0, 25, 80, 158, 163, 155, 160, 166, 157, 161, 159];
        let lost = [0, 1, 4, 8, 8, 7, 9, 8, 8, 8, 8];
        let sum = |counts: [u64; 11], second: u64| counts[..=second as usize].iter().sum::<u64>();
        let run = Run::quiet().loaded(|load, second| {
            load.counters.messages_sent = sum(asked, second);
            load.counters.messages_answered = sum(asked, second) - sum(lost, second);
            load.errors.add(ErrorKind::ExpectTimeout, sum(lost, second));
            load.times.unanswered[Operation::Message].record_n(1_000_000, 10);
        });
        run.is_silent(&RULE);
        run.check_all(&["answers_missing"]);
    }

    #[test]
    fn what_is_lost_at_any_rate_is_no_limit() {
        let run = Run::quiet().loaded(|load, second| {
            let asked: u64 = (1..=second).map(|second| 100 * second).sum();
            load.counters.messages_sent = asked;
            load.counters.messages_answered = asked * 9 / 10;
            load.errors.add(ErrorKind::ExpectTimeout, asked / 10);
            load.times.unanswered[Operation::Message].record_n(1_000_000, 100);
        });
        run.is_silent(&RULE);
        run.check_all(&["answers_missing"]);
    }
}
