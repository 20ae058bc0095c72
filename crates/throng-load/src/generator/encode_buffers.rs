//! Buffers in which a core's users encode what they send.

/// One buffer for each part of a message. The writer clears it first; the memory is kept, so
/// encoding allocates nothing. All templates of a scenario are UTF-8.
#[derive(Debug, Default)]
pub(super) struct EncodeBuffers {
    /// A whole message.
    pub(super) text: Vec<u8>,
    pub(super) topic: Vec<u8>,
    pub(super) event: Vec<u8>,
    pub(super) payload: Vec<u8>,
}

/// Returns encoded bytes as text.
pub(super) fn as_text(written: &[u8]) -> &str {
    std::str::from_utf8(written).unwrap_or_default()
}
