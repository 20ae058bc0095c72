//! The decoder of a chunked body (RFC 9112 section 7.1).

use super::ResponseError;
use super::response_limits::HEAD_BYTES_MAX;

/// The place in a chunked body. Extensions and trailers are read and ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chunked {
    place: Place,
    /// Bytes of the present size line, or of all trailers.
    line_bytes: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// In the digits of a size.
    Size { value: u64, has_digit: bool },
    /// After the digits of a size, before the end of its line.
    Extension { value: u64 },
    /// Before the line feed that ends a size line.
    SizeEnd { value: u64 },
    /// In the data of a chunk.
    Data { left: u64 },
    /// Before the carriage return after the data.
    DataEnd,
    /// Before the line feed after the data.
    DataLineEnd,
    /// At the beginning of a trailer, or of the empty line that ends the body.
    Trailer,
    /// In a trailer.
    TrailerLine,
    /// Before the line feed that ends a trailer.
    TrailerEnd,
    /// Before the last line feed.
    LastLineEnd,
}

impl Chunked {
    /// Creates a decoder at the beginning of a body.
    pub(super) const fn new() -> Self {
        Self { place: Place::Size { value: 0, has_digit: false }, line_bytes: 0 }
    }

    /// Decodes `bytes` and passes the data in them to `keep`. Returns the number of bytes that
    /// belong to the body, and whether it is complete.
    pub(super) fn feed(
        &mut self,
        bytes: &[u8],
        mut keep: impl FnMut(&[u8]) -> Result<(), ResponseError>,
    ) -> Result<(usize, bool), ResponseError> {
        let mut at = 0;
        while at < bytes.len() {
            if let Place::Data { left } = &mut self.place {
                let count = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len() - at);
                keep(&bytes[at..at + count])?;
                *left -= count as u64;
                at += count;
                if *left == 0 {
                    self.place = Place::DataEnd;
                }
                continue;
            }
            let is_last = self.step(bytes[at])?;
            at += 1;
            if is_last {
                return Ok((at, true));
            }
        }
        Ok((at, false))
    }

    /// Reads a byte outside of data. Returns true if it is the last one of the body.
    fn step(&mut self, byte: u8) -> Result<bool, ResponseError> {
        self.line_bytes += 1;
        let is_trailer = matches!(self.place, Place::Trailer | Place::TrailerLine);
        if is_trailer && self.line_bytes as usize > HEAD_BYTES_MAX {
            return Err(ResponseError::HeadTooLarge);
        }
        let is_size = matches!(
            self.place,
            Place::Size { .. } | Place::Extension { .. } | Place::SizeEnd { .. }
        );
        if is_size && self.line_bytes > SIZE_LINE_BYTES_MAX {
            return Err(ResponseError::Chunk);
        }
        self.place = match (self.place, byte) {
            (Place::Size { value, .. }, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                let digit = char::from(byte).to_digit(16).unwrap_or(0);
                let shifted = value.checked_mul(16).ok_or(ResponseError::Chunk)?;
                Place::Size { value: shifted | u64::from(digit), has_digit: true }
            }
            (Place::Size { value, has_digit: true } | Place::Extension { value }, b'\r') => {
                Place::SizeEnd { value }
            }
            (Place::Size { value, has_digit: true }, b';' | b' ' | b'\t') => {
                Place::Extension { value }
            }
            (Place::Extension { value }, byte) if byte != b'\n' => Place::Extension { value },
            (Place::SizeEnd { value: 0 }, b'\n') => {
                self.line_bytes = 0;
                Place::Trailer
            }
            (Place::SizeEnd { value }, b'\n') => Place::Data { left: value },
            (Place::DataEnd, b'\r') => Place::DataLineEnd,
            (Place::DataLineEnd, b'\n') => {
                self.line_bytes = 0;
                Place::Size { value: 0, has_digit: false }
            }
            (Place::Trailer, b'\r') => Place::LastLineEnd,
            (Place::TrailerLine, b'\r') => Place::TrailerEnd,
            (Place::Trailer | Place::TrailerLine, byte) if byte != b'\n' => Place::TrailerLine,
            (Place::TrailerEnd, b'\n') => Place::Trailer,
            (Place::LastLineEnd, b'\n') => return Ok(true),
            _ => return Err(ResponseError::Chunk),
        };
        Ok(false)
    }
}

/// The longest line of a size with its extensions.
const SIZE_LINE_BYTES_MAX: u32 = 4 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    /// Decodes `text` in two pieces, at each place. Returns the data and what follows the body.
    #[track_caller]
    fn check(text: &str, expected: Result<(&str, &str), ResponseError>) {
        let bytes = text.as_bytes();
        for cut in 0..=bytes.len() {
            let (mut chunked, mut data) = (Chunked::new(), Vec::new());
            let mut keep = |piece: &[u8]| {
                data.extend_from_slice(piece);
                Ok(())
            };
            let read = chunked.feed(&bytes[..cut], &mut keep).and_then(|(count, is_done)| {
                if is_done {
                    return Ok((count, true));
                }
                let (more, is_done) = chunked.feed(&bytes[count..], &mut keep)?;
                Ok((count + more, is_done))
            });
            let read = read.map(|(count, is_done)| {
                assert!(is_done, "{text:?} is not complete");
                (String::from_utf8(data).unwrap(), &text[count..])
            });
            let expected = expected.map(|(data, rest)| (data.to_owned(), rest));
            assert_eq!(read, expected, "{text:?} cut at {cut}");
        }
    }

    #[test]
    fn data_is_joined_and_the_rest_is_ignored() {
        check("0\r\n\r\n", Ok(("", "")));
        check("3\r\nabc\r\n0\r\n\r\nHTTP", Ok(("abc", "HTTP")));
        check("3\r\nabc\r\nA\r\n0123456789\r\n00\r\n\r\n", Ok(("abc0123456789", "")));
        check("3;a=\"b\"\r\nabc\r\n0 ; x\r\nETag: \"a\"\r\nb:\r\n\r\n", Ok(("abc", "")));
    }

    #[test]
    fn a_malformed_chunk_is_refused() {
        for text in [
            "\r\n",
            "x\r\n",
            "3\nabc\r\n0\r\n\r\n",
            "3\r\nabcd\r\n",
            "3\r\nabc\n0\r\n\r\n",
            "-1\r\n",
            "0x3\r\nabc",
            "3;a\nabc",
            "11111111111111111\r\n",
            "0\r\na: b\nc: d\r\n\r\n",
            "0\r\n\n",
        ] {
            check(text, Err(ResponseError::Chunk));
        }
    }

    #[test]
    fn a_size_line_and_the_trailers_have_limits() {
        let long = "x".repeat(SIZE_LINE_BYTES_MAX as usize);
        let mut keep = |_: &[u8]| Ok(());
        let line = format!("3;{long}");
        let read = Chunked::new().feed(line.as_bytes(), &mut keep);
        assert_eq!(read, Err(ResponseError::Chunk));
        let zeros = "0".repeat(SIZE_LINE_BYTES_MAX as usize + 1);
        let read = Chunked::new().feed(zeros.as_bytes(), &mut keep);
        assert_eq!(read, Err(ResponseError::Chunk));
        let trailers = format!("0\r\n{}", "a: b\r\n".repeat(HEAD_BYTES_MAX / 6 + 1));
        let read = Chunked::new().feed(trailers.as_bytes(), &mut keep);
        assert_eq!(read, Err(ResponseError::HeadTooLarge));
    }
}
