//! One fault each, and what is left of the run.

use std::time::Duration;

use throng_measure::{Operation, RunEventKind};

use super::*;
use crate::{AGENT_LOST_AFTER, LOST_WAIT};

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn a_run_without_faults_has_all_reports_of_all_machines() {
    let mut world = World::running(1, 3);
    world.finish();
    world.check_whole(&["a", "b", "c"]);
    assert_eq!(world.lost(), [""; 0]);
    let began = |name: &str| world.sites[name].measured.len();
    assert_eq!([began("a"), began("b"), began("c")], [20; 3]);
}

#[test]
fn machines_whose_clocks_differ_begin_at_the_same_moment() {
    let mut world = World::new(2);
    world.bus.delay_most = Duration::from_millis(80);
    world.begin();
    world.until("reports of all", |world| world.sites.values().all(|it| it.measured.len() > 2));
    let counts: Vec<_> = world.sites.values().map(|site| site.measured.len()).collect();
    // An answer takes 160 ms at most, of which an offset is wrong by half at most.
    assert_eq!(counts, [3; 3]);
    let coordinator = &world.recorder.as_ref().unwrap().state.coordinator;
    for member in coordinator.members() {
        let true_us = world.sites[member.name.as_str()].ahead_us;
        let off_us = member.offset.ahead_us.abs_diff(true_us);
        assert!(off_us <= member.offset.error_us, "{} {:?}", member.name, member.offset);
        assert!(member.offset.error_us < 80_000, "{:?}", member.offset);
    }
}

#[test]
fn an_agent_that_is_killed_is_told_with_its_share_and_its_moment() {
    let mut world = World::running(3, 6);
    world.kill_site("b");
    world.finish();
    assert_eq!(world.lost(), ["b"]);
    world.check_whole(&["a", "c"]);
    let lost = world.events().into_iter().find_map(|event| match event {
        RunEventKind::AgentLost { percent, from_ms, reason, .. } => {
            Some((*percent, *from_ms, reason.clone()))
        }
        _ => None,
    });
    let last_report_ms = 1_000 * world.gone["b"].measured.len() as u64;
    let (percent, from_ms, reason) = lost.unwrap();
    assert_eq!((percent, reason.as_str()), (33, "it no longer answers"));
    assert!(from_ms.abs_diff(last_report_ms) <= 1_000, "{from_ms} of {last_report_ms}");
    // Its totals stay, its users do not.
    let last = &world.file.last().unwrap().load.machines[1];
    assert!(last.lost && last.connects_ok > 0 && last.users_active == 0, "{last:?}");
}

#[test]
fn an_agent_that_begins_anew_is_another_process_and_the_old_one_is_lost() {
    let mut world = World::running(4, 6);
    world.kill_site("b");
    world.sites.insert("b".into(), Site::new("b", "2", 0, 9));
    world.until("its loss", |world| !world.lost().is_empty());
    let new = world.sites.remove("b").unwrap();
    assert_eq!((new.prepared, new.agent.run()), (0, None));
    let told = world.events().iter().any(|event| event.to_string().contains("has its name now"));
    assert!(told, "{:?}", world.events());
    world.finish();
    world.check_whole(&["a", "c"]);
}

#[test]
fn two_agents_of_one_name_are_told_and_a_late_one_harms_no_run() {
    let mut world = World::new(5);
    world.sites.insert("twin".into(), Site::new("b", "2", 0, 9));
    world.gather(seconds(2));
    let known = world.recorder.as_ref().unwrap().state.coordinator.known();
    assert!(known["b"].rival.is_some() && known["a"].rival.is_none());

    let mut world = World::running(5, 4);
    world.sites.insert("twin".into(), Site::new("b", "2", 0, 9));
    world.finish();
    assert_eq!(world.lost(), [""; 0], "{:?}", world.events());
    world.check_whole(&["a", "b", "c"]);
    assert_eq!(world.sites["twin"].prepared, 0);
}

#[test]
fn a_process_that_is_stopped_is_lost_and_comes_back_with_all_it_measured() {
    let mut world = World::running(6, 5);
    world.sites.get_mut("c").unwrap().is_paused = true;
    world.until("its loss", |world| world.lost() == ["c"]);
    world.pass(seconds(4));
    world.sites.get_mut("c").unwrap().is_paused = false;
    world.finish();
    assert_eq!(world.lost(), [""; 0]);
    world.check_whole(&["a", "b", "c"]);
}

