//! Latencies by the kernel's clock are right even if the generator reads late.

use std::time::Duration;

use throng_report::Histogram;
use throng_sim::{Faults, check};

use crate::room::{Reply, Room, To};
use crate::run::play;

/// Round trip of the simulated network.
const ROUND_TRIP: Duration = Duration::from_micros(100);
/// Time that the server takes for an answer.
const SERVICE: Duration = Duration::from_micros(970);
/// Longest turn of the generator.
const LATE: Duration = Duration::from_millis(13);

fn echo() -> Room {
    Room::new(|text, _| vec![Reply { after: SERVICE, to: To::Sender, text: text.to_owned() }])
}

/// Scenario of a closed loop: each request begins after the previous answer. The rate is so low
/// that each receive requests a stamp.
const CLOSED: &str = "
load: [{ramp: {to: 2, over: 1s}}, {hold: {for: 20s}}]
user: [connect, repeat: {for: 1h, do: [send: hi, expect: hi]}]
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
    check(4, |sim| {
        let stats = play(sim, echo(), LATE, CLOSED);
        let (seen, arrived) = (&stats.message, &stats.arrival.message);
        assert!(seen.count() > 1_000);
        assert_eq!(seen.count(), arrived.count());
        all_are(arrived, micros(ROUND_TRIP + SERVICE));
        let late = seen.percentile(50.0);
        assert!(late > 4 * micros(ROUND_TRIP + SERVICE), "the generator read late: {late}");
    });
}

#[test]
fn a_late_send_is_in_the_latency_and_in_the_lag() {
    check(4, |sim| {
        let stats = play(sim, echo(), LATE, PACED);
        let (lag, arrived) = (&stats.lag, &stats.arrival.message);
        assert!(lag.percentile(50.0) > 1_000, "the generator sent late: {}", lag.percentile(50.0));
        let least = micros(ROUND_TRIP + SERVICE);
        assert!(arrived.percentile(0.0) >= least - 2, "{}", arrived.percentile(0.0));
        assert!(arrived.max() <= lag.max() + least + 20, "{} {}", arrived.max(), lag.max());
        assert!(stats.message.max() > arrived.max(), "the generator read late too");
    });
}

#[test]
fn a_connect_takes_a_round_trip_by_the_kernels_clock() {
    check(4, |sim| {
        let stats = play(
            sim,
            echo(),
            LATE,
            "load: [{arrivals: {rate: 20/s, for: 20s}}]\nuser: [connect, wait: 1s, close]\n",
        );
        let (tcp, lag) = (&stats.arrival.tcp, &stats.lag);
        assert!(tcp.percentile(0.0) >= micros(ROUND_TRIP) - 1, "{}", tcp.percentile(0.0));
        assert!(tcp.max() <= lag.max() + micros(ROUND_TRIP) + 20, "{} {}", tcp.max(), lag.max());
        assert!(stats.connect.percentile(50.0) > stats.arrival.connect.percentile(50.0));
    });
}

#[test]
fn without_stamps_both_latencies_use_the_generators_clock() {
    check(3, |sim| {
        sim.set_faults(Faults { no_stamp: 1.0, ..Faults::none() });
        let stats = play(sim, echo(), LATE, CLOSED);
        let (seen, arrived) = (&stats.message, &stats.arrival.message);
        for percent in [0.0, 50.0, 99.0, 100.0] {
            assert_eq!(seen.percentile(percent), arrived.percentile(percent));
        }
        assert_eq!(seen.count(), arrived.count());
    });
}
