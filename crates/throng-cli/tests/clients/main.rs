//! Real clients against `throng serve channels`: independent programs, so that client and server
//! cannot share a mistake.
//!
//! `make clients` installs them. A test whose client is missing prints `skipped:` with the reason,
//! and passes.

mod chromium;
// The tests of the server use the rest.
#[allow(dead_code)]
#[path = "../../../throng-server/tests/server/client.rs"]
mod client;
// The tests of the endpoint use the rest.
mod deflate;
#[allow(dead_code)]
#[path = "../../../throng-view/tests/view/exposition.rs"]
mod exposition;
mod foreign_chat;
mod imports;
// The tests of the bus use the rest.
#[allow(dead_code)]
#[path = "../../../throng-bus/tests/bus/nats_server.rs"]
mod nats_server;
mod phoenix_js;
mod python_client;
// The other test binary uses the rest.
#[allow(dead_code)]
#[path = "../cli/process.rs"]
mod process;
mod prometheus;
mod readme;
mod rules;
mod schema;
mod shared_topics;
mod tls;
mod tools;
mod tsung;
#[path = "../../../throng-server/tests/server/wire.rs"]
mod wire;
