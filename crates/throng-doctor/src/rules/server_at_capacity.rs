//! The server answered a constant number of messages a second, however many waited.

use throng_measure::{ErrorKind, Evidence, Finding, LoadCounters, Severity, Side};
use throng_report::render::{count, micros, rate};

use super::{Rule, RuleTrait, known_delays, latency_grows};
use crate::counted::counted;
use crate::history::Sample;
use crate::impact::{failed, is_unanswered};
use crate::run_view::RunView;
use crate::steady_load::answers;

pub(super) const RULE: Rule = Rule::new("server_at_capacity", find)
    .with(&[RuleTrait::ServerFault, RuleTrait::LacksCpu, RuleTrait::OnlyDelays])
    .explains(&["server_slow", "latency_grows"]);

/// Looks for intervals with the same number of answers while users waited for many times as long
/// as the fastest answer takes. By Little's law the number that the server serves at a time is
/// the product of both: one for a lock, N for a pool. A server that is slow for each user alone
/// serves all its users at a time.
fn find(run: &RunView<'_>) -> Option<Finding> {
    let answered = run.samples().iter().map(|sample| answers(sample).1);
    let fastest = answered.filter(|times| times.min_us > 0).min_by_key(|times| times.min_us)?;
    let service_us = fastest.min_us;
    let is_given_up = ErrorKind::unanswered().any(|kind| run.errors(kind).is_some());
    let times = if is_given_up { WAIT_TIMES_GIVEN_UP } else { WAIT_TIMES };
    let waits = |sample: &Sample| {
        let p50_us = answers(sample).1.p50_us;
        p50_us >= WAIT_MIN_US && p50_us >= service_us.saturating_mul(times)
    };
    let full = full(run, &waits)?;
    let first = full.first()?;
    // Users that stop asking, or leave, drain the queue afterwards.
    let last = full.iter().max_by_key(|step| step.in_flight)?;
    let per_s = full.iter().map(|step| step.per_s).sum::<f64>() / full.len() as f64;
    // As many as the server serves at a time find it idle at first, and take that long.
    let are_seen = |n: &u64| *n <= AT_A_TIME_FEW.max(fastest.fastest * 2);
    let at_a_time = at_a_time(per_s, service_us).filter(are_seen);
    let is_below = |n: u64| n as f64 <= last.users as f64 * OF_USERS_MAX;
    // Where the load is constant, answers that take longer and longer have another reason, unless
    // fewer messages are answered than were due.
    // Twice the questions in flight would have twice the answers, if each had its own time.
    let fills = last.in_flight_mean >= first.in_flight_mean * IN_FLIGHT_TIMES;
    let is_of_queue = || (at_a_time.is_some_and(is_below) || fills) && falls_behind(&full);
    if latency_grows::grows(run) && !is_of_queue() {
        return None;
    }
    let grew = last.users as f64 >= first.users as f64 * USERS_TIMES;
    let late = run.samples().iter().filter(|now| waits(now));
    let late: Vec<_> = late.map(|now| (now, answers(now).1.p50_us)).collect();
    // A few intervals show a limit only if the number served at a time is a whole one.
    let is_long = full.len() >= INTERVALS_MIN;
    let is_limited =
        at_a_time.is_some_and(is_below) || is_long && (grew || fills && falls_behind(&full));
    if !is_limited || known_delays::explain(run, &late) {
        return None;
    }
    let (what, remedy) = describe(at_a_time.filter(|n| is_below(*n)), service_us);
    let p50 = |step: &Step| micros(step.p50_us);
    let text = format!(
        "The server answered {} {}s, however many waited: {what}. {} waited at {} s, for {} \
         (p50), and {} at {} s, for {}.{}{}",
        rate(per_s),
        run.summary.unit_of_work(),
        count(first.in_flight as f64),
        count(first.at_ms as f64 / 1000.0),
        p50(first),
        count(last.in_flight as f64),
        count(last.at_ms as f64 / 1000.0),
        p50(last),
        queue(first, last, per_s),
        given_up(run)
    );
    let finding = Finding::new(RULE.id, Side::Server, text)
        .with_severity(Severity::Slowed)
        .with_confidence(if at_a_time.is_some() { 0.8 } else { 0.65 })
        .with_evidence([
            evidence("load.message_us.p50", service_us as f64, last.p50_us as f64, first.at_ms),
            evidence("load.messages_answered_per_s", first.per_s, last.per_s, first.at_ms),
        ])
        .remedied_by(remedy);
    Some(finding)
}

