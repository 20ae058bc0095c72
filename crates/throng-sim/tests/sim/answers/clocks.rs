//! Latencies by the kernel's clock are right even if the generator reads late.

use std::rc::Rc;
use std::time::Duration;

use throng_base::Prng;
use throng_measure::{Histogram, Operation};
use throng_sim::{Faults, check_over_all};

use super::room::{Reply, Room, To};
use super::run::play;

/// Round trip of the simulated network.
const ROUND_TRIP: Duration = Duration::from_micros(100);
/// Time that the server takes for an answer.
const SERVICE: Duration = Duration::from_micros(970);
/// Longest turn of the generator.
const LATE: Duration = Duration::from_millis(13);

fn echo() -> Room {
    Room::new(|text, _| vec![Reply { after: SERVICE, to: To::Sender, text: text.to_owned() }])
}

/// Scenario of a closed loop: each request begins after the previous answer.
const CLOSED: &str = "
load: [{ramp: {to: 2, over: 1s}}, {hold: {for: 20s}}]
user: [connect, repeat: {for: 1h, do: [send: hi, expect: hi]}]
";

/// Scenario of a chat: users wait for their own message among those of all others. All messages
/// are answered.
const CHAT: &str = "
load: [{ramp: {to: 20, over: 1s}}, {hold: {for: 200s}}]
user:
  - connect
  - repeat:
      times: 200
      do: [send: {text: '${user.id} ${counter}'}, expect: {text: '${sent}', skip_others: true}]
  - stay
";

/// Scenario of requests at fixed times.
const PACED: &str = "
load: [{ramp: {to: 5, over: 1s}}, {hold: {for: 20s}}]
user: [connect, every: {period: 50ms, do: [send: hi, expect: hi]}]
";

fn micros(span: Duration) -> u64 {
    span.as_micros() as u64
}

/// Asserts that every value is `us`, to the precision of a histogram.
#[track_caller]
fn all_are(histogram: &Histogram, us: u64) {
    let ends = [histogram.percentile(0.0), histogram.max()];
    assert!(ends.iter().all(|end| end.abs_diff(us) <= 1 + us / 500), "{ends:?}, not {us}");
}

#[test]
fn a_late_generator_measures_a_prompt_server_by_the_kernels_clock() {
    check_over_all(4, |sim| {
        let stats = play(sim, echo(), LATE, CLOSED);
        let (seen, arrived) =
            (&stats.times[Operation::Message], &stats.arrival[Operation::Message]);
        assert!(seen.count() > 1_000);
        assert_eq!(seen.count(), arrived.count());
        all_are(arrived, micros(ROUND_TRIP + SERVICE));
        let late = seen.percentile(50.0);
        assert!(late > 4 * micros(ROUND_TRIP + SERVICE), "the generator read late: {late}");
    });
}

#[test]
fn a_late_send_is_in_the_latency_and_in_the_lag() {
    check_over_all(4, |sim| {
        let stats = play(sim, echo(), LATE, PACED);
        let (lag, arrived) = (&stats.lag, &stats.arrival[Operation::Message]);
        assert!(lag.percentile(50.0) > 1_000, "the generator sent late: {}", lag.percentile(50.0));
        let least = micros(ROUND_TRIP + SERVICE);
        assert!(arrived.percentile(0.0) >= least - 2, "{}", arrived.percentile(0.0));
        assert!(arrived.max() <= lag.max() + least + 20, "{} {}", arrived.max(), lag.max());
        assert!(
            stats.times[Operation::Message].max() > arrived.max(),
            "the generator read late too"
        );
    });
}

#[test]
fn a_connect_takes_a_round_trip_by_the_kernels_clock() {
    check_over_all(4, |sim| {
        let stats = play(
            sim,
            echo(),
            LATE,
            "load: [{arrivals: {rate: 20/s, for: 20s}}]\nuser: [connect, wait: 1s, close]\n",
        );
        let (tcp, lag) = (&stats.arrival[Operation::Tcp], &stats.lag);
        assert!(tcp.percentile(0.0) >= micros(ROUND_TRIP) - 1, "{}", tcp.percentile(0.0));
        assert!(tcp.max() <= lag.max() + micros(ROUND_TRIP) + 20, "{} {}", tcp.max(), lag.max());
        assert!(
            stats.times[Operation::Connect].percentile(50.0)
                > stats.arrival[Operation::Connect].percentile(50.0)
        );
    });
}

