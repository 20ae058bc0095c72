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
    out.extend_from_slice(b"{\"status\":");
    out.extend_from_slice(crate::phoenix::Decimal::new(status.into()).as_str().as_bytes());
    if let Some(token) = token {
        out.extend_from_slice(b",\"token\":");
        json::write_string(token, out);
        out.extend_from_slice(b",\"messages\":[");
        for (index, message) in messages.into_iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            json::write_string(message.as_ref(), out);
        }
        out.push(b']');
    }
    out.push(b'}');
}
