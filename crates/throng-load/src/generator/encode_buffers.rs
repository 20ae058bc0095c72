//! Where a core's users write what they are about to send.

/// One buffer for each part of a message, cleared by whoever begins to write; they are kept, so that writing allocates
/// nothing. All templates of a scenario are UTF-8.
#[derive(Debug, Default)]
pub(super) struct EncodeBuffers {
    /// A whole message.
    pub(super) text: Vec<u8>,
    pub(super) topic: Vec<u8>,
    pub(super) event: Vec<u8>,
    pub(super) payload: Vec<u8>,
}

/// What a pen has written.
pub(super) fn as_text(written: &[u8]) -> &str {
    std::str::from_utf8(written).unwrap_or_default()
}