#[test]
fn a_partition_heals_although_it_outlives_the_load_of_the_others() {
    let mut world = World::running(7, 5);
    world.bus.cut = vec!["b".into()];
    world.until("the end of the others", |world| {
        let last = &world.file.last().unwrap().load.machines;
        [0, 2].iter().all(|&machine| last[machine].reports == 20)
    });
    assert_eq!(world.lost(), ["b"]);
    world.pass(seconds(10));
    world.bus.cut.clear();
    world.finish();
    assert_eq!(world.lost(), [""; 0]);
    world.check_whole(&["a", "b", "c"]);
}

#[test]
fn a_lost_machine_is_awaited_as_long_as_the_user_wants() {
    let mut world = World::new(8);
    world.recorder.as_mut().unwrap().state.set_lost_wait(seconds(300));
    world.begin();
    world.until("lines", |world| world.file.len() >= 5);
    world.bus.cut = vec!["b".into()];
    world.pass(seconds(200));
    assert!(!world.recorder.as_ref().unwrap().state.is_over(world.now));
    world.bus.cut.clear();
    world.finish();
    world.check_whole(&["a", "b", "c"]);
}

#[test]
fn without_the_bus_the_agents_go_on_and_no_machine_is_given_up() {
    let mut world = World::running(9, 4);
    world.bus.is_away = true;
    // Longer than any machine alone is awaited.
    world.pass(seconds(120));
    assert_eq!(world.lost(), [""; 0]);
    assert!(!world.recorder.as_ref().unwrap().state.is_over(world.now));
    let told: Vec<_> = world.events().iter().map(|event| event.to_string()).collect();
    assert_eq!(told, ["the bus is lost; the agents go on without it"]);
    world.bus.is_away = false;
    world.finish();
    world.check_whole(&["a", "b", "c"]);
    assert_eq!(world.events().last().unwrap().to_string(), "the bus is back");
}

#[test]
fn a_run_that_is_taken_over_has_each_report_once() {
    for lines in 2..24 {
        let mut world = World::running(10 + lines, lines as usize);
        world.kill_recorder();
        world.pass(seconds(7));
        assert!(world.resume("second"));
        world.finish();
        assert_eq!(world.lost(), [""; 0]);
        world.check_whole(&["a", "b", "c"]);
    }
}

#[test]
fn what_went_wrong_on_a_machine_before_a_takeover_still_counts() {
    let overflows = |world: &World| -> Vec<u64> {
        let name = throng_measure::Metric::TCPEXT_LISTEN_OVERFLOWS.name();
        let machines = &world.file.last().unwrap().load.machines;
        machines.iter().map(|machine| machine.troubles[name]).collect()
    };
    let mut world = World::running(66, 12);
    let before = overflows(&world);
    world.kill_recorder();
    world.pass(seconds(4));
    assert!(world.resume("second"));
    world.finish();
    world.check_whole(&["a", "b", "c"]);
    let after = overflows(&world);
    assert!(
        before.iter().zip(&after).all(|(before, after)| before < after),
        "{before:?} {after:?}"
    );
}

#[test]
fn a_run_that_has_ended_meanwhile_is_collected() {
    let mut world = World::running(40, 5);
    world.kill_recorder();
    world.pass(seconds(600));
    assert!(world.sites.values().all(|site| site.measured.len() == 20));
    assert!(world.resume("second"));
    world.finish();
    world.check_whole(&["a", "b", "c"]);
}

#[test]
fn an_agent_that_has_delivered_all_still_has_its_totals_for_a_successor() {
    let mut world = World::new(41);
    world.sites.get_mut("a").unwrap().reports_planned = 4;
    world.begin();
    world.until("the end of one", |world| {
        !world.file.is_empty() && world.sites["a"].agent.run().is_none()
    });
    world.kill_recorder();
    world.pass(seconds(5));
    assert!(world.resume("second"));
    world.finish();
    assert_eq!(world.lost(), [""; 0]);
    world.check_whole(&["a", "b", "c"]);
    // The next run takes its place.
    world.recorder = Some(Recorder::new("next", "third"));
    world.gather(seconds(2));
    let known = world.recorder.as_ref().unwrap().state.coordinator.known();
    assert!(known.values().all(|it| it.hello.busy.is_none() && it.hello.has_of("r")));
}

