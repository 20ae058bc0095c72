//! Presence: the members of a topic, as in Phoenix. Every core owns the members that its own
//! connections track, and mirrors those of the other cores.
//!
//! A core collects its changes until [`Presence::drain`] turns them into one [`Diff`] for each
//! topic. The core delivers the diff to its own subscribers and sends the same `Arc` to every other
//! core, which calls [`Presence::apply`] and then delivers it to its own subscribers. Diffs from
//! one core to another must arrive in order. Between cores no order is needed, because only its
//! owner changes a member and every change has a ref of its own. So all mirrors agree once no diff
//! is in flight. The members of other servers that share topics come in the same way: see
//! [`nodes`](crate::nodes).
//!
//! A client that receives the list ([`Presence::state`]) and every later diff agrees as well,
//! whichever of the two arrives first: a diff that is in the list already changes nothing. So the
//! list need not be of one moment: a [`Listing`] is written piece by piece, while its reader takes
//! it, and no copy of it waits in memory.

mod diff;
mod limits;
mod member;
mod members;

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::sync::Arc;

use throng_base::Instant;
use throng_proto::phoenix::json;

pub use diff::Diff;
pub use limits::PresenceLimits;
pub use member::{PresenceMember, PresenceRef};
pub use members::Listing;

use diff::DiffBuilder;
use members::Members;

/// One core's view of the members of all topics. `O` identifies the owner of a member on this core:
/// a channel of a connection.
///
/// Measured with keys of 10 bytes and metas of 14: 262 bytes for a member on its own core, and 19
/// on every other core, which shares its texts.
#[derive(Debug)]
pub struct Presence<O> {
    core: u16,
    node: u16,
    limits: PresenceLimits,
    /// Added to an [`Instant`], so that the result occurs in no earlier run of the server.
    origin_ns: u64,
    /// The time in the latest ref: no two refs have the same.
    latest_ns: u64,
    topics: HashMap<Arc<str>, Rc<Members>>,
    own: BTreeMap<(O, u64), Arc<PresenceMember>>,
    drafts: BTreeMap<Arc<str>, DiffBuilder>,
}

/// The reason why a change was refused: an error of the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PresenceError {
    /// This owner tracks the key in this topic already.
    #[error("the key is tracked already")]
    AlreadyTracked,
    /// This owner does not track the key in this topic.
    #[error("the key is not tracked")]
    NotTracked,
    /// The meta is not a JSON object.
    #[error("the meta is not a JSON object")]
    NotAnObject,
    /// The key is longer than [`PresenceLimits::key_bytes_max`], or the meta than
    /// [`PresenceLimits::meta_bytes_max`].
    #[error("the key or the meta is too long")]
    TooLong,
    /// The topic already has [`PresenceLimits::members_max`] members.
    #[error("the topic has too many members")]
    Full,
}

impl<O: Clone + Ord> Presence<O> {
    /// Makes the empty presence of a core. `origin_ns` is the wall clock's time of
    /// [`Instant::ZERO`] in nanoseconds since 1970, the same for all cores. It makes the refs of
    /// one run of the server different from those of the next: clients may compare them.
    pub fn new(core: u16, origin_ns: u64) -> Self {
        Self {
            core,
            node: 0,
            limits: PresenceLimits::default(),
            origin_ns,
            latest_ns: 0,
            topics: HashMap::new(),
            own: BTreeMap::new(),
            drafts: BTreeMap::new(),
        }
    }

    /// Sets the number of the node among those that share topics: refs of two nodes differ in it.
    pub const fn set_node(&mut self, node: u16) {
        self.node = node;
    }

