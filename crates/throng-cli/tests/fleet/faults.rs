//! What goes wrong in a run, and the sums afterwards.
//!
//! All faults are provoked at the same time, each in a fleet of its own: they mostly wait.

use rustix::process::Signal;
use throng_measure::RunEventKind;
use throng_measure::runfile::RunEndReason;

use super::fleet::{Fleet, FleetRun, bus_url};
use super::sums::Recorded;

/// A fault, and the test that provokes it.
type Fault = (&'static str, fn(&mut Fleet));

const FAULTS: &[Fault] = &[
    ("an agent is killed", an_agent_is_killed),
    ("an agent is stopped and goes on", an_agent_is_stopped_and_goes_on),
    ("an agent is cut off from the bus", an_agent_is_cut_off_from_the_bus),
    ("the bus is killed and comes back", the_bus_is_killed_and_comes_back),
    ("the disk of the coordinator is full", the_disk_of_the_coordinator_is_full),
    ("the coordinator is killed", the_coordinator_is_killed_and_its_run_is_taken_over),
];

#[test]
fn each_fault_leaves_sums_that_hold() {
    std::thread::scope(|scope| {
        for (name, fault) in FAULTS {
            let provoke = move || {
                let Some(mut fleet) = Fleet::start(name) else { return };
                fault(&mut fleet);
            };
            let thread = std::thread::Builder::new().name((*name).to_owned());
            // A panic names the thread, and fails the test at the end of the scope.
            thread.spawn_scoped(scope, provoke).expect("a thread");
        }
    });
}

/// 60 users, 20 on each machine, with [`ANSWERS`] answers each, long before the end of the plan.
const SCENARIO: &str = "
load: [{ramp: {to: 60, over: 1s}}, {hold: {for: 16s}}]
user:
  - connect: {timeout: 60s}
  - every:
      period: 250ms
      for: 5s
      do: [{send: 'user ${user.id}?'}, {expect: {until: '?', timeout: 60s}}]
  - stay
";

/// Starts a run, and waits until all machines are at work.
fn start(fleet: &Fleet, lost_wait: &str) -> FleetRun {
    let mut run = fleet.run_of_all(&fleet.scenario(SCENARIO), lost_wait);
    until_they_work(&mut run);
    run
}

fn until_they_work(run: &mut FleetRun) {
    run.until("answers on all machines", |recorded| {
        let machines = &recorded.last().machines;
        machines.len() == 3 && machines.iter().all(|machine| machine.answered > 0)
    });
}

const USERS: u64 = 60;
const ANSWERS: u64 = 20;

/// Asserts that nothing is missing of these machines.
#[track_caller]
fn check(recorded: &Recorded, machines: &[&str]) {
    recorded.check_sums();
    for name in machines {
        recorded.check_machine(name, USERS / 3, ANSWERS);
    }
}

const ALL: [&str; 3] = ["agent-0", "agent-1", "agent-2"];

fn an_agent_is_killed(fleet: &mut Fleet) {
    let mut run = start(fleet, "1s");
    fleet.agents[1].kill();
    let recorded = run.finish();
    check(&recorded, &["agent-0", "agent-2"]);
    let dead = recorded.machine("agent-1");
    assert!(dead.lost && dead.connects_ok > 0, "{dead:?}");
    assert_eq!((dead.users_active, dead.connected), (0, 0), "{dead:?}");
    let validity = recorded.file.end.as_ref().unwrap().validity.clone();
    let missing = "the agent agent-1, 33 % of the load, is missing from";
    assert!(validity.reasons.iter().any(|reason| reason.starts_with(missing)), "{validity:?}");
}

fn an_agent_is_stopped_and_goes_on(fleet: &mut Fleet) {
    let mut run = start(fleet, "2m");
    fleet.agents[2].signal(Signal::STOP);
    run.until("its loss", |recorded| recorded.has_lost("agent-2"));
    fleet.agents[2].signal(Signal::CONT);
    run.until("its return", |recorded| recorded.has_back("agent-2"));
    check(&run.finish(), &ALL);
}

fn an_agent_is_cut_off_from_the_bus(fleet: &mut Fleet) {
    let mut run = start(fleet, "2m");
    fleet.hosts.agents[0].cut_off();
    run.until("its loss", |recorded| recorded.has_lost("agent-0"));
    // Its load goes on meanwhile, to its end.
    fleet.agents[0].until_it_says("the load has ended");
    fleet.hosts.agents[0].reconnect();
    let recorded = run.finish();
    assert!(recorded.has_back("agent-0"));
    check(&recorded, &ALL);
}

fn the_bus_is_killed_and_comes_back(fleet: &mut Fleet) {
    let mut run = start(fleet, "2m");
    fleet.stop_bus();
    run.until("the loss of the bus", |recorded| {
        recorded.events().any(|event| *event == RunEventKind::BusLost)
    });
    for agent in &mut fleet.agents {
        agent.until_it_says("the load has ended");
    }
    fleet.start_bus();
    let recorded = run.finish();
    assert!(recorded.events().any(|event| *event == RunEventKind::BusBack));
    check(&recorded, &ALL);
}

fn the_disk_of_the_coordinator_is_full(fleet: &mut Fleet) {
    // The host alone sees what is mounted there.
    let small = fleet.folder.path().join("small");
    std::fs::create_dir(&small).unwrap();
    let (bus, folder) = (&fleet.hosts.bus, small.display());
    bus.shell(&format!("mount -t tmpfs -o size=16m none {folder}")).unwrap();
    let flags = ["--bus", &bus_url(), "--agents", "3", "--cores", "2"];
    let scenario = fleet.scenario(SCENARIO);
    let mut run = fleet.run_on(bus, &scenario, small.join("run.jsonl"), &flags);
    until_they_work(&mut run);
    _ = bus.shell(&format!("dd if=/dev/zero of={folder}/filler bs=4k 2>/dev/null"));
    run.process.until_it_says("the run file cannot be written");
    bus.shell(&format!("rm {folder}/filler")).unwrap();
    // The run misses nothing, but a busy machine may make it invalid.
    let code = run.process.finish().code();
    assert!(matches!(code, Some(3 | 5)), "{code:?}: {}", run.output());
    let recorded = run.finish();
    let is_resumed = |event: &RunEventKind| matches!(event, RunEventKind::RunFileResumed { .. });
    assert!(recorded.events().any(is_resumed));
    // Totals are whole. Lines are missing, which is said, and with them their latencies.
    for name in ALL {
        recorded.check_machine(name, USERS / 3, ANSWERS);
    }
    let counters = &recorded.last().counters;
    assert_eq!((counters.connects_ok, counters.messages_answered), (USERS, USERS * ANSWERS));
    let end = recorded.file.end.as_ref().unwrap();
    assert!(end.lines_lost > 0, "{end:?}");
    assert!(end.validity.reasons.iter().any(|reason| reason.contains("line")), "{end:?}");
}

fn the_coordinator_is_killed_and_its_run_is_taken_over(fleet: &mut Fleet) {
    let mut run = start(fleet, "2m");
    run.process.kill();
    let before = Recorded::read(&run.record).unwrap();
    let id = before.file.header.id.clone().unwrap();
    assert!(before.file.end.is_none());
    let scenario = fleet.folder.path().join("scenario.yaml");
    let flags = ["--bus", &bus_url(), "--resume", &id, "--lost-wait", "2m"];
    let mut second = fleet.run(&scenario, "run.jsonl", &flags);
    let recorded = second.finish();
    assert!(second.output().contains("taken over after"), "{}", second.output());
    check(&recorded, &ALL);
    assert_eq!(recorded.file.end.as_ref().unwrap().reason, RunEndReason::Finished);
    assert!(recorded.file.intervals.len() > before.file.intervals.len());
}
