//! The measured latency of a known delay.

use std::time::Duration;

use throng_measure::{Histogram, Operation};
use throng_server::AcceptTopology;
use throng_sim::{Faults, Sim};

use super::pair::{Pair, Shape};

/// Scenario of four users who each send ten requests.
const ASK: &str = "
load: [{arrivals: {rate: 4/s, for: 1s, spacing: even}}, {hold: {for: 3s}}]
user: [connect, {every: {rate: 5/s, for: 2s, do: [{send: hi}, {expect: {bytes: 2}}]}}, close]
";

/// Runs the scenario on a network that takes half of `delay` in each direction. Returns the
/// generator's latencies of connects and messages.
fn measured(delay: Duration) -> [Histogram; 2] {
    let mut sim = Sim::new(1);
    let (delay_min, delay_max) = (delay / 2, delay / 2);
    sim.set_faults(Faults { delay_min, delay_max, ..Faults::none() });
    let pair = Pair::start(&mut sim, AcceptTopology::Reuseport, Shape::default(), ASK);
    pair.finish(&mut sim, Duration::from_secs(60));
    assert_eq!(pair.errors(), 0);
    let mut both = [Histogram::new(), Histogram::new()];
    for stats in pair.core_stats() {
        both[0].merge(&stats.times[Operation::Connect]);
        both[1].merge(&stats.times[Operation::Message]);
    }
    both
}

#[test]
fn a_known_delay_is_measured_exactly() {
    for delay in [100, 1_000, 10_000, 100_000].map(Duration::from_micros) {
        let us = delay.as_micros() as u64;
        let [connect, message] = measured(delay);
        assert_eq!((connect.count(), message.count()), (4, 40));
        // Timers are at most 20 us late, and a histogram's cell is 0.1 % wide.
        let most = us + us / 500 + 200;
        for (what, found) in [("connect", connect), ("message", message)] {
            let (least, p50, max) = (found.percentile(0.0), found.percentile(50.0), found.max());
            assert!(least >= us, "{what}: {least} us is less than the delay of {us} us");
            assert!(p50 <= most && max <= most, "{what}: {p50} us, at most {max}, of {us} us");
        }
    }
}
