//! What is said before the start, and costs no run.

use super::fleet::{Fleet, bus_url};

const LONG: &str = "load: [{ramp: {to: 30, over: 1s}}, {hold: {for: 1h}}]\nuser: [connect, stay]\n";

#[test]
fn a_second_coordinator_is_refused_and_the_first_goes_on() {
    let Some(fleet) = Fleet::start("a second coordinator") else { return };
    let scenario = fleet.scenario(LONG);
    let mut first = fleet.run_of_all(&scenario, "2m");
    first.until("users", |recorded| recorded.last().counters.connects_ok == 30);
    let flags = ["--bus", &bus_url(), "--agents", "all"];
    let mut second = fleet.run(&scenario, "second.jsonl", &flags);
    assert_eq!(second.process.finish().code(), Some(2), "{}", second.output());
    let id = super::sums::Recorded::read(&first.record).unwrap().file.header.id.unwrap();
    for agent in ["agent-0", "agent-1", "agent-2"] {
        let line = format!("{agent}: it makes run {id} of ");
        assert!(second.output().contains(&line), "{}", second.output());
    }
    first.process.signal(rustix::process::Signal::INT);
    let recorded = first.finish();
    recorded.check_sums();
    assert_eq!(recorded.last().counters.connects_ok, 30);
}

#[test]
fn what_an_agent_cannot_do_is_said_before_the_start_and_the_others_are_free_again() {
    let Some(mut fleet) = Fleet::without_agents("a low limit of fds") else { return };
    fleet.start_agent(0, "agent-0", &[]);
    fleet.start_agent(1, "agent-1", &[]);
    fleet.start_agent(2, "small", &["prlimit", "--nofile=100:100"]);
    let many = fleet.scenario("load: [{ramp: {to: 3000, over: 1s}}]\nuser: [connect, stay]\n");
    let flags = ["--bus", &bus_url(), "--agents", "all", "--cores", "2"];
    let mut run = fleet.run(&many, "run.jsonl", &flags);
    assert_eq!(run.process.finish().code(), Some(2), "{}", run.output());
    let text = run.output();
    for part in ["1 agent cannot make the run", "agent small:", "the run was not started"] {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
    assert!(fleet.agents.iter().all(|agent| !agent.stdout().contains("the load begins")));
    // A run that fits begins at once.
    let few = fleet.scenario("load: [{ramp: {to: 60, over: 1s}}]\nuser: [connect, stay]\n");
    let recorded = fleet.run(&few, "run.jsonl", &flags).finish();
    recorded.check_sums();
    assert_eq!(recorded.last().counters.connects_ok, 60);
}

#[test]
fn two_agents_of_one_name_are_told_apart_before_the_start() {
    let Some(mut fleet) = Fleet::without_agents("two agents of one name") else { return };
    fleet.start_agent(0, "twin", &[]);
    fleet.start_agent(1, "twin", &[]);
    let scenario = fleet.scenario(LONG);
    let mut run = fleet.run(&scenario, "run.jsonl", &["--bus", &bus_url(), "--agents", "all"]);
    assert_eq!(run.process.finish().code(), Some(2), "{}", run.output());
    let text = run.output();
    for part in ["no agent is free", "twin: another agent has this name: pid ", "--name"] {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
}
