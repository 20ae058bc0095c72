//! The kinds of ready-made servers, in one table. `throng serve`, its help and its tests are made
//! from it.
//!
//! To add a kind, write its [`Handler`] in a file below `kinds/`, and add its row to [`KINDS`].

mod channels;
mod chat;
mod echo;
mod hold;
mod ok;
mod options;
mod pingpong;
mod start;

use std::sync::Arc;

use crate::{AnyServer, Handler, StartError};
use start::start_server;

pub use chat::Chat;
pub use echo::Echo;
pub use hold::Hold;
pub use ok::Ok;
pub use options::{ChannelsOptions, KindOptions, WebSocketKindOptions};
pub use pingpong::PingPong;

/// All kinds, in the order of the help.
pub const KINDS: &[ServerKind] = &[
    ServerKind::tcp::<Ok>("Answer every packet with `ok`"),
    ServerKind::tcp::<Echo>("Send back all bytes received"),
    ServerKind::tcp::<PingPong>("Answer each 4-byte `Ping` with `Pong`"),
    ServerKind::tcp::<Hold>("Accept connections and keep them open"),
    ServerKind {
        name: "chat",
        about: "A chat of one room over WebSockets: every message goes to all clients",
        protocol: ServerProtocol::WebSocket,
        endpoints: &[("socket", "ws{s}://{listen}/ and any other path")],
        start: chat::start,
    },
    ServerKind {
        name: "channels",
        about: "Phoenix Channels at /socket, with rooms to try, and a chat page at /",
        protocol: ServerProtocol::Channels,
        endpoints: &[
            ("page", "http{s}://{listen}/"),
            ("socket", "ws{s}://{listen}/socket (websocket, longpoll)"),
        ],
        start: channels::start,
    },
];

/// One kind of ready-made server.
#[derive(Clone, Copy, Debug)]
pub struct ServerKind {
    /// The name on the command line, and in reports: the handler's [`Handler::NAME`].
    pub name: &'static str,
    /// One line for the help.
    pub about: &'static str,
    /// The protocol that its clients speak.
    pub protocol: ServerProtocol,
    /// The addresses to connect to, with a label each. `{listen}` stands for the server's address,
    /// `{s}` for the `s` of a scheme with TLS.
    pub endpoints: &'static [(&'static str, &'static str)],
    /// Starts a server of this kind.
    pub start: StartKind,
}

/// The function that starts a server of one kind.
pub type StartKind = fn(&KindOptions) -> Result<Arc<dyn AnyServer>, StartError>;

/// The protocol that the clients of a kind speak. Each variant reads the options of those before
/// it, and its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ServerProtocol {
    /// Plain TCP; reads [`KindOptions::server`].
    Tcp,
    /// WebSockets; reads [`KindOptions::websocket`] too.
    WebSocket,
    /// Phoenix Channels, over WebSockets or long-polls; reads [`KindOptions::channels`] too.
    Channels,
}

impl ServerKind {
    /// Returns a kind of plain TCP, whose handlers need no options.
    const fn tcp<H: Handler + Default>(about: &'static str) -> Self {
        let start = |options: &KindOptions| start_server(&options.server, |_| H::default());
        Self { name: H::NAME, about, protocol: ServerProtocol::Tcp, endpoints: &[], start }
    }

    /// Returns the kind of this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        KINDS.iter().find(|kind| kind.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_starts_and_reports_its_name() {
        for kind in KINDS {
            let mut options = KindOptions::default();
            options.server.cores = Some(1);
            let server = (kind.start)(&options).unwrap();
            assert_eq!(server.snapshot().handler, kind.name);
            assert!(server.stop());
        }
    }

    #[test]
    fn every_kind_has_a_name_of_its_own_and_a_short_line_about_it() {
        for kind in KINDS {
            assert_eq!(KINDS.iter().filter(|other| other.name == kind.name).count(), 1);
            assert!(kind.about.chars().count() <= 80 && !kind.about.ends_with('.'), "{kind:?}");
        }
    }

    #[test]
    fn the_readme_names_no_other_kind() {
        let readme = document("README.md");
        // "`throng serve a`" and "throng serve b --flag" name kinds.
        for text in readme.split("throng serve ").skip(1) {
            let end = text.find(['`', ' ', '\n', '#', '*']).unwrap_or(text.len());
            let name = &text[..end];
            assert!(name.is_empty() || ServerKind::named(name).is_some(), "{name}");
        }
    }

    #[test]
    fn the_reference_lists_every_kind_and_no_other() {
        let document = document("docs/reference/commands.md");
        let rows = document.lines().skip_while(|line| !line.starts_with("| kind |")).skip(2);
        let rows = rows.take_while(|line| line.starts_with("| `"));
        let listed: Vec<&str> = rows.filter_map(|row| row.split('`').nth(1)).collect();
        let names: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
        assert_eq!(listed, names);
    }

    fn document(path: &str) -> String {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../");
        std::fs::read_to_string(format!("{root}{path}")).unwrap()
    }
}
