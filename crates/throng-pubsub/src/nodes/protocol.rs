//! The protocol of a node: heartbeats, presence of other nodes, and the end of lost ones.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use throng_base::Instant;

use super::id::NodeId;
use super::members::{Changes, wire_bytes};
use super::packet::{PACKET_BYTES_MAX, Packet};
use super::peer::{Delta, Peer};
use super::subjects::NodeSubjects;
use super::transfer::Transfer;
use crate::presence::{Diff, PresenceMember, PresenceRef};

/// A node among those that share topics. Give it what the cores of its server change
/// ([`Self::share`]), what the bus brings ([`Self::receive`]), and the time ([`Self::tick`]);
/// execute what [`Self::next_action`] returns after each of them.
///
/// A node that was not heard for [`LOST_AFTER`] is lost: its members leave. One that ends in order
/// says so, and they leave at once. A lost node that is heard again is a new one.
#[derive(Debug)]
pub struct NodeProtocol {
    id: NodeId,
    subjects: NodeSubjects,
    /// The address for clients of other nodes that drain.
    address: Option<Arc<str>>,
    is_draining: bool,
    has_left: bool,
    name_is_taken: bool,
    /// The members that the cores of this node track.
    own: HashMap<PresenceRef, Arc<PresenceMember>>,
    /// Changes of `own` that were not said.
    unsaid: Changes,
    /// The number of the latest changes that were said.
    number: u64,
    /// Answers in progress.
    transfers: VecDeque<Transfer>,
    transfer_at: Instant,
    /// The number of the latest request.
    request: u64,
    peers: BTreeMap<Arc<str>, Peer>,
    /// What may still be said of nodes that come and go, and when that was known.
    news: NewsAllowance,
    heartbeat_at: Instant,
    ticked_at: Option<Instant>,
    actions: VecDeque<NodeAction>,
}

/// An action that a [`NodeProtocol`] requests.
#[derive(Clone, Debug)]
pub enum NodeAction {
    /// Publish the payload on the bus. It need not be repeated if that fails.
    Publish {
        /// The subject.
        subject: String,
        /// The payload.
        payload: Vec<u8>,
    },
    /// Apply the changes of another node's members on every core.
    Presence(Arc<Diff>),
    /// Another node was heard for the first time.
    Found(NodeId),
    /// Another node has ended in order.
    Ended(NodeId),
    /// Another node was not heard for too long.
    Lost(NodeId),
    /// A node that started later has the name of this one. The others ignore this node.
    NameTaken,
}

impl NodeProtocol {
    /// Makes a node that knows no other. `address` is where clients of a node that drains may go.
    pub fn new(id: NodeId, subjects: NodeSubjects, address: Option<Arc<str>>) -> Self {
        Self {
            id,
            subjects,
            address,
            is_draining: false,
            has_left: false,
            name_is_taken: false,
            own: HashMap::new(),
            unsaid: Changes::default(),
            number: 0,
            transfers: VecDeque::new(),
            transfer_at: Instant::ZERO,
            request: 0,
            peers: BTreeMap::new(),
            news: NewsAllowance { left: NEWS_MAX, at: Instant::ZERO },
            heartbeat_at: Instant::ZERO,
            ticked_at: None,
            actions: VecDeque::new(),
        }
    }

    /// Returns the identity of this node.
    pub const fn id(&self) -> &NodeId {
        &self.id
    }

    /// Returns the subjects that the node subscribes to for packets, before its first tick.
    pub fn subscriptions(&self) -> [String; 2] {
        [self.subjects.nodes(), self.subjects.node(&self.id.name)]
    }

    /// Returns the other nodes.
    pub fn others(&self) -> impl Iterator<Item = NodeId> {
        self.peers.iter().map(|(name, peer)| NodeId { name: Arc::clone(name), epoch: peer.epoch })
    }

    /// Returns the addresses of the other nodes that take clients.
    pub fn addresses(&self) -> impl Iterator<Item = Arc<str>> {
        self.peers.values().filter(|peer| !peer.is_draining).filter_map(|peer| peer.address.clone())
    }

