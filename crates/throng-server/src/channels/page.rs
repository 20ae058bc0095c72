//! The chat page at `/`.

/// The page in one file, `text/html; charset=utf-8`, or a page that says how to make it (see
/// `build.rs`).
pub(crate) const PAGE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/page.html"));