#[test]
fn a_machine_that_was_lost_before_keeps_its_part_in_a_run_that_is_taken_over() {
    let mut world = World::running(42, 5);
    world.kill_site("b");
    world.until("its loss", |world| world.lost() == ["b"]);
    world.pass(seconds(1));
    world.kill_recorder();
    world.pass(seconds(4));
    assert!(world.resume("second"));
    world.finish();
    // It is told once.
    assert_eq!(world.lost(), ["b"]);
    world.check_whole(&["a", "c"]);
}

#[test]
fn a_machine_that_dies_at_the_same_moment_as_the_coordinator_keeps_its_part() {
    for (seed, between_ms) in [(80, 0), (81, 300), (82, 1_000), (83, 2_500), (84, 4_900)] {
        let mut world = World::running(seed, 6);
        world.kill_site("b");
        world.pass(Duration::from_millis(between_ms));
        world.kill_recorder();
        world.pass(seconds(4));
        assert!(world.resume("second"));
        world.finish();
        assert_eq!(world.lost(), ["b"]);
        world.check_whole(&["a", "c"]);
        let last = &world.file.last().unwrap().load.machines[1];
        assert!(last.lost && last.connects_ok > 0 && last.users_active == 0, "{last:?}");
        let from = world.events().into_iter().find_map(|event| match event {
            RunEventKind::AgentLost { from_ms, .. } => Some(*from_ms),
            _ => None,
        });
        assert!(from.unwrap().abs_diff(1_000 * last.reports) < 200, "{from:?} {last:?}");
    }
}

#[test]
fn an_agent_that_is_away_when_the_run_is_taken_over_comes_back_to_it() {
    let mut world = World::running(43, 5);
    world.bus.cut = vec!["b".into()];
    world.kill_recorder();
    world.pass(seconds(4));
    assert!(world.resume("second"));
    world.until("its loss", |world| world.lost() == ["b"]);
    world.pass(seconds(2));
    world.bus.cut.clear();
    world.until("the end", |world| world.recorder.as_ref().unwrap().state.is_over(world.now));
    world.finish();
    assert_eq!(world.lost(), [""; 0]);
    let last = &world.file.last().unwrap().load;
    assert_eq!(last.machines.iter().map(|it| it.reports).collect::<Vec<_>>(), [20; 3]);
    let recorded: u64 =
        world.file.iter().map(|line| line.load.times[Operation::Connect].count()).sum();
    let measured = world.sites.values().flat_map(|site| &site.measured);
    assert_eq!(recorded, measured.map(|report| report.latencies).sum::<u64>());
}

#[test]
fn the_run_is_not_taken_over_while_its_coordinator_lives() {
    let mut world = World::running(44, 4);
    world.other = Some(Recorder::new("r", "second"));
    world.gather(seconds(2));
    let (now, plan, file) = (world.now, &world.plan, &world.file);
    assert!(world.other.as_mut().unwrap().resume(plan, file, now));
    world.pass(seconds(3));
    let other = world.other.as_ref().unwrap();
    assert!(!other.state.has_totals(world.now), "the agents do not hear it");
    world.other = None;
    world.finish();
    assert_eq!(world.lost(), [""; 0]);
    world.check_whole(&["a", "b", "c"]);
}

#[test]
fn a_coordinator_that_comes_back_late_does_not_get_its_run_back() {
    let mut world = World::running(45, 4);
    let mut first = world.recorder.take().unwrap();
    first.is_paused = true;
    world.pass(seconds(5));
    assert!(world.resume("second"));
    first.is_paused = false;
    world.other = Some(first);
    world.pass(seconds(2));
    // The successor is silent for longer than an agent waits for it.
    world.recorder.as_mut().unwrap().is_paused = true;
    world.pass(Duration::from_millis(3_500));
    world.recorder.as_mut().unwrap().is_paused = false;
    world.pass(seconds(4));
    let other = &mut world.other.as_mut().unwrap().state;
    other.snapshot(world.now);
    let told: Vec<_> = other.events().iter().map(ToString::to_string).collect();
    let taken = |text: &String| text.ends_with("second has taken the run over");
    assert!(told.iter().filter(|text| taken(text)).count() == 3, "{told:?}");
    world.other = None;
    world.finish();
    assert_eq!(world.lost(), [""; 0]);
    world.check_whole(&["a", "b", "c"]);
}

