//! permessage-deflate (RFC 7692).

/// The one compressor of a core, made when it is first used.
#[derive(Debug, Default)]
pub struct Deflater {}

impl Deflater {
    /// Costs nothing until a message is compressed; then about 300 KB.
    pub fn new() -> Self {
        Self::default()
    }
}
