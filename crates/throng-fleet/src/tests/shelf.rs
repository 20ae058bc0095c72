//! Runs that have ended at agents which are free for others.

use std::time::Duration;

use super::world::EarlierRun;
use super::{Recorder, World};
use crate::agent_note::AgentNote;
use crate::request::AgentAnswer;

const ALL: [&str; 3] = ["a", "b", "c"];

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn is_free(world: &World) -> bool {
    world.sites.values().all(|site| site.agent.run().is_none())
}

fn have_ended(world: &World) -> bool {
    world.sites.values().all(|site| site.measured.len() == site.reports_planned)
}

/// Returns a world whose coordinator died, after its agents have ended and are free.
fn orphaned(seed: u64) -> World {
    let mut world = World::running(seed, 5);
    world.kill_recorder();
    world.until("the ends", have_ended);
    world.pass(seconds(16));
    assert!(is_free(&world));
    world
}

/// Asks each agent to stop the run `r`.
fn stop(world: &mut World) -> Vec<AgentAnswer> {
    let now = world.now;
    let ask = |site: &mut super::Site| site.agent.stop("r", site.clock(now));
    world.sites.values_mut().map(ask).collect()
}

fn coordinated() -> AgentAnswer {
    AgentAnswer::Coordinated { coordinator: super::name("first") }
}

/// Lets the run be taken over, and checks that all of it is recorded.
#[track_caller]
fn check_resumed(world: &mut World, earlier: EarlierRun) {
    world.return_to(earlier);
    assert!(world.resume("late"));
    world.finish();
    assert_eq!(world.lost(), [""; 0]);
    world.check_whole(&ALL);
}

#[test]
fn agents_whose_coordinator_died_make_another_run_and_still_have_the_first() {
    let mut world = orphaned(100);
    let kept = AgentNote::Kept("r".into());
    assert!(world.sites.values().all(|site| site.said == [kept.clone()]));
    let first = world.begin_next("s", "other");
    world.finish();
    assert_eq!(world.lost(), [""; 0]);
    world.check_whole(&ALL);
    assert!(world.sites.values().all(|site| site.agent.undelivered().is_some()));
    check_resumed(&mut world, first);
    let delivered = AgentNote::Delivered("r".into());
    assert!(world.sites.values().all(|site| site.said.last() == Some(&delivered)));
    assert!(world.sites.values().all(|site| site.agent.undelivered().is_none()));
}

#[test]
fn the_first_run_is_taken_over_while_the_second_one_goes_on() {
    let mut world = orphaned(101);
    let first = world.begin_next("s", "other");
    world.until("lines", |world| world.file.len() >= 3);
    // Its coordinator goes on as the other process, while the first run is taken over.
    world.other = world.recorder.take();
    (world.run, world.file) = ("r".into(), first.file);
    assert!(world.resume("late"));
    world.until("the end of the first", |world| {
        world.recorder.as_ref().unwrap().state.is_over(world.now)
    });
    let line = world.recorder.as_mut().unwrap().line(world.now);
    let reports: Vec<_> = line.load.machines.iter().map(|it| (it.reports, it.lost)).collect();
    assert_eq!(reports, [(20, false); 3]);
    assert!(world.sites.values().all(|site| site.agent.run().unwrap().run == "s"));
}

#[test]
fn a_coordinator_that_was_away_for_two_minutes_gets_everything_during_another_run() {
    let mut world = World::new(102);
    world.recorder.as_mut().unwrap().state.set_lost_wait(seconds(600));
    world.begin();
    world.until("lines", |world| world.file.len() >= 5);
    let mut away = world.recorder.take().unwrap();
    world.pass(seconds(120));
    assert!(have_ended(&world) && is_free(&world));
    let mut first = world.begin_next("s", "other");
    world.until("lines", |world| world.file.len() >= 3);
    away.go_on(world.now);
    world.other = Some(away);
    for _ in 0..8 {
        world.pass(seconds(1));
        let now = world.now;
        first.file.push(world.other.as_mut().unwrap().line(now));
    }
    world.other = None;
    // The second run does not notice.
    world.finish();
    assert_eq!(world.lost(), [""; 0]);
    world.check_whole(&ALL);
    world.return_to(first);
    assert_eq!(world.lost(), [""; 0]);
    world.check_whole(&ALL);
}

#[test]
fn without_the_bus_agents_are_free_and_the_same_coordinator_gets_everything() {
    let mut world = World::running(103, 4);
    world.bus.is_away = true;
    world.pass(seconds(120));
    assert!(is_free(&world) && have_ended(&world));
    world.bus.is_away = false;
    world.finish();
    assert_eq!(world.lost(), [""; 0]);
    world.check_whole(&ALL);
}

#[test]
fn a_bus_that_loses_and_repeats_mixes_no_two_runs() {
    for seed in 104..107 {
        let mut world = orphaned(seed);
        let lossy = |world: &mut World| {
            (world.bus.lost, world.bus.repeated) = (200, 200);
            world.bus.delay_most = Duration::from_millis(300);
        };
        let first = world.begin_next("s", "other");
        world.until("lines", |world| world.file.len() >= 2);
        lossy(&mut world);
        let is_whole = |world: &World| {
            let last = &world.file.last().unwrap().load.machines;
            last.iter().all(|machine| machine.reports == 20)
        };
        world.finish();
        world.check_sums();
        assert!(is_whole(&world));
        world.return_to(first);
        assert!(world.resume("late"));
        world.finish();
        world.check_sums();
        assert!(is_whole(&world));
    }
}

