//! The frames that a pass writes to every member: back to back, in shared memory.

use std::ops::Range;
use std::sync::Arc;

/// One or more frames in the order of their publication.
#[derive(Clone, Debug)]
pub struct Frames {
    bytes: Arc<[u8]>,
    /// The end of each frame. Empty for a single frame.
    ends: Box<[usize]>,
}

impl Frames {
    /// Makes a single frame without copying it.
    pub fn one(frame: Arc<[u8]>) -> Self {
        Self { bytes: frame, ends: Box::default() }
    }

    /// Copies several frames together.
    pub fn join<'a>(frames: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut bytes = Vec::new();
        let mut ends = Vec::new();
        for frame in frames {
            bytes.extend_from_slice(frame);
            ends.push(bytes.len());
        }
        Self { bytes: bytes.into(), ends: ends.into() }
    }

    /// Returns the bytes of all frames.
    pub const fn bytes(&self) -> &Arc<[u8]> {
        &self.bytes
    }

    /// Returns the number of frames.
    pub fn count(&self) -> usize {
        self.ends.len().max(1)
    }

    /// Returns the range of [`Self::bytes`] that holds the frames of `range`.
    pub fn span(&self, range: Range<usize>) -> Range<usize> {
        debug_assert!(range.start < range.end && range.end <= self.count(), "{range:?}");
        if self.ends.is_empty() {
            return 0..self.bytes.len();
        }
        let start = if range.start == 0 { 0 } else { self.ends[range.start - 1] };
        start..self.ends[range.end - 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_run_of_frames_can_be_cut_out() {
        let frames = Frames::join([&b"one"[..], b"", b"three"]);
        let cut = |range: Range<usize>| &frames.bytes()[frames.span(range)];
        assert_eq!(frames.count(), 3);
        assert_eq!(cut(0..3), b"onethree");
        assert_eq!(cut(0..1), b"one");
        assert_eq!(cut(1..2), b"");
        assert_eq!(cut(1..3), b"three");
    }

    #[test]
    fn a_single_frame_is_shared_and_not_copied() {
        let frame: Arc<[u8]> = b"hello"[..].into();
        let frames = Frames::one(Arc::clone(&frame));
        assert!(Arc::ptr_eq(frames.bytes(), &frame));
        assert_eq!((frames.count(), frames.span(0..1)), (1, 0..5));
    }
}
