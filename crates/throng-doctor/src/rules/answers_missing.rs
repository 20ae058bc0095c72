//! The server leaves some questions without an answer, and answers the others at once.

use throng_measure::{Finding, Side};
use throng_report::render::{count, micros, percent, rate};

use super::lost_answers::LostAnswers;
use super::{Rule, RuleTrait, rate_limited};
use crate::loss_onset::LossOnset;
use crate::run_view::RunView;

pub(super) const RULE: Rule = Rule::new("answers_missing", find)
    .with(&[RuleTrait::ServerFault, RuleTrait::GoesOn])
    .explains(&["server_slow"]);

/// A slow server answers some questions late. One that loses answers has none between fast and
/// never.
fn find(run: &RunView<'_>) -> Option<Finding> {
    let lost = LostAnswers::of(run)?;
    if rate_limited::RULE.find(run).is_some() {
        return None;
    }
    if let Some(of_probes) = MissingDeliveries::alike(run, &lost) {
        return Some(never_arrive(&lost, &of_probes));
    }
    let onset = lost.onset();
    let limit = rate_limited::possible_limit(&lost).filter(|_| onset.is_none());
    let so = match limit {
        Some(most) => format!(
            ": it takes {} at most, or loses a share. The load was constant, so both look alike.",
            rate(most)
        ),
        None => ". It loses them, or what it sends: waiting longer would not help.".to_owned(),
    };
    let text = format!(
        "The server never answered {}{} and answered the others {} (p99 {}){so}",
        lost.show(),
        match onset {
            Some(onset) => format!(", {},", onset.words()),
            None if lost.are_even() => ", spread evenly over the run,".to_owned(),
            None => ",".to_owned(),
        },
        if lost.p99_us < AT_ONCE_US { "at once" } else { "in time" },
        micros(lost.p99_us)
    );
    let finding = Finding::new(RULE.id, Side::Server, text).with_evidence([lost.evidence()]);
    // An HTTP request has an answer, always.
    let or = match lost.questions.one {
        "request" => "",
        _ => "; or correct `expect`, if no answer is due",
    };
    let look = onset.map_or_else(String::new, LossOnset::look);
    let at_half = match limit {
        Some(_) => "run at half the rate: if all are answered then, it is a rate limit; otherwise ",
        None => "",
    };
    Some(finding.with_confidence(0.9).remedied_by(format!(
        "{look}{at_half}find where the server drops them: an error that it swallows, a full \
         queue, a {} that it does not understand{or}",
        lost.questions.one
    )))
}

/// Deliveries of probes that are missing.
struct MissingDeliveries {
    missing: u64,
    expected: u64,
}

impl MissingDeliveries {
    /// Returns the missing deliveries, if their share is that of the lost answers, as far as chance
    /// allows.
    fn alike(run: &RunView<'_>, lost: &LostAnswers) -> Option<Self> {
        let counters = &run.summary.broadcast.as_ref()?.counters;
        let (missing, expected) = (counters.missing, counters.expected.max(1));
        let share = lost.share();
        let by_chance = (share * (1.0 - share) / expected as f64).sqrt();
        let distance = (missing as f64 / expected as f64 - share).abs();
        let is_alike = distance <= CHANCE_TIMES * by_chance + share * ALIKE_SHARE;
        (missing > 0 && is_alike).then_some(Self { missing, expected })
    }

    fn share(&self) -> f64 {
        self.missing as f64 / self.expected as f64
    }
}

/// Reports whether the lost answers and the missing deliveries of probes are one finding.
pub(super) fn are_missing_deliveries(run: &RunView<'_>) -> bool {
    LostAnswers::of(run).is_some_and(|lost| MissingDeliveries::alike(run, &lost).is_some())
        && RULE.find(run).is_some()
}

/// Returns the finding of a server that drops the same share of all that it sends.
fn never_arrive(lost: &LostAnswers, of_probes: &MissingDeliveries) -> Finding {
    let all = (lost.lost + of_probes.missing) as f64 / (lost.asked + of_probes.expected) as f64;
    let about = if all < 0.01 { percent(all) } else { format!("{:.0} %", all * 100.0) };
    let text = format!(
        "About {about} of the server's messages never arrive: {} got no answer, and {} of {} \
         deliveries of probes ({}) are missing. The other answers were right, and took {} (p99 \
         over the run).{}",
        lost.show(),
        count(of_probes.missing as f64),
        count(of_probes.expected as f64),
        percent(of_probes.share()),
        micros(lost.p99_us),
        match lost.onset() {
            Some(onset) => format!(" It loses them {}.", onset.words()),
            None => String::new(),
        }
    );
    let finding = Finding::new(RULE.id, Side::Server, text).with_evidence([lost.evidence()]);
    finding.with_confidence(0.9).remedied_by(
        "find where the server drops messages that it sends to users: a full queue, a slow reader, \
         a lost subscription, an error that it swallows",
    )
}

/// The time below which an answer comes at once.
const AT_ONCE_US: u64 = 100_000;

/// The distance of two shares that are alike: so many times what chance makes, and this part.
const CHANCE_TIMES: f64 = 3.0;
const ALIKE_SHARE: f64 = 0.25;

#[cfg(test)]
mod tests {
    use super::super::fixture::Run;
    use super::super::{deliveries_missing, server_slow, server_stalled};
    use super::*;
    use throng_measure::{
        AnswerGap, ErrorExchange, ErrorKind, Operation, RunEvent, RunEventKind, Severity,
    };

    /// A run in which one of ten questions is never answered; others wait `us`.
    fn losing(us: u64) -> Run {
        Run::quiet().loaded(move |load, second| {
            load.counters.messages_answered = 900 * second;
            load.counters.messages_expected = 1_000 * second;
            load.errors.add(ErrorKind::ExpectTimeout, 100 * second);
            load.times[Operation::Message].record_n(us, 500);
            load.times.unanswered[Operation::Message].record_n(1_000_000, 100);
        })
    }

