//! Snapshots of cores that answer slowly.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use throng_load::generator::{CoreStats, GeneratorMessage};
use throng_load::run::Collector;
use throng_measure::runfile::RunHeader;
use throng_measure::{Interval, LoadInterval};
use throng_report::SummaryFold;
use throng_sim::{Faults, Sim, check, check_over_all};

use super::world::{Speaks, World};

/// Control thread: it requests a snapshot of all cores each second, and waits half a second for
/// them.
struct Control {
    collector: Collector,
    reply: Sender<Box<CoreStats>>,
    replies: Receiver<Box<CoreStats>>,
}

impl Control {
    fn new(cores: usize) -> Self {
        let (reply, replies) = channel();
        let phases = vec!["hold".to_owned(), "more".to_owned(), throng_measure::LEAVING.to_owned()];
        let collector = Collector::new(cores, phases, vec!["user".to_owned()], Vec::new(), None);
        Self { collector, reply, replies }
    }

    /// Requests a snapshot of all cores, while core 1 is frozen for `frozen_ms`.
    fn snapshot(&mut self, sim: &mut Sim, world: &World, frozen_ms: u64) -> LoadInterval {
        if frozen_ms > 0 {
            sim.freeze(&world.load[1]);
        }
        for (core, blank) in self.collector.request_stats() {
            world.cores.send_message(core, GeneratorMessage::Collect(blank, self.reply.clone()));
        }
        let before_thaw = frozen_ms.min(PATIENCE_MS);
        self.receive(sim, before_thaw);
        if frozen_ms < PATIENCE_MS {
            sim.thaw(&world.load[1]);
            self.receive(sim, PATIENCE_MS - before_thaw);
        }
        self.collector.interval()
    }

    fn receive(&mut self, sim: &mut Sim, ms: u64) {
        let Self { collector, replies, .. } = self;
        sim.run_until(Duration::from_millis(ms), |_| {
            replies.try_iter().for_each(|stats| collector.add_stats(stats));
            !collector.is_waiting()
        });
    }
}

const PATIENCE_MS: u64 = 500;

/// Scenario of 1,000 connects a second, at a constant rate.
const SCENARIO: &str = "
load: [{arrivals: {rate: 1000/s, for: 12s, spacing: even}}]
user: [connect, close]
";

/// Returns the highest rate of connects of a run, and how often a core was silent. Core 1 is frozen
/// for `frozen_ms` of each second.
fn rate_most(sim: &mut Sim, frozen_ms: fn(second: u64) -> u64) -> (f64, u64) {
    // Answers to earlier connects arrive while the core is frozen, and are processed before its
    // messages.
    let delay = Duration::from_millis(200);
    sim.set_faults(Faults { delay_min: delay, delay_max: delay, ..Faults::none() });
    let world = World::start(sim, Speaks::Tcp, 3, SCENARIO);
    let mut control = Control::new(3);
    let mut fold = SummaryFold::new(&RunHeader::default());
    let (mut last_ms, mut silent) = (0, 0);
    for second in 0..=10 {
        world.run_to(sim, second * 1_000);
        let at_ms = (sim.now() - world.start_at).as_millis() as u64;
        let load = control.snapshot(sim, &world, frozen_ms(second));
        silent += load.cores_silent;
        let load = Some(load);
        fold.add(&Interval { at_ms, span_ms: at_ms - last_ms, load, ..Interval::default() });
        last_ms = at_ms;
    }
    (fold.finish(None, 0).connect.rate_most.unwrap(), silent)
}

#[test]
fn a_late_answer_of_a_core_does_not_raise_the_rate() {
    check(5, |sim| {
        let (rate, silent) = rate_most(sim, |second| if second % 2 == 1 { 250 } else { 0 });
        assert_eq!(silent, 0);
        assert!((980.0..1_005.0).contains(&rate), "{rate}");
    });
}

#[test]
fn a_core_that_is_silent_for_a_second_is_not_twice_as_fast_in_the_next() {
    check_over_all(5, |sim| {
        let (rate, silent) = rate_most(sim, |second| if second == 5 { 1_000 } else { 0 });
        assert_eq!(silent, 1);
        assert!((990.0..1_005.0).contains(&rate), "{rate}");
    });
}
