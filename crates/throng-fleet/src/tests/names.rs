//! Versions and facts that agents tell.

use throng_bus::Text;

use super::{Site, World, name};
use crate::message::{HeldRun, Hello, RunKey};

#[test]
fn an_agent_of_another_version_is_known_as_such() {
    let mut world = World::new(1);
    let mut facts = world.sites["b"].agent.facts().clone();
    facts.version = Text::cut("0.0.9 (fleet 0)");
    let mut old = Site::new("b", "1", 0, 1);
    let subjects = crate::GroupSubjects::new("test").unwrap();
    old.agent = crate::Agent::new(facts, subjects);
    world.sites.insert("b".into(), old);
    world.gather(std::time::Duration::from_secs(1));
    let known = world.recorder.as_ref().unwrap().state.coordinator.known();
    assert_eq!(known["b"].hello.facts.version.as_str(), "0.0.9 (fleet 0)");
    assert_eq!(known["a"].hello.facts.version, crate::version());
}

#[test]
fn a_hello_says_which_runs_an_agent_has() {
    let held = |run: &str| {
        let key = RunKey { run: name(run), coordinator: name("c") };
        HeldRun { key, started_us: None, silent_ms: 0, is_delivered: true }
    };
    let hello = Hello {
        calibration: None,
        facts: Default::default(),
        busy: Some(held("now")),
        kept: vec![held("before"), held("long-before")],
        answers: None,
        now_us: 0,
    };
    let has = ["now", "before", "long-before", "other"].map(|run| hello.has_of(run));
    assert_eq!(has, [true, true, true, false]);
}