#[test]
fn a_coordinator_that_stood_still_does_not_take_the_agents_for_lost() {
    let mut world = World::running(47, 4);
    world.recorder.as_mut().unwrap().is_paused = true;
    world.pass(AGENT_LOST_AFTER + seconds(2));
    world.recorder.as_mut().unwrap().is_paused = false;
    world.finish();
    let is_lost = |event: &&RunEventKind| matches!(event, RunEventKind::AgentLost { .. });
    assert!(!world.events().iter().any(is_lost), "{:?}", world.events());
    world.check_whole(&["a", "b", "c"]);
}

#[test]
fn a_lost_agent_is_awaited_for_the_time_in_which_the_coordinator_listens() {
    let mut world = World::running(48, 4);
    world.bus.cut = vec!["c".to_owned()];
    let is_over = |site: &Site| site.measured.len() == site.reports_planned;
    world.until("all others are over", |world| {
        ["a", "b"].iter().all(|it| is_over(&world.sites[*it]))
    });
    world.pass(seconds(3));
    assert_eq!(world.lost(), ["c"]);
    world.recorder.as_mut().unwrap().is_paused = true;
    world.pass(LOST_WAIT);
    world.bus.cut.clear();
    world.recorder.as_mut().unwrap().is_paused = false;
    for time in [0, 20] {
        world.pass(Duration::from_millis(time));
        let recorder = world.recorder.as_ref().unwrap();
        assert!(!recorder.state.is_over(world.now), "after {time} ms");
    }
    world.finish();
    assert_eq!(world.lost(), [""; 0]);
    world.check_whole(&["a", "b", "c"]);
}

#[test]
fn a_second_coordinator_is_refused_and_the_first_does_not_notice() {
    let mut world = World::new(46);
    world.other = Some(Recorder::new("s", "second"));
    world.gather(seconds(1));
    let now = world.now;
    world.recorder.as_mut().unwrap().prepare(&world.plan, now);
    world.pass(Duration::from_millis(100));
    // It has asked before the first one has chosen.
    let now = world.now;
    world.other.as_mut().unwrap().prepare(&world.plan, now);
    world.until("the refusal", |world| world.other.as_ref().unwrap().refusals().len() == 3);
    let why = "it makes the run r now".to_owned();
    let expected = ["a", "b", "c"].map(|name| (name.to_owned(), why.clone()));
    assert_eq!(world.other.as_ref().unwrap().refusals(), expected);
    world.other.as_mut().unwrap().state.coordinator.abandon();
    world.pass(seconds(1));
    world.other = None;
    world.until("ready agents", |world| world.recorder.as_ref().unwrap().is_ready());
    let now = world.now;
    world.recorder.as_mut().unwrap().start(&world.plan, now);
    world.finish();
    world.check_whole(&["a", "b", "c"]);
    assert!(world.sites.values().all(|site| site.prepared == 1));
}

#[test]
fn agents_of_a_run_that_does_not_begin_are_free_at_once() {
    let mut world = World::new(47);
    world.gather(seconds(1));
    let now = world.now;
    world.recorder.as_mut().unwrap().prepare(&world.plan, now);
    world.until("ready agents", |world| world.recorder.as_ref().unwrap().is_ready());
    assert!(world.sites.values().all(|site| site.agent.run().is_some()));
    world.recorder.as_mut().unwrap().state.coordinator.abandon();
    world.pass(Duration::from_millis(200));
    assert!(world.sites.values().all(|site| site.agent.run().is_none()));
    // Without that word, they wait for 15 s.
    let mut world = World::new(48);
    world.gather(seconds(1));
    let now = world.now;
    world.recorder.as_mut().unwrap().prepare(&world.plan, now);
    world.pass(seconds(1));
    world.kill_recorder();
    world.pass(seconds(14));
    assert!(world.sites.values().all(|site| site.agent.run().is_some()));
    world.pass(seconds(2));
    assert!(world.sites.values().all(|site| site.agent.run().is_none()));
}

