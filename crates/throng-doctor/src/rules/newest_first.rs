//! The server falls behind and answers the newest questions first: the oldest wait for ever.

use throng_measure::{Finding, Side};
use throng_report::render::{count, micros, rate};

use super::lost_answers::LostAnswers;
use super::{Rule, RuleTrait};
use crate::run_view::RunView;

pub(super) const RULE: Rule = Rule::new("newest_first", find)
    .with(&[RuleTrait::ServerFault, RuleTrait::GoesOn, RuleTrait::LacksCpu])
    .explains(&["server_slow", "server_at_capacity", "latency_grows", "slow_instance"]);

/// A queue that is served in order makes all answers late. In one that is served from its end, most
/// answers are fast and the others never come. They are not lost: they would come when the load
/// ends.
fn find(run: &RunView<'_>) -> Option<Finding> {
    let lost = LostAnswers::of_queue(run)?;
    let (asked, answered) = lost.rates();
    let many = lost.questions.many;
    let text = format!(
        "The server fell behind and answered the newest {many} first: it answered {} of {}, and \
         users gave up {}. The others took up to {} (p99). Its queue grows by about {} {many} a \
         second, and the oldest of them are never served.",
        rate(answered),
        rate(asked),
        lost.show(),
        micros(lost.p99_us),
        count((asked - answered).max(1.0).round())
    );
    let finding = Finding::new(RULE.id, Side::Server, text).with_evidence([lost.evidence()]);
    Some(finding.with_confidence(0.8).remedied_by(
        "raise what the server does at a time (workers, a pool, threads), or answer the oldest \
         first and refuse at once what would wait for too long",
    ))
}

#[cfg(test)]
mod tests {
    use super::super::fixture::Run;
    use super::super::{answers_missing, rate_limited};
    use super::*;
    use throng_measure::{ErrorKind, Operation};

    /// A run with 107 questions and 100 answers a second, of which a few take as long as this.
    fn behind(slow_us: u64) -> Run {
        Run::quiet().loaded(move |load, second| {
            load.counters.messages_sent = 107 * second;
            load.counters.messages_expected = 107 * second;
            load.counters.messages_answered = 100 * second;
            load.errors.add(ErrorKind::ExpectTimeout, 4 * second.saturating_sub(5));
            load.times.unanswered[Operation::Message].record_n(5_000_000, 4);
            load.times[Operation::Message].clear();
            load.times[Operation::Message].record_n(20_000, 90);
            load.times[Operation::Message].record_n(slow_us, 10);
        })
    }

    #[test]
    fn a_queue_that_is_served_from_its_end_does_not_lose_answers() {
        let run = behind(460_000);
        let found = run.speaks(&RULE);
        assert_eq!(
            found.first_sentence(),
            "The server fell behind and answered the newest messages first: it answered 100/s of \
             107/s, and users gave up 20 of 1.07k messages (1.87 %)"
        );
        run.is_silent(&answers_missing::RULE);
        run.is_silent(&rate_limited::RULE);
        run.check_all(&["newest_first", "slow_instance", "server_slow"]);
    }

    #[test]
    fn lost_answers_beside_fast_ones_are_no_queue() {
        behind(21_000).is_silent(&RULE);
    }
}
