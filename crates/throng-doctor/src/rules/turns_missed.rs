//! Users had no time for all their turns of `every`: each turn took longer than its period.

use throng_measure::{Finding, Grade, Operation, Severity, Side};
use throng_report::render::{count, percent};

use super::{FindingClass, Rule, RuleTrait};
use crate::counted::counted;
use crate::run_view::RunView;

pub(super) const RULE: Rule = Rule::new("turns_missed", find)
    .of_class(FindingClass::Consequence)
    .with(&[RuleTrait::LacksCpu, RuleTrait::OnlyDelays])
    .follows_from(&[
        "generator_saturated",
        "latency_grows",
        "server_at_capacity",
        "server_slow",
        "server_stalled",
        "slow_instance",
    ]);

/// A turn of `every` begins when it is due and the turn before it is over. What a user still waits
/// for when the run ends says which wait makes its turns too long.
fn find(run: &RunView<'_>) -> Option<Finding> {
    let turns = run.summary.turns.as_ref()?;
    let missed = turns.intended.saturating_sub(turns.started);
    let is_few = missed as f64 <= MISSED_SHARE_MAX * turns.intended as f64;
    // The turns that a late generator misses are counted against it.
    if missed < MISSED_MIN || is_few || run.summary.generator.lag_grade == Grade::Invalid {
        return None;
    }
    let growth = run.load_growth("load.counters.turns_intended", |load| load.turns_intended)?;
    let (why, side, remedy) = match longest_wait(run) {
        Some(wait) => (
            wait,
            Side::Server,
            "make the server answer faster, or plan fewer turns a second for each user and more \
             users",
        ),
        None => (
            "No answer kept them: the steps of a turn take longer than its period.".to_owned(),
            Side::Client,
            "shorten the waits (`wait`, `limit`) in `every`, or plan fewer turns a second for each \
             user and more users",
        ),
    };
    let text = format!(
        "Users kept only {} of {} of `every` ({}): a turn begins when the one before it is over. \
         {why}",
        count(turns.started as f64),
        counted(turns.intended, "due turn", "due turns"),
        percent(turns.started as f64 / turns.intended as f64)
    );
    let finding = Finding::new(RULE.id, side, text)
        .with_severity(Severity::Slowed)
        .with_evidence([growth])
        .with_evidence(run.load_growth("load.counters.turns_started", |load| load.turns_started))
        .remedied_by(remedy);
    Some(finding)
}

/// Returns a sentence about what most users waited for when they left, or `None` if that was no
/// answer.
fn longest_wait(run: &RunView<'_>) -> Option<String> {
    let waiting = |of| run.summary.operation(of).map_or(0, |of| of.waiting);
    let most = Operation::requests().max_by_key(|of| waiting(*of))?;
    let waiting = waiting(most);
    let users = run.samples().last()?.load()?.counters.users_active;
    (waiting > 0 && waiting.saturating_mul(WAITING_ONE_IN) >= users).then(|| {
        let waited = counted(waiting, "user waited", "users waited");
        let article = if most == Operation::Http { "an HTTP" } else { "a" };
        format!("When the run ended, {waited} for the answer to {article} {}.", most.short()[0])
    })
}

/// The largest share of turns that may be missing: each user may end in the middle of a turn.
const MISSED_SHARE_MAX: f64 = 0.2;

/// The fewest missing turns that count.
const MISSED_MIN: u64 = 10;

/// The part of the users, one in so many, that wait for answers if these make turns long.
const WAITING_ONE_IN: u64 = 4;

#[cfg(test)]
mod tests {
    use throng_measure::LEAVING;

    use super::super::fixture::Run;
    use super::*;

    fn turning(started: u64, waiting: u64) -> Run {
        Run::quiet().loaded(move |load, second| {
            load.counters.turns_intended = 100 * second;
            load.counters.turns_started = started * second;
            if second == 10 {
                load.phase = LEAVING.into();
                load.counters.messages_waiting = waiting;
            }
        })
    }

    #[test]
    fn users_that_keep_half_of_their_turns_are_told_with_what_they_waited_for() {
        let found = turning(50, 900).speaks(&RULE);
        assert_eq!(
            found.text,
            "Users kept only 500 of 1k due turns of `every` (50.0 %): a turn begins when the one \
             before it is over. When the run ended, 900 users waited for the answer to a message."
        );
        assert_eq!(found.side, Side::Server);
        let own = turning(50, 3).speaks(&RULE);
        assert!(own.text.ends_with("the steps of a turn take longer than its period."), "{own}");
        assert_eq!(own.side, Side::Client);
    }

    #[test]
    fn turns_that_the_end_cut_off_and_those_of_a_late_generator_are_none() {
        turning(90, 900).is_silent(&RULE);
        Run::quiet().is_silent(&RULE);
        turning(50, 900).loaded(|load, _| load.lag.record_n(250_000, 900)).is_silent(&RULE);
    }
}
