//! Times in which requests waited and none of them was answered.

use throng_report::AnswerGap;

use crate::history::Sample;
use crate::run_view::RunView;

/// A gap that says something about the server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gap<'a> {
    pub(crate) gap: AnswerGap,
    /// True if the run ended in the gap.
    pub(crate) is_open: bool,
    /// Interval in which the gap ended.
    pub(crate) sample: &'a Sample,
}

/// Returns the gaps of a run that are at least this long, in order. It leaves out gaps that a late
/// generator made, gaps in which few answers were due anyway, and gaps in which connections were
/// lost or refused.
pub(crate) fn gaps<'a>(run: &RunView<'a>, least_ms: u64) -> Vec<Gap<'a>> {
    let (per_second, usual_us) = (answers_per_second(run), usual_us(run));
    let counts = |found: &Gap<'_>| {
        let ms = found.gap.length_ms();
        let expected = per_second * ms as f64 / 1000.0;
        ms >= least_ms
            && expected >= ANSWERS_MIN
            && ms * 1000 >= usual_us.saturating_mul(USUAL_TIMES)
            && found.sample.lag.max_us * 2 < ms * 1000
            && !is_outage(run, &found.gap)
    };
    let ended = run
        .samples()
        .iter()
        .filter_map(|sample| Some(Gap { gap: sample.load()?.answer_gap?, is_open: false, sample }));
    let mut found: Vec<_> = ended.chain(open_gap(run)).filter(counts).collect();
    // A later interval may know more of a gap than the one in which it ended.
    let all: Vec<AnswerGap> = found.iter().map(|found| found.gap).collect();
    let is_part = |one: &AnswerGap, of: &AnswerGap| {
        one != of && one.from_ms >= of.from_ms && one.to_ms <= of.to_ms
    };
    found.retain(|found| !all.iter().any(|other| is_part(&found.gap, other)));
    found.dedup_by_key(|found| found.gap);
    found
}

/// Returns the gap of users who waited at the end, if no user was answered in the meantime.
fn open_gap<'a>(run: &RunView<'a>) -> Option<Gap<'a>> {
    run.summary.overdue()?;
    let sample = run.samples().last()?;
    let to_ms = sample.interval.at_ms;
    let from_ms = to_ms.saturating_sub(run.summary.users.waiting_us_most / 1000);
    let answered = |sample: &Sample| sample.load().map_or(0, answers);
    let before = run.samples().iter().rev().find(|sample| sample.interval.at_ms <= from_ms);
    let mut within =
        run.samples().iter().filter(|sample| sample.interval.at_ms >= from_ms + FIRST_SECOND_MS);
    // One sample alone cannot show that nothing was answered.
    let is_still =
        within.clone().count() > 1 && within.all(|now| answered(now) == answered(sample));
    (before.is_some() && is_still).then_some(Gap {
        gap: AnswerGap { from_ms, to_ms },
        is_open: true,
        sample,
    })
}

/// Reports whether connections were lost or refused in a gap: then the server was away and did not
/// stand still.
fn is_outage(run: &RunView<'_>, gap: &AnswerGap) -> bool {
    let within = |ms: Option<u64>| {
        ms.is_some_and(|ms| (gap.from_ms.saturating_sub(NEAR_MS)..=gap.to_ms).contains(&ms))
    };
    let outages = run.samples().iter().filter_map(|sample| sample.load()?.outage);
    outages.into_iter().any(|outage| within(outage.lost_ms) || within(outage.refused_ms))
}

/// Returns the answers in a usual second.
fn answers_per_second(run: &RunView<'_>) -> f64 {
    let rates = run.steps().filter_map(|(before, now)| {
        let answered = answers(now.load()?).saturating_sub(answers(before.load()?));
        (answered > 0).then(|| answered as f64 * 1000.0 / now.interval.span_ms as f64)
    });
    let mut rates: Vec<f64> = rates.collect();
    rates.sort_by(f64::total_cmp);
    rates.get(rates.len() / 2).copied().unwrap_or(0.0)
}

/// Returns the usual time of an answer: the median over all intervals of the most frequent kind.
fn usual_us(run: &RunView<'_>) -> u64 {
    let of = |sample: &Sample| {
        let kinds = [sample.message, sample.push, sample.http, sample.join];
        kinds
            .into_iter()
            .max_by_key(|quantiles| quantiles.count)
            .filter(|quantiles| quantiles.count > 0)
    };
    let mut all: Vec<u64> = run.samples().iter().filter_map(|m| Some(of(m)?.p50_us)).collect();
    all.sort_unstable();
    all.get(all.len() / 2).copied().unwrap_or(0)
}

/// Returns the number of answers so far.
fn answers(load: &throng_report::LoadInterval) -> u64 {
    let counters = &load.counters;
    counters.requests_answered() + counters.joins_ok
}

/// The fewest answers due in a gap: with fewer, one slow answer makes a gap.
const ANSWERS_MIN: f64 = 10.0;

/// How many times as long as a usual answer a gap must be.
const USUAL_TIMES: u64 = 5;

/// The time before a gap in which a lost connection is part of it.
const NEAR_MS: u64 = 500;

/// The time after the beginning of a gap that its first interval may cover: it has answers from
/// before the gap.
const FIRST_SECOND_MS: u64 = 1_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::fixture::Run;

    #[test]
    fn a_gap_of_which_a_later_interval_knows_more_is_one() {
        let run = Run::quiet().loaded(|load, second| {
            load.answer_gap = match second {
                5 => Some(AnswerGap { from_ms: 4_500, to_ms: 4_990 }),
                6 => Some(AnswerGap { from_ms: 3_000, to_ms: 4_990 }),
                8 => Some(AnswerGap { from_ms: 7_100, to_ms: 7_600 }),
                _ => None,
            };
        });
        let (history, summary) = run.whole();
        let found = gaps(&RunView::new(&history, &summary), 100);
        let spans: Vec<_> = found.iter().map(|gap| (gap.gap.from_ms, gap.gap.to_ms)).collect();
        assert_eq!(spans, [(3_000, 4_990), (7_100, 7_600)]);
    }

    #[test]
    fn the_first_answers_of_a_server_that_always_takes_so_long_end_no_gap() {
        let first = |usual_us: u64| {
            Run::quiet().loaded(move |load, second| {
                load.message.clear();
                load.http.record_n(usual_us, 500);
                load.answer_gap = (second == 2).then_some(AnswerGap { from_ms: 0, to_ms: 1_746 });
            })
        };
        let count = |run: Run| {
            let (history, summary) = run.whole();
            gaps(&RunView::new(&history, &summary), 100).len()
        };
        assert_eq!((count(first(2_000_000)), count(first(200))), (0, 1));
    }

    #[test]
    fn messages_that_no_request_asked_for_are_not_answers_that_were_due() {
        let pushed = |asked: u64| {
            Run::quiet().loaded(move |load, second| {
                load.counters.messages_answered = asked * second;
                load.counters.messages_received = 1_000 * second;
                let gap = AnswerGap { from_ms: 4_000, to_ms: 5_500 };
                load.answer_gap = (second == 6).then_some(gap);
            })
        };
        let count = |run: Run| {
            let (history, summary) = run.whole();
            gaps(&RunView::new(&history, &summary), 100).len()
        };
        assert_eq!((count(pushed(2)), count(pushed(100))), (0, 1));
    }
}
