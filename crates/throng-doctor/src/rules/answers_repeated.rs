//! Answers, or broadcasts, arrive more than once.

use throng_measure::{ErrorKind, Finding, Side};
use throng_report::render::{count, percent};

use super::{Rule, RuleTrait};
use crate::run_view::RunView;

pub(super) const RULE: Rule = Rule::new("answers_repeated", find)
    .with(&[RuleTrait::ServerFault, RuleTrait::GoesOn, RuleTrait::DelaysNothing])
    .explains(&["server_slow"]);

fn find(run: &RunView<'_>) -> Option<Finding> {
    answers(run).or_else(|| deliveries(run))
}

/// The generator compares the messages of some connections with the answers before them.
fn answers(run: &RunView<'_>) -> Option<Finding> {
    let growth = run.growth_of("load.followed.repeats", |sample| {
        Some(sample.load()?.followed.repeats as i64)
    })?;
    let answers = run.samples().last()?.load()?.followed.answers;
    // A late answer to a question that timed out has no question either.
    let late = run.errors(ErrorKind::ExpectTimeout).map_or(0, |late| late.by());
    if !matters(growth.by().saturating_sub(late), answers) {
        return None;
    }
    let text = format!(
        "The server sends answers more than once: of {} answers on followed connections, {} ({}) \
         arrived again, the same to the byte. Users then cannot tell which answer is theirs.",
        count(answers as f64),
        count(growth.by() as f64),
        percent(growth.by() as f64 / answers.max(1) as f64)
    );
    let finding = Finding::new(RULE.id, Side::Server, text).with_confidence(0.9);
    Some(finding.with_evidence([growth]).remedied_by(
        "look for a listener that is registered twice, a subscription that is made twice, or a \
         retry that does not know its first attempt succeeded",
    ))
}

/// Probes know whether they were here before.
fn deliveries(run: &RunView<'_>) -> Option<Finding> {
    let counters = &run.summary.broadcast.as_ref()?.counters;
    if !matters(counters.duplicates, counters.delivered) {
        return None;
    }
    let growth = run.growth_of("load.probe.duplicates", |sample| {
        Some(sample.load()?.probe.duplicates as i64)
    })?;
    let text = format!(
        "Broadcasts arrive more than once: {} deliveries of probes reached users that had them \
         already, beside {} that were due ({}).",
        count(counters.duplicates as f64),
        count(counters.delivered as f64),
        percent(counters.duplicates as f64 / counters.delivered.max(1) as f64)
    );
    let finding = Finding::new(RULE.id, Side::Server, text).with_evidence([growth]);
    Some(finding.remedied_by(
        "look for users that are in a room twice (a join on reconnect without a leave), or for two \
         nodes that both forward to all",
    ))
}

/// Reports whether so many repeats are a pattern.
fn matters(repeats: u64, of: u64) -> bool {
    repeats >= REPEATS_MIN && repeats.saturating_mul(REPEATS_ONE_IN) >= of
}

/// The fewest repeats that count, and the share: one in so many.
const REPEATS_MIN: u64 = 5;
const REPEATS_ONE_IN: u64 = 100;

#[cfg(test)]
mod tests {
    use super::super::fixture::Run;
    use super::*;

    fn repeating(repeats: u64) -> Run {
        Run::quiet().loaded(move |load, second| {
            load.followed.answers = 100 * second;
            load.followed.repeats = repeats * second;
        })
    }

    #[test]
    fn answers_that_come_twice_are_reported() {
        let run = repeating(99);
        assert_eq!(
            run.speaks(&RULE).first_sentence(),
            "The server sends answers more than once: of 1k answers on followed connections, 990 \
             (99.0 %) arrived again, the same to the byte"
        );
        run.check_all(&["answers_repeated"]);
        repeating(0).is_silent(&RULE);
        let late = repeating(2)
            .loaded(|load, second| load.errors.add(ErrorKind::ExpectTimeout, 2 * second));
        late.is_silent(&RULE);
    }

    #[test]
    fn deliveries_that_come_twice_are_reported() {
        let probing = |duplicates: u64| {
            Run::quiet().loaded(move |load, second| {
                (load.probe.intended, load.probe.sent) = (second, second);
                (load.probe.delivered, load.probe.expected) = (1_000 * second, 1_000 * second);
                load.probe.duplicates = duplicates * second;
            })
        };
        assert_eq!(
            probing(1_000).speaks(&RULE).first_sentence(),
            "Broadcasts arrive more than once: 10k deliveries of probes reached users that had \
             them already, beside 10k that were due (100 %)"
        );
        probing(1).is_silent(&RULE);
    }
}
