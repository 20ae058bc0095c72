//! The upgrade request, with everything precomputed that is the same for all users.

use std::time::Duration;

use throng_proto::phoenix::Vsn;
use throng_proto::websocket::DeflateOffer;

use super::upgrade::UpgradeOptions;
use crate::program::{Protocol, Template, VariableScope};
use crate::protocols::MessageForm;
use crate::protocols::http::request::authorization;
use crate::scenario::{Segment, Target};

/// An upgrade request, ready to be rendered for a user.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Handshake {
    /// Value of the `host` header.
    pub(crate) host: String,
    /// Path, and its query if it has one.
    pub(crate) path: Template,
    /// What is added to the query: `room=1&vsn=2.0.0`.
    pub(crate) query: Template,
    /// True if a value stands in the request as it is, and may break it.
    pub(crate) has_raw: bool,
    /// Further header fields.
    pub(crate) headers: Vec<(String, Template)>,
    /// Offered subprotocols, most preferred first.
    pub(crate) subprotocols: Vec<String>,
    /// Offers of permessage-deflate, most preferred first.
    pub(crate) deflate: Vec<DeflateOffer>,
    /// Phoenix: version of the serialization.
    pub(crate) vsn: Vsn,
    /// Phoenix: interval of heartbeats; `None` for other protocols.
    pub(crate) heartbeat: Option<Duration>,
}

impl Handshake {
    pub(crate) fn new(target: &Target, protocol: Protocol, upgrade: &UpgradeOptions) -> Self {
        let has_channels = protocol.messages == MessageForm::Events;
        let path = path(target, upgrade);
        let query = query(&path, has_channels, upgrade);
        let mut values = upgrade.headers.iter().map(|(_, value)| value);
        let own = upgrade.headers.iter().cloned();
        let credentials = authorization(target.credentials.as_ref(), &upgrade.headers);
        let has_raw = path.has_raw() || query.has_raw() || values.any(Template::has_raw);
        Self {
            host: target.host_header(),
            has_raw,
            path,
            query,
            headers: own.chain(credentials).collect(),
            subprotocols: upgrade.subprotocols.clone(),
            deflate: upgrade.deflate.clone(),
            vsn: upgrade.vsn,
            heartbeat: has_channels.then_some(upgrade.heartbeat),
        }
    }

    /// Returns the most bytes of contexts that its connections keep, if the server agrees.
    pub(crate) fn context_bytes(&self) -> u64 {
        self.deflate.iter().map(DeflateOffer::context_bytes_max).max().unwrap_or(0)
    }

    /// Appends the path with its query. A value of a path may have a query of its own.
    pub(crate) fn write_path(&self, scope: &mut VariableScope<'_>, out: &mut Vec<u8>) {
        let begin = out.len();
        self.path.render(scope, out);
        if !self.query.segments().is_empty() {
            out.push(if out[begin..].contains(&b'?') { b'&' } else { b'?' });
            self.query.render(scope, out);
        }
    }
}

/// Returns the step's own path or the target's.
fn path(target: &Target, upgrade: &UpgradeOptions) -> Template {
    let own = || match target.path.as_str() {
        "" => "/",
        path => path,
    };
    upgrade.path.clone().unwrap_or_else(|| Template::from_bytes(own().as_bytes().to_vec()))
}

/// Returns what is added to the query: that of the step, and for Phoenix the serialization version
/// unless it is there already.
fn query(path: &Template, has_channels: bool, upgrade: &UpgradeOptions) -> Template {
    let literal = |text: &str| Segment::Literal(text.as_bytes().into());
    let holds = |text: &str| {
        path.segments().iter().any(|segment| match segment {
            Segment::Literal(bytes) => String::from_utf8_lossy(bytes).contains(text),
            _ => false,
        })
    };
    let mut segments = Vec::new();
    let mut joint = "";
    for (name, value) in &upgrade.query {
        segments.push(literal(&format!("{joint}{name}=")));
        segments.extend(value.segments().iter().cloned());
        joint = "&";
    }
    let has_vsn =
        holds("?vsn=") || holds("&vsn=") || upgrade.query.iter().any(|(name, _)| name == "vsn");
    if has_channels && !has_vsn {
        segments.push(literal(&format!("{joint}vsn={}", upgrade.vsn.as_str())));
    }
    Template::from_segments(segments)
}

#[cfg(test)]
mod tests {
    use throng_base::Prng;

    use super::*;

    fn of(target: &str, protocol: Protocol, upgrade: UpgradeOptions) -> String {
        let handshake = Handshake::new(&Target::parse(target).unwrap(), protocol, &upgrade);
        let mut out = Vec::new();
        handshake.write_path(&mut VariableScope::new(7, Prng::new(1)), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_query_is_put_together_from_target_step_and_version() {
        let plain = UpgradeOptions::default;
        let room = || UpgradeOptions {
            query: vec![("room".to_owned(), Template::parse("1").unwrap())],
            ..UpgradeOptions::default()
        };
        let path = || UpgradeOptions { path: Some(Template::parse("/own?a=1").unwrap()), ..room() };
        let raw = || {
            let path = Template::parse("${raw('/own?a=1')}").unwrap();
            UpgradeOptions { path: Some(path), ..room() }
        };
        let v1 = || UpgradeOptions { vsn: Vsn::V1, ..UpgradeOptions::default() };
        for (target, protocol, upgrade, path) in [
            ("ws://h:1", Protocol::Ws, plain(), "/"),
            ("ws://h:1/chat?x=y", Protocol::Ws, plain(), "/chat?x=y"),
            ("ws://h:1/chat?x=y", Protocol::Ws, room(), "/chat?x=y&room=1"),
            ("ws://h:1/chat", Protocol::Ws, path(), "/own?a=1&room=1"),
            ("ws://h:1/chat", Protocol::Ws, raw(), "/own?a=1&room=1"),
            ("ws://h:1/s/websocket", Protocol::Phoenix, plain(), "/s/websocket?vsn=2.0.0"),
            ("ws://h:1/s/websocket", Protocol::Phoenix, room(), "/s/websocket?room=1&vsn=2.0.0"),
            ("ws://h:1/s?vsn=2.0.0", Protocol::Phoenix, plain(), "/s?vsn=2.0.0"),
            ("ws://h:1/s", Protocol::Phoenix, v1(), "/s?vsn=1.0.0"),
        ] {
            assert_eq!(of(target, protocol, upgrade), path);
        }
    }
}
