//! The protocol of a connection.

use super::node::Node;
use super::reader::Reader;
use super::target::{Scheme, Target};

/// Protocol of a connection. It decides the valid steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// Any bytes over TCP.
    #[default]
    Tcp,
    /// Messages over WebSocket.
    Ws,
    /// Phoenix Channels over WebSocket.
    Phoenix,
    /// HTTP/1.1 requests.
    Http,
}

impl Protocol {
    /// All protocols.
    pub(crate) const ALL: &[Self] = &[Self::Tcp, Self::Ws, Self::Phoenix, Self::Http];

    /// Returns the default protocol of a target's scheme.
    pub const fn of(scheme: Scheme) -> Self {
        match scheme {
            Scheme::Tcp => Self::Tcp,
            Scheme::Ws => Self::Ws,
            Scheme::Http => Self::Http,
        }
    }

    /// Returns the scheme of the protocol's targets.
    pub const fn scheme(self) -> Scheme {
        match self {
            Self::Tcp => Scheme::Tcp,
            Self::Ws | Self::Phoenix => Scheme::Ws,
            Self::Http => Scheme::Http,
        }
    }

    /// Returns the protocol's name in a scenario.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Ws => "ws",
            Self::Phoenix => "phoenix",
            Self::Http => "http",
        }
    }
}

/// Reads the protocol of a scenario. `scheme` is that of a target that may have a mistake. After a
/// mistake, returns the most likely one, so that steps are not reported as wrong because of it.
pub(super) fn read(
    reader: &mut Reader<'_>,
    protocol: Option<&Node>,
    target: Option<&Target>,
    scheme: Option<Scheme>,
) -> Protocol {
    let implied = scheme.map_or(Protocol::Tcp, Protocol::of);
    let Some(node) = protocol else { return implied };
    let known = [
        ("tcp", Protocol::Tcp),
        ("ws", Protocol::Ws),
        ("websocket", Protocol::Ws),
        ("phoenix", Protocol::Phoenix),
        ("http", Protocol::Http),
    ];
    let Some(protocol) = reader.one_of(node, "protocol", &known) else { return implied };
    if let Some(target) = target.filter(|target| target.scheme != protocol.scheme()) {
        let title = format!("`protocol: {}` does not work with {target}", protocol.name());
        let label = format!("its targets begin with `{}://`", protocol.scheme().as_str());
        reader.error(node.span.clone(), title, label);
    }
    protocol
}
