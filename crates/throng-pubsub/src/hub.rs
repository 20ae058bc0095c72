//! The hub: one core's topics and members, and the order of their deliveries.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use throng_base::{Key, Slab};

use crate::members::{Members, NONE};
use crate::topic::{QueuedPublication, Render, Topic};
use crate::{
    Dialect, Frames, Lane, Membership, Memberships, Publication, Subscription, TopicRules,
};

/// One core's subscriptions. It writes nothing: [`Hub::next`] returns what to write to which
/// member.
pub struct Hub {
    names: HashMap<Arc<str>, Key>,
    topics: Slab<Topic>,
    members: Members,
    /// Topics that have deliveries to make, in the order of their turns.
    ready_topics: VecDeque<Key>,
    /// Deliveries left in the turn of the first topic.
    turn_deliveries_left: u32,
    lanes: u32,
    /// Topics that have begun or ended since the last [`Hub::topic_changes`], if they are noted.
    topic_changes: Option<Vec<TopicChange>>,
}

/// A topic of a core that has begun or ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicChange {
    /// The topic.
    pub topic: Arc<str>,
    /// True if it has its first member now, false if its last one has left.
    pub has_members: bool,
}

/// The outcome of a publication on one core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublishOutcome {
    /// True if its topic has members on this core.
    pub has_members: bool,
    /// Publications that the topic's policy dropped because too many wait already.
    pub dropped: usize,
}

/// The counts of a topic on one core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TopicCounts {
    /// Members on this core.
    pub members: u32,
    /// Publications since the topic has had members here, modulo 2^32, those included that its
    /// policy dropped from its queue.
    pub publications: u32,
    /// Publications that some members here have not received yet.
    pub waiting: u32,
}

/// One member's share of a pass.
#[derive(Debug)]
pub struct Delivery<'a> {
    /// The member's connection.
    pub key: Key,
    /// The subscriber's tag of this membership.
    pub tag: u16,
    /// The member's dialect, whether it receives frames or not.
    pub dialect: Dialect,
    /// The rules of the topic for the connection's send queue.
    pub lane: Lane,
    /// The delivered content.
    pub content: DeliveryContent<'a>,
}

/// The content of a delivery.
#[derive(Debug)]
pub enum DeliveryContent<'a> {
    /// A range of the frames.
    Frames(&'a Frames, Range<usize>),
    /// The publication itself, for a member that intercepts.
    Publication(Arc<Publication>),
    /// Nothing: the publication excepts the member, or its dialect has no frame for it.
    Nothing,
}

impl Hub {
    /// Makes a hub without topics.
    pub fn new() -> Self {
        Self {
            names: HashMap::new(),
            topics: Slab::new(),
            members: Members::new(),
            ready_topics: VecDeque::new(),
            turn_deliveries_left: DELIVERIES_OF_TURN,
            lanes: 0,
            topic_changes: None,
        }
    }

    /// Notes from now on which topics begin and end, for [`Self::topic_changes`].
    pub fn note_topic_changes(&mut self) {
        self.topic_changes.get_or_insert_default();
    }

