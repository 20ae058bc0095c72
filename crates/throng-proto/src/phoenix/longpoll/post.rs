//! The body of a post: one text frame, or a batch of frames as lines.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// One frame of a post.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PostFrame<'a> {
    /// A text frame, as in a text message of a WebSocket.
    Text(&'a str),
    /// A binary frame, as in a binary message of a WebSocket.
    Binary(&'a [u8]),
}

impl PostFrame<'_> {
    /// Returns the length of the frame in bytes.
    pub const fn len(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Binary(bytes) => bytes.len(),
        }
    }

    /// Reports whether the frame is empty.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The reason why a whole body is refused. The server responds HTTP 400.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PostError {
    /// The body is not UTF-8.
    #[error("the body is not UTF-8")]
    NotUtf8,
    /// The body has more than 100 lines.
    #[error("the body has more than 100 messages")]
    TooManyLines,
    /// A line is neither an array nor base64 (RFC 4648 §4, padded).
    #[error("a line is neither an array nor base64")]
    NotBase64,
    /// A line of base64 contains more than 10,000,000 bytes.
    #[error("a binary message has more than 10,000,000 bytes")]
    TooLong,
}

/// The frames of a post, in order.
#[derive(Clone, Debug)]
pub struct PostFrames<'a> {
    lines: Option<std::str::Lines<'a>>,
    whole: Option<&'a str>,
    binary: &'a [u8],
}

/// Parses the body of a post.
///
/// With `content-type: application/x-ndjson` the body consists of lines that end with `\n` or
/// `\r\n`. A line that starts with `[` is a text frame. Any other line is a binary frame in base64,
/// which is decoded into `scratch`. Empty lines are skipped. With any other content type the body
/// is one text frame. A body is accepted as a whole or not at all.
pub fn parse_post<'a>(
    content_type: Option<&str>,
    body: &'a [u8],
    scratch: &'a mut Vec<u8>,
) -> Result<PostFrames<'a>, PostError> {
    scratch.clear();
    let body = std::str::from_utf8(body).map_err(|_| PostError::NotUtf8)?;
    if !content_type.is_some_and(is_ndjson) {
        return Ok(PostFrames { lines: None, whole: Some(body), binary: &[] });
    }
    for (index, line) in lines(body).enumerate() {
        if index == LINES_MAX {
            return Err(PostError::TooManyLines);
        }
        if !line.starts_with('[') {
            if line.len() > BINARY_BYTES_MAX.div_ceil(3) * 4 {
                return Err(PostError::TooLong);
            }
            let before = scratch.len();
            STANDARD.decode_vec(line, scratch).map_err(|_| PostError::NotBase64)?;
            if scratch.len() - before > BINARY_BYTES_MAX {
                return Err(PostError::TooLong);
            }
        }
    }
    Ok(PostFrames { lines: Some(body.lines()), whole: None, binary: scratch })
}

impl<'a> Iterator for PostFrames<'a> {
    type Item = PostFrame<'a>;

    fn next(&mut self) -> Option<PostFrame<'a>> {
        if let Some(whole) = self.whole.take() {
            return Some(PostFrame::Text(whole));
        }
        let line = self.lines.as_mut()?.find(|line| !line.is_empty())?;
        if line.starts_with('[') {
            return Some(PostFrame::Text(line));
        }
        let padding = line.bytes().rev().take_while(|&byte| byte == b'=').count();
        let (frame, rest) = self.binary.split_at(line.len() / 4 * 3 - padding);
        self.binary = rest;
        Some(PostFrame::Binary(frame))
    }
}

fn is_ndjson(content_type: &str) -> bool {
    let media = content_type.split(';').next().unwrap_or_default();
    media.trim_ascii().eq_ignore_ascii_case("application/x-ndjson")
}

fn lines(body: &str) -> impl Iterator<Item = &str> {
    body.lines().filter(|line| !line.is_empty())
}

/// Most lines of one request.
const LINES_MAX: usize = 100;
/// Most bytes of one binary message.
const BINARY_BYTES_MAX: usize = 10_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    const NDJSON: Option<&str> = Some("application/x-ndjson");

    fn check(content_type: Option<&str>, body: &str, want: &[PostFrame<'_>]) {
        let mut scratch = b"left over".to_vec();
        let posts = parse_post(content_type, body.as_bytes(), &mut scratch).unwrap();
        assert_eq!(posts.collect::<Vec<_>>(), want, "{body:?}");
    }

    fn refuse(body: &[u8], want: PostError) {
        assert_eq!(parse_post(NDJSON, body, &mut Vec::new()).err(), Some(want));
    }

    #[test]
    fn without_ndjson_the_body_is_one_text_frame() {
        for content_type in
            [None, Some(""), Some("application/json"), Some("text/plain; application/x-ndjson")]
        {
            check(content_type, "[1]\n[2]\n", &[PostFrame::Text("[1]\n[2]\n")]);
            check(content_type, "", &[PostFrame::Text("")]);
        }
    }

    #[test]
    fn ndjson_is_a_frame_a_line() {
        use PostFrame::{Binary, Text};
        check(NDJSON, "", &[]);
        check(NDJSON, "[1]", &[Text("[1]")]);
        check(NDJSON, "[1]\r\n[2]\n\n[3]\n", &[Text("[1]"), Text("[2]"), Text("[3]")]);
        check(
            NDJSON,
            "AAEC\n[1]\n/w==\r\n+/8=",
            &[Binary(&[0, 1, 2]), Text("[1]"), Binary(&[255]), Binary(&[251, 255])],
        );
        check(Some("Application/X-NDJSON; charset=utf-8"), "[1]\n", &[Text("[1]")]);
    }

    #[test]
    fn a_line_that_is_neither_an_array_nor_base64_refuses_the_body() {
        for body in ["[1]\n{}", "AAE", "AA==AA==", "A===", "-_8=", " [1]", "AA=\n="] {
            refuse(body.as_bytes(), PostError::NotBase64);
        }
        refuse(b"[1]\n\xff", PostError::NotUtf8);
    }

    #[test]
    fn a_hundred_lines_are_accepted_and_one_more_is_not() {
        let body = "[1]\n\n".repeat(100);
        assert_eq!(
            parse_post(NDJSON, body.as_bytes(), &mut Vec::new()).map(Iterator::count),
            Ok(100)
        );
        refuse(format!("{body}AA==").as_bytes(), PostError::TooManyLines);
    }

    #[test]
    #[cfg_attr(miri, ignore = "hours of work for an interpreter")]
    fn ten_megabytes_are_accepted_and_one_byte_more_is_not() {
        let body = STANDARD.encode(vec![7; 10_000_000]);
        assert_eq!(
            parse_post(NDJSON, body.as_bytes(), &mut Vec::new()).map(Iterator::count),
            Ok(1)
        );
        refuse(STANDARD.encode(vec![7; 10_000_001]).as_bytes(), PostError::TooLong);
        refuse("!".repeat(20_000_000).as_bytes(), PostError::TooLong);
    }
}
