//! One core's topics and their members, and whose turn it is to be told what.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use throng_base::{Key, Slab};

use crate::members::{Members, NONE};
use crate::topic::{QueuedPublication, Render, Topic};
use crate::{
    Dialect, Frames, Lane, Membership, Memberships, Publication, Subscription, TopicRules,
};

/// One core's subscriptions. It writes nothing: [`Hub::next`] says what is to be written to whom.
pub struct Hub {
    names: HashMap<Arc<str>, Key>,
    topics: Slab<Topic>,
    members: Members,
    /// Topics that have something to deliver, the one whose turn it is first.
    ready_topics: VecDeque<Key>,
    /// Deliveries that are left of its turn.
    turn_deliveries_left: u32,
    lanes: u32,
}

/// What became of a publication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublishOutcome {
    /// Whether anybody here is in its topic.
    pub has_members: bool,
    /// Publications that the topic's policy dropped, because too many wait already.
    pub dropped: usize,
}

/// One member's share of a pass.
#[derive(Debug)]
pub struct Delivery<'a> {
    /// Who gets it.
    pub key: Key,
    /// The subscriber's name for this membership.
    pub tag: u16,
    /// What it speaks, whether it gets frames or not.
    pub dialect: Dialect,
    /// What its queue is to know of the topic.
    pub lane: Lane,
    /// What it gets.
    pub content: DeliveryContent<'a>,
}

/// What a member gets.
#[derive(Debug)]
pub enum DeliveryContent<'a> {
    /// These of the frames.
    Frames(&'a Frames, Range<usize>),
    /// The publication itself: it intercepts.
    Publication(Arc<Publication>),
    /// Nothing of this: it is excepted, or its dialect has no frame for it.
    Nothing,
}

impl Hub {
    /// A hub without topics.
    pub fn new() -> Self {
        Self {
            names: HashMap::new(),
            topics: Slab::new(),
            members: Members::new(),
            ready_topics: VecDeque::new(),
            turn_deliveries_left: DELIVERIES_OF_TURN,
            lanes: 0,
        }
    }

    /// How many topics have members here.
    pub fn topics(&self) -> usize {
        self.topics.len() as usize
    }

    /// How many memberships there are.
    pub fn members(&self) -> usize {
        self.members.len() as usize
    }

    /// Whether [`Self::next`] has something to say.
    pub fn is_busy(&self) -> bool {
        !self.ready_topics.is_empty()
    }

    /// The members of one topic, for whoever shows it.
    pub fn members_of(&self, topic: &str) -> usize {
        let topic = self.names.get(topic).and_then(|id| self.topics.get(*id));
        topic.map_or(0, |topic| topic.list.len as usize)
    }

    /// Makes `key`, whose memberships are `of`, a member of `topic`: it gets what is published from now on. `rules` is
    /// asked when the topic has no member yet. Joining twice makes two memberships, each with its own copy.
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

    /// Ends a membership of `key`: nothing is told to it any more. False when it had ended before.
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

    /// Queues `publication` for the members that its topic has now, but not for `except`.
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

    /// The next thing to be told to a member; none when everybody has been told everything. Costs the same however many
    /// members there are. `render` makes the bytes of a publication in a dialect.
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
        // What it is excepted from counts as told.
        let told = end.max(from + 1);
        member.due = pass.number(told);
        if told == pass.publications.len() {
            pass.cursor = member.next;
        }
        let what = if end == from {
            DeliveryContent::Nothing
        } else if member.intercepts {
            DeliveryContent::Publication(Arc::clone(&pass.publications[from].publication))
        } else {
            let frames = pass.frames(member.dialect, render);
            match frames.span(from..end).is_empty() {
                true => DeliveryContent::Nothing,
                false => DeliveryContent::Frames(frames, from..end),
            }
        };
        let TopicRules { policy, queue_bytes_max, .. } = topic.rules;
        let lane = Lane { id: topic.lane, policy, queue_bytes_max };
        Some(Delivery { key: member.key, tag: member.tag, dialect: member.dialect, lane, content: what })
    }

    /// Whose turn it is, and in which topic.
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
            // One that has come after all of the pass was published gets none of it, nor does anyone behind it.
            if pass.cursor != NONE && pass.first_for(self.members.at(pass.cursor).due).is_some() {
                return Some((id, pass.cursor));
            }
            topic.pass = None;
        }
    }

    fn add_topic(&mut self, name: Arc<str>, rules: TopicRules) -> Key {
        self.lanes = self.lanes.checked_add(1).unwrap_or(1);
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
            if let Some(id) = self.topics.key_at(place) {
                self.topics.remove(id);
            }
        }
    }

    /// The next topic has its turn; this one goes to the end, or has nothing more to say.
    fn end_turn(&mut self, comes_back: bool) {
        self.turn_deliveries_left = DELIVERIES_OF_TURN;
        if let Some(id) = self.ready_topics.pop_front()
            && comes_back
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

/// Deliveries of one topic before the next has its turn.
const DELIVERIES_OF_TURN: u32 = 32;

#[cfg(test)]
mod tests;