    /// Returns the topics that have begun or ended since the last call, in order.
    pub fn topic_changes(&mut self) -> Vec<TopicChange> {
        self.topic_changes.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Returns the number of topics that have members here.
    pub fn topics(&self) -> usize {
        self.topics.len() as usize
    }

    /// Returns the number of memberships.
    pub fn members(&self) -> usize {
        self.members.len() as usize
    }

    /// Reports whether [`Self::next`] has a delivery.
    pub fn is_busy(&self) -> bool {
        !self.ready_topics.is_empty()
    }

    /// Returns the number of members of one topic.
    pub fn members_of(&self, topic: &str) -> usize {
        let topic = self.names.get(topic).and_then(|id| self.topics.get(*id));
        topic.map_or(0, |topic| topic.list.len as usize)
    }

    /// Returns the counts of one topic, if it has members here.
    pub fn counts_of(&self, topic: &str) -> Option<TopicCounts> {
        let topic = self.topics.get(*self.names.get(topic)?)?;
        Some(TopicCounts {
            members: topic.list.len,
            publications: topic.next_number(),
            waiting: topic.waiting(),
        })
    }

    /// Returns how many places the table of topics has: the end of the range for
    /// [`Self::topics_in`].
    pub fn topic_places(&self) -> u32 {
        self.topics.places()
    }

    /// Returns the topics in `places` of the table, each with the number of its members. The cost
    /// depends on the number of places.
    pub fn topics_in(&self, places: Range<u32>) -> impl Iterator<Item = (&Arc<str>, u32)> {
        let topic_at = |place| self.topics.get(self.topics.key_at(place)?);
        places.filter_map(topic_at).map(|topic| (&topic.name, topic.list.len))
    }

    /// Makes `key`, whose memberships are `of`, a member of `topic`: it receives all later
    /// publications. `rules` is called if the topic has no member yet. A second subscription makes
    /// a second membership with its own copies.
    pub fn subscribe(
        &mut self,
        of: &mut Memberships,
        key: Key,
        topic: &str,
        subscription: Subscription,
        rules: impl FnOnce() -> TopicRules,
    ) -> Membership {
        let id = match self.names.get(topic) {
            Some(id) => *id,
            None => self.add_topic(topic.into(), rules()),
        };
        let topic = self.topics.get_mut(id).expect("a name leads to a topic");
        let due = topic.next_number();
        let index = self.members.add(&mut topic.list, of, key, id.index(), due, subscription);
        Membership::new(index)
    }

    /// Ends a membership of `key`: it receives no more deliveries. Returns false if it had already
    /// ended.
    pub fn unsubscribe(&mut self, of: &mut Memberships, key: Key, membership: Membership) -> bool {
        let is_its_own = self.members.belongs_to(membership.index(), key);
        if is_its_own {
            self.remove(of, membership.index());
        }
        is_its_own
    }

    /// Ends all memberships of a connection.
    pub fn unsubscribe_all(&mut self, of: &mut Memberships) {
        while let Some(index) = of.first() {
            self.remove(of, index);
        }
    }

    /// Queues `publication` for the current members of its topic, except for `except`.
    pub fn publish(
        &mut self,
        publication: &Arc<Publication>,
        except: Option<Key>,
    ) -> PublishOutcome {
        let id = self.names.get(publication.topic());
        let Some((id, topic)) = id.and_then(|id| Some((*id, self.topics.get_mut(*id)?))) else {
            return PublishOutcome { has_members: false, dropped: 0 };
        };
        let dropped =
            topic.queue(QueuedPublication { publication: Arc::clone(publication), except });
        if !std::mem::replace(&mut topic.is_ready, true) {
            self.ready_topics.push_back(id);
        }
        PublishOutcome { has_members: true, dropped }
    }

    /// Returns the next delivery, or `None` if every member has received everything. The cost does
    /// not depend on the number of members. `render` makes the bytes of a publication in a dialect.
    pub fn next(&mut self, render: &mut Render<'_>) -> Option<Delivery<'_>> {
        let (id, index) = self.next_member()?;
        let topic = self.topics.get_mut(id)?;
        let pass = topic.pass.as_mut()?;
        let member = self.members.at(index);
        self.turn_deliveries_left -= 1;
        let from = pass.first_for(member.due)?;
        let mut end = pass.end_for(member.key, from);
        if member.intercepts {
            end = end.min(from + 1);
        }
        // A publication that excepts the member counts as delivered.
        let delivered = end.max(from + 1);
        member.due = pass.number(delivered);
        if delivered == pass.publications.len() {
            pass.cursor = member.next;
        }
        let content = if end == from {
            DeliveryContent::Nothing
        } else if member.intercepts {
            DeliveryContent::Publication(Arc::clone(&pass.publications[from].publication))
        } else {
            let frames = pass.frames(member.dialect, render);
            if frames.span(from..end).is_empty() {
                DeliveryContent::Nothing
            } else {
                DeliveryContent::Frames(frames, from..end)
            }
        };
        let TopicRules { policy, queue_bytes_max, .. } = topic.rules;
        let lane = Lane { id: topic.lane, policy, queue_bytes_max };
        Some(Delivery { key: member.key, tag: member.tag, dialect: member.dialect, lane, content })
    }

    /// Returns the member whose turn it is, and its topic.
    fn next_member(&mut self) -> Option<(Key, u32)> {
        loop {
            let id = *self.ready_topics.front()?;
            let Some(topic) = self.topics.get_mut(id) else {
                self.end_turn(false);
                continue;
            };
            if topic.pass.is_none() && !topic.begin_pass() {
                topic.is_ready = false;
                self.end_turn(false);
                continue;
            }
            if self.turn_deliveries_left == 0 {
                self.end_turn(true);
                continue;
            }
            let Some(pass) = &topic.pass else { continue };
            // A member that joined after the whole pass was published gets none of it, and neither
            // do the members behind it.
            if pass.cursor != NONE && pass.first_for(self.members.at(pass.cursor).due).is_some() {
                return Some((id, pass.cursor));
            }
            topic.pass = None;
        }
    }

    fn add_topic(&mut self, name: Arc<str>, rules: TopicRules) -> Key {
        self.lanes = self.lanes.checked_add(1).unwrap_or(1);
        if let Some(changes) = &mut self.topic_changes {
            changes.push(TopicChange { topic: Arc::clone(&name), has_members: true });
        }
        let id = self.topics.insert(Topic::new(Arc::clone(&name), rules, self.lanes));
        self.names.insert(name, id);
        id
    }

    fn remove(&mut self, of: &mut Memberships, index: u32) {
        let place = self.members.at(index).topic;
        let topic = self.topics.at(place).expect("a member's topic is there");
        let next = self.members.remove(&mut topic.list, of, index);
        if let Some(pass) = &mut topic.pass
            && pass.cursor == index
        {
            pass.cursor = next;
        }
        if topic.list.len == 0 {
            self.names.remove(&topic.name);
            if let Some(changes) = &mut self.topic_changes {
                let topic = Arc::clone(&topic.name);
                changes.push(TopicChange { topic, has_members: false });
            }
            if let Some(id) = self.topics.key_at(place) {
                self.topics.remove(id);
            }
        }
    }

    /// Ends the turn of the first topic. It moves to the end of the queue if it `is_unfinished`.
    fn end_turn(&mut self, is_unfinished: bool) {
        self.turn_deliveries_left = DELIVERIES_OF_TURN;
        if let Some(id) = self.ready_topics.pop_front()
            && is_unfinished
        {
            self.ready_topics.push_back(id);
        }
    }
}

impl Default for Hub {
    fn default() -> Self {
        Self::new()
    }
}

/// Deliveries in one turn of a topic.
const DELIVERIES_OF_TURN: u32 = 32;

#[cfg(test)]
mod tests;
