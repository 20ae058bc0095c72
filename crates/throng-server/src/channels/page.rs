//! The chat page at `/`.

/// `text/html; charset=utf-8`: one file that needs nothing else, or a page that says how to make it (see `build.rs`).
pub(crate) const PAGE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/page.html"));