    #[test]
    fn questions_without_an_answer_are_counted() {
        let run = losing(200);
        let found = run.speaks(&RULE);
        assert_eq!(
            found.first_sentence(),
            "The server never answered 1k of 10k messages (10.0 %), spread evenly over \
             the run, and answered the others at once (p99 200 µs): it takes 900/s at most, or \
             loses a share"
        );
        run.check_all(&["answers_missing"]);
    }

    #[test]
    fn the_same_share_of_answers_and_of_deliveries_is_one_finding() {
        let dropping = |missing: u64| {
            losing(200).loaded(move |load, second| {
                load.probe.intended = second;
                load.probe.sent = second;
                load.probe.delivered = (20 - missing) * second;
                load.probe.missing = missing * second;
                load.probe.expected = 20 * second;
            })
        };
        let run = dropping(2);
        assert_eq!(
            run.speaks(&RULE).first_sentence(),
            "About 10 % of the server's messages never arrive: 1k of 10k messages (10.0 %) got \
             no answer, and 20 of 200 deliveries of probes (10.0 %) are missing"
        );
        run.check_all(&["answers_missing"]);
        // Half of the deliveries are another matter.
        dropping(10).speaks(&deliveries_missing::RULE);
        assert!(dropping(10).speaks(&RULE).text.starts_with("The server never answered"));
    }

    #[test]
    fn broadcasts_that_each_wait_skips_are_not_in_place_of_the_answer() {
        let run =
            losing(200).loaded(|load, second| load.counters.messages_unasked = 9_000 * second);
        let run = run.changed(|interval, second| {
            if second == 2 {
                let first = ErrorExchange {
                    kind: ErrorKind::ExpectTimeout.into(),
                    skipped: Some(19),
                    ..ErrorExchange::default()
                };
                interval.events.push(RunEvent::new(2_000, RunEventKind::FirstError(first)));
            }
        });
        run.speaks(&RULE);
        run.check_all(&["answers_missing"]);
    }

    #[test]
    fn a_full_stop_that_outlasts_the_time_out_loses_nothing() {
        let run = Run::quiet().loaded(|load, second| {
            load.counters.messages_answered = 1_000 * second.min(3);
            load.counters.messages_expected = 1_000 * second;
            load.errors.add(ErrorKind::ExpectTimeout, 1_000 * second.saturating_sub(8));
            load.times.unanswered[Operation::Message].record_n(5_000_000, 100);
        });
        run.is_silent(&RULE);
        let found = run.speaks(&server_stalled::RULE);
        assert!(found.text.starts_with("The server stood still from 3.0 s to the end"), "{found}");
        assert_eq!(found.severity, Severity::Stopped);
    }

    #[test]
    fn short_stalls_do_not_explain_answers_that_never_come() {
        // Users wait for a second.
        let stalling = |ms: u64| {
            losing(200).loaded(move |load, second| {
                if second > 1 && second % 2 == 0 {
                    let from_ms = second * 1_000 - 700;
                    load.answer_gap = Some(AnswerGap { from_ms, to_ms: from_ms + ms });
                }
            })
        };
        stalling(300).speaks(&server_stalled::RULE);
        stalling(300).speaks(&RULE);
        stalling(600).is_silent(&RULE);
    }

    #[test]
    fn those_that_wait_when_the_run_ends_are_lost_too() {
        let run = losing(200).loaded(|load, second| {
            // It ends before the users of the last seconds give up.
            load.errors = Default::default();
            load.errors.add(ErrorKind::ExpectTimeout, 100 * second.saturating_sub(5));
            load.counters.messages_waiting = 500;
        });
        let begin = "The server never answered 1k of 10k messages (10.0 %)";
        assert!(run.speaks(&RULE).text.starts_with(begin), "{}", run.speaks(&RULE));
    }

    #[test]
    fn a_generator_that_is_a_little_late_is_no_reason_for_answers_that_never_come() {
        let late = |us| losing(200).loaded(move |load, _| load.lag.record_n(us, 900));
        late(40_000).check_all(&["answers_missing", "generator_saturated"]);
        late(900_000).is_silent(&RULE);
    }

    #[test]
    fn turns_that_begin_late_because_of_it_do_not_make_the_server_slow() {
        let run = losing(900_000).loaded(|load, _| load.times.from_send.record_n(300, 500));
        let found = run.speaks(&RULE);
        assert!(found.text.contains("answered the others at once (p99 300 µs)"), "{found}");
        run.is_silent(&server_slow::RULE);
    }

    #[test]
    fn losses_of_a_part_of_the_run_are_not_even() {
        let run = losing(200).loaded(|load, second| {
            let lost = 333 * second.saturating_sub(7);
            load.counters.messages_answered = 1_000 * second - lost;
            load.errors = Default::default();
            load.errors.add(ErrorKind::ExpectTimeout, lost);
        });
        let found = run.speaks(&RULE);
        let text = "(9.99 %), from 7.0 s on and hardly any before, and answered";
        assert!(found.text.contains(text), "{found}");
        assert!(found.remedy.starts_with("look for what began at 7.0 s"), "{found}");
    }

    #[test]
    fn answers_that_are_late_are_a_slow_servers() {
        losing(600_000).is_silent(&RULE);
    }

    #[test]
    fn a_few_by_chance_are_none() {
        let few = Run::quiet().loaded(|load, second| {
            load.errors.add(ErrorKind::ExpectTimeout, second.min(1));
            load.times.unanswered[Operation::Message].record_n(1_000_000, 1);
        });
        few.is_silent(&RULE);
    }
}
