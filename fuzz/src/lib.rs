//! The properties that hold for any bytes from outside: the network, a file, the kernel. Each
//! module is one target; its `check` panics if a property does not hold.
//!
//! The targets of `make fuzz` call these functions in a loop. `xtask/tests/corpus.rs` includes this
//! file and replays every input of `corpus/` on each run of `make test`.

pub mod control;
pub mod data;
pub mod deflate;
pub mod http_head;
pub mod http_response;
pub mod import;
pub mod import_log;
pub mod longpoll_body;
pub mod netlink;
pub mod node_packet;
pub mod phoenix_binary;
pub mod phoenix_v1;
pub mod phoenix_v2;
pub mod procfs;
pub mod run_file;
pub mod scenario;
pub mod target;
pub mod threshold;
pub mod tls;
pub mod watch;
pub mod websocket_client;
pub mod websocket_server;

mod oracle;
mod transcript;

/// The targets that need more than this library. A test of another crate replays their corpus:
/// `throng-fleet` that of `bus_message`, `throng-server` that of `longpoll_session`.
pub const ELSEWHERE: [&str; 2] = ["bus_message", "longpoll_session"];

/// The function that a target runs on an input.
pub type Check = fn(&[u8]);

/// The targets by name. The folders of `corpus/` have the same names.
pub const TARGETS: [(&str, Check); 22] = [
    ("control", control::check),
    ("data", data::check),
    ("deflate", deflate::check),
    ("http_head", http_head::check),
    ("http_response", http_response::check),
    ("import", import::check),
    ("import_log", import_log::check),
    ("longpoll_body", longpoll_body::check),
    ("netlink", netlink::check),
    ("node_packet", node_packet::check),
    ("phoenix_binary", phoenix_binary::check),
    ("phoenix_v1", phoenix_v1::check),
    ("phoenix_v2", phoenix_v2::check),
    ("procfs", procfs::check),
    ("run_file", run_file::check),
    ("scenario", scenario::check),
    ("target", target::check),
    ("threshold", threshold::check),
    ("tls", tls::check),
    ("watch", watch::check),
    ("websocket_client", websocket_client::check),
    ("websocket_server", websocket_server::check),
];
