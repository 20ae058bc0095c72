//! Times in which requests waited and none of them was answered.

use throng_measure::{AnswerGap, Endpoint, ErrorKind, LoadInterval, Metric, Operation};

use crate::history::Sample;
use crate::median::median;
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
/// generator made, gaps in which few answers were due, and gaps in which connections were lost or
/// refused.
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
            && had_requests(run, &found.gap)
    };
    let ended = run
        .samples()
        .iter()
        .filter_map(|sample| Some(Gap { gap: sample.load()?.answer_gap?, is_open: false, sample }));
    let ended = ended.filter(|found| !is_before_the_first_answer(run, &found.gap));
    let ended: Vec<_> = ended.chain(open_gap(run)).collect();
    let silences = silences(run).into_iter().map(|whole| ended.iter().fold(whole, joined));
    let silences: Vec<_> = silences.collect();
    let mut found: Vec<_> = ended.into_iter().chain(silences).filter(counts).collect();
    // A later interval may know more of a gap than the one in which it ended.
    let all: Vec<AnswerGap> = found.iter().map(|found| found.gap).collect();
    let is_part = |one: &AnswerGap, of: &AnswerGap| {
        one != of && one.from_ms >= of.from_ms && one.to_ms <= of.to_ms
    };
    found.retain(|found| !all.iter().any(|other| is_part(&found.gap, other)));
    found.sort_by_key(|found| (found.gap.from_ms, found.gap.to_ms));
    found.dedup_by_key(|found| found.gap);
    found
}

/// Reports whether a gap is before the first answers of the run: a server that starts cold is slow
/// to begin, and did not stop.
fn is_before_the_first_answer(run: &RunView<'_>, gap: &AnswerGap) -> bool {
    let before = run.samples().iter().rev().find(|sample| sample.interval.at_ms <= gap.from_ms);
    let has_answered = before.and_then(Sample::load).is_some_and(|load| answers(load) > 0);
    !has_answered && gap.from_ms <= START_MS
}

/// Returns the times of several intervals in which no request was answered, although users had
/// asked. Users that gave up in the meantime leave no other trace of the whole time.
fn silences<'a>(run: &RunView<'a>) -> Vec<Gap<'a>> {
    let steps: Vec<_> = run.steps().collect();
    let is_silent = |(before, now): &(&Sample, &Sample)| {
        before.load().zip(now.load()).is_some_and(|(before, now)| replies(before) == replies(now))
    };
    let (mut found, mut from) = (Vec::new(), 0);
    while from < steps.len() {
        let silent = steps[from..].iter().take_while(|step| is_silent(step)).count();
        if silent == 0 {
            from += 1;
            continue;
        }
        let (first, last) = (&steps[from], &steps[from + silent - 1]);
        let is_open = from + silent == steps.len();
        let gap = AnswerGap { from_ms: first.0.interval.at_ms, to_ms: last.1.interval.at_ms };
        // A server that never answered did not stop to answer.
        if silent >= SILENT_MIN && first.0.load().is_some_and(|load| answers(load) > 0) {
            found.push(Gap { gap, is_open, sample: last.1 });
        }
        from += silent;
    }
    found
}

/// Returns a silence with the part of a gap that goes beyond it. A gap that begins in its first
/// second knows the moment better.
fn joined<'a>(silence: Gap<'a>, other: &Gap<'a>) -> Gap<'a> {
    let (one, two) = (silence.gap, other.gap);
    if two.from_ms >= one.to_ms || one.from_ms >= two.to_ms {
        return silence;
    }
    let to_ms = one.to_ms.max(two.to_ms);
    let is_exact = two.from_ms < one.from_ms + FIRST_SECOND_MS;
    let gap = AnswerGap { from_ms: if is_exact { two.from_ms } else { one.from_ms }, to_ms };
    let sample = if to_ms > one.to_ms { other.sample } else { silence.sample };
    Gap { gap, sample, ..silence }
}

