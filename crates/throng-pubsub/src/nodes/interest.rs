//! The subjects that a node subscribes to: those of the topics that have members on it.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::time::Duration;

use throng_base::Instant;

use super::subjects::{NodeSubjects, SHARDS, TopicSubject, hash, shard};

/// The topics that have members on this node, and the subjects that it subscribes to for them.
///
/// Up to [`TOPIC_SUBSCRIPTIONS_MAX`] topics, the node subscribes to the subject of each. Beyond, it
/// subscribes to those of their shards: it hears publications of topics that it has no members of,
/// and drops them. It returns to topics when it has half as many. A topic stays subscribed for 5 s
/// after its last member has left.
#[derive(Debug)]
pub struct TopicInterest {
    topics_max: usize,
    /// The topics in use, by their hashes. A hash counts once, however many topics have it.
    uses: HashMap<u64, TopicUse>,
    /// The number of topics in use of each shard.
    shards: Box<[u32]>,
    by_shard: bool,
    subscribed: BTreeSet<TopicSubject>,
    /// Subjects whose subscription may have to begin or to end.
    unchecked: BTreeSet<TopicSubject>,
    /// Topics without members, with the time when they are forgotten.
    idle: VecDeque<(Instant, u64)>,
}

/// The use of a topic on this node.
#[derive(Debug)]
struct TopicUse {
    /// Cores that have members of it.
    cores: u32,
    /// The time when it is forgotten if it has no members until then.
    idle_until: Instant,
}

/// The subscriptions to begin and to end. Begin them first: a node that passes from topics to
/// shards then misses nothing, and what comes twice is [found out](super::BatchFilter).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubscriptionChanges {
    /// The subscriptions to begin.
    pub begin: Vec<TopicSubject>,
    /// The subscriptions to end.
    pub end: Vec<TopicSubject>,
}

impl TopicInterest {
    /// Makes the interest of a node without members. It subscribes by topic up to `topics_max`
    /// topics: see [`TOPIC_SUBSCRIPTIONS_MAX`].
    pub fn new(topics_max: usize) -> Self {
        Self {
            topics_max,
            uses: HashMap::new(),
            shards: vec![0; usize::from(SHARDS)].into(),
            by_shard: false,
            subscribed: BTreeSet::new(),
            unchecked: BTreeSet::new(),
            idle: VecDeque::new(),
        }
    }

    /// Notes that a core has its first member of `topic`.
    pub fn add(&mut self, topic: &str) {
        let hash = hash(topic);
        let is_new = !self.uses.contains_key(&hash);
        self.uses.entry(hash).or_insert(TopicUse { cores: 0, idle_until: Instant::FAR }).cores += 1;
        if is_new {
            self.shards[usize::from(shard(hash))] += 1;
            self.check(hash);
            if !self.by_shard && self.uses.len() > self.topics_max {
                self.switch(true);
            }
        }
    }

    /// Notes that a core has lost its last member of `topic`.
    pub fn remove(&mut self, now: Instant, topic: &str) {
        let hash = hash(topic);
        let Some(topic) = self.uses.get_mut(&hash) else { return };
        debug_assert!(topic.cores > 0, "a core loses the members that it had");
        topic.cores = topic.cores.saturating_sub(1);
        if topic.cores == 0 {
            topic.idle_until = now + IDLE_MAX;
            self.idle.push_back((topic.idle_until, hash));
        }
    }

    /// Returns the next time when [`Self::changes`] may return something although no member came
    /// or went.
    pub fn due(&self) -> Instant {
        if self.unchecked.is_empty() {
            self.idle.front().map_or(Instant::FAR, |(due, _)| *due)
        } else {
            Instant::ZERO
        }
    }

