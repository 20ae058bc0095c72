//! Encoding of what a core's users send.

use throng_proto::websocket::Deflater;

use crate::protocols::session::UserSession;

/// One buffer for each part of a message, and the compressor. The writer clears a buffer first; the
/// memory is kept, so encoding allocates nothing. All templates of a scenario are UTF-8.
#[derive(Debug)]
pub(crate) struct Encoder {
    /// A whole message.
    pub(crate) text: Vec<u8>,
    pub(crate) topic: Vec<u8>,
    pub(crate) event: Vec<u8>,
    pub(crate) payload: Vec<u8>,
    /// Values with which an answer is compared.
    pub(crate) comparison: Vec<u8>,
    /// Bytes of large messages that users have sent in the present turn of the core.
    pub(crate) large_bytes: usize,
    deflater: Deflater,
}

impl Encoder {
    /// Creates an encoder with empty buffers.
    pub(crate) fn new() -> Self {
        let [text, topic, event, payload, comparison] = Default::default();
        let deflater = Deflater::new();
        Self { text, topic, event, payload, comparison, large_bytes: 0, deflater }
    }

    /// Begins the next turn of the core. Frees the buffers of large messages.
    pub(crate) fn end_turn(&mut self) {
        if self.large_bytes > 0 {
            self.large_bytes = 0;
            self.text = Vec::new();
        }
    }

    /// Clears all buffers.
    pub(crate) fn clear(&mut self) {
        [&mut self.text, &mut self.topic, &mut self.event, &mut self.payload]
            .into_iter()
            .for_each(Vec::clear);
    }

    /// Appends `text` to the output as a text message.
    pub(crate) fn write_text(
        &mut self,
        session: &mut UserSession,
        mask: [u8; 4],
        out: &mut Vec<u8>,
    ) {
        if let Some(client) = session.client() {
            client.text(as_text(&self.text), mask, Some(&mut self.deflater), out);
        }
    }

    /// Appends `text` to the output as a binary message.
    pub(crate) fn write_binary(
        &mut self,
        session: &mut UserSession,
        mask: [u8; 4],
        out: &mut Vec<u8>,
    ) {
        if let Some(client) = session.client() {
            client.binary(&self.text, mask, Some(&mut self.deflater), out);
        }
    }
}

/// Returns encoded bytes as text.
pub(crate) fn as_text(written: &[u8]) -> &str {
    std::str::from_utf8(written).unwrap_or_default()
}
