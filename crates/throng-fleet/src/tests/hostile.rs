//! Messages that no honest process sends, and what they change: nothing but the run of their
//! sender.

use std::time::Duration;

use throng_base::Instant;
use throng_load::peers::{AHEAD_MAX, CueCount, PeerMessage};
use throng_load::schedule::MachineShare;
use throng_measure::RunEventKind;

use super::{World, name};
use crate::agent::Agent;
use crate::agent_action::AgentAction;
use crate::envelope::{decode, encode};
use crate::link::Link;
use crate::message::{
    AgentFacts, AgentMessage, Envelope, Hello, Order, Readiness, RunKey, RunOrder, StartOrder,
    Steering,
};
use crate::request::AgentAnswer;
use crate::subjects::GroupSubjects;
use crate::within::MESSAGE_BYTES_MAX;

/// Lets `lie` be said in the middle of a run, by the agent `b`, and checks that it alone is lost,
/// for a reason with these words.
#[track_caller]
fn check_lost(lie: impl FnOnce(&mut World), words: &str) {
    let mut world = World::running(1, 4);
    lie(&mut world);
    world.until("its loss", |world| world.lost() == ["b"]);
    world.finish();
    world.check_whole(&["a", "c"]);
    let reason = world.events().into_iter().find_map(|event| match event {
        RunEventKind::AgentLost { reason, .. } => Some(reason.clone()),
        _ => None,
    });
    let reason = reason.unwrap();
    assert!(reason.contains("its message was refused: ") && reason.contains(words), "{reason}");
    assert_eq!(world.lost(), ["b"], "nothing that it says later counts");
}

#[test]
fn an_agent_that_says_what_no_agent_can_is_lost_and_the_others_go_on() {
    let say = |message: PeerMessage| {
        move |world: &mut World| {
            world.sites.get_mut("b").unwrap().agent.tell_peers(vec![message]);
        }
    };
    let count = CueCount { come: 100_000_000_000_000_000, ..CueCount::default() };
    check_lost(say(PeerMessage::CueCount { from: 1, cue: 0, count }), "number 0 of 0");
    check_lost(say(PeerMessage::CueCount { from: 0, cue: 0, count }), "speaks for core 0");
    check_lost(say(PeerMessage::Raise { cue: 7 }), "number 7 of 0");
    check_lost(|world| world.sites.get_mut("b").unwrap().lie(), "a count of 18446744073709551615");
}

#[test]
fn a_message_under_the_name_of_another_agent_is_not_heard() {
    let mut world = World::running(2, 4);
    let subjects = GroupSubjects::new("test").unwrap();
    let key = RunKey { run: name("r"), coordinator: name("first") };
    let envelope = Envelope { key, agent: name("a"), incarnation: name("1") };
    let mut link = Link::new(MESSAGE_BYTES_MAX);
    link.send(&AgentMessage::Failed("forged".into()));
    let mut forged = Vec::new();
    link.send_due(world.now, |packet| {
        forged.push(encode(&envelope, &packet));
        true
    });
    let facts =
        AgentFacts { name: name("a"), incarnation: name("2"), cpus: 1, ..Default::default() };
    let (busy, answers, now_us) = (None, None, 0);
    let hello = Hello { facts, calibration: None, busy, kept: Vec::new(), answers, now_us };
    let now = world.now;
    for packet in forged {
        world.bus.publish("b", &subjects.to_coordinator("first", "b"), packet, now);
    }
    let hello = serde_json::to_vec(&hello).unwrap();
    world.bus.publish("b", &subjects.hello("b"), hello, now);
    world.finish();
    assert_eq!(world.lost(), [""; 0]);
    world.check_whole(&["a", "b", "c"]);
    let known = world.recorder.as_ref().unwrap().state.coordinator.known();
    assert!(known["a"].rival.is_none() && known["b"].rival.is_none());
}

/// An agent, and a coordinator that orders whatever it likes.
struct Ordered {
    agent: Agent,
    link: Link,
    now: Instant,
    said: Vec<AgentMessage>,
}

impl Ordered {
    /// Returns an agent that is ready.
    fn new() -> Self {
        let facts = AgentFacts { name: name("a"), incarnation: name("1"), ..Default::default() };
        let mut ordered = Self {
            agent: Agent::new(facts, GroupSubjects::new("test").unwrap()),
            link: Link::new(MESSAGE_BYTES_MAX),
            now: Instant::ZERO + Duration::from_secs(1_000),
            said: Vec::new(),
        };
        let order = RunOrder {
            scenario: World::new(1).plan.bundle,
            target: None,
            seed: 1,
            share: MachineShare::whole(1),
            interval_ms: 1_000,
            calibrate_ms: None,
            force: false,
            is_allowed: false,
        };
        let actions = ordered.order(&Order::Prepare(order.into()));
        assert!(matches!(actions[..], [AgentAction::Prepare(_)]), "{actions:?}");
        ordered.agent.ready(Readiness::default());
        ordered
    }

    fn envelope() -> Envelope {
        let key = RunKey { run: name("r"), coordinator: name("c") };
        Envelope { key, agent: name("a"), incarnation: name("1") }
    }