/// Reports whether enough requests had reached the server that waited in a gap, or were sent in it.
fn had_requests(run: &RunView<'_>, gap: &AnswerGap) -> bool {
    let steps = || run.steps().filter(|(before, now)| overlaps(gap, before, now));
    let begun = |(before, now): (&Sample, &Sample)| {
        before
            .load()
            .zip(now.load())
            .map_or(0, |(before, now)| asked(now).saturating_sub(asked(before)))
    };
    let sent: u64 = steps().map(begun).sum();
    if overflowed_before(run, gap) {
        // The server does not know a client whose handshake was dropped: TCP tries again after one,
        // three and seven seconds. Only a load that goes on tells an idle server from a server
        // that stands still.
        let per_s =
            |step: (&Sample, &Sample)| begun(step) as f64 * 1000.0 / step.1.interval.span_ms as f64;
        let usual = run.steps().filter(|(_, now)| now.interval.at_ms <= gap.from_ms).map(per_s);
        let usual = usual.fold(0.0, f64::max);
        return steps().last().is_some_and(|last| per_s(last) >= usual * LOAD_SHARE_MIN);
    }
    let before = run.samples().iter().rev().find(|sample| sample.interval.at_ms <= gap.from_ms);
    let waiting = before
        .and_then(Sample::load)
        .map_or(0, |load| load.counters.requests_waiting().min(load.counters.connected));
    (sent + waiting) as f64 >= ANSWERS_MIN
}

/// Reports whether the accept queue overflowed in the time before a gap after which TCP may still
/// try again.
fn overflowed_before(run: &RunView<'_>, gap: &AnswerGap) -> bool {
    let dropped = |sample: &Sample| {
        run.value(Endpoint::Server, sample, Metric::TCPEXT_LISTEN_OVERFLOWS).unwrap_or(0)
    };
    run.steps().any(|(before, now)| {
        let ends_before =
            now.interval.at_ms <= gap.from_ms && now.interval.at_ms + RETRY_MS >= gap.from_ms;
        ends_before && dropped(now) > dropped(before)
    })
}

/// Reports whether an interval overlaps a gap.
fn overlaps(gap: &AnswerGap, before: &Sample, now: &Sample) -> bool {
    now.interval.at_ms > gap.from_ms && before.interval.at_ms < gap.to_ms
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
    median(rates).unwrap_or(0.0)
}

/// Returns the usual time of an answer: the median over all intervals of the most frequent kind.
fn usual_us(run: &RunView<'_>) -> u64 {
    let of = |sample: &Sample| {
        Operation::requests()
            .map(|operation| sample.latency(operation))
            .max_by_key(|quantiles| quantiles.count)
            .filter(|quantiles| quantiles.count > 0)
    };
    median(run.samples().iter().filter_map(|sample| Some(of(sample)?.p50_us))).unwrap_or(0)
}

/// Returns the number of answers so far.
fn answers(load: &LoadInterval) -> u64 {
    let counters = &load.counters;
    counters.requests_answered() + counters.joins_ok
}

/// Returns the number of answers so far, with those that were not expected.
fn replies(load: &LoadInterval) -> u64 {
    let others = UNEXPECTED.into_iter().map(|kind| load.errors.get(kind)).sum::<u64>();
    answers(load) + load.counters.http_answers() + others
}

/// Returns the number of requests so far.
fn asked(load: &LoadInterval) -> u64 {
    load.counters.requests_begun() + load.counters.joins_started
}

/// The kinds of errors of users that got another answer than they expected.
const UNEXPECTED: [ErrorKind; 3] =
    [ErrorKind::ExpectMismatch, ErrorKind::JoinRefused, ErrorKind::PushRefused];

/// The fewest intervals without an answer that show a silence by themselves.
const SILENT_MIN: usize = 3;

/// The time after the beginning of a run in which its first requests leave.
const START_MS: u64 = 500;

