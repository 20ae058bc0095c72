//! The response to a poll or a post: always HTTP 200 with the real status in the body.

use crate::phoenix::json;

/// Appends the JSON body of a response: `{"status":…}`, with a token also `"token"` and
/// `"messages"`, in which each frame is one string.
///
/// The statuses are 200 for messages or an accepted post, 204 for no messages in time, 403 for a
/// refusal, 408 if the session does not process a post in time, and 410 for a new or unknown
/// session.
pub fn write_response<M: AsRef<str>>(
    status: u16,
    token: Option<&str>,
    messages: impl IntoIterator<Item = M>,
    out: &mut Vec<u8>,
) {
    begin_response(status, token, out);
    for (index, message) in messages.into_iter().enumerate() {
        if index > 0 {
            out.extend_from_slice(MESSAGE_SEPARATOR);
        }
        json::write_string(message.as_ref(), out);
    }
    out.extend_from_slice(end_of_response(token));
}

/// Appends the part before the first message. The messages follow, each a JSON string, with
/// [`MESSAGE_SEPARATOR`] between two of them, and then [`end_of_response`]. A response without a
/// token has no messages.
pub fn begin_response(status: u16, token: Option<&str>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"status\":");
    out.extend_from_slice(crate::phoenix::Decimal::new(status.into()).as_str().as_bytes());
    if let Some(token) = token {
        out.extend_from_slice(b",\"token\":");
        json::write_string(token, out);
        out.extend_from_slice(b",\"messages\":[");
    }
}

/// Returns the part after the last message of a response that began with this token.
pub const fn end_of_response(token: Option<&str>) -> &'static [u8] {
    match token {
        Some(_) => b"]}",
        None => b"}",
    }
}

/// The separator of two messages in a response.
pub const MESSAGE_SEPARATOR: &[u8] = b",";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(status: u16, token: Option<&str>, messages: &[&str], want: &str) {
        let mut out = Vec::new();
        write_response(status, token, messages, &mut out);
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
            write_response(200, Some("T"), &messages, &mut out);
            let read: serde_json::Value = serde_json::from_slice(&out).unwrap();
            let expected =
                serde_json::json!({"status": 200, "token": "T", "messages": messages});
            prop_assert_eq!(read, expected);
        }
    }
}