#[test]
fn a_run_that_is_only_prepared_costs_no_earlier_run_its_totals() {
    let mut world = World::running(108, 2);
    world.finish();
    world.check_whole(&ALL);
    let earlier = world.set_aside();
    // As `throng plan --agents` does, and a run that is refused.
    for planner in ["planner", "refused"] {
        world.recorder = Some(Recorder::new(planner, planner));
        world.gather(seconds(1));
        let now = world.now;
        world.recorder.as_mut().unwrap().prepare(&world.plan, now);
        world.until("ready agents", |world| world.recorder.as_ref().unwrap().is_ready());
        world.recorder.as_mut().unwrap().state.coordinator.abandon();
        world.pass(seconds(1));
        assert!(is_free(&world));
    }
    world.recorder = None;
    check_resumed(&mut world, earlier);
}

#[test]
fn beyond_four_runs_the_oldest_goes_and_the_agent_says_so() {
    let mut world = orphaned(109);
    for run in ["s", "t", "u", "v"] {
        let said = |world: &World, note: &AgentNote| {
            world.sites.values().all(|site| site.said.contains(note))
        };
        let gone = AgentNote::Forgotten { run: "r".into(), why: "later runs take its place" };
        assert!(!said(&world, &gone));
        world.begin_next(run, run);
        world.until("lines", |world| world.file.len() >= 2);
        world.kill_recorder();
        world.until("the ends", have_ended);
        world.pass(seconds(16));
        assert!(is_free(&world));
        assert_eq!(said(&world, &gone), run == "v");
    }
    world.recorder = Some(Recorder::new("r", "late"));
    world.gather(seconds(1));
    let known = world.recorder.as_ref().unwrap().state.coordinator.known();
    for agent in known.values() {
        let kept: Vec<_> = agent.hello.kept.iter().map(|held| held.key.run.as_str()).collect();
        assert_eq!(kept, ["s", "t", "u", "v"]);
        assert_eq!(agent.why_not_free(), None);
    }
}

#[test]
fn a_delivered_run_goes_before_one_that_is_not() {
    let mut world = orphaned(110);
    for run in ["s", "t", "u", "v"] {
        world.begin_next(run, run);
        world.finish();
        world.check_whole(&ALL);
    }
    for site in world.sites.values() {
        assert_eq!(site.agent.undelivered().unwrap().run, "r");
        assert_eq!(site.said, [AgentNote::Kept("r".into())]);
    }
}

#[test]
fn results_that_were_not_fetched_within_an_hour_are_forgotten() {
    let mut world = orphaned(111);
    world.pass(seconds(3_500));
    assert!(world.sites.values().all(|site| site.agent.undelivered().is_some()));
    world.pass(seconds(120));
    let gone = AgentNote::Forgotten { run: "r".into(), why: "it ended an hour ago" };
    assert!(world.sites.values().all(|site| site.said.last() == Some(&gone)));
    assert!(!world.resume("late"));
}

#[test]
fn an_agent_with_a_silent_coordinator_says_so_and_stops_the_run_when_it_is_asked() {
    let mut world = World::running(112, 5);
    assert_eq!(stop(&mut world), vec![coordinated(); 3]);
    world.kill_recorder();
    world.pass(seconds(8));
    world.recorder = Some(Recorder::new("s", "other"));
    world.gather(seconds(1));
    let known = world.recorder.take().unwrap().state.coordinator.known().clone();
    for agent in known.values() {
        let why = agent.why_not_free().unwrap();
        for part in ["has been silent for", "throng run --resume r", "throng fleet stop r"] {
            assert!(why.contains(part), "{why}");
        }
    }
    assert_eq!(stop(&mut world), vec![AgentAnswer::Stopping; 3]);
    world.pass(seconds(2));
    assert!(have_ended(&world));
    assert!(world.sites.values().all(|site| site.agent.run().is_some()));
    assert_eq!(stop(&mut world), vec![AgentAnswer::LoadEnded; 3]);
    world.pass(seconds(14));
    assert!(is_free(&world));
    assert_eq!(stop(&mut world), vec![AgentAnswer::NotMade; 3]);
    let planned = world.sites["a"].reports_planned;
    let first = world.begin_next("s", "other");
    world.finish();
    world.check_whole(&ALL);
    assert!(planned < 20);
    world.return_to(first);
    assert!(world.resume("late"));
    world.finish();
    world.check_sums();
    assert_eq!(world.lost(), [""; 0]);
    world.check_whole(&ALL);
    let machines = world.recorder.as_ref().unwrap().state.machines.as_ref().unwrap();
    let interruption = machines.interruption().unwrap();
    assert_eq!(interruption.by, "throng fleet stop");
    let stopped_ms = 13_000..=16_000;
    assert!(stopped_ms.contains(&interruption.at_ms), "{interruption:?}");
}

#[test]
fn a_run_that_is_stopped_before_its_load_was_started_is_forgotten_at_once() {
    let mut world = World::new(113);
    world.gather(seconds(1));
    let now = world.now;
    world.recorder.as_mut().unwrap().prepare(&world.plan, now);
    world.until("ready agents", |world| world.recorder.as_ref().unwrap().is_ready());
    assert_eq!(stop(&mut world), vec![coordinated(); 3]);
    world.kill_recorder();
    world.pass(seconds(5));
    assert!(world.sites.values().all(|site| site.agent.run().is_some()));
    // A request that is repeated at once has the same answer.
    assert_eq!(stop(&mut world), vec![AgentAnswer::Forgotten; 3]);
    assert_eq!(stop(&mut world), vec![AgentAnswer::Forgotten; 3]);
    world.pass(Duration::from_millis(20));
    assert!(is_free(&world));
    assert_eq!(stop(&mut world), vec![AgentAnswer::NotMade; 3]);
    world.begin_next("s", "other");
    world.finish();
    world.check_whole(&ALL);
}
