//! Header fields that throng writes itself.

/// Reports whether a scenario cannot have this field: throng sets it, or it changes the meaning of
/// a request.
pub(crate) fn is_own_header(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.starts_with("sec-websocket") || OWN.contains(&&*name)
}

const OWN: [&str; 8] = [
    "host",
    "content-length",
    "transfer-encoding",
    "upgrade",
    "expect",
    "te",
    "trailer",
    "connection",
];
