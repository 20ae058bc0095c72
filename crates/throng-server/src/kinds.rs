//! The kinds of ready-made servers, in one table. `throng serve`, its help and its tests are made
//! from it.
//!
//! To add a kind, write its file below `kinds/`, with a [`Handler`](crate::Handler) and a `start`
//! function, and add its row to [`KINDS`].

mod channels;
mod chat;
mod echo;
mod hold;
mod ok;
mod options;
mod pingpong;
mod start;

use std::sync::Arc;

use crate::{AnyServer, StartError};

pub use chat::Chat;
pub use echo::Echo;
pub use hold::Hold;
pub use ok::Ok;
pub use options::{ChannelsOptions, KindOptions, WebSocketKindOptions};
pub use pingpong::PingPong;

/// All kinds, in the order of the help.
pub const KINDS: &[ServerKind] = &[
    ServerKind {
        name: "ok",
        about: "Answer every packet with `ok`",
        protocol: ServerProtocol::Tcp,
        endpoints: &[],
        start: ok::start,
    },
    ServerKind {
        name: "echo",
        about: "Send back all bytes received",
        protocol: ServerProtocol::Tcp,
        endpoints: &[],
        start: echo::start,
    },
    ServerKind {
        name: "pingpong",
        about: "Answer each 4-byte `Ping` with `Pong`",
        protocol: ServerProtocol::Tcp,
        endpoints: &[],
        start: pingpong::start,
    },
    ServerKind {
        name: "hold",
        about: "Accept connections and keep them open",
        protocol: ServerProtocol::Tcp,
        endpoints: &[],
        start: hold::start,
    },
    ServerKind {
        name: "chat",
        about: "A chat of one room over WebSockets: every message goes to all clients",
        protocol: ServerProtocol::WebSocket,
        endpoints: &[("socket", "ws://{listen}/ and any other path")],
        start: chat::start,
    },
    ServerKind {
        name: "channels",
        about: "Phoenix Channels at /socket, with rooms to try, and a chat page at /",
        protocol: ServerProtocol::Channels,
        endpoints: &[
            ("page", "http://{listen}/"),
            ("socket", "ws://{listen}/socket (websocket, longpoll)"),
        ],
        start: channels::start,
    },
];

/// One kind of ready-made server.
#[derive(Clone, Copy, Debug)]
pub struct ServerKind {
    /// The name on the command line, and in reports: the handler's
    /// [`Handler::NAME`](crate::Handler::NAME).
    pub name: &'static str,
    /// One line for the help.
    pub about: &'static str,
    /// The protocol that its clients speak.
    pub protocol: ServerProtocol,
    /// The addresses to connect to, with a label each. `{listen}` stands for the server's address.
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
    fn the_readme_names_every_kind_and_no_other() {
        let readme = document("README.md");
        // "`throng serve a | b`" and "throng serve c --flag" name kinds.
        let mut named: Vec<&str> = Vec::new();
        for text in readme.split("throng serve ").skip(1) {
            let end = text.find(['`', '\n', '#', '*']).unwrap_or(text.len());
            let words = text[..end].split(" | ").filter_map(|word| word.split(' ').next());
            named.extend(words.filter(|word| !word.is_empty()));
        }
        named.sort_unstable();
        named.dedup();
        assert_eq!(named, sorted_names());
    }

    #[test]
    fn the_run_file_document_lists_every_kind_and_no_other() {
        let document = document("docs/run-file.md");
        let row = document.lines().find(|line| line.starts_with("| `handler` |")).unwrap();
        let mut named: Vec<&str> = row.split('`').skip(3).step_by(2).collect();
        named.sort_unstable();
        assert_eq!(named, sorted_names());
    }

    fn document(path: &str) -> String {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../");
        std::fs::read_to_string(format!("{root}{path}")).unwrap()
    }

    fn sorted_names() -> Vec<&'static str> {
        let mut names: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
        names.sort_unstable();
        names
    }
}