/// Returns the intervals in which users waited, until the first of them gave up, if about as many
/// were answered in each. From then on the server may also work for users that no longer wait.
fn full(run: &RunView<'_>, waits: &impl Fn(&Sample) -> bool) -> Option<Vec<Step>> {
    let steps = run.steps().filter(|(_, now)| waits(now));
    let steps = steps.filter_map(|(before, now)| Step::of(before, now));
    let mut full: Vec<Step> = steps.filter(|step| step.in_flight >= IN_FLIGHT_MIN).collect();
    let gave_up = full.iter().position(|step| step.gave_up > 0);
    let later = full.split_off(gave_up.unwrap_or(full.len()));
    let intervals_min = if gave_up.is_some() { INTERVALS_BEFORE_MIN } else { INTERVALS_MIN };
    // The queue may have begun within the first.
    if full.len() > intervals_min && full[1].per_s > full[0].per_s * FLAT_TIMES {
        full.remove(0);
    }
    let least = full.iter().map(|step| step.per_s).fold(f64::MAX, f64::min);
    let most = full.iter().chain(&later).map(|step| step.per_s).fold(0.0, f64::max);
    let is_flat = full.len() >= intervals_min && least >= PER_S_MIN && most <= least * FLAT_TIMES;
    is_flat.then_some(full)
}

/// Returns a sentence about the users that gave up, or an empty one.
fn given_up(run: &RunView<'_>) -> String {
    let found = ErrorKind::unanswered().filter_map(|kind| run.errors(kind));
    match found.map(|growth| growth.by()).sum() {
        0 => String::new(),
        n => format!(" {} given up.", counted(n, "wait was", "waits were")),
    }
}

/// Reports whether fewer messages were answered than users wanted to send in these intervals.
fn falls_behind(full: &[Step]) -> bool {
    let sum = |of: fn(&Step) -> f64| full.iter().map(of).sum::<f64>();
    sum(|step| step.per_s) <= sum(|step| step.wanted_per_s) * (1.0 - BEHIND_SHARE)
}

/// An interval in which users waited.
struct Step {
    at_ms: u64,
    per_s: f64,
    /// Messages that users sent, or wanted to send.
    wanted_per_s: f64,
    /// Messages that were not answered yet at the end.
    in_flight: u64,
    /// The mean of those at its beginning and at its end.
    in_flight_mean: f64,
    users: u64,
    p50_us: u64,
    /// Waits that were given up in it.
    gave_up: u64,
}

impl Step {
    fn of(before: &Sample, now: &Sample) -> Option<Self> {
        let (from, to) = (&before.load()?.counters, &now.load()?.counters);
        let grown = to.since(from);
        let per_s = |n: f64| n * 1000.0 / now.interval.span_ms as f64;
        // Turns of `every` that are due, each with as many messages as the turns that began.
        let each_turn = to.requests_begun() as f64 / to.turns_started.max(1) as f64;
        let due = grown.turns_intended as f64 * each_turn;
        let given_up = |sample: &Sample| failed(sample, is_unanswered).unwrap_or(0);
        let in_flight = |sample: &Sample, load: &LoadCounters| {
            let ended = load.requests_answered() + given_up(sample);
            load.requests_begun().saturating_sub(ended).min(load.connected)
        };
        Some(Self {
            at_ms: now.interval.at_ms,
            per_s: per_s(grown.requests_answered() as f64),
            wanted_per_s: per_s(due.max(grown.requests_begun() as f64)),
            in_flight: in_flight(now, to),
            in_flight_mean: (in_flight(before, from) + in_flight(now, to)) as f64 / 2.0,
            users: to.connected,
            p50_us: answers(now).1.p50_us,
            gave_up: given_up(now).saturating_sub(given_up(before)),
        })
    }
}

/// Returns the number of messages that the server serves at a time, if it is a whole number as far
/// as that can be measured.
fn at_a_time(per_s: f64, service_us: u64) -> Option<u64> {
    let product = per_s * service_us as f64 / 1e6;
    let whole = product.round();
    let is_whole = (product - whole).abs() <= (whole * NEAR_SHARE).min(NEAR_MOST);
    (service_us >= SERVICE_MIN_US && is_whole && (1.0..=AT_A_TIME_MOST).contains(&whole))
        .then_some(whole as u64)
}

