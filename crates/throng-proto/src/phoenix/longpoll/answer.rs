//! What a poll or a post is answered: always HTTP 200 with the real status in the body.

use crate::phoenix::json;

/// Appends the JSON body of an answer: `{"status":…}`, with a token also `"token"` and `"messages"`, each a frame as one string.
///
/// Statuses: 200 messages or a post taken, 204 none in time, 403 refused, 408 the session did not take a post in time,
/// 410 a new session, or one that is unknown.
pub fn answer<M: AsRef<str>>(
    status: u16,
    token: Option<&str>,
    messages: impl IntoIterator<Item = M>,
    out: &mut Vec<u8>,
) {
    begin_answer(status, token, out);
    for (index, message) in messages.into_iter().enumerate() {
        if index > 0 {
            out.extend_from_slice(BETWEEN_MESSAGES);
        }
        json::write_string(message.as_ref(), out);
    }
    out.extend_from_slice(end_of_answer(token));
}

/// Appends what stands before the first message. Messages follow, each a JSON string, with
/// [`BETWEEN_MESSAGES`] between two of them, and then [`end_of_answer`]. Without a token there are
/// none.
pub fn begin_answer(status: u16, token: Option<&str>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"status\":");
    out.extend_from_slice(crate::phoenix::Decimal::new(status.into()).as_str().as_bytes());
    if let Some(token) = token {
        out.extend_from_slice(b",\"token\":");
        json::write_string(token, out);
        out.extend_from_slice(b",\"messages\":[");
    }
}

/// What stands behind the last message of an answer that began with this token.
pub const fn end_of_answer(token: Option<&str>) -> &'static [u8] {
    match token {
        Some(_) => b"]}",
        None => b"}",
    }
}

/// What stands between two messages of an answer.
pub const BETWEEN_MESSAGES: &[u8] = b",";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(status: u16, token: Option<&str>, messages: &[&str], want: &str) {
        let mut out = Vec::new();
        answer(status, token, messages, &mut out);
        assert_eq!(std::str::from_utf8(&out), Ok(want));
    }

    #[test]
    fn messages_are_strings_that_hold_frames() {
        check(
            200,
            Some("T"),
            &[r#"[null,null,"t","e",{}]"#, "{\n}"],
            r#"{"status":200,"token":"T","messages":["[null,null,\"t\",\"e\",{}]","{\n}"]}"#,
        );
        check(204, Some("T"), &[], r#"{"status":204,"token":"T","messages":[]}"#);
        check(410, Some("T"), &[], r#"{"status":410,"token":"T","messages":[]}"#);
    }

    #[test]
    fn without_a_token_there_is_only_the_status() {
        check(403, None, &[], r#"{"status":403}"#);
    }

    proptest! {
        #[test]
        fn any_json_parser_reads_the_messages(messages in prop::collection::vec(".*", 0..5)) {
            let mut out = Vec::new();
            answer(200, Some("T"), &messages, &mut out);
            let read: serde_json::Value = serde_json::from_slice(&out).unwrap();
            prop_assert_eq!(read, serde_json::json!({"status": 200, "token": "T", "messages": messages}));
        }
    }
}
