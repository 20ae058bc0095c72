//! What a client posts: one text frame, or a batch of frames as lines.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// One frame of a post.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Posted<'a> {
    /// As a text message of a WebSocket.
    Text(&'a str),
    /// As a binary message of a WebSocket.
    Binary(&'a [u8]),
}

/// Why nothing of a body was taken; the request is answered HTTP 400.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PostError {
    /// The body is not UTF-8.
    NotUtf8,
    /// More than 100 lines.
    TooManyLines,
    /// A line is neither an array nor base64 (RFC 4648 §4, padded).
    NotBase64,
    /// A line of base64 holds more than 10,000,000 bytes.
    TooLong,
}

/// The frames of a post, in order.
#[derive(Clone, Debug)]
pub struct Posts<'a> {
    lines: Option<std::str::Lines<'a>>,
    whole: Option<&'a str>,
    binary: &'a [u8],
}

/// Takes a post's body apart.
///
/// With `content-type: application/x-ndjson` the body is lines, ended by `\n` or `\r\n`: those that start with `[` are text frames, the
/// others binary frames in base64, which are decoded to `scratch`. Empty lines are skipped. With any other content type
/// the body is one text frame. A body is taken whole or not at all.
pub fn post<'a>(
    content_type: Option<&str>,
    body: &'a [u8],
    scratch: &'a mut Vec<u8>,
) -> Result<Posts<'a>, PostError> {
    scratch.clear();
    let body = std::str::from_utf8(body).map_err(|_| PostError::NotUtf8)?;
    if !content_type.is_some_and(is_ndjson) {
        return Ok(Posts { lines: None, whole: Some(body), binary: &[] });
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
    Ok(Posts { lines: Some(body.lines()), whole: None, binary: scratch })
}

impl<'a> Iterator for Posts<'a> {
    type Item = Posted<'a>;

    fn next(&mut self) -> Option<Posted<'a>> {
        if let Some(whole) = self.whole.take() {
            return Some(Posted::Text(whole));
        }
        let line = self.lines.as_mut()?.find(|line| !line.is_empty())?;
        if line.starts_with('[') {
            return Some(Posted::Text(line));
        }
        let padding = line.bytes().rev().take_while(|&byte| byte == b'=').count();
        let (frame, rest) = self.binary.split_at(line.len() / 4 * 3 - padding);
        self.binary = rest;
        Some(Posted::Binary(frame))
    }
}

impl fmt::Display for PostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotUtf8 => "the body is not UTF-8",
            Self::TooManyLines => "more than 100 messages in one request",
            Self::NotBase64 => "a line is neither an array nor base64",
            Self::TooLong => "a binary message of more than 10,000,000 bytes",
        })
    }
}

impl std::error::Error for PostError {}

fn is_ndjson(content_type: &str) -> bool {
    let media = content_type.split(';').next().unwrap_or_default();
    media.trim_ascii().eq_ignore_ascii_case("application/x-ndjson")
}

fn lines(body: &str) -> impl Iterator<Item = &str> {
    body.lines().filter(|line| !line.is_empty())
}

/// Of one request.
const LINES_MAX: usize = 100;
/// Of one binary message.
const BINARY_BYTES_MAX: usize = 10_000_000;