/// The time after a dropped handshake in which TCP tries again: 1, 2 and 4 seconds after one
/// another.
const RETRY_MS: u64 = 8_000;

/// The share of the requests a second before a gap, of which the load goes on.
const LOAD_SHARE_MIN: f64 = 0.5;

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

    fn count(run: &Run) -> usize {
        let (history, summary) = run.whole();
        gaps(&RunView::new(&history, &summary), 100).len()
    }

    #[test]
    fn a_server_that_always_takes_so_long_makes_no_gap() {
        let pausing = |usual_us: u64, from_ms: u64| {
            Run::quiet().loaded(move |load, second| {
                load.times[Operation::Message].clear();
                load.times[Operation::Http].record_n(usual_us, 500);
                let gap = AnswerGap { from_ms, to_ms: from_ms + 1_746 };
                load.answer_gap = (second == gap.to_ms / 1_000 + 1).then_some(gap);
            })
        };
        assert_eq!(count(&pausing(2_000_000, 3_000)), 0);
        assert_eq!(count(&pausing(200, 3_000)), 1);
        // The server was slow to begin.
        assert_eq!(count(&pausing(200, 70)), 0);
    }

    /// A run whose users ask for so much in each second, and wait in a gap at its end.
    fn waiting_at_the_end(asked: impl Fn(u64) -> u64, overflows: i64) -> Run {
        let all = move |second| (1..=second).map(&asked).sum::<u64>();
        let counter = Metric::TCPEXT_LISTEN_OVERFLOWS;
        Run::quiet().growing(counter, 0, overflows, 0).loaded(move |load, second| {
            (load.counters.messages_sent, load.counters.messages_answered) = (0, 0);
            (load.counters.http_started, load.counters.http_ok) = (all(second), all(second));
            load.answer_gap = (second == 9).then_some(AnswerGap { from_ms: 8_190, to_ms: 8_510 });
        })
    }

    #[test]
    fn clients_that_only_tcp_tries_again_show_no_gap() {
        // The load has ended.
        assert_eq!(count(&waiting_at_the_end(|second| if second < 8 { 1_600 } else { 0 }, 0)), 0);
        // It ends in the midst of the interval, or goes on at a tenth.
        let ends = |second| if second < 9 { 1_600 } else { 300 };
        assert_eq!(count(&waiting_at_the_end(ends, 900)), 0);
        assert_eq!(count(&waiting_at_the_end(ends, 0)), 1);
        assert_eq!(count(&waiting_at_the_end(|_| 1_600, 900)), 1);
    }

    #[test]
    fn a_silence_is_whole_though_users_gave_up_in_it() {
        let silent = |from: u64, to: u64| {
            Run::quiet().loaded(move |load, second| {
                let missing = second.min(to).saturating_sub(from);
                load.counters.messages_answered = 1_000 * (second - missing);
                load.errors.add(ErrorKind::ExpectTimeout, 1_000 * second.saturating_sub(from + 1));
            })
        };
        let spans = |run: &Run| {
            let (history, summary) = run.whole();
            let found = gaps(&RunView::new(&history, &summary), 100);
            found
                .iter()
                .map(|gap| (gap.gap.from_ms, gap.gap.to_ms, gap.is_open))
                .collect::<Vec<_>>()
        };
        assert_eq!(spans(&silent(2, 10)), [(2_000, 10_000, true)]);
        assert_eq!(spans(&silent(2, 7)), [(2_000, 7_000, false)]);
        assert_eq!(spans(&silent(2, 4)), []);
        // The server never answered, or answered otherwise.
        assert_eq!(spans(&silent(0, 10)), []);
        let wrong =
            silent(2, 7).loaded(|load, second| load.errors.add(ErrorKind::ExpectMismatch, second));
        assert_eq!(spans(&wrong), []);
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
        assert_eq!((count(&pushed(2)), count(&pushed(100))), (0, 1));
    }
}
