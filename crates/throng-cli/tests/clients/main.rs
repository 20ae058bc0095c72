//! Real clients against `throng serve channels`: programs that others wrote, so that no mistake can be made on both sides.
//!
//! `make clients` installs them. A test whose client is not there prints `skipped:` with the reason, and passes.

mod chromium;
mod phoenix_js;
mod python_client;
// The other test binary uses the rest.
#[allow(dead_code)]
#[path = "../cli/process.rs"]
mod process;
mod tools;
mod tsung;
