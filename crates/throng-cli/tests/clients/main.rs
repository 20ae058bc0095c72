//! Real clients against `throng serve channels`: independent programs, so that client and server
//! cannot share a mistake.
//!
//! `make clients` installs them. A test whose client is missing prints `skipped:` with the reason,
//! and passes.

mod chromium;
// The tests of the endpoint use the rest.
#[allow(dead_code)]
#[path = "../../../throng-view/tests/exposition/mod.rs"]
mod exposition;
mod foreign_chat;
mod phoenix_js;
mod python_client;
// The other test binary uses the rest.
#[allow(dead_code)]
#[path = "../cli/process.rs"]
mod process;
mod prometheus;
mod schema;
mod tools;
mod tsung;