    /// Gives the agent a packet. Returns what its process has to do.
    fn hand_over(&mut self, packet: &[u8]) -> Vec<AgentAction> {
        let subject = GroupSubjects::new("test").unwrap().to_agent("a");
        let bytes = encode(&Self::envelope(), packet);
        self.agent.on_message(&subject, &bytes, self.now, &mut |_, _| true);
        self.turn()
    }

    fn order(&mut self, order: &Order) -> Vec<AgentAction> {
        self.link.send(order);
        let mut packets = Vec::new();
        self.link.send_due(self.now, |packet| {
            packets.push(packet);
            true
        });
        packets.iter().flat_map(|packet| self.hand_over(packet)).collect()
    }

    /// Orders a start after so many seconds.
    fn start(&mut self, after_s: u64) -> Vec<AgentAction> {
        let at_us = (self.now.as_nanos() / 1_000).saturating_add(after_s.saturating_mul(1_000_000));
        self.order(&Order::Start(StartOrder { at_us, run: 1, setup: Vec::new() }))
    }

    fn turn(&mut self) -> Vec<AgentAction> {
        let (link, said) = (&mut self.link, &mut self.said);
        self.agent.tick(self.now, &mut |_, bytes| {
            if let Some((_, packet)) = decode(&bytes) {
                let messages = link.on_packet(packet).unwrap();
                said.extend(messages.iter().map(|it| serde_json::from_slice(it).unwrap()));
            }
            true
        });
        std::iter::from_fn(|| self.agent.next_action()).collect()
    }

    /// Returns why its load has ended before its time.
    #[track_caller]
    fn failure(&self) -> &str {
        let failure = self.said.iter().find_map(|message| match message {
            AgentMessage::Failed(why) => Some(why.as_str()),
            _ => None,
        });
        failure.expect("it has said that")
    }
}

#[test]
fn a_start_that_is_far_ahead_is_refused_and_the_agent_is_free() {
    for after_s in [61, 100_000, u64::MAX] {
        let mut ordered = Ordered::new();
        let actions = ordered.start(after_s);
        assert!(!actions.iter().any(|it| matches!(it, AgentAction::Start(_))), "{actions:?}");
        let why = ordered.failure();
        assert!(why.starts_with("its start was ordered for "), "{why}");
        assert!(why.ends_with(" from now: 1m at most; is a clock wrong?"), "{why}");
        ordered.now += Duration::from_secs(16);
        assert!(ordered.turn().contains(&AgentAction::Abandon));
        assert_eq!(ordered.agent.run(), None);
    }
    let actions = Ordered::new().start(AHEAD_MAX.as_secs());
    assert!(matches!(actions[..], [AgentAction::Start(_)]), "{actions:?}");
}

#[test]
fn a_run_that_is_stopped_before_its_load_begins_is_forgotten() {
    let mut ordered = Ordered::new();
    ordered.start(30);
    ordered.now += Duration::from_secs(4);
    assert_eq!(ordered.agent.stop("r", ordered.now), AgentAnswer::Forgotten);
    assert!(ordered.turn().contains(&AgentAction::Abandon));
    assert_eq!(ordered.agent.run(), None);
    // One that has begun ramps its load down.
    let mut ordered = Ordered::new();
    ordered.start(1);
    ordered.now += Duration::from_secs(5);
    assert_eq!(ordered.agent.stop("r", ordered.now), AgentAnswer::Stopping);
    assert!(ordered.turn().contains(&AgentAction::CutShort));
}

#[test]
fn a_packet_that_no_coordinator_sends_ends_the_load_with_a_reason() {
    let mut ordered = Ordered::new();
    ordered.start(1);
    let most = u64::MAX;
    let head = format!(
        "{{\"number\":{most},\"first\":{most},\"arrived\":0,\"acknowledged\":0,\
         \"is_first\":true,\"is_last\":true}}\n"
    );
    let actions = ordered.hand_over(head.as_bytes());
    assert!(actions.contains(&AgentAction::CutShort), "{actions:?}");
    ordered.turn();
    let why = ordered.failure();
    assert!(why.contains("refuses a message of the coordinator") && why.contains("lost at once"));
    // The next message is understood, and changes nothing any more.
    let actions = ordered.order(&Order::Steer(Steering::AddUsers(1)));
    assert!(!actions.iter().any(|it| matches!(it, AgentAction::Steer(_))), "{actions:?}");
}

#[test]
fn an_order_that_is_none_is_refused_with_a_reason() {
    let mut ordered = Ordered::new();
    ordered.order(&Order::Peers(Vec::new()));
    ordered.link.send(&"no order");
    let mut packets = Vec::new();
    ordered.link.send_due(ordered.now, |packet| {
        packets.push(packet);
        true
    });
    packets.iter().for_each(|packet| _ = ordered.hand_over(packet));
    let refusals = ordered.said.iter().filter(|it| matches!(it, AgentMessage::CannotRun(_)));
    assert_eq!(refusals.count(), 1, "{:?}", ordered.said);
}
