//! Raw TCP: bytes without a protocol.

use throng_base::Instant;

use crate::{Input, Session};

/// The session without a protocol and without state. Each event is the bytes of one receive.
#[derive(Clone, Copy, Debug, Default)]
pub struct Raw;

impl Session for Raw {
    type Event<'a> = &'a [u8];
    type Scratch = ();

    fn next<'a, 'i: 'a>(
        &mut self,
        _now: Instant,
        input: &mut Input<'i>,
        _scratch: &'a mut (),
        _out: &mut Vec<u8>,
    ) -> Option<&'a [u8]> {
        if input.is_empty() { None } else { Some(input.take_all()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_pass_through_once() {
        let mut bytes = *b"hello";
        let mut input = Input::new(&mut bytes);
        let mut out = Vec::new();
        assert_eq!(Raw.next(Instant::ZERO, &mut input, &mut (), &mut out), Some(&b"hello"[..]));
        assert_eq!(Raw.next(Instant::ZERO, &mut input, &mut (), &mut out), None);
        assert!(out.is_empty());
    }
}
