//! The hub compared with a naive one, under joins, leaves, publications and batches in any order.

use std::collections::{BTreeMap, HashMap};

use proptest::prelude::*;

use super::*;
use crate::{Dialect, Policy};

/// One random operation.
#[derive(Clone, Debug)]
enum Step {
    Join { connection: usize, topic: usize, intercepts: bool },
    Leave { nth: usize },
    End { connection: usize },
    Publish { topic: usize, except: Option<usize>, bytes: usize },
    Deliver { count: usize },
}

/// The test's state of a connection.
struct Connection {
    key: Key,
    of: Memberships,
}

/// One membership, and its deliveries by the naive hub.
struct Expected {
    connection: usize,
    topic: usize,
    membership: Option<Membership>,
    /// Publications made while it was a member, except those that except it.
    due: Vec<u32>,
    got: Vec<u32>,
}

/// The hub and the naive hub.
struct Both {
    hub: Hub,
    connections: Vec<Connection>,
    /// Memberships by tag.
    memberships: Vec<Expected>,
    renders: HashMap<(u32, Dialect), u32>,
    published: u32,
}

const CONNECTIONS: usize = 6;
const TOPICS: usize = 3;
const NAMES: [&str; TOPICS] = ["lobby", "rooms:1", "rooms:2"];

/// The body of a publication: its number, and the length of its frame.
struct Body(u32, usize);

fn frame_of(number: u32, bytes: usize) -> Vec<u8> {
    let mut frame = vec![0; 8 + bytes];
    frame[..4].copy_from_slice(&number.to_le_bytes());
    frame[4..8].copy_from_slice(&(bytes as u32).to_le_bytes());
    frame
}

/// Returns the numbers in adjacent frames.
fn numbers_in(mut bytes: &[u8]) -> Vec<u32> {
    let mut numbers = Vec::new();
    while !bytes.is_empty() {
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        numbers.push(word(0));
        bytes = &bytes[8 + word(4) as usize..];
    }
    numbers
}

impl Both {
    fn new() -> Self {
        let connection = |index| Connection { key: Key::new(index, 7), of: Memberships::default() };
        Self {
            hub: Hub::new(),
            connections: (0..CONNECTIONS as u32).map(connection).collect(),
            memberships: Vec::new(),
            renders: HashMap::new(),
            published: 0,
        }
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Join { connection, topic, intercepts } => {
                let tag = self.memberships.len() as u16;
                let dialect = Dialect::new((connection % 3) as u8);
                let subscription = Subscription { dialect, intercepts, tag };
                let Connection { key, of } = &mut self.connections[connection];
                let rules = || TopicRules { backlog_bytes_max: usize::MAX, ..Default::default() };
                let membership = self.hub.subscribe(of, *key, NAMES[topic], subscription, rules);
                self.memberships.push(Expected {
                    connection,
                    topic,
                    membership: Some(membership),
                    due: Vec::new(),
                    got: Vec::new(),
                });
            }
            Step::Leave { nth } => {
                let mut live: Vec<_> =
                    self.memberships.iter_mut().filter(|one| one.membership.is_some()).collect();
                let count = live.len().max(1);
                let Some(one) = live.get_mut(nth % count) else { return };
                let Connection { key, of } = &mut self.connections[one.connection];
                let membership = one.membership.take().unwrap();
                assert!(self.hub.unsubscribe(of, *key, membership));
            }
            Step::End { connection } => {
                let Connection { of, .. } = &mut self.connections[connection];
                self.hub.unsubscribe_all(of);
                assert!(of.is_empty());
                for one in self.memberships.iter_mut().filter(|one| one.connection == connection) {
                    one.membership = None;
                }
            }
            Step::Publish { topic, except, bytes } => {
                let number = self.published;
                self.published += 1;
                let publication =
                    Publication::new(NAMES[topic], Body(number, bytes)).with_body_bytes(bytes);
                let publication = Arc::new(publication);
                let key = except.map(|except| self.connections[except].key);
                let accepted = self.hub.publish(&publication, key);
                let is_member =
                    |one: &&mut Expected| one.topic == topic && one.membership.is_some();
                let mut members: Vec<_> = self.memberships.iter_mut().filter(is_member).collect();
                assert_eq!(
                    accepted,
                    PublishOutcome { has_members: !members.is_empty(), dropped: 0 }
                );
                for one in members.iter_mut().filter(|one| Some(one.connection) != except) {
                    one.due.push(number);
                }
            }
            Step::Deliver { count } => {
                for _ in 0..count {
                    if !self.deliver() {
                        break;
                    }
                }
            }
        }
        let live = self.memberships.iter().filter(|one| one.membership.is_some()).count();
        assert_eq!(self.hub.members(), live);
    }

    /// Takes one delivery. Returns false if there is none.
    fn deliver(&mut self) -> bool {
        let Self { hub, memberships, connections, renders, .. } = self;
        let delivery = hub.next(&mut |publication, dialect| {
            let render = |out: &mut Vec<u8>| {
                let Body(number, bytes) = publication.body().unwrap();
                *renders.entry((*number, dialect)).or_default() += 1;
                out.extend(frame_of(*number, *bytes));
            };
            Arc::clone(publication.frame(dialect, render))
        });
        let Some(Delivery { key, tag, content: what, .. }) = delivery else { return false };
        let one = &mut memberships[usize::from(tag)];
        assert!(one.membership.is_some(), "it has left");
        assert_eq!(connections[one.connection].key, key);
        match what {
            DeliveryContent::Frames(frames, range) => {
                one.got.extend(numbers_in(&frames.bytes()[frames.span(range)]));
            }
            DeliveryContent::Publication(publication) => {
                one.got.push(publication.body::<Body>().unwrap().0)
            }
            DeliveryContent::Nothing => {}
        }
        true
    }

    fn check(&self) {
        for one in &self.memberships {
            let got = &one.got[..];
            match &one.membership {
                // It received the first of its publications, and none since it left.
                None => assert_eq!(got, &one.due[..got.len()]),
                Some(_) => assert_eq!(got, one.due),
            }
        }
        assert!(self.renders.values().all(|&times| times == 1), "{:?}", self.renders);
    }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let connection = 0..CONNECTIONS;
    let topic = prop_oneof![4 => Just(0), 1 => 1..TOPICS];
    let join = (connection.clone(), topic.clone(), prop::bool::weighted(0.2));
    let publish =
        (topic, prop::option::of(connection.clone()), prop_oneof![0..40usize, 0..30_000usize]);
    let step = prop_oneof![
        3 => join.prop_map(|(connection, topic, intercepts)| {
            Step::Join { connection, topic, intercepts }
        }),
        2 => any::<prop::sample::Index>().prop_map(|nth| Step::Leave { nth: nth.index(1 << 20) }),
        1 => connection.prop_map(|connection| Step::End { connection }),
        5 => publish.prop_map(|(topic, except, bytes)| Step::Publish { topic, except, bytes }),
        5 => (0..12usize).prop_map(|count| Step::Deliver { count }),
    ];
    // Under an interpreter fewer cases run.
    prop::collection::vec(step, 0..if cfg!(miri) { 30 } else { 300 })
}

