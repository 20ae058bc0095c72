//! The meaning of a WebSocket close code.

use throng_measure::error_kind::NO_CODE;
use throng_measure::{ErrorKey, ErrorKind};

/// The meaning of a close code: what it says, and what to do.
pub(super) struct CloseCodeMeaning {
    pub(super) says: &'static str,
    pub(super) remedy: &'static str,
}

impl CloseCodeMeaning {
    /// Returns the meaning of a kind of error, such as `ws_close_1011` (RFC 6455 section 7.4.1 and
    /// the registry of IANA).
    pub(super) fn of(kind: &str) -> Option<Self> {
        let code = ErrorKey::parse(kind).value_of(ErrorKind::CloseFrame)?;
        let (says, remedy) = match code.parse::<u16>() {
            Ok(1000) => (
                "a normal end",
                "find what the server takes for the end of a conversation: a message, a limit, a \
                 time",
            ),
            Ok(1001) => (
                "it goes away",
                "find why it leaves: it restarts, shuts down, or has a largest age for connections",
            ),
            Ok(1002) => ("a protocol error", "look in its log for the frame that it rejects"),
            Ok(1003) => (
                "a type of data that it cannot accept",
                "send text where it expects text, and binary where it expects binary",
            ),
            Ok(1007) => (
                "data that does not fit its type",
                "look in its log for the message that it rejects: not UTF-8, or not valid",
            ),
            Ok(1008) => (
                "its policy was violated",
                "look in its log for the policy: a token that expired, a rate limit, an origin",
            ),
            Ok(1009) => ("a message that is too big", "send less, or raise its largest message"),
            Ok(1011) => (
                "an internal error of the server",
                "find the error in its log: an exception that no handler caught",
            ),
            Ok(1012) => ("it restarts", "find why it restarts"),
            Ok(1013) => ("try again later", "it is overloaded: add instances, or raise its limit"),
            Ok(1014) => ("a bad gateway", "check the server behind the proxy"),
            Ok(3000) => ("unauthorized", "check the token or cookie of the scenario"),
            Ok(3003) => ("forbidden", "check the rights of the scenario's users"),
            Ok(3008) => ("a time-out", "send more often (heartbeats), or raise its time-out"),
            Ok(4000..=4999) => (
                "the application's own",
                "look for this code in the source of the server: the application chose it",
            ),
            _ => ("", "find in the server's log why it closes"),
        };
        Some(Self { says, remedy })
    }

    /// Describes a close of this kind as a part of a sentence.
    pub(super) fn describe(&self, kind: &str) -> String {
        match ErrorKey::parse(kind).value_of(ErrorKind::CloseFrame) {
            Some(NO_CODE) => "by a close frame without a code".to_owned(),
            Some(code) if self.says.is_empty() => format!("with code {code}"),
            Some(code) => format!("with code {code} ({})", self.says),
            None => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_code_has_a_meaning_of_its_own() {
        let check = |kind: &str, expected: &str| {
            let meaning = CloseCodeMeaning::of(kind).unwrap();
            assert_eq!(meaning.describe(kind), expected);
            assert!(!meaning.remedy.is_empty());
        };
        check(
            &ErrorKind::CloseFrame.with(1011),
            "with code 1011 (an internal error of the server)",
        );
        check(&ErrorKind::CloseFrame.with(1008), "with code 1008 (its policy was violated)");
        check(&ErrorKind::CloseFrame.with(4001), "with code 4001 (the application's own)");
        check(&ErrorKind::CloseFrame.with(2999), "with code 2999");
        check(&ErrorKind::CloseFrame.with(NO_CODE), "by a close frame without a code");
        assert!(CloseCodeMeaning::of(ErrorKind::ClosedByPeer.name()).is_none());
    }
}
