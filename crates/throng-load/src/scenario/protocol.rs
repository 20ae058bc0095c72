//! What is spoken on a connection.

use super::node::Node;
use super::reader::Reader;
use super::target::{Scheme, Target};

/// What is spoken on a connection. It decides which steps there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// Bytes over TCP, whatever they mean.
    #[default]
    Tcp,
    /// Messages over WebSocket.
    Ws,
    /// Phoenix Channels over WebSocket.
    Phoenix,
}

impl Protocol {
    /// What a target of `scheme` speaks when nobody says more.
    pub const fn of(scheme: Scheme) -> Self {
        match scheme {
            Scheme::Tcp => Self::Tcp,
            Scheme::Ws => Self::Ws,
        }
    }

    /// The scheme of its targets.
    pub const fn scheme(self) -> Scheme {
        match self {
            Self::Tcp => Scheme::Tcp,
            Self::Ws | Self::Phoenix => Scheme::Ws,
        }
    }

    /// Its name in a scenario.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Ws => "ws",
            Self::Phoenix => "phoenix",
        }
    }

    /// The steps that users of it take.
    pub(super) const fn steps(self) -> &'static [&'static str] {
        match self {
            Self::Tcp | Self::Ws => {
                &["connect", "send", "expect", "wait", "every", "repeat", "stay", "close"]
            }
            Self::Phoenix => {
                &["connect", "join", "push", "leave", "wait", "every", "repeat", "stay", "close"]
            }
        }
    }
}

/// The protocol of a scenario. After a mistake, the one that was probably meant: steps are then not called wrong
/// for its sake.
pub(super) fn read(
    reader: &mut Reader<'_>,
    protocol: Option<&Node>,
    target: Option<&Target>,
) -> Protocol {
    let implied = target.map_or(Protocol::Tcp, |target| Protocol::of(target.scheme));
    let Some(node) = protocol else { return implied };
    let known = [
        ("tcp", Protocol::Tcp),
        ("ws", Protocol::Ws),
        ("websocket", Protocol::Ws),
        ("phoenix", Protocol::Phoenix),
    ];
    let Some(protocol) = reader.one_of(node, "protocol", &known) else { return implied };
    if let Some(target) = target.filter(|target| target.scheme != protocol.scheme()) {
        let title = format!("`protocol: {}` is not spoken over {target}", protocol.name());
        let label = format!("its targets begin with `{}://`", protocol.scheme().as_str());
        reader.error(node.span.clone(), title, label);
    }
    protocol
}