#[test]
fn a_start_that_comes_too_late_is_told_as_a_failure() {
    let mut world = World::new(49);
    world.gather(Duration::from_millis(800));
    let now = world.now;
    world.recorder.as_mut().unwrap().prepare(&world.plan, now);
    world.until("ready agents", |world| world.recorder.as_ref().unwrap().is_ready());
    world.bus.cut = vec!["a".into()];
    let now = world.now;
    world.recorder.as_mut().unwrap().start(&world.plan, now);
    world.pass(seconds(6));
    world.bus.cut.clear();
    world.finish();
    assert_eq!(world.lost(), ["a"]);
    let told: Vec<_> = world.events().iter().map(|event| event.to_string()).collect();
    let because = "the agent a with 16 % of the load is lost: ";
    assert!(told.iter().any(|text| text.starts_with(because)), "{told:?}");
    assert_eq!(world.sites["a"].measured.len(), 0);
    world.check_whole(&["b", "c"]);
}

#[test]
fn a_clock_that_steps_before_the_start_is_told_and_one_that_steps_later_costs_nothing() {
    let mut world = World::new(50);
    world.gather(Duration::from_millis(400));
    world.sites.get_mut("b").unwrap().step_clock(2_000_000);
    world.gather(Duration::from_millis(400));
    let known = world.recorder.as_ref().unwrap().state.coordinator.known();
    assert!(known["b"].has_stepped && !known["a"].has_stepped);
    let offset = known["b"].offset.unwrap();
    let off_us = offset.ahead_us.abs_diff(world.sites["b"].ahead_us);
    assert!(off_us <= offset.error_us, "the new offset counts: {offset:?}");

    for step_us in [30_000_000, -3_000_000] {
        let mut world = World::running(51, 5);
        world.sites.get_mut("b").unwrap().step_clock(step_us);
        world.finish();
        world.check_whole(&["a", "b", "c"]);
    }
}

#[test]
fn a_full_disk_costs_lines_and_no_totals() {
    let mut world = World::running(52, 5);
    world.recorder.as_mut().unwrap().is_disk_full = true;
    world.pass(seconds(5));
    world.recorder.as_mut().unwrap().is_disk_full = false;
    let lost = world.lines_lost;
    assert!((4..=6).contains(&lost), "{lost}");
    world.finish();
    let last = &world.file.last().unwrap().load;
    let connects: u64 =
        world.sites.values().map(|site| site.measured.last().unwrap().connects).sum();
    assert_eq!(last.counters.connects_ok, connects);
    // The latencies of the lines that are missing are missing, and no others.
    let recorded: u64 =
        world.file.iter().map(|line| line.load.times[Operation::Connect].count()).sum();
    assert!(recorded < connects, "{recorded} of {connects}");
}

#[test]
fn a_bus_that_loses_repeats_and_reorders_loses_nothing_of_the_run() {
    for seed in 60..64 {
        let mut world = World::running(seed, 2);
        (world.bus.lost, world.bus.repeated) = (200, 200);
        world.bus.delay_most = Duration::from_millis(300);
        world.until("lines", |world| world.file.len() >= 10);
        world.kill_recorder();
        world.pass(seconds(8));
        assert!(world.resume("second"));
        world.finish();
        world.pass(seconds(30));
        world.check_sums();
        let last = &world.file.last().unwrap().load;
        assert_eq!(last.machines.iter().map(|it| it.reports).collect::<Vec<_>>(), [20; 3]);
    }
}

#[test]
fn a_core_that_is_busy_during_a_takeover_keeps_its_totals() {
    let mut world = World::running(65, 5);
    world.sites.get_mut("c").unwrap().has_busy_core = true;
    // The first coordinator has everything that the core measured.
    world.pass(seconds(3));
    world.kill_recorder();
    world.pass(seconds(4));
    assert!(world.resume("second"));
    let (lines, reports) = (world.file.len(), world.sites["c"].measured.len());
    // Reports that were on their way lack the core. The totals have it.
    world.until("a line", |world| world.file.len() > lines);
    world.check_sums();
    world.until("more reports", |world| world.sites["c"].measured.len() > reports + 2);
    world.pass(seconds(2));
    world.check_sums();
    world.sites.get_mut("c").unwrap().has_busy_core = false;
    world.finish();
    assert_eq!(world.lost(), [""; 0]);
    world.check_whole(&["a", "b", "c"]);
}