/// The number of cases under an interpreter, from the environment.
fn config() -> ProptestConfig {
    if cfg!(miri) { ProptestConfig::default() } else { ProptestConfig::with_cases(400) }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn no_member_misses_doubles_or_swaps_publications_while_members_come_and_go(steps in steps()) {
        let mut both = Both::new();
        for step in &steps {
            both.step(step);
        }
        while both.deliver() {}
        prop_assert!(!both.hub.is_busy());
        both.check();
        (0..CONNECTIONS).for_each(|connection| both.step(&Step::End { connection }));
        prop_assert_eq!((both.hub.members(), both.hub.topics()), (0, 0));
    }
}

/// Makes a hub whose topics have the members 0.., as many as requested.
fn hub_of(members: &[(&str, u32)], rules: TopicRules) -> (Hub, Vec<Connection>) {
    let mut hub = Hub::new();
    let mut connections = Vec::new();
    for &(topic, count) in members {
        for _ in 0..count {
            let key = Key::new(connections.len() as u32, 0);
            let mut of = Memberships::default();
            hub.subscribe(&mut of, key, topic, Subscription::default(), || rules);
            connections.push(Connection { key, of });
        }
    }
    (hub, connections)
}

fn publish(hub: &mut Hub, topic: &str, number: u32) -> PublishOutcome {
    hub.publish(&Arc::new(Publication::new(topic, Body(number, 0))), None)
}

