//! Presence over several cores and the clients that follow it: after any interleaving, all agree.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::Value;
use throng_base::Instant;
use throng_pubsub::presence::{Diff, Listing, Presence, PresenceError};

const CORES: usize = 3;
const TOPIC: &str = "room";

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn all_cores_and_clients_agree_in_the_end(steps in prop::collection::vec(step(), 0..80)) {
        let mut world = World::new();
        for step in &steps {
            world.take(step);
        }
        world.settle();
        let truth = world.truth();
        for core in &world.cores {
            prop_assert_eq!(listed(&core.presence), truth.clone());
        }
        let clients = world.cores.iter().flat_map(|core| &core.clients);
        for client in clients.filter(|client| client.synced) {
            prop_assert_eq!(client.sorted(), truth.clone());
        }
    }
}

/// The members of a topic: for each key, the metas by their ref.
type Present = BTreeMap<String, BTreeMap<String, Value>>;

#[derive(Clone, Debug)]
enum Step {
    Track {
        core: usize,
        owner: u32,
        key: u8,
    },
    Update {
        core: usize,
        owner: u32,
        key: u8,
    },
    Untrack {
        core: usize,
        owner: u32,
        key: u8,
    },
    End {
        core: usize,
        owner: u32,
    },
    /// The core's turn ends: its changes go to its clients and to the other cores.
    Drain {
        core: usize,
    },
    /// One diff arrives.
    Arrive {
        from: usize,
        to: usize,
    },
    /// A client subscribes to the topic. It has no state yet.
    Subscribe {
        core: usize,
    },
    /// The state is pushed to a client of the core, ahead of the diffs that its fan-out still
    /// holds.
    PushState {
        core: usize,
        client: usize,
    },
    /// A client of the core is pushed a state that is written while it is taken. Later diffs follow
    /// behind it.
    List {
        core: usize,
        client: usize,
        in_pieces: bool,
    },
    /// The client takes the next diff that the fan-out has for it, or the next part of a list.
    Take {
        core: usize,
        client: usize,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let core = 0..CORES;
    let change =
        (core.clone(), 0..3u32, 0..3u8, 0..8u8).prop_map(|(core, owner, key, what)| match what {
            0..4 => Step::Track { core, owner, key },
            4 => Step::Update { core, owner, key },
            5 | 6 => Step::Untrack { core, owner, key },
            _ => Step::End { core, owner },
        });
    prop_oneof![
        4 => change,
        2 => core.clone().prop_map(|core| Step::Drain { core }),
        3 => (core.clone(), core.clone()).prop_map(|(from, to)| Step::Arrive { from, to }),
        1 => core.clone().prop_map(|core| Step::Subscribe { core }),
        1 => (core.clone(), 0..4usize).prop_map(|(core, client)| Step::PushState { core, client }),
        1 => (core.clone(), 0..4usize, any::<bool>())
            .prop_map(|(core, client, in_pieces)| Step::List { core, client, in_pieces }),
        4 => (core, 0..4usize).prop_map(|(core, client)| Step::Take { core, client }),
    ]
}

struct World {
    now: Instant,
    cores: Vec<Core>,
    /// The diffs that `from` has sent and `to` has not received, in order.
    mail: BTreeMap<(usize, usize), VecDeque<Arc<Diff>>>,
    /// The tracked members: core, owner and key.
    tracked: BTreeMap<(usize, u32, u8), String>,
}

struct Core {
    presence: Presence<u32>,
    clients: Vec<Client>,
}

impl World {
    fn new() -> Self {
        let core = |core| Core { presence: Presence::new(core as u16, 1_000), clients: Vec::new() };
        let (mail, tracked) = (BTreeMap::new(), BTreeMap::new());
        Self { now: Instant::ZERO, cores: (0..CORES).map(core).collect(), mail, tracked }
    }