/// Returns what the server does, and the remedy.
fn describe(at_a_time: Option<u64>, service_us: u64) -> (String, String) {
    let each = micros(service_us);
    match at_a_time {
        Some(1) => (
            format!("it serves one at a time, {each} each"),
            format!(
                "find what all answers need for {each} (a lock, a transaction, a single worker or \
                 connection), and hold it for less time, or have more than one"
            ),
        ),
        Some(n) => (
            format!("it serves {n} at a time, {each} each"),
            format!(
                "raise the limit of {n} (a pool of connections, workers, threads, a semaphore), or \
                 hold each of them for less than {each}"
            ),
        ),
        None => (
            "something that all answers need allows no more".to_owned(),
            "find what all answers need: a rate limiter that delays (a token bucket, limit_req), a \
             lock, a pool, a queue with few workers, a limit of another service"
                .to_owned(),
        ),
    }
}

/// Returns a sentence about a queue that grows, or an empty one.
fn queue(first: &Step, last: &Step, per_s: f64) -> String {
    let seconds = last.at_ms.saturating_sub(first.at_ms) as f64 / 1000.0;
    let more = last.in_flight.saturating_sub(first.in_flight) as f64 / seconds.max(1.0);
    if more < per_s * QUEUE_GROWS_SHARE {
        return String::new();
    }
    format!(
        " Its queue fills: about {more:.0} more wait each second, so the wait grows by {} a \
         second, until something gives up or the memory is full.",
        micros((more / per_s * 1e6) as u64)
    )
}

fn evidence(counter: &str, from: f64, to: f64, at_ms: u64) -> Evidence {
    Evidence { counter: counter.to_owned(), from, to, at_ms }
}

/// The shortest median wait, and how many times as long as the fastest answer it is.
const WAIT_MIN_US: u64 = 100_000;
const WAIT_TIMES: u64 = 3;

/// The same where users give up: they do so before the queue is long.
const WAIT_TIMES_GIVEN_UP: u64 = 2;

/// The fewest messages that wait.
const IN_FLIGHT_MIN: u64 = 4;

/// The fewest intervals, and the fewest answers a second, that show a limit.
const INTERVALS_MIN: usize = 4;
const PER_S_MIN: f64 = 5.0;

/// The fewest intervals before users give up that show how many are served at a time.
const INTERVALS_BEFORE_MIN: usize = 2;

/// The largest number of answers a second, in times the smallest.
const FLAT_TIMES: f64 = 1.25;

/// The share of the messages that are not answered while they are sent, from which the server falls
/// behind.
const BEHIND_SHARE: f64 = 0.08;

/// The growth of the users that shows the limit by itself.
const USERS_TIMES: f64 = 1.5;

/// The growth of the questions in flight that shows the limit by itself, where fewer are answered
/// than users want to ask.
const IN_FLIGHT_TIMES: f64 = 1.5;

/// The largest share of the users that the server serves at a time if it has a limit.
const OF_USERS_MAX: f64 = 0.5;

/// The shortest time of service that tells how many are served at a time.
const SERVICE_MIN_US: u64 = 2_000;

/// The farthest distance from a whole number, as a share and at most.
const NEAR_SHARE: f64 = 0.15;
const NEAR_MOST: f64 = 0.35;

/// The largest number that is known from one fast answer: a wrong time of service seldom makes a
/// whole number that is so small.
const AT_A_TIME_FEW: u64 = 4;

/// The largest number that can be told from its neighbours.
const AT_A_TIME_MOST: f64 = 64.0;

/// The growth of the queue in a second, as a share of the answers, from which it fills.
const QUEUE_GROWS_SHARE: f64 = 0.1;

#[cfg(test)]
mod tests {
    use throng_measure::Operation;

    use super::super::fixture::Run;
    use super::*;

    /// A run whose thousand users wait for this many answers a second.
    fn limited(per_s: u64, service_us: u64) -> Run {
        Run::quiet().growing(throng_measure::ProcessMetric::CPU_US.server, 0, 20_000, 0).loaded(
            move |load, second| {
                load.counters.connected = 200 * second.min(5);
                load.counters.messages_answered = per_s * second;
                load.counters.messages_sent = per_s * second + load.counters.connected;
                load.times[Operation::Message].clear();
                if second > 0 {
                    load.times[Operation::Message]
                        .record_n(if second == 1 { service_us } else { 700_000 }, 40);
                }
            },
        )
    }

