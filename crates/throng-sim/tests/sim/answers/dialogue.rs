//! The match of answers to requests, with other messages in between.

use std::time::Duration;
use throng_measure::Operation;

use throng_load::generator::{CoreStats, ErrorKind};
use throng_sim::check_over_all;

use super::room::{Reply, Room, To};
use super::run::play;

const ON_TIME: Duration = Duration::ZERO;

/// Returns a room that sends every text to all members after `delay`.
fn room(delay: Duration) -> Room {
    Room::new(move |text, _| vec![Reply { after: delay, to: To::Everyone, text: text.to_owned() }])
}

fn reply(after_ms: u64, text: &str) -> Reply {
    Reply { after: Duration::from_millis(after_ms), to: To::Sender, text: text.to_owned() }
}

fn errors(stats: &CoreStats) -> u64 {
    stats.errors.iter().sum()
}

/// Scenario of 40 users in one room. Each sends a text every two seconds, and waits for a message
/// of any user.
const ANY_MESSAGE: &str = "
load: [{ramp: {to: 40, over: 2s}}, {hold: {for: 30s}}]
user:
  - connect
  - wait: 2500ms ±100%
  - every:
      period: 2s
      do: [{send: 'a word of ${user.id}'}, {expect: {contains: word, skip_others: true}}]
";

#[test]
fn answers_that_may_belong_to_other_users_are_counted() {
    check_over_all(3, |sim| {
        let stats = play(sim, room(Duration::from_secs(2)), ON_TIME, ANY_MESSAGE);
        let counters = &stats.counters;
        assert_eq!(errors(&stats), 0);
        let doubtful = counters.answers_doubtful as f64 / counters.messages_answered as f64;
        assert!(doubtful > 0.9, "{doubtful} {counters:?}");
        assert!(counters.messages_unasked > 10 * counters.messages_answered, "{counters:?}");
        // No answer arrived before its request.
        assert!(stats.times[Operation::Message].percentile(10.0) > 0);
        assert_eq!(counters.answers_out_of_step, 0);
    });
}

#[test]
fn a_user_that_knows_its_own_answer_measures_it_among_those_of_others() {
    let classes: String = (0..20)
        .map(|user| {
            format!(
                "  user{user}:
    user:
      - connect
      - wait: 2500ms ±100%
      - every:
          period: 2s
          do: [{{send: 'word of {user}.'}}, {{expect: {{text: 'word of {user}.', \
              skip_others: true}}}}]
"
            )
        })
        .collect();
    let scenario = format!(
        "load: [{{ramp: {{to: 20, over: 2s}}}}, {{hold: {{for: 30s}}}}]\nusers:\n{classes}"
    );
    check_over_all(2, move |sim| {
        let stats = play(sim, room(Duration::from_millis(1_500)), ON_TIME, &scenario);
        assert_eq!((errors(&stats), stats.counters.answers_doubtful), (0, 0));
        assert!(stats.times[Operation::Message].count() > 200);
        let ends = [
            stats.times[Operation::Message].percentile(0.0),
            stats.times[Operation::Message].max(),
        ];
        assert!(ends.iter().all(|us| us.abs_diff(1_500_100) < 3_000), "{ends:?}");
    });
}

#[test]
fn a_message_that_arrived_before_the_request_is_not_its_answer_even_if_it_was_read_later() {
    // The server sends first, 1 s after the greeting of the user: at the moment of the user's
    // request, or a little before it. The generator is too late to see which.
    let script = |text: &str, _| match text {
        "hello" => vec![reply(900, "ready"), reply(990, "ok")],
        _ => vec![reply(300, "ok")],
    };
    check_over_all(10, move |sim| {
        let late = Duration::from_millis(200);
        let stats = play(
            sim,
            Room::new(script),
            late,
            "load: [{arrivals: {rate: 10/s, for: 5s, spacing: even}}]
user: [connect, send: hello, expect: ready, wait: 90ms, send: question, expect: {text: ok, \
    skip_others: true}, close]
on_error: stop\n",
        );
        assert_eq!(errors(&stats), 0);
        // Both answers of a user are measured, and no answer is earlier than possible.
        let least = stats.arrival[Operation::Message].percentile(0.0);
        assert!(least >= 299_000, "{least}");
    });
}