    fn take(&mut self, step: &Step) {
        // Some steps share a moment.
        self.now = Instant::from_nanos(
            self.now.as_nanos() + u64::from(!matches!(step, Step::Track { .. })),
        );
        match *step {
            Step::Track { core, owner, key } => {
                let presence = &mut self.cores[core].presence;
                let done = presence.track(self.now, owner, TOPIC, &key.to_string(), "{\"n\":1}");
                let known = self.tracked.contains_key(&(core, owner, key));
                assert_eq!(done.err(), known.then_some(PresenceError::AlreadyTracked));
                if let Ok(r#ref) = done {
                    self.tracked.insert((core, owner, key), r#ref.to_string());
                }
            }
            Step::Update { core, owner, key } => {
                let presence = &mut self.cores[core].presence;
                let done = presence.update(self.now, owner, TOPIC, &key.to_string(), "{\"n\":2}");
                assert_eq!(done.is_ok(), self.tracked.contains_key(&(core, owner, key)));
                if let Ok(r#ref) = done {
                    self.tracked.insert((core, owner, key), r#ref.to_string());
                }
            }
            Step::Untrack { core, owner, key } => {
                let done = self.cores[core].presence.untrack(owner, TOPIC, &key.to_string());
                assert_eq!(done.is_ok(), self.tracked.remove(&(core, owner, key)).is_some());
            }
            Step::End { core, owner } => {
                self.cores[core].presence.untrack_all(&owner);
                self.tracked.retain(|&(c, o, _), _| (c, o) != (core, owner));
            }
            Step::Drain { core } => {
                for diff in self.cores[core].presence.drain().collect::<Vec<_>>() {
                    self.cores[core].fan_out(&diff);
                    for to in (0..CORES).filter(|&to| to != core) {
                        self.mail.entry((core, to)).or_default().push_back(diff.clone());
                    }
                }
            }
            Step::Arrive { from, to } => {
                if let Some(diff) = self.mail.get_mut(&(from, to)).and_then(VecDeque::pop_front) {
                    self.cores[to].presence.apply(&diff);
                    self.cores[to].fan_out(&diff);
                }
            }
            Step::Subscribe { core } => self.cores[core].clients.push(Client::default()),
            Step::PushState { core, client } => {
                let Core { presence, clients } = &mut self.cores[core];
                if let Some(client) = clients.get_mut(client) {
                    let mut out = Vec::new();
                    presence.state(TOPIC, &mut out);
                    client.apply_state(&serde_json::from_slice(&out).unwrap());
                }
            }
            Step::List { core, client, in_pieces } => {
                let Core { presence, clients } = &mut self.cores[core];
                if let Some(client) = clients.get_mut(client) {
                    let (list, text) = (presence.members(TOPIC), Vec::new());
                    client.coming.push_back(if in_pieces {
                        Coming::Pieces { list, is_first: true }
                    } else {
                        Coming::Parts { list, text }
                    });
                }
            }
            Step::Take { core, client } => {
                if let Some(client) = self.cores[core].clients.get_mut(client) {
                    client.take_next();
                }
            }
        }
    }

    /// Lets everything in flight arrive.
    fn settle(&mut self) {
        for core in 0..CORES {
            self.take(&Step::Drain { core });
        }
        for (from, to) in self.mail.keys().copied().collect::<Vec<_>>() {
            while !self.mail[&(from, to)].is_empty() {
                self.take(&Step::Arrive { from, to });
            }
        }
        for client in self.cores.iter_mut().flat_map(|core| &mut core.clients) {
            while client.take_next() {}
        }
    }

    /// Returns the refs of all tracked members by key; the metas come from the owner's list.
    fn truth(&self) -> Present {
        let mut truth = Present::new();
        for (&(core, _, key), r#ref) in &self.tracked {
            let member =
                self.cores[core].presence.members(TOPIC).find(|m| m.r#ref().to_string() == *r#ref);
            let meta = serde_json::from_str(member.expect("its owner lists it").meta()).unwrap();
            truth.entry(key.to_string()).or_default().insert(r#ref.clone(), meta);
        }
        truth
    }
}

impl Core {
    fn fan_out(&mut self, diff: &Diff) {
        let diff: Value = serde_json::from_str(diff.payload()).unwrap();
        for client in &mut self.clients {
            client.coming.push_back(Coming::Diff(diff.clone()));
        }
    }
}

/// A client that works like phoenix.js. Diffs wait for the first state. A state is turned into a
/// diff against the known members, by refs. Joins are appended to the existing metas and replace
/// equal refs. A leave drops a key with its last meta.
#[derive(Default)]
struct Client {
    coming: VecDeque<Coming>,
    waiting: Vec<Value>,
    synced: bool,
    known: BTreeMap<String, Vec<Value>>,
}

/// An item that a client has not taken yet.
enum Coming {
    Diff(Value),
    /// One `presence_state`, of which a part has been written.
    Parts {
        list: Listing,
        text: Vec<u8>,
    },
    /// A `presence_state` of some members, and then the others in one `presence_diff` after
    /// another.
    Pieces {
        list: Listing,
        is_first: bool,
    },
}

impl Client {
    fn take_next(&mut self) -> bool {
        match self.coming.pop_front() {
            None => return false,
            Some(Coming::Diff(diff)) => self.apply_diff(diff),
            Some(Coming::Parts { mut list, mut text }) => {
                if list.part(1, &mut text) {
                    self.coming.push_front(Coming::Parts { list, text });
                } else {
                    self.apply_state(&serde_json::from_slice(&text).unwrap());
                }
            }
            Some(Coming::Pieces { mut list, is_first }) => {
                let mut text = Vec::new();
                if list.object(1, &mut text) {
                    self.coming.push_front(Coming::Pieces { list, is_first: false });
                }
                let object: Value = serde_json::from_slice(&text).unwrap();
                if is_first {
                    self.apply_state(&object);
                } else {
                    self.apply_diff(serde_json::json!({"joins": object, "leaves": {}}));
                }
            }
        }
        true
    }

    fn apply_diff(&mut self, diff: Value) {
        if self.synced {
            self.sync(&diff);
        } else {
            self.waiting.push(diff);
        }
    }

    fn apply_state(&mut self, state: &Value) {
        let state = groups(state);
        for (key, metas) in &mut self.known {
            let stays: Vec<&Value> = state.get(key).into_iter().flatten().map(r#ref).collect();
            metas.retain(|meta| stays.contains(&r#ref(meta)));
        }
        self.known.retain(|_, metas| !metas.is_empty());
        for (key, metas) in state {
            let known = self.known.entry(key).or_default();
            let new: Vec<Value> = metas
                .into_iter()
                .filter(|meta| known.iter().all(|old| r#ref(old) != r#ref(meta)))
                .collect();
            known.extend(new);
        }
        self.synced = true;
        for diff in std::mem::take(&mut self.waiting) {
            self.sync(&diff);
        }
    }

    fn sync(&mut self, diff: &Value) {
        for (key, metas) in groups(&diff["joins"]) {
            let known = self.known.entry(key).or_default();
            known.retain(|old| metas.iter().all(|meta| r#ref(meta) != r#ref(old)));
            known.extend(metas);
        }
        for (key, metas) in groups(&diff["leaves"]) {
            if let Some(known) = self.known.get_mut(&key) {
                known.retain(|old| metas.iter().all(|meta| r#ref(meta) != r#ref(old)));
                if known.is_empty() {
                    self.known.remove(&key);
                }
            }
        }
    }

    fn sorted(&self) -> Present {
        self.known.iter().map(|(key, metas)| (key.clone(), by_ref(metas))).collect()
    }
}

fn listed(presence: &Presence<u32>) -> Present {
    let mut out = Vec::new();
    presence.state(TOPIC, &mut out);
    let state = groups(&serde_json::from_slice(&out).unwrap());
    state.into_iter().map(|(key, metas)| (key, by_ref(&metas))).collect()
}

fn groups(state: &Value) -> BTreeMap<String, Vec<Value>> {
    let metas = |group: &Value| group["metas"].as_array().unwrap().clone();
    state.as_object().unwrap().iter().map(|(key, group)| (key.clone(), metas(group))).collect()
}

fn by_ref(metas: &[Value]) -> BTreeMap<String, Value> {
    let named: BTreeMap<_, _> =
        metas.iter().map(|meta| (r#ref(meta).as_str().unwrap().to_owned(), meta.clone())).collect();
    assert_eq!(named.len(), metas.len(), "a ref twice: {metas:?}");
    named
}

fn r#ref(meta: &Value) -> &Value {
    &meta["phx_ref"]
}
