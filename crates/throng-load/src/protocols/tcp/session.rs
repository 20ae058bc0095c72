//! A stream of bytes: each piece is an event as it arrives.

use throng_base::Instant;
use throng_proto::Input;
use throng_proto::websocket::Scratch;

pub(crate) type Session = ByteStream;

/// A stream of bytes.
#[derive(Debug)]
pub struct ByteStream;

impl throng_proto::Session for ByteStream {
    type Event<'a> = &'a [u8];
    type Scratch = Scratch;

    fn next<'a, 'i: 'a>(
        &mut self,
        _: Instant,
        input: &mut Input<'i>,
        _: &'a mut Scratch,
        _: &mut Vec<u8>,
    ) -> Option<&'a [u8]> {
        (!input.is_empty()).then(|| &*input.take_all())
    }
}
