//! A member of a topic, and its JSON.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE;
use throng_proto::phoenix::json;

/// The `phx_ref` of a member: a name that no other member ever has.
///
/// It has twelve bytes: the time of tracking, which its core uses once, the number of the core, and
/// that of the node, which is 0 where no topics are shared. Refs of one core sort by age.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PresenceRef([u8; 12]);

/// A member of a topic: a key with its meta. It never changes, and all cores share it.
#[derive(Debug)]
pub struct PresenceMember {
    topic: Arc<str>,
    key: Box<str>,
    r#ref: PresenceRef,
    meta: Box<str>,
}

/// A member, ordered by its key and then by its ref.
#[derive(Debug)]
pub(super) struct ByKey(pub(super) Arc<PresenceMember>);

impl PresenceRef {
    pub(super) fn new(moment_ns: u64, core: u16, node: u16) -> Self {
        let mut bytes = [0; 12];
        bytes[..8].copy_from_slice(&moment_ns.to_be_bytes());
        bytes[8..10].copy_from_slice(&core.to_be_bytes());
        bytes[10..].copy_from_slice(&node.to_be_bytes());
        Self(bytes)
    }

    /// Returns the bytes.
    pub(crate) const fn to_bytes(self) -> [u8; 12] {
        self.0
    }

    /// Returns the ref with these bytes.
    pub(crate) const fn from_bytes(bytes: [u8; 12]) -> Self {
        Self(bytes)
    }
}

/// URL-safe base64: 16 characters.
impl fmt::Display for PresenceRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = [0; 16];
        URL_SAFE.encode_slice(self.0, &mut text).map_err(|_| fmt::Error)?;
        f.write_str(std::str::from_utf8(&text).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Debug for PresenceRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl PresenceMember {
    /// Makes a member. `meta` is a JSON object. The refs are added after its fields: of a name that
    /// occurs twice, the last counts.
    pub(super) fn new(
        topic: Arc<str>,
        key: &str,
        r#ref: PresenceRef,
        previous: Option<PresenceRef>,
        meta: &str,
    ) -> Self {
        let fields = meta.trim_ascii();
        let fields = fields.strip_prefix('{').unwrap_or(fields);
        let fields = fields.strip_suffix('}').unwrap_or(fields).trim_ascii();
        let comma = if fields.is_empty() { "" } else { "," };
        let meta = match previous {
            Some(previous) => {
                format!("{{{fields}{comma}\"phx_ref_prev\":\"{previous}\",\"phx_ref\":\"{ref}\"}}")
            }
            None => format!("{{{fields}{comma}\"phx_ref\":\"{ref}\"}}"),
        };
        Self { topic, key: key.into(), r#ref, meta: meta.into() }
    }

    /// Makes the member that another node tracks. Its refs are in `meta` already.
    pub(crate) fn of_other_node(
        topic: Arc<str>,
        key: &str,
        r#ref: PresenceRef,
        meta: &str,
    ) -> Self {
        Self { topic, key: key.into(), r#ref, meta: meta.into() }
    }

    /// Returns the topic.
    pub fn topic(&self) -> &str {
        &self.topic
    }

    /// Returns the key. Several members may share one: the same user on two devices.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Returns the ref.
    pub const fn r#ref(&self) -> PresenceRef {
        self.r#ref
    }

    /// Returns the meta as JSON text, its refs included.
    pub fn meta(&self) -> &str {
        &self.meta
    }

    /// Returns about the length of the member in a list, as text.
    pub(super) fn weight(&self) -> usize {
        self.key.len() + self.meta.len() + AROUND_BYTES
    }

    pub(crate) fn shared_topic(&self) -> Arc<str> {
        self.topic.clone()
    }

    /// Returns the sort key within a topic.
    pub(super) fn place(&self) -> (&str, PresenceRef) {
        (&self.key, self.r#ref)
    }
}

impl Ord for ByKey {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.place().cmp(&other.0.place())
    }
}

impl PartialOrd for ByKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for ByKey {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for ByKey {}

/// Bytes around a key and a meta: quotes, brackets, a name.
const AROUND_BYTES: usize = 16;

/// Appends `{key: {"metas": […]}, …}`. Members of one key must be adjacent.
pub(super) fn write_groups<'a>(
    members: impl IntoIterator<Item = &'a Arc<PresenceMember>>,
    out: &mut Vec<u8>,
) {
    let mut writer = GroupWriter::default();
    members.into_iter().for_each(|member| writer.member(member, out));
    writer.end(out);
}

/// Writes such an object member by member.
#[derive(Debug, Default)]
pub(super) struct GroupWriter {
    /// A member of the key whose metas are being written.
    group: Option<Arc<PresenceMember>>,
}

impl GroupWriter {
    /// Appends one member.
    pub(super) fn member(&mut self, member: &Arc<PresenceMember>, out: &mut Vec<u8>) {
        match &self.group {
            Some(group) if group.key() == member.key() => out.push(b','),
            group => {
                out.extend_from_slice(if group.is_some() { b"]}," } else { b"{" });
                json::write_string(member.key(), out);
                out.extend_from_slice(b":{\"metas\":[");
                self.group = Some(Arc::clone(member));
            }
        }
        out.extend_from_slice(member.meta().as_bytes());
    }

    /// Appends the end of the object.
    pub(super) fn end(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(if self.group.is_some() { b"]}}" } else { b"{}" });
    }
}