#[test]
fn messages_that_are_sent_ahead_are_each_answered_from_their_own_moment() {
    // Two requests are in flight at any time; each has its answer after 100 ms.
    check_over_all(3, |sim| {
        let stats = play(
            sim,
            Room::new(|text, _| vec![reply(100, text)]),
            ON_TIME,
            "load: [{arrivals: {rate: 1/s, for: 1s, spacing: even}}]
user:
  - connect
  - send: w
  - wait: 50ms
  - send: w
  - repeat: {times: 20, do: [{expect: w}, {send: w}]}
  - expect: w
  - expect: w
  - close\n",
        );
        assert_eq!((errors(&stats), stats.counters.messages_answered), (0, 22));
        assert_eq!(stats.counters.answers_out_of_step, 0);
        // The second latency counts from the first answer, as for two messages in a row.
        assert!(
            stats.times[Operation::Message].max().abs_diff(150_100) < 1_000,
            "{}",
            stats.times[Operation::Message].max()
        );
        assert!(stats.times[Operation::Message].percentile(90.0).abs_diff(100_100) < 1_000);
    });
}

/// Scenario of 50 requests in a row, each with a time-out of a second.
const PATIENT: &str = "
load: [{arrivals: {rate: 1/s, for: 1s, spacing: even}}, {hold: {for: 60s}}]
user: [connect, repeat: {times: 50, do: [send: hi, expect: {text: hi, timeout: 1s}]}, close]
on_error: continue
";

#[test]
fn a_late_answer_does_not_match_the_next_request() {
    // Every fifth answer arrives after the user's time-out, during the next request.
    let script =
        |text: &str, heard: usize| vec![reply(if heard % 5 == 4 { 1_300 } else { 400 }, text)];
    check_over_all(3, move |sim| {
        let stats = play(sim, Room::new(script), ON_TIME, PATIENT);
        let counters = &stats.counters;
        let given_up = stats.errors[ErrorKind::ExpectTimeout as usize];
        assert_eq!((given_up, errors(&stats)), (10, 10), "{counters:?}");
        // The last of them arrives after the end.
        assert_eq!((counters.messages_answered, counters.messages_unasked), (40, 9));
        assert_eq!((counters.answers_out_of_step, counters.answers_doubtful), (0, 0));
        all_took(&stats, 400, 40);
    });
}

#[test]
fn an_answer_that_is_lost_costs_a_time_out_and_no_other_answer() {
    let script = |text: &str, heard: usize| match heard % 5 {
        4 => Vec::new(),
        _ => vec![reply(400, text)],
    };
    check_over_all(3, move |sim| {
        let stats = play(sim, Room::new(script), ON_TIME, PATIENT);
        let counters = &stats.counters;
        assert_eq!(stats.errors[ErrorKind::ExpectTimeout as usize], 10, "{counters:?}");
        assert_eq!(counters.messages_answered, 40);
        // The first answer after each loss may be the lost one.
        assert_eq!(counters.answers_out_of_step, 9, "{counters:?}");
        all_took(&stats, 400, 31);
    });
}

#[track_caller]
fn all_took(stats: &CoreStats, ms: u64, count: u64) {
    let ends =
        [stats.times[Operation::Message].percentile(0.0), stats.times[Operation::Message].max()];
    assert!(ends.iter().all(|us| us.abs_diff(1_000 * ms + 100) < 2_000), "{ends:?}");
    assert_eq!(stats.times[Operation::Message].count(), count);
}

#[test]
fn unrequested_messages_do_not_fill_the_memory_of_a_user_that_sends_first() {
    // 100 messages of a kilobyte for each request, and a think time in which they accumulate.
    let script = |_: &str, _| {
        let noise = (0..100).map(|_| reply(200, &"x".repeat(1_000)));
        std::iter::once(reply(10, "ok")).chain(noise).collect()
    };
    check_over_all(2, move |sim| {
        let stats = play(
            sim,
            Room::new(script),
            ON_TIME,
            "load: [{arrivals: {rate: 1/s, for: 1s, spacing: even}}]
user: [connect, repeat: {times: 10, do: [send: hi, expect: ok, wait: 1s]}, close]
on_error: stop\n",
        );
        assert_eq!(errors(&stats), 0, "{stats:?}");
        let counters = &stats.counters;
        assert_eq!((counters.messages_answered, counters.messages_unasked), (10, 1_000));
        assert_eq!(counters.answers_doubtful, 0, "the noise differs from the answer");
    });
}
