//! Long-poll bodies. The first byte selects the content type; the rest is the body, and a token.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use throng_base::Instant;
use throng_proto::phoenix::longpoll::{PostFrame, TokenError, Tokens, parse_post, write_response};

/// Checks that the frames of a body round-trip as lines, that a response contains them unchanged,
/// and that no token can be forged.
pub fn check(bytes: &[u8]) {
    let Some((options, body)) = bytes.split_first() else { return };
    let content_type = (options & 1 == 1).then_some("application/x-ndjson");
    let mut scratch = Vec::new();
    if let Ok(frames) = parse_post(content_type, body, &mut scratch) {
        let frames: Vec<PostFrame<'_>> = frames.collect();
        match content_type {
            Some(_) => check_lines(&frames),
            None => assert_eq!(frames, [PostFrame::Text(std::str::from_utf8(body).unwrap())]),
        }
        check_messages(&frames);
    }
    if let Ok(token) = std::str::from_utf8(body) {
        assert_eq!(Tokens::new(&[7; 32]).check(Instant::ZERO, token), Err(TokenError::Forged));
    }
}

fn check_lines(frames: &[PostFrame<'_>]) {
    let line = |frame: &PostFrame<'_>| match frame {
        PostFrame::Text(text) => {
            assert!(text.starts_with('[') && !text.contains('\n'));
            (*text).to_owned()
        }
        PostFrame::Binary(bytes) => STANDARD.encode(bytes),
    };
    let lines: Vec<String> = frames.iter().map(line).collect();
    let (body, mut scratch) = (lines.join("\r\n"), Vec::new());
    let again: Vec<PostFrame<'_>> =
        parse_post(Some("application/x-ndjson"), body.as_bytes(), &mut scratch).unwrap().collect();
    assert_eq!(again, frames);
}

fn check_messages(frames: &[PostFrame<'_>]) {
    let texts = frames.iter().filter_map(|frame| match frame {
        PostFrame::Text(text) => Some(*text),
        PostFrame::Binary(_) => None,
    });
    let texts: Vec<&str> = texts.collect();
    let mut out = Vec::new();
    write_response(200, Some("token"), &texts, &mut out);
    let read: serde_json::Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(read, serde_json::json!({"status": 200, "token": "token", "messages": texts}));
}