    /// Takes changes of the members that this node's cores own. The changes of one core come in
    /// order.
    pub fn share(&mut self, diff: &Diff) {
        for member in diff.joins().iter().filter(|member| wire_bytes(member) <= MEMBER_BYTES_MAX) {
            self.own.insert(member.r#ref(), Arc::clone(member));
            self.unsaid.joins.push(Arc::clone(member));
        }
        for member in diff.leaves() {
            if self.own.remove(&member.r#ref()).is_some() {
                self.unsaid.leaves.push(member.r#ref());
            }
        }
    }

    /// Takes a packet from one of the [`Self::subscriptions`]. Returns false if it is none, or one
    /// of another version.
    pub fn receive(&mut self, now: Instant, payload: &[u8]) -> bool {
        let Some((from, packet)) = Packet::decode(payload) else { return false };
        if from.name == self.id.name {
            self.hear_own_name(&from);
            return true;
        }
        let mut delta = Delta::default();
        if matches!(packet, Packet::Goodbye) {
            self.end_peer(now, &from, &mut delta);
        } else if let Some(peer) = self.peer(now, &from, &mut delta) {
            match packet {
                Packet::Heartbeat { number, address, is_draining } => {
                    (peer.address, peer.is_draining) = (address, is_draining);
                    peer.hear_number(number);
                }
                Packet::Changes { number, changes } => peer.change(number, changes, &mut delta),
                Packet::StatePart(part) => peer.take_part(now, part, &mut delta),
                Packet::StateRequest { transfer } => self.answer(from.name, transfer),
                Packet::Goodbye => {}
            }
        }
        self.say_diffs(delta);
        true
    }

    /// Does what is due: call it at [`Self::due`] at the latest.
    pub fn tick(&mut self, now: Instant) {
        self.forgive_own_pause(now);
        self.end_lost_peers(now);
        if self.has_left {
            return;
        }
        self.say_changes();
        if self.heartbeat_at <= now {
            self.heartbeat_at = now + HEARTBEAT_EVERY;
            let (number, is_draining) = (self.number, self.is_draining);
            let address = self.address.clone();
            self.say(self.subjects.nodes(), &Packet::Heartbeat { number, address, is_draining });
        }
        self.request_states(now);
        self.continue_transfers(now);
    }

    /// Returns when [`Self::tick`] has something to do.
    pub fn due(&self) -> Instant {
        if !self.unsaid.is_empty() {
            return Instant::ZERO;
        }
        let of_peer = |peer: &Peer| (peer.heard_at + LOST_AFTER).min(peer.request_at());
        let peers = self.peers.values().map(of_peer).min().unwrap_or(Instant::FAR);
        let transfers = if self.transfers.is_empty() { Instant::FAR } else { self.transfer_at };
        self.heartbeat_at.min(peers).min(transfers)
    }

    /// Returns the next action.
    pub fn next_action(&mut self) -> Option<NodeAction> {
        self.actions.pop_front()
    }

    /// Tells the others whether this node drains: no client should come here.
    pub fn set_draining(&mut self, is_draining: bool) {
        self.is_draining = is_draining;
        self.heartbeat_at = Instant::ZERO;
    }

    /// Tells the others that this node ends. It says nothing more afterwards.
    pub fn leave(&mut self) {
        self.say_changes();
        self.say(self.subjects.nodes(), &Packet::Goodbye);
        self.has_left = true;
    }

    /// Returns the node that a packet comes from. `None` if a later start of it is known.
    fn peer(&mut self, now: Instant, from: &NodeId, delta: &mut Delta) -> Option<&mut Peer> {
        match self.peers.get(&from.name) {
            Some(peer) if peer.epoch > from.epoch => return None,
            Some(peer) if peer.epoch == from.epoch => {}
            None if self.peers.len() == NODES_MAX => return None,
            known => {
                if known.is_some() {
                    let epoch = known.map_or(0, |peer| peer.epoch);
                    self.end_peer(now, &NodeId { name: Arc::clone(&from.name), epoch }, delta);
                }
                self.peers.insert(Arc::clone(&from.name), Peer::new(from.epoch, now));
                self.tell(now, NodeAction::Found(from.clone()));
                // The new node learns of this one at once.
                self.heartbeat_at = Instant::ZERO;
            }
        }
        let peer = self.peers.get_mut(&from.name)?;
        peer.heard_at = now;
        Some(peer)
    }

    /// Tells that a node has come or gone, unless many have in a short time.
    fn tell(&mut self, now: Instant, news: NodeAction) {
        if self.news.take(now) {
            self.actions.push_back(news);
        }
    }

    fn end_peer(&mut self, now: Instant, id: &NodeId, delta: &mut Delta) {
        if self.peers.get(&id.name).is_some_and(|peer| peer.epoch <= id.epoch)
            && let Some(peer) = self.peers.remove(&id.name)
        {
            peer.end(delta);
            self.tell(now, NodeAction::Ended(id.clone()));
        }
    }

    fn end_lost_peers(&mut self, now: Instant) {
        let mut delta = Delta::default();
        let is_lost = |peer: &Peer| peer.heard_at + LOST_AFTER <= now;
        let lost = self.peers.iter().filter(|(_, peer)| is_lost(peer));
        for name in lost.map(|(name, _)| Arc::clone(name)).collect::<Vec<_>>() {
            let Some(peer) = self.peers.remove(&name) else { continue };
            let id = NodeId { name, epoch: peer.epoch };
            peer.end(&mut delta);
            self.tell(now, NodeAction::Lost(id));
        }
        self.say_diffs(delta);
    }

    /// Gives the other nodes the time for which this one did not run: their packets still wait.
    fn forgive_own_pause(&mut self, now: Instant) {
        let pause = self.ticked_at.map_or(Duration::ZERO, |ticked_at| now.since(ticked_at));
        self.ticked_at = Some(now);
        if pause > PAUSE_MAX {
            self.peers.values_mut().for_each(|peer| peer.heard_at += pause);
        }
    }

    /// Another run of the server with this name speaks: an earlier one, whose last packets still
    /// arrive, or a later one.
    fn hear_own_name(&mut self, from: &NodeId) {
        if from.epoch > self.id.epoch && !std::mem::replace(&mut self.name_is_taken, true) {
            self.actions.push_back(NodeAction::NameTaken);
        }
    }

    /// Begins to answer a request for the whole state.
    fn answer(&mut self, to: Arc<str>, request: u64) {
        self.say_changes();
        self.transfers.retain(|transfer| transfer.to != to);
        let members = self.own.values().cloned().collect();
        self.transfers.push_back(Transfer::new(to, request, self.number, members));
    }

    /// Sends the next parts of the answers, so many that the bus can carry them beside
    /// publications.
    fn continue_transfers(&mut self, now: Instant) {
        if self.transfers.is_empty() || self.transfer_at > now {
            return;
        }
        self.transfer_at = now + PARTS_EVERY;
        for _ in 0..PARTS_AT_ONCE {
            let Some(mut transfer) = self.transfers.pop_front() else { return };
            let part = transfer.next_part();
            let is_last = part.is_last;
            self.say(self.subjects.node(&transfer.to), &Packet::StatePart(part));
            if !is_last {
                self.transfers.push_back(transfer);
            }
        }
    }

    fn request_states(&mut self, now: Instant) {
        for (name, peer) in &mut self.peers {
            if peer.request_at() > now {
                continue;
            }
            self.request += 1;
            peer.request(now, self.request);
            let payload = Packet::StateRequest { transfer: self.request }.encode(&self.id);
            let subject = self.subjects.node(name);
            self.actions.push_back(NodeAction::Publish { subject, payload });
        }
    }

    /// Says the changes of this node's members, in as many packets as they take.
    fn say_changes(&mut self) {
        let Changes { joins, leaves } = std::mem::take(&mut self.unsaid);
        let mut changes = Changes::default();
        let mut bytes = 0;
        for member in joins {
            let more = wire_bytes(&member);
            if bytes + more > PACKET_BYTES_MAX && !changes.is_empty() {
                self.say_numbered(std::mem::take(&mut changes));
                bytes = 0;
            }
            bytes += more;
            changes.joins.push(member);
        }
        for left in leaves {
            if bytes + size_of::<PresenceRef>() > PACKET_BYTES_MAX {
                self.say_numbered(std::mem::take(&mut changes));
                bytes = 0;
            }
            bytes += size_of::<PresenceRef>();
            changes.leaves.push(left);
        }
        if !changes.is_empty() {
            self.say_numbered(changes);
        }
    }

    fn say_numbered(&mut self, changes: Changes) {
        self.number += 1;
        self.say(self.subjects.nodes(), &Packet::Changes { number: self.number, changes });
    }

    fn say(&mut self, subject: String, packet: &Packet) {
        let payload = packet.encode(&self.id);
        self.actions.push_back(NodeAction::Publish { subject, payload });
    }

    /// Requests one diff for each topic of the changes.
    fn say_diffs(&mut self, delta: Delta) {
        let mut topics = BTreeMap::<Arc<str>, Delta>::new();
        for member in delta.joins {
            topics.entry(member.shared_topic()).or_default().joins.push(member);
        }
        for member in delta.leaves {
            topics.entry(member.shared_topic()).or_default().leaves.push(member);
        }
        self.actions.extend(topics.into_iter().map(|(topic, Delta { joins, leaves })| {
            NodeAction::Presence(Arc::new(Diff::new(topic, joins, leaves)))
        }));
    }
}

/// How much may be told of nodes that come and go.
#[derive(Debug)]
struct NewsAllowance {
    left: u32,
    /// The moment until which time has added to it.
    at: Instant,
}

impl NewsAllowance {
    /// Takes one, and reports whether one was left.
    fn take(&mut self, now: Instant) -> bool {
        let seconds = now.since(self.at).as_secs();
        self.at += Duration::from_secs(seconds);
        self.left = NEWS_MAX.min(self.left.saturating_add(seconds.try_into().unwrap_or(NEWS_MAX)));
        let is_left = self.left > 0;
        self.left -= u32::from(is_left);
        is_left
    }
}

/// Nodes that share topics at most; this one ignores others.
const NODES_MAX: usize = 1_024;
/// News of nodes that come and go at once at most; then one a second.
const NEWS_MAX: u32 = 64;
/// The time between two heartbeats of a node.
pub const HEARTBEAT_EVERY: Duration = Duration::from_secs(1);
/// The time after which a node that is not heard is lost.
pub const LOST_AFTER: Duration = Duration::from_secs(5);
/// The time between two ticks beyond which this node was paused itself.
const PAUSE_MAX: Duration = Duration::from_secs(3);
/// The time between two rounds of parts.
const PARTS_EVERY: Duration = Duration::from_millis(10);
/// Parts of one round. Together with the time between two, at most 50 MiB a second.
const PARTS_AT_ONCE: usize = 4;
/// The longest member that other nodes learn of: less than a bus carries in one message.
const MEMBER_BYTES_MAX: usize = 512 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn made_up_nodes_are_bounded_and_told_a_few_at_a_time() {
        let subjects = NodeSubjects::new("g");
        let mut protocol = NodeProtocol::new(NodeId::new("own", 1), subjects, None);
        let mut now = Instant::ZERO + Duration::from_secs(1);
        let packet = Packet::Heartbeat { number: 0, address: None, is_draining: false };
        let mut told = 0;
        // Fifteen seconds, in which each forged node is found once and lost once.
        for round in 0..15 {
            for number in 0..2_000 {
                let forged = NodeId::new(format!("forged-{round}-{number}"), 1);
                assert!(protocol.receive(now, &packet.encode(&forged)));
                assert!(protocol.peers.len() <= NODES_MAX);
            }
            now += HEARTBEAT_EVERY;
            protocol.tick(now);
            let is_news =
                |it: &NodeAction| matches!(it, NodeAction::Found(_) | NodeAction::Lost(_));
            told += std::iter::from_fn(|| protocol.next_action()).filter(is_news).count();
        }
        assert!(told <= NEWS_MAX as usize + 15, "{told}");
        // Some time later, a real node is told at once.
        now += Duration::from_secs(60);
        protocol.tick(now);
        while protocol.next_action().is_some() {}
        protocol.receive(now, &packet.encode(&NodeId::new("real", 1)));
        let told: Vec<_> = std::iter::from_fn(|| protocol.next_action()).collect();
        assert!(matches!(told[..], [NodeAction::Found(_)]), "{told:?}");
    }
}