    /// Sets the limits.
    #[must_use]
    pub const fn with_limits(mut self, limits: PresenceLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Checks whether a new member with `key` and `meta` may join `topic`.
    ///
    /// # Errors
    /// Returns the reason. Whether the same owner tracks the key already is not checked.
    pub fn may_track(&self, topic: &str, key: &str, meta: &str) -> Result<(), PresenceError> {
        self.check(key, meta)?;
        let len = self.topics.get(topic).map_or(0, |members| members.len());
        if len < self.limits.members_max { Ok(()) } else { Err(PresenceError::Full) }
    }

    /// Adds `owner` as a member of `topic` with `key`. `meta` is a JSON object; a `phx_ref` in it
    /// is overridden.
    pub fn track(
        &mut self,
        now: Instant,
        owner: O,
        topic: &str,
        key: &str,
        meta: &str,
    ) -> Result<PresenceRef, PresenceError> {
        if self.place(&owner, topic, key).is_some() {
            return Err(PresenceError::AlreadyTracked);
        }
        self.may_track(topic, key, meta)?;
        Ok(self.join(now, owner, topic, key, meta, None))
    }

    /// Changes the meta of `key`. In the diff the old member leaves and a new one joins, whose meta
    /// names the old ref.
    pub fn update(
        &mut self,
        now: Instant,
        owner: O,
        topic: &str,
        key: &str,
        meta: &str,
    ) -> Result<PresenceRef, PresenceError> {
        let place = self.place(&owner, topic, key).ok_or(PresenceError::NotTracked)?;
        self.check(key, meta)?;
        let r#ref = self.join(now, owner, topic, key, meta, Some(place.1));
        self.leave(&place);
        Ok(r#ref)
    }

    /// Removes `owner` as a member of `topic` with `key`.
    pub fn untrack(&mut self, owner: O, topic: &str, key: &str) -> Result<(), PresenceError> {
        let place = self.place(&owner, topic, key).ok_or(PresenceError::NotTracked)?;
        self.leave(&place);
        Ok(())
    }

    /// Removes all members of `owner`, which has ended.
    pub fn untrack_all(&mut self, owner: &O) {
        let all = (owner.clone(), 0)..=(owner.clone(), u64::MAX);
        let places: Vec<(O, u64)> = self.own.range(all).map(|(place, _)| place.clone()).collect();
        for place in places {
            self.leave(&place);
        }
    }

    /// Returns the changes on this core since the last call, one diff for each topic. Deliver them
    /// here and send them to every other core.
    pub fn drain(&mut self) -> impl Iterator<Item = Arc<Diff>> + use<O> {
        std::mem::take(&mut self.drafts)
            .into_iter()
            .map(|(topic, draft)| Arc::new(draft.finish(topic)))
    }

    /// Applies another core's diff. Deliver it here afterwards.
    pub fn apply(&mut self, diff: &Diff) {
        for member in diff.joins() {
            insert(&mut self.topics, member);
        }
        for member in diff.leaves() {
            remove(&mut self.topics, member);
        }
    }

    /// Appends the payload of `presence_state`: all members of `topic` on all cores.
    pub fn state(&self, topic: &str, out: &mut Vec<u8>) {
        self.members(topic).object(usize::MAX, out);
    }

    /// Returns about how many bytes [`Self::state`] appends.
    pub fn state_bytes(&self, topic: &str) -> usize {
        self.topics.get(topic).map_or(0, |members| members.bytes())
    }

    /// Returns all members of `topic` on all cores: by key, and those of one key in the order of
    /// their refs.
    pub fn members(&self, topic: &str) -> Listing {
        Listing::new(self.topics.get(topic).map_or_else(Rc::default, Rc::clone))
    }

    /// Returns the place in `own` of the member that `owner` tracks. An owner has few members.
    fn place(&self, owner: &O, topic: &str, key: &str) -> Option<(O, u64)> {
        let all = (owner.clone(), 0)..=(owner.clone(), u64::MAX);
        let found = |member: &PresenceMember| member.topic() == topic && member.key() == key;
        self.own.range(all).find(|(_, member)| found(member)).map(|(place, _)| place.clone())
    }

    fn join(
        &mut self,
        now: Instant,
        owner: O,
        topic: &str,
        key: &str,
        meta: &str,
        previous: Option<u64>,
    ) -> PresenceRef {
        self.latest_ns = (self.latest_ns + 1).max(self.origin_ns.saturating_add(now.as_nanos()));
        let r#ref = PresenceRef::new(self.latest_ns, self.core, self.node);
        let previous = previous.map(|moment_ns| PresenceRef::new(moment_ns, self.core, self.node));
        let topic =
            self.topics.get_key_value(topic).map_or_else(|| topic.into(), |(t, _)| t.clone());
        let member = Arc::new(PresenceMember::new(topic.clone(), key, r#ref, previous, meta));
        insert(&mut self.topics, &member);
        self.own.insert((owner, self.latest_ns), member.clone());
        self.drafts.entry(topic).or_default().joins.push(member);
        r#ref
    }

    /// Checks the lengths of a key and a meta, and that the meta is an object.
    fn check(&self, key: &str, meta: &str) -> Result<(), PresenceError> {
        let PresenceLimits { key_bytes_max, meta_bytes_max, .. } = self.limits;
        if key.len() > key_bytes_max || meta.len() > meta_bytes_max {
            return Err(PresenceError::TooLong);
        }
        if json::is_object(meta) { Ok(()) } else { Err(PresenceError::NotAnObject) }
    }

    fn leave(&mut self, place: &(O, u64)) {
        let Some(member) = self.own.remove(place) else { return };
        remove(&mut self.topics, &member);
        self.drafts.entry(member.shared_topic()).or_default().leaves.push(member);
    }
}

type Topics = HashMap<Arc<str>, Rc<Members>>;

fn insert(topics: &mut Topics, member: &Arc<PresenceMember>) {
    topics.entry(member.shared_topic()).or_default().insert(member);
}

/// Removes a member, and its topic with the last one.
fn remove(topics: &mut Topics, member: &Arc<PresenceMember>) {
    if topics.get(member.topic()).is_some_and(|members| members.remove(member)) {
        topics.remove(member.topic());
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::{Value, json};

    use super::*;

    const ORIGIN_NS: u64 = 1_790_000_000_000_000_000;
    const NOW: Instant = Instant::from_nanos(5);

    fn presence(core: u16) -> Presence<u32> {
        Presence::new(core, ORIGIN_NS)
    }

    fn state(presence: &Presence<u32>, topic: &str) -> Value {
        let mut out = Vec::new();
        presence.state(topic, &mut out);
        serde_json::from_slice(&out).unwrap()
    }

    /// Returns the only diff.
    fn diff(presence: &mut Presence<u32>) -> (Value, Arc<Diff>) {
        let diffs: Vec<_> = presence.drain().collect();
        assert_eq!(diffs.len(), 1);
        (serde_json::from_str(diffs[0].payload()).unwrap(), diffs[0].clone())
    }

    #[test]
    fn a_member_is_listed_with_its_meta_and_ref() {
        let mut presence = presence(0);
        let r#ref = presence.track(NOW, 1, "t", "ann", "{\"at\":[1]}").unwrap().to_string();
        let metas = json!({"metas": [{"at": [1], "phx_ref": r#ref}]});
        assert_eq!(state(&presence, "t"), json!({"ann": metas}));
        assert_eq!(diff(&mut presence).0, json!({"joins": {"ann": metas}, "leaves": {}}));
        assert_eq!(presence.drain().count(), 0);
        presence.untrack(1, "t", "ann").unwrap();
        assert_eq!(diff(&mut presence).0, json!({"joins": {}, "leaves": {"ann": metas}}));
        assert_eq!(state(&presence, "t"), json!({}));
    }

    #[test]
    fn an_update_is_a_leave_and_a_join_that_names_the_ref_before() {
        let mut presence = presence(0);
        let before = presence.track(NOW, 1, "t", "ann", " { } ").unwrap().to_string();
        presence.drain().count();
        let after = presence.update(NOW, 1, "t", "ann", "{\"x\":1}").unwrap().to_string();
        let want = json!({
            "joins": {"ann": {"metas": [{"x": 1, "phx_ref_prev": before, "phx_ref": after}]}},
            "leaves": {"ann": {"metas": [{"phx_ref": before}]}},
        });
        assert_eq!(diff(&mut presence).0, want);
    }

    #[test]
    fn members_of_one_key_are_one_group() {
        let mut presence = presence(0);
        let refs: Vec<String> = [(1, "bob"), (2, "ann"), (3, "bob"), (4, "a\"")]
            .map(|(owner, key)| presence.track(NOW, owner, "t", key, "{}").unwrap().to_string())
            .into();
        let want = json!({
            "ann": {"metas": [{"phx_ref": refs[1]}]},
            "bob": {"metas": [{"phx_ref": refs[0]}, {"phx_ref": refs[2]}]},
            "a\"": {"metas": [{"phx_ref": refs[3]}]},
        });
        assert_eq!(state(&presence, "t"), want);
        assert_eq!(diff(&mut presence).0["joins"], want);
    }

    #[test]
    fn an_owner_that_ends_leaves_every_topic() {
        let mut presence = presence(0);
        for (owner, topic, key) in
            [(1, "t", "ann"), (1, "u", "ann"), (1, "t", "bob"), (2, "t", "ann")]
        {
            presence.track(NOW, owner, topic, key, "{}").unwrap();
        }
        presence.drain().count();
        presence.untrack_all(&1);
        let left: Vec<_> =
            presence.drain().map(|diff| (diff.topic().to_string(), diff.leaves().len())).collect();
        assert_eq!(left, [("t".to_owned(), 2), ("u".to_owned(), 1)]);
        assert_eq!(presence.members("t").count(), 1);
        presence.untrack_all(&1);
        assert_eq!(presence.drain().count(), 0);
    }

    #[test]
    fn nothing_is_kept_of_what_has_gone() {
        let mut presence = presence(0);
        presence.track(NOW, 1, "t", "ann", "{}").unwrap();
        presence.update(NOW, 1, "t", "ann", "{}").unwrap();
        presence.untrack_all(&1);
        presence.drain().count();
        assert!(
            presence.topics.is_empty() && presence.own.is_empty() && presence.drafts.is_empty()
        );
    }

    #[test]
    fn misuse_changes_nothing() {
        let mut presence = presence(0);
        for meta in ["", "[]", "{", "{}}", "null", "{\"a\":1} {}"] {
            assert_eq!(presence.track(NOW, 1, "t", "ann", meta), Err(PresenceError::NotAnObject));
        }
        assert_eq!(presence.update(NOW, 1, "t", "ann", "{}"), Err(PresenceError::NotTracked));
        assert_eq!(presence.untrack(1, "t", "ann"), Err(PresenceError::NotTracked));
        presence.track(NOW, 1, "t", "ann", "{}").unwrap();
        presence.drain().count();
        assert_eq!(presence.track(NOW, 1, "t", "ann", "{}"), Err(PresenceError::AlreadyTracked));
        assert_eq!(presence.update(NOW, 1, "t", "ann", "1"), Err(PresenceError::NotAnObject));
        assert_eq!(presence.untrack(2, "t", "ann"), Err(PresenceError::NotTracked));
        assert_eq!((presence.drain().count(), presence.members("t").count()), (0, 1));
    }

    #[test]
    fn a_key_or_a_meta_that_is_too_long_is_refused() {
        let mut presence = presence(0);
        let meta = |bytes: usize| format!("{{\"a\":\"{}\"}}", "x".repeat(bytes - 8));
        let PresenceLimits { key_bytes_max, meta_bytes_max, .. } = PresenceLimits::default();
        let (key, long_key) = ("k".repeat(key_bytes_max), "k".repeat(key_bytes_max + 1));
        let (most, long_meta) = (meta(meta_bytes_max), meta(meta_bytes_max + 1));
        for (key, meta) in [(&*long_key, "{}"), ("ann", &*long_meta)] {
            assert_eq!(presence.track(NOW, 1, "t", key, meta), Err(PresenceError::TooLong));
        }
        presence.track(NOW, 1, "t", &key, &most).unwrap();
        let updated = presence.update(NOW, 1, "t", &key, &long_meta);
        assert_eq!(updated, Err(PresenceError::TooLong));
        assert_eq!(presence.members("t").count(), 1);
    }

    #[test]
    fn a_full_topic_takes_no_member_until_one_has_left() {
        let limits = PresenceLimits { members_max: 2, ..PresenceLimits::default() };
        let (mut a, mut b) = (presence(0).with_limits(limits), presence(1).with_limits(limits));
        a.track(NOW, 1, "t", "ann", "{}").unwrap();
        b.apply(&diff(&mut a).1);
        b.track(NOW, 1, "t", "bob", "{}").unwrap();
        b.drain().count();
        assert_eq!(b.track(NOW, 2, "t", "eve", "{}"), Err(PresenceError::Full));
        assert_eq!(b.may_track("t", "eve", "{}"), Err(PresenceError::Full));
        assert_eq!(b.drain().count(), 0);
        b.update(NOW, 1, "t", "bob", "{\"x\":1}").unwrap();
        b.track(NOW, 2, "u", "eve", "{}").unwrap();
        a.untrack(1, "t", "ann").unwrap();
        b.apply(&diff(&mut a).1);
        b.track(NOW, 2, "t", "eve", "{}").unwrap();
        assert_eq!(b.members("t").count(), 2);
    }

    #[test]
    fn a_list_that_is_written_in_parts_is_the_same() {
        let mut presence = presence(0);
        // An interpreter is given fewer of them.
        let count = if cfg!(miri) { 10 } else { 30 };
        for owner in 0..count {
            let key = format!("user-{}", owner % 7);
            presence.track(NOW, owner, "t", &key, "{\"a\":1}").unwrap();
        }
        let whole = state(&presence, "t");
        for bytes in [0, 1, 100, 10_000, usize::MAX] {
            let (mut list, mut out) = (presence.members("t"), Vec::new());
            let mut parts = 1;
            while list.part(bytes, &mut out) {
                parts += 1;
            }
            assert_eq!(serde_json::from_slice::<Value>(&out).unwrap(), whole);
            assert_eq!(parts > 1, bytes < 10_000);
            // Objects of the same members, which no two of them share.
            let (mut list, mut members, mut is_more) = (presence.members("t"), 0, true);
            while is_more {
                let mut out = Vec::new();
                is_more = list.object(bytes, &mut out);
                let object: Value = serde_json::from_slice(&out).unwrap();
                let groups = object.as_object().unwrap().values();
                members +=
                    groups.map(|group| group["metas"].as_array().unwrap().len()).sum::<usize>();
            }
            assert_eq!(members, count as usize);
        }
        assert_eq!(state(&presence, "nowhere"), json!({}));
        assert!(!presence.members("nowhere").part(1, &mut Vec::new()));
        let bytes = whole.to_string().len();
        assert!((bytes / 2..bytes * 2).contains(&presence.state_bytes("t")));
    }

    #[test]
    fn a_ref_in_the_meta_is_overruled() {
        let mut presence = presence(0);
        let r#ref = presence.track(NOW, 1, "t", "ann", "{\"phx_ref\":\"mine\"}").unwrap();
        assert_eq!(state(&presence, "t")["ann"]["metas"][0]["phx_ref"], r#ref.to_string());
    }

    #[test]
    fn refs_are_twelve_bytes_and_never_equal() {
        let (mut a, mut b) = (presence(0), presence(1));
        let mut seen = BTreeSet::new();
        // An interpreter is given fewer of them.
        for owner in 0..if cfg!(miri) { 20 } else { 1_000 } {
            for presence in [&mut a, &mut b] {
                let r#ref = presence.track(NOW, owner, "t", "k", "{}").unwrap().to_string();
                assert_eq!((r#ref.len(), r#ref.contains('=')), (16, false));
                assert!(seen.insert(r#ref));
            }
        }
        let mut restarted = Presence::new(0, ORIGIN_NS + 1_000_000);
        assert!(seen.insert(restarted.track(NOW, 0, "t", "k", "{}").unwrap().to_string()));
    }

    #[test]
    fn a_mirror_takes_over_what_its_owner_did() {
        let (mut a, mut b) = (presence(0), presence(1));
        a.track(NOW, 1, "t", "ann", "{}").unwrap();
        b.track(NOW, 1, "t", "ann", "{}").unwrap();
        let (from_a, from_b) = (diff(&mut a).1, diff(&mut b).1);
        a.apply(&from_b);
        b.apply(&from_a);
        assert_eq!(state(&a, "t"), state(&b, "t"));
        assert_eq!(a.members("t").count(), 2);
        assert_eq!((a.drain().count(), b.drain().count()), (0, 0));
    }

    #[test]
    fn who_came_and_went_between_two_drains_is_gone_on_the_mirror() {
        let (mut a, mut b) = (presence(0), presence(1));
        a.track(NOW, 1, "t", "ann", "{}").unwrap();
        a.untrack(1, "t", "ann").unwrap();
        b.apply(&diff(&mut a).1);
        assert_eq!(b.members("t").count(), 0);
        assert!(b.topics.is_empty());
    }
}
