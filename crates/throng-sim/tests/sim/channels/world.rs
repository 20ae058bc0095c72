//! A scripted server and a generator in one world.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use throng_driver::MessagePriority;
use throng_engine::{Core, CoreLimits};
use throng_load::cues::Cues;
use throng_load::generator::{CoreStats, ErrorKind, Generator, GeneratorConfig, GeneratorMessage};
use throng_load::program::Program;
use throng_load::scenario::Scenario;
use throng_load::source::SourcePlan;
use throng_measure::{LoadCounters, Merge, Operation, OperationTimes, ProbeCounters, Tally};
use throng_sim::{Sim, SimCoresOptions, SimDriver};

use super::server::{Script, Scripted, server_addr};

type LoadCore = Rc<RefCell<Core<SimDriver<GeneratorMessage>, Generator>>>;

/// Server and generator.
pub(crate) struct World {
    pub(crate) server: Rc<RefCell<Core<SimDriver<()>, Scripted>>>,
    load: Vec<LoadCore>,
}

impl World {
    /// Starts a server, and a generator of three cores that runs `scenario` (without its target and
    /// protocol).
    pub(crate) fn start(sim: &mut Sim, script: Script, scenario: &str) -> Self {
        let [driver] = sim.cores(&SimCoresOptions::default()).drivers().try_into().ok().unwrap();
        let server = sim.spawn(Core::new(driver, Scripted::new(script), CoreLimits::default()));
        let text = format!(
            "target: ws://{}/socket/websocket\nprotocol: phoenix\n{scenario}",
            server_addr()
        );
        let scenario = Scenario::parse(&text, "test").unwrap_or_else(|wrong| panic!("{wrong}"));
        let program = Program::compile(&scenario);
        let config = Arc::new(GeneratorConfig {
            cues: Cues::new(program.cues()).into(),
            program,
            load: scenario.load.clone(),
            targets: vec![server_addr()],
            sources: SourcePlan::Any,
            self_connect_possible: false,
            options: Default::default(),
            seed: sim.seed(),
            start_at: sim.now() + Duration::from_millis(100),
            run: 1,
            first_user: 0,
            share: None,
            peers: None,
            trace: None,
        });
        let cores = 3;
        let options = SimCoresOptions { cores, ..SimCoresOptions::default() };
        let drivers = sim.cores(&options).drivers();
        let start = |(core, driver)| {
            let app = Generator::new(Arc::clone(&config), core, cores);
            sim.spawn(Core::new(driver, app, CoreLimits::default()))
        };
        let load = drivers.into_iter().enumerate().map(start).collect();
        Self { server, load }
    }

    /// Ends the load before its schedule does.
    pub(crate) fn ramp_down(&self) {
        for core in &self.load {
            let mut core = core.borrow_mut();
            let cx = core.cx();
            let own = cx.core();
            assert!(
                cx.send_message(own, GeneratorMessage::RampDown, MessagePriority::Control).is_ok()
            );
        }
    }

    /// Runs to the end of the schedule, until all users have left. Returns counters and histograms.
    pub(crate) fn finish(&self, sim: &mut Sim, limit: Duration) -> Totals {
        let finished = |core: &LoadCore| core.borrow().app().is_finished();
        let over = sim.run_until(limit, |_| self.load.iter().all(finished));
        let totals = self.totals();
        assert!(over, "{totals:?}");
        // Deliver the segments in transit.
        sim.run_for(Duration::from_secs(30));
        assert_eq!((totals.counters.connected, totals.counters.joined), (0, 0), "{totals:?}");
        let counters = &totals.counters;
        let ends = counters.users_finished + counters.users_failed + counters.users_cut;
        assert_eq!(counters.iterations, ends);
        for probe in totals.probes.values() {
            assert_eq!(probe.outstanding(), 0, "{totals:?}");
        }
        totals
    }

    /// Returns the counters and histograms so far.
    pub(crate) fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for core in &self.load {
            let core = core.borrow();
            let stats: &CoreStats = core.app().stats();
            totals.counters.merge(&stats.counters);
            ErrorKind::OF_USERS
                .iter()
                .for_each(|kind| totals.errors.add(kind.name(), stats.errors[*kind as usize]));
            for (code, count) in &stats.close_codes {
                totals.errors.add(format!("close {code:?}"), *count);
            }
            for (why, count) in &stats.connect_failures {
                totals.errors.add(why.to_string(), *count);
            }
            totals.times.merge(&stats.times);
            for tally in &stats.probes {
                totals.probes.entry(tally.number).or_default().merge(&tally.counters);
                totals.times[Operation::Broadcast].merge(&tally.latency);
            }
        }
        totals
    }
}

/// Sums over all cores.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    pub(crate) counters: LoadCounters,
    pub(crate) errors: Tally,
    pub(crate) times: OperationTimes,
    pub(crate) probes: BTreeMap<u32, ProbeCounters>,
}