    #[test]
    fn a_lock_and_a_pool_are_named_with_their_number() {
        let found = limited(50, 20_000).speaks(&RULE);
        assert_eq!(
            found.first_sentence(),
            "The server answered 50/s messages, however many waited: it serves one at a time, \
             20.0 ms each"
        );
        let pool = limited(39, 101_000);
        let found = pool.speaks(&RULE);
        assert!(found.text.contains("it serves 4 at a time, 10"), "{found}");
        assert!(found.remedy.starts_with("raise the limit of 4"), "{found}");
        pool.check_all(&["server_at_capacity", "server_slow"]);
    }

    #[test]
    fn a_pool_is_known_from_before_users_give_up() {
        // From the fourth second on all users give up, and the server works for them in vain.
        let run = limited(40, 100_000).loaded(|load, second| {
            let early = second.min(3);
            let late = second.saturating_sub(3);
            load.counters.messages_answered = 40 * early + 5 * late;
            load.counters.messages_sent = load.counters.connected + 40 * early + 200 * late;
            load.errors.add(ErrorKind::ExpectTimeout, 190 * late);
            load.times.unanswered[Operation::Message].record_n(2_000_000, 190);
        });
        let found = run.speaks(&RULE);
        assert!(found.text.contains("it serves 4 at a time, 10"), "{found}");
        assert!(found.text.ends_with("1.33k waits were given up."), "{found}");
        run.check_all(&["server_at_capacity", "server_slow"]);
        // Later it answers more than before.
        let more = run.loaded(|load, second| {
            load.counters.messages_answered += 90 * second.saturating_sub(3);
        });
        more.is_silent(&RULE);
    }

    #[test]
    fn the_interval_in_which_the_queue_begins_is_not_full_all_the_time() {
        let begins = |answered: u64| {
            limited(40, 100_000).loaded(move |load, second| {
                let (early, late) = (second.min(4), second.saturating_sub(4));
                let less = if second >= 2 { 40 - answered } else { 0 };
                load.counters.messages_answered = 40 * early - less + 5 * late;
                load.counters.messages_sent = load.counters.connected + 40 * early + 200 * late;
                load.errors.add(ErrorKind::ExpectTimeout, 190 * late);
                load.times.unanswered[Operation::Message].record_n(2_000_000, 190);
            })
        };
        let found = begins(26).speaks(&RULE);
        assert!(found.text.contains("it serves 4 at a time, 10"), "{found}");
        // The next ones differ.
        let later = begins(40).loaded(|load, second| {
            load.counters.messages_answered -= if second >= 3 { 18 } else { 0 };
        });
        later.is_silent(&RULE);
    }

    #[test]
    fn a_number_needs_as_many_answers_that_waited_for_no_other() {
        // The first answers of a cold server take longer than those of the pool, which is full
        // before it is warm.
        let cold = limited(99, 100_000).loaded(|load, second| {
            if second == 1 {
                load.times[Operation::Message].clear();
                load.times[Operation::Message].record_n(233_000, 4);
                load.times[Operation::Message].record_n(310_000, 56);
            }
        });
        let found = cold.speaks(&RULE);
        assert!(found.text.contains("something that all answers need allows no more"), "{found}");
        let few = limited(39, 101_000).loaded(|load, second| {
            if second == 1 {
                load.times[Operation::Message].clear();
                load.times[Operation::Message].record_n(101_000, 1);
                load.times[Operation::Message].record_n(160_000, 39);
            }
        });
        assert!(few.speaks(&RULE).text.contains("it serves 4 at a time, 10"));
        let pool = limited(99, 100_000).speaks(&RULE);
        assert!(pool.text.contains("it serves 10 at a time, 10"), "{pool}");
    }

    #[test]
    fn a_queue_before_which_users_give_up_is_short() {
        let short = |gave_up: u64| {
            limited(40, 100_000).loaded(move |load, second| {
                let late = second.saturating_sub(3);
                load.counters.messages_sent += gave_up * late;
                load.errors.add(ErrorKind::ExpectTimeout, gave_up * late);
                if second > 1 {
                    load.times[Operation::Message].clear();
                    load.times[Operation::Message].record_n(250_000, 40);
                }
            })
        };
        let found = short(190).speaks(&RULE);
        assert!(found.text.contains("it serves 4 at a time, 10"), "{found}");
        short(0).is_silent(&RULE);
    }