    /// Returns the subscriptions to begin and to end since the last call.
    pub fn changes(&mut self, now: Instant) -> SubscriptionChanges {
        self.forget_idle(now);
        let mut changes = SubscriptionChanges::default();
        for subject in std::mem::take(&mut self.unchecked) {
            match (self.wants(subject), self.subscribed.contains(&subject)) {
                (true, false) => changes.begin.push(subject),
                (false, true) => changes.end.push(subject),
                _ => {}
            }
        }
        self.subscribed.extend(&changes.begin);
        changes.end.iter().for_each(|subject| _ = self.subscribed.remove(subject));
        changes
    }

    /// Takes back changes that could not be made: the next [`Self::changes`] returns them again,
    /// if they are still wanted.
    pub fn failed(&mut self, changes: &SubscriptionChanges) {
        for subject in &changes.begin {
            self.subscribed.remove(subject);
            self.unchecked.insert(*subject);
        }
        for subject in &changes.end {
            self.subscribed.insert(*subject);
            self.unchecked.insert(*subject);
        }
    }

    /// Reports whether the node has members of `topic`, or had some seconds ago.
    pub fn has(&self, topic: &str) -> bool {
        self.uses.contains_key(&hash(topic))
    }

    /// Returns the number of subscriptions.
    pub fn subscriptions(&self) -> usize {
        self.subscribed.len()
    }

    /// Reports whether it subscribes by shard.
    pub const fn is_by_shard(&self) -> bool {
        self.by_shard
    }

    fn wants(&self, subject: TopicSubject) -> bool {
        match subject {
            TopicSubject::Topic(hash) => !self.by_shard && self.uses.contains_key(&hash),
            TopicSubject::Shard(shard) => self.by_shard && self.shards[usize::from(shard)] > 0,
        }
    }

    fn check(&mut self, hash: u64) {
        self.unchecked.insert(if self.by_shard {
            TopicSubject::Shard(shard(hash))
        } else {
            TopicSubject::Topic(hash)
        });
    }

    fn forget_idle(&mut self, now: Instant) {
        while let Some((due, hash)) = self.idle.front().copied()
            && due <= now
        {
            self.idle.pop_front();
            // A topic that had members meanwhile has a later entry, or none.
            let is_idle = |topic: &TopicUse| topic.cores == 0 && topic.idle_until == due;
            if self.uses.get(&hash).is_some_and(is_idle) {
                self.uses.remove(&hash);
                self.shards[usize::from(shard(hash))] -= 1;
                self.check(hash);
            }
        }
        if self.by_shard && self.uses.len() <= self.topics_max / 2 {
            self.switch(false);
        }
    }

    /// Passes from topics to shards or back.
    fn switch(&mut self, by_shard: bool) {
        self.by_shard = by_shard;
        self.unchecked.extend(&self.subscribed);
        if by_shard {
            self.unchecked.extend((0..SHARDS).map(TopicSubject::Shard));
        } else {
            self.unchecked.extend(self.uses.keys().map(|hash| TopicSubject::Topic(*hash)));
        }
    }
}

impl SubscriptionChanges {
    /// Reports whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.begin.is_empty() && self.end.is_empty()
    }

    /// Returns the patterns of the subscriptions to begin, and of those to end.
    pub fn patterns(&self, subjects: &NodeSubjects) -> [Vec<String>; 2] {
        [&self.begin, &self.end]
            .map(|list| list.iter().map(|subject| subjects.pattern(*subject)).collect())
    }
}