/// Returns the next delivery: the member, and the publications.
fn next(hub: &mut Hub) -> Option<(u32, Vec<u32>)> {
    let render = &mut |publication: &Publication, dialect| {
        let Body(number, bytes) = publication.body().unwrap();
        Arc::clone(publication.frame(dialect, |out| out.extend(frame_of(*number, *bytes))))
    };
    let Delivery { key, content: what, .. } = hub.next(render)?;
    match what {
        DeliveryContent::Frames(frames, range) => {
            Some((key.index(), numbers_in(&frames.bytes()[frames.span(range)])))
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn any_number_of_publications_cost_each_member_one_write() {
    let (mut hub, _) = hub_of(&[("lobby", 10)], TopicRules::default());
    for number in 0..20 {
        publish(&mut hub, "lobby", number);
    }
    for member in 0..10 {
        assert_eq!(next(&mut hub), Some((member, (0..20).collect())));
    }
    assert_eq!(next(&mut hub), None);
}

#[test]
fn a_pass_carries_no_more_than_is_written_in_one_go() {
    let (mut hub, _) = hub_of(&[("lobby", 1)], TopicRules::default());
    for number in 0..3 {
        hub.publish(
            &Arc::new(Publication::new("lobby", Body(number, 40_000)).with_body_bytes(80_000)),
            None,
        );
    }
    let told: Vec<_> = std::iter::from_fn(|| next(&mut hub)).map(|(_, numbers)| numbers).collect();
    assert_eq!(told, [[0], [1], [2]]);
}

#[test]
fn a_small_topic_waits_for_a_few_deliveries_of_a_large_one_at_most() {
    let (mut hub, _) = hub_of(&[("lobby", 1_000), ("rooms:1", 1)], TopicRules::default());
    publish(&mut hub, "lobby", 0);
    next(&mut hub).unwrap();
    publish(&mut hub, "rooms:1", 1);
    let before = std::iter::from_fn(|| next(&mut hub)).take_while(|(_, numbers)| numbers == &[0]);
    assert!(before.count() <= DELIVERIES_OF_TURN as usize);
}

#[test]
fn what_too_many_publications_wait_for_is_decided_by_the_policy() {
    let check = |policy, expected: &[u32], dropped| {
        let rules = TopicRules { policy, backlog_bytes_max: 3 * 256, ..TopicRules::default() };
        let (mut hub, _) = hub_of(&[("lobby", 2)], rules);
        publish(&mut hub, "lobby", 0);
        assert_eq!(next(&mut hub), Some((0, vec![0])), "the pass of the first is under way");
        let all = (1..=5).map(|number| publish(&mut hub, "lobby", number).dropped).sum::<usize>();
        assert_eq!(all, dropped, "{policy}");
        let told: BTreeMap<u32, Vec<u32>> = std::iter::from_fn(|| next(&mut hub)).fold(
            BTreeMap::new(),
            |mut told, (key, numbers)| {
                told.entry(key).or_insert_with(Vec::new).extend(numbers);
                told
            },
        );
        assert_eq!(told[&0], expected, "{policy}");
        assert_eq!(told[&1], [&[0], expected].concat(), "{policy}");
    };
    check(Policy::DropNewest, &[1, 2, 3], 2);
    check(Policy::Close, &[1, 2, 3], 2);
    check(Policy::DropOldest, &[3, 4, 5], 2);
    check(Policy::KeepLatest, &[5], 4);
}

#[test]
fn numbers_go_round() {
    let (mut hub, _) = hub_of(&[("lobby", 1)], TopicRules::default());
    let id = hub.names["lobby"];
    let index = hub.topics.get(id).unwrap().list.first;
    hub.topics.get_mut(id).unwrap().set_first(u32::MAX - 1);
    hub.members.at(index).due = u32::MAX - 1;
    for number in 0..5 {
        publish(&mut hub, "lobby", number);
        assert_eq!(next(&mut hub), Some((0, vec![number])));
    }
}

#[test]
fn the_handle_of_a_reused_place_ends_no_other_membership() {
    let mut hub = Hub::new();
    let (mut one, mut two) = (Memberships::default(), Memberships::default());
    let (key_one, key_two) = (Key::new(1, 0), Key::new(2, 0));
    let rules = TopicRules::default;
    let stale = hub.subscribe(&mut one, key_one, "lobby", Subscription::default(), rules);
    hub.unsubscribe_all(&mut one);
    hub.subscribe(&mut two, key_two, "lobby", Subscription::default(), rules);
    assert!(!hub.unsubscribe(&mut one, key_one, stale));
    assert_eq!(hub.members_of("lobby"), 1);
}

#[test]
fn topics_that_begin_and_end_are_noted_if_that_is_wanted() {
    let mut hub = Hub::new();
    let mut of = Memberships::default();
    let key = Key::new(1, 1);
    let rules = TopicRules::default;
    hub.subscribe(&mut of, key, "before", Subscription::default(), rules);
    assert!(hub.topic_changes().is_empty());
    hub.note_topic_changes();
    let first = hub.subscribe(&mut of, key, "a", Subscription::default(), rules);
    let second = hub.subscribe(&mut of, key, "a", Subscription::default(), rules);
    hub.unsubscribe(&mut of, key, first);
    let change = |topic: &str, has_members| TopicChange { topic: topic.into(), has_members };
    assert_eq!(hub.topic_changes(), [change("a", true)]);
    hub.unsubscribe(&mut of, key, second);
    assert_eq!(hub.topic_changes(), [change("a", false)]);
    assert!(hub.topic_changes().is_empty());
}