    #[test]
    fn a_queue_that_fills_is_told_with_its_pace() {
        let run = limited(50, 20_000).loaded(|load, second| {
            load.counters.connected = 25 * second;
            load.counters.messages_sent = 75 * second;
        });
        let found = run.speaks(&RULE);
        assert!(found.text.contains("about 25 more wait each second"), "{found}");
        assert!(found.text.contains("the wait grows by 500 ms a second"), "{found}");
    }

    #[test]
    fn a_pool_before_which_the_queue_grows_comes_before_answers_that_take_longer_and_longer() {
        // From the second second on, a hundred users want this many messages a second, and the
        // answers wait for the queue before them.
        let queue = |wanted: u64, answered: u64, service_us: u64| {
            let cpu = throng_measure::ProcessMetric::CPU_US.server;
            Run::quiet().growing(cpu, 0, 20_000, 0).loaded(move |load, second| {
                let full = second.saturating_sub(1);
                load.counters.connected = if second == 0 { 0 } else { 100 };
                load.counters.turns_intended = wanted * second;
                load.counters.turns_started = wanted * second;
                load.counters.messages_sent = wanted * second;
                load.counters.messages_answered = (second - full) * wanted + answered * full;
                load.times[Operation::Message].clear();
                let waits_us = (wanted - answered) * full * 1_000_000 / answered;
                load.times[Operation::Message].record_n(service_us + waits_us, 40);
            })
        };
        let pool = queue(50, 40, 100_000);
        assert!(pool.speaks(&RULE).text.contains("it serves 4 at a time"));
        pool.check_all(&["server_at_capacity", "latency_grows", "server_slow"]);
        // Nearly all that is asked is answered: each answer takes longer than the one before.
        let slower = queue(200, 190, 26_000);
        slower.is_silent(&RULE);
        slower.check_all(&["latency_grows", "server_slow"]);
    }

    #[test]
    fn a_limiter_that_delays_shows_in_a_queue_that_fills_at_the_same_rate() {
        // A hundred users come within a second and want 200/s. The first answers come at once.
        let paced = |per_s: u64| {
            let cpu = throng_measure::ProcessMetric::CPU_US.server;
            Run::quiet().growing(cpu, 0, 10_000, 0).loaded(move |load, second| {
                load.counters.connected = 100 * second.min(1);
                load.counters.turns_intended = 200 * second;
                load.counters.messages_answered = per_s * second;
                load.counters.messages_sent = per_s * second + load.counters.connected;
                load.counters.turns_started = load.counters.messages_sent;
                load.times[Operation::Message].clear();
                if second == 1 {
                    load.times[Operation::Message].record_n(300, 2);
                }
                load.times[Operation::Message]
                    .record_n(if second == 1 { 600_000 } else { 2_500_000 }, 38);
            })
        };
        let run = paced(40);
        let found = run.speaks(&RULE);
        assert!(found.text.starts_with("The server answered 40/s messages, however"), "{found}");
        assert!(found.remedy.contains("a rate limiter that delays"), "{found}");
        // As many are answered as users want.
        paced(199).is_silent(&RULE);
    }

    #[test]
    fn a_server_that_is_slow_for_each_user_alone_has_no_limit() {
        // A thousand users, each of which waits for 800 ms.
        let run = limited(1_250, 800_000).loaded(|load, second| {
            load.counters.connected = 1_000;
            load.times[Operation::Message].clear();
            load.times[Operation::Message].record_n(800_000 + 300_000 * second, 400);
        });
        run.is_silent(&RULE);
    }

    #[test]
    fn answers_that_vary_and_a_busy_server_are_none() {
        let uneven = limited(50, 20_000).loaded(|load, second| {
            load.counters.messages_answered = 50 * second + 60 * (second / 3);
        });
        uneven.is_silent(&RULE);
        let busy = throng_measure::ProcessMetric::BUSIEST_THREAD_PERMILLE.server;
        limited(50, 20_000).with(busy, 970).is_silent(&RULE);
    }
}
