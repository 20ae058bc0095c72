//! The upgrade request, with everything precomputed that is the same for all users.

use std::time::Duration;

use throng_proto::phoenix::Vsn;
use throng_proto::websocket::DeflateOffer;

use super::{Protocol, Template};
use crate::scenario::{Segment, Target};
use crate::steps::connect::upgrade::UpgradeOptions;

/// An upgrade request, ready to be rendered for a user.
#[derive(Clone, Debug, PartialEq)]
pub struct Handshake {
    /// Value of the `host` header.
    pub host: String,
    /// Path and query.
    pub path: Template,
    /// Further header fields.
    pub headers: Vec<(String, Template)>,
    /// Offered subprotocols, most preferred first.
    pub subprotocols: Vec<String>,
    /// Offers of permessage-deflate, most preferred first.
    pub deflate: Vec<DeflateOffer>,
    /// Phoenix: version of the serialization.
    pub vsn: Vsn,
    /// Phoenix: interval of heartbeats; `None` for other protocols.
    pub heartbeat: Option<Duration>,
}

impl Handshake {
    pub(super) fn new(target: &Target, protocol: Protocol, upgrade: &UpgradeOptions) -> Self {
        let is_phoenix = protocol == Protocol::Phoenix;
        Self {
            host: target.host_header(),
            path: path(target, is_phoenix, upgrade),
            headers: upgrade.headers.clone(),
            subprotocols: upgrade.subprotocols.clone(),
            deflate: upgrade.deflate.clone(),
            vsn: upgrade.vsn,
            heartbeat: is_phoenix.then_some(upgrade.heartbeat),
        }
    }

    /// Returns the most bytes of contexts that its connections keep, if the server agrees.
    pub(super) fn context_bytes(&self) -> u64 {
        self.deflate.iter().map(DeflateOffer::context_bytes_max).max().unwrap_or(0)
    }
}

/// Returns the path and query: the step's own path or the target's, the step's query, and for
/// Phoenix the serialization version unless it is there already.
fn path(target: &Target, is_phoenix: bool, upgrade: &UpgradeOptions) -> Template {
    let literal = |text: &str| Segment::Literal(text.as_bytes().into());
    let own = Template::from_bytes(target.path.clone().into_bytes());
    let path = upgrade.path.clone().unwrap_or(own);
    let holds = |text: &str| {
        path.segments().iter().any(|segment| match segment {
            Segment::Literal(bytes) => String::from_utf8_lossy(bytes).contains(text),
            _ => false,
        })
    };
    let mut segments = path.segments().to_vec();
    if segments.is_empty() {
        segments.push(literal("/"));
    }
    let mut joint = if holds("?") { "&" } else { "?" };
    for (name, value) in &upgrade.query {
        segments.push(literal(&format!("{joint}{name}=")));
        segments.extend(value.segments().iter().cloned());
        joint = "&";
    }
    let has_vsn =
        holds("?vsn=") || holds("&vsn=") || upgrade.query.iter().any(|(name, _)| name == "vsn");
    if is_phoenix && !has_vsn {
        segments.push(literal(&format!("{joint}vsn={}", upgrade.vsn.as_str())));
    }
    Template::from_segments(segments)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(target: &str, protocol: Protocol, upgrade: UpgradeOptions) -> String {
        let handshake = Handshake::new(&Target::parse(target).unwrap(), protocol, &upgrade);
        String::from_utf8(handshake.path.as_literal().unwrap().to_vec()).unwrap()
    }

    #[test]
    fn the_query_is_put_together_from_target_step_and_version() {
        let plain = UpgradeOptions::default;
        let room = || UpgradeOptions {
            query: vec![("room".to_owned(), Template::parse("1").unwrap())],
            ..UpgradeOptions::default()
        };
        let path = || UpgradeOptions { path: Some(Template::parse("/own?a=1").unwrap()), ..room() };
        let v1 = || UpgradeOptions { vsn: Vsn::V1, ..UpgradeOptions::default() };
        for (target, protocol, upgrade, path) in [
            ("ws://h:1", Protocol::Ws, plain(), "/"),
            ("ws://h:1/chat?x=y", Protocol::Ws, plain(), "/chat?x=y"),
            ("ws://h:1/chat?x=y", Protocol::Ws, room(), "/chat?x=y&room=1"),
            ("ws://h:1/chat", Protocol::Ws, path(), "/own?a=1&room=1"),
            ("ws://h:1/s/websocket", Protocol::Phoenix, plain(), "/s/websocket?vsn=2.0.0"),
            ("ws://h:1/s/websocket", Protocol::Phoenix, room(), "/s/websocket?room=1&vsn=2.0.0"),
            ("ws://h:1/s?vsn=2.0.0", Protocol::Phoenix, plain(), "/s?vsn=2.0.0"),
            ("ws://h:1/s", Protocol::Phoenix, v1(), "/s?vsn=1.0.0"),
        ] {
            assert_eq!(of(target, protocol, upgrade), path);
        }
    }
}