/// Topics up to which a node has a subscription for each of them.
pub const TOPIC_SUBSCRIPTIONS_MAX: usize = 100_000;
/// The time for which a topic without members stays subscribed: a client that connects again finds
/// it as it was.
const IDLE_MAX: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    fn topic(name: &str) -> TopicSubject {
        TopicSubject::Topic(hash(name))
    }

    #[test]
    fn a_topic_is_subscribed_while_a_core_has_members_and_a_while_longer() {
        let mut interest = TopicInterest::new(10);
        interest.add("a");
        interest.add("a");
        assert_eq!(interest.due(), Instant::ZERO);
        assert_eq!(interest.changes(at(0)).begin, [topic("a")]);
        assert!(interest.changes(at(0)).is_empty());
        interest.remove(at(1), "a");
        assert_eq!(interest.due(), Instant::FAR);
        interest.remove(at(1), "a");
        assert!(interest.changes(at(2)).is_empty());
        assert_eq!((interest.due(), interest.changes(at(6)).end), (at(6), vec![topic("a")]));
        assert_eq!((interest.due(), interest.subscriptions()), (Instant::FAR, 0));
    }

    #[test]
    fn a_member_that_comes_again_finds_the_subscription() {
        let mut interest = TopicInterest::new(10);
        interest.add("a");
        interest.changes(at(0));
        interest.remove(at(1), "a");
        interest.add("a");
        interest.remove(at(3), "a");
        assert!(interest.changes(at(6)).is_empty());
        assert_eq!(interest.changes(at(8)).end, [topic("a")]);
    }

    #[test]
    fn very_many_topics_are_subscribed_by_shard() {
        let mut interest = TopicInterest::new(2);
        for name in ["a", "b"] {
            interest.add(name);
        }
        assert_eq!(interest.changes(at(0)).begin.len(), 2);
        interest.add("c");
        let changes = interest.changes(at(0));
        let shards: BTreeSet<_> =
            ["a", "b", "c"].map(|name| TopicSubject::Shard(shard(hash(name)))).into();
        assert_eq!(changes.begin.iter().copied().collect::<BTreeSet<_>>(), shards);
        assert_eq!(changes.end.len(), 2);
        for name in ["b", "c"] {
            interest.remove(at(1), name);
        }
        let changes = interest.changes(at(6));
        assert_eq!((changes.begin, changes.end.len()), (vec![topic("a")], shards.len()));
    }

    #[test]
    fn what_the_bus_refused_comes_again() {
        let mut interest = TopicInterest::new(2);
        interest.add("a");
        let changes = interest.changes(at(0));
        interest.failed(&changes);
        assert_eq!((interest.subscriptions(), interest.due()), (0, Instant::ZERO));
        assert_eq!(interest.changes(at(0)), changes);
    }

    proptest! {
        /// In the end a node is subscribed to what it has members of, and to nothing else.
        #[test]
        fn the_subscriptions_follow_the_members(
            steps in prop::collection::vec((0_u8..12, any::<bool>(), 0_u64..4, 0_u8..4), 0..200),
        ) {
            let mut interest = TopicInterest::new(5);
            let mut held = BTreeSet::new();
            let mut cores = HashMap::<u8, u32>::new();
            let mut now = at(0);
            let mut apply = |interest: &mut TopicInterest, now, fails| {
                let changes = interest.changes(now);
                if fails {
                    interest.failed(&changes);
                } else {
                    held.extend(changes.begin.iter().copied());
                    changes.end.iter().for_each(|subject| assert!(held.remove(subject)));
                }
                held.clone()
            };
            for (name, joins, seconds, fate) in steps {
                now += Duration::from_secs(seconds);
                let count = cores.entry(name).or_default();
                if joins && *count < 3 {
                    *count += 1;
                    interest.add(&name.to_string());
                } else if *count > 0 {
                    *count -= 1;
                    interest.remove(now, &name.to_string());
                }
                apply(&mut interest, now, fate == 0);
            }
            let held = apply(&mut interest, now + IDLE_MAX, false);
            let present = cores.iter().filter(|(_, count)| **count > 0);
            let hashes: Vec<u64> = present.map(|(name, _)| hash(&name.to_string())).collect();
            let expected: BTreeSet<TopicSubject> = if interest.is_by_shard() {
                hashes.iter().map(|hash| TopicSubject::Shard(shard(*hash))).collect()
            } else {
                hashes.iter().map(|hash| TopicSubject::Topic(*hash)).collect()
            };
            prop_assert_eq!(held, expected);
        }
    }
}
