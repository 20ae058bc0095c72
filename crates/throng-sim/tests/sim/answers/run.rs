//! Generator that runs a scenario against a [`Room`].

use std::sync::Arc;
use std::time::Duration;

use throng_engine::{Core, CoreLimits};
use throng_load::cues::Cues;
use throng_load::generator::{CoreStats, Generator, GeneratorConfig};
use throng_load::program::Program;
use throng_load::scenario::Scenario;
use throng_load::source::SourcePlan;
use throng_sim::{Sim, SimCoresOptions};

use super::room::{Room, room_addr};

/// Runs `scenario` (without its target) to its end on one core, whose turns take up to `turn_max`.
/// Returns its counters and histograms.
pub(crate) fn play(sim: &mut Sim, room: Room, turn_max: Duration, scenario: &str) -> CoreStats {
    let [driver] = sim.cores(&SimCoresOptions::default()).drivers().try_into().ok().unwrap();
    sim.spawn(Core::new(driver, room, CoreLimits::default()));
    let text = format!("target: ws://{}/\n{scenario}", room_addr());
    let scenario = Scenario::parse(&text, "test").unwrap_or_else(|wrong| panic!("{wrong}"));
    let program = Program::compile(&scenario);
    let config = Arc::new(GeneratorConfig {
        cues: Cues::new(program.cues()).into(),
        program,
        load: scenario.load.clone(),
        targets: vec![room_addr()],
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
    let options = SimCoresOptions { turn_max, ..SimCoresOptions::default() };
    let [driver] = sim.cores(&options).drivers().try_into().ok().unwrap();
    let load = sim.spawn(Core::new(driver, Generator::new(config, 0, 1), CoreLimits::default()));
    let over = sim.run_until(Duration::from_secs(600), |_| load.borrow().app().is_finished());
    let stats = load.borrow().app().stats().clone();
    assert!(over, "{stats:?}");
    stats
}