#[test]
fn without_stamps_both_latencies_use_the_generators_clock() {
    check_over_all(3, |sim| {
        sim.set_faults(Faults { no_stamp: 1.0, ..Faults::none() });
        let stats = play(sim, echo(), LATE, CLOSED);
        let (seen, arrived) =
            (&stats.times[Operation::Message], &stats.arrival[Operation::Message]);
        for percent in [0.0, 50.0, 99.0, 100.0] {
            assert_eq!(seen.percentile(percent), arrived.percentile(percent));
        }
        assert_eq!(seen.count(), arrived.count());
    });
}

/// Returns a server that takes up to 2 ms for most messages, and up to 40 ms for one in twenty.
fn uneven(to: To) -> Room {
    let mut random = Prng::new(7);
    Room::new(move |text, _| {
        let most_us = if random.below(20) == 0 { 40_000 } else { 2_000 };
        let us = random.below(most_us);
        vec![Reply { after: Duration::from_micros(us), to, text: text.to_owned() }]
    })
}

/// Asserts that the latencies of `room` that a generator with turns of up to `turn_max` reports are
/// those that the server itself has noted.
#[track_caller]
fn reports_what_the_server_noted(room: impl Fn() -> Room, turn_max: Duration) {
    check_over_all(20, |sim| {
        let room = room();
        let noted = Rc::clone(&room.service);
        let stats = play(sim, room, turn_max, CHAT);
        let (noted, arrived) = (noted.borrow(), &stats.arrival[Operation::Message]);
        assert_eq!((noted.count(), arrived.count()), (4_000, 4_000));
        for percent in [0.0, 50.0, 95.0, 99.0, 99.9, 100.0] {
            let (true_us, us) = (noted.percentile(percent), arrived.percentile(percent));
            let true_us = true_us + micros(ROUND_TRIP);
            assert!(us.abs_diff(true_us) <= 2 + true_us / 500, "p{percent}: {us}, not {true_us}");
        }
    });
}

#[test]
fn percentiles_are_the_servers_own_in_rooms_of_one_and_of_twenty() {
    for to in [To::Sender, To::Everyone] {
        reports_what_the_server_noted(|| uneven(to), Duration::ZERO);
    }
}

#[test]
fn percentiles_of_a_server_that_stalls_are_its_own() {
    let stall = Duration::from_millis(250);
    for to in [To::Sender, To::Everyone] {
        reports_what_the_server_noted(|| uneven(to).stalling(50, stall), Duration::ZERO);
    }
}

#[test]
fn percentiles_of_a_late_generator_are_the_servers_own() {
    let stall = Duration::from_millis(250);
    reports_what_the_server_noted(|| uneven(To::Sender), LATE);
    reports_what_the_server_noted(|| uneven(To::Sender).stalling(50, stall), LATE);
}

/// A late generator reads an answer together with what other users sent later. The kernel has one
/// time for all of it: that of the last byte.
#[test]
fn percentiles_of_a_late_generator_in_a_room_of_twenty_are_between_the_servers_and_those_seen() {
    check_over_all(20, |sim| {
        let room = uneven(To::Everyone).stalling(50, Duration::from_millis(250));
        let noted = Rc::clone(&room.service);
        let stats = play(sim, room, LATE, CHAT);
        let (noted, seen, arrived) =
            (noted.borrow(), &stats.times[Operation::Message], &stats.arrival[Operation::Message]);
        assert!(noted.is_at_most(arrived) && arrived.is_at_most(seen));
    });
}

#[test]
fn no_latency_until_the_arrival_exceeds_the_one_until_the_read_whatever_is_stamped() {
    for no_stamp in [0.0, 0.3, 0.9] {
        check_over_all(5, |sim| {
            sim.set_faults(Faults { no_stamp, ..Faults::none() });
            let stats = play(sim, uneven(To::Everyone).stalling(50, LATE), LATE, CHAT);
            let pairs = [
                (&stats.times[Operation::Message], &stats.arrival[Operation::Message]),
                (&stats.times[Operation::Connect], &stats.arrival[Operation::Connect]),
                (&stats.times[Operation::Tcp], &stats.arrival[Operation::Tcp]),
            ];
            for (seen, arrived) in pairs {
                assert!(seen.count() > 0 && arrived.is_at_most(seen), "{seen:?} {arrived:?}");
            }
        });
    }
}
