//! One real exchange for each kind of error: the step, what it expected and what came.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One error: where it occurred, what was expected and what came. Texts from outside are shortened
/// and escaped, and secrets in them are masked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ErrorExchange {
    /// The kind, as in `errors` and `connect_failed`.
    pub kind: String,
    /// The class of the user.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub class: String,
    /// The number of the step within its class: `3`, or `5.2` for the second step in the loop that
    /// is step 5. Absent if the error belongs to no step.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub step: String,
    /// The kind of the step: `expect`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub step_kind: String,
    /// The line of the step in the scenario file; 0 if unknown.
    #[serde(skip_serializing_if = "is_zero")]
    pub line: u64,
    /// The number of the user; absent if no user had the error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<u64>,
    /// The expected data.
    pub expected: String,
    /// The received data.
    pub got: String,
    /// Messages that the step skipped until then, for all users of one core of the generator.
    /// `None` if the step is no `expect` that timed out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skipped: Option<u64>,
    /// The part of the HTTP answer that arrived before the error; `None` if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer_part: Option<Box<AnswerPart>>,
    /// Why the HTTP answer cannot be read; `None` for any other error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer_fault: Option<Box<AnswerFault>>,
    /// True if another `expect` of the scenario waits for the message that came.
    #[serde(skip_serializing_if = "is_false")]
    pub awaited_elsewhere: bool,
    /// True if the message that came is the first one on its connection.
    #[serde(skip_serializing_if = "is_false")]
    pub came_first: bool,
    /// The line of the step that reads next, where a user received more messages than it keeps
    /// while no step waited; 0 for any other error.
    #[serde(skip_serializing_if = "is_zero")]
    pub reader_line: u64,
    /// The reason in the server's close frame, as it is shown; `None` if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub close_reason: Option<String>,
}

/// A part of an HTTP answer. Interim answers (1xx) are no part of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AnswerPart {
    /// The status; `None` while the head is incomplete.
    pub status: Option<u16>,
    /// Bytes of the body that arrived.
    pub body_bytes: u64,
    /// Bytes of the body that the head declares; `None` without a `content-length`.
    pub declared_bytes: Option<u64>,
}

/// An HTTP answer that cannot be read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AnswerFault {
    /// True if its first bytes are those of HTTP/1.
    pub is_http: bool,
    /// The header field that is wrong, in lower case: `transfer-encoding`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// The rule that it breaks, for people.
    pub reason: String,
    /// The protocol that its first bytes belong to, if it is not HTTP and they are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<SpokenProtocol>,
}

/// A protocol that is known by the first bytes of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SpokenProtocol {
    /// A record of TLS.
    Tls,
    /// The version line of an SSH server.
    Ssh,
    /// A status line, such as those of Redis and of mail servers.
    StatusLines,
    /// A protocol that a later version knows.
    #[serde(other)]
    Unknown,
}

impl SpokenProtocol {
    /// Returns the protocol that these first bytes of a server belong to, if they are known.
    pub fn of(first_bytes: &[u8]) -> Option<Self> {
        let begins: [(&[u8], Self); 6] = [
            (&[0x15, 0x03], Self::Tls),
            (&[0x16, 0x03], Self::Tls),
            (b"SSH-", Self::Ssh),
            (b"-ERR ", Self::StatusLines),
            (b"+OK", Self::StatusLines),
            (b"+PONG", Self::StatusLines),
        ];
        let found = begins.into_iter().find(|(begin, _)| first_bytes.starts_with(begin));
        found.map(|(_, protocol)| protocol)
    }
}

impl ErrorExchange {
    /// Returns what came, and whether another step waits for it.
    pub fn received(&self) -> String {
        let elsewhere = match self.awaited_elsewhere {
            true => ", which another `expect` waits for",
            false => "",
        };
        format!("{}{elsewhere}", self.got)
    }

    /// Returns the step and the user in words: ``step 3 `expect` (line 12), user 7``; empty if
    /// neither is known.
    pub fn place(&self) -> String {
        let mut parts = Vec::new();
        if !self.step.is_empty() {
            let line = match self.line {
                0 => String::new(),
                line => format!(" (line {line})"),
            };
            let class = match self.class.as_str() {
                "" | "user" => String::new(),
                class => format!(" of class {class}"),
            };
            parts.push(format!("step {} `{}`{class}{line}", self.step, self.step_kind));
        }
        parts.extend(self.user.map(|user| format!("user {user}")));
        parts.join(", ")
    }
}

impl fmt::Display for ErrorExchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, expected, .. } = self;
        write!(f, "first {kind}: expected {expected}, received {}", self.received())?;
        match self.place().as_str() {
            "" => Ok(()),
            place => write!(f, "; {place}"),
        }
    }
}

/// The first and the last error of a kind, in an interval or in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ErrorTimes {
    /// The first one, in milliseconds since the run began.
    pub first_ms: u64,
    /// The last one, in milliseconds since the run began.
    pub last_ms: u64,
}

impl ErrorTimes {
    /// Returns the times of two intervals as one.
    #[must_use]
    pub fn joined(self, other: Self) -> Self {
        Self {
            first_ms: self.first_ms.min(other.first_ms),
            last_ms: self.last_ms.max(other.last_ms),
        }
    }
}

/// The exchange of one kind of error, with the first and the last time of that kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExchangeSummary {
    /// The first error of the kind.
    #[serde(flatten)]
    pub exchange: ErrorExchange,
    /// The times of the kind.
    #[serde(flatten)]
    pub times: ErrorTimes,
}

impl ExchangeSummary {
    /// Returns when errors of the kind occurred: `at 2.1 s`, or `from 2.1 s to 28.0 s`.
    pub fn when(&self) -> String {
        let seconds = |ms: u64| format!("{}.{} s", ms / 1000, ms % 1000 / 100);
        let ErrorTimes { first_ms, last_ms } = self.times;
        let (first, last) = (seconds(first_ms), seconds(last_ms));
        if first == last { format!("at {first}") } else { format!("from {first} to {last}") }
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

fn is_false(flag: &bool) -> bool {
    !flag
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    fn mismatch() -> ErrorExchange {
        ErrorExchange {
            kind: ErrorKind::ExpectMismatch.into(),
            class: "chat".into(),
            step: "5.2".into(),
            step_kind: "expect".into(),
            line: 12,
            user: Some(7),
            expected: "`ok`".into(),
            got: "`no`".into(),
            ..ErrorExchange::default()
        }
    }

    #[test]
    fn an_exchange_is_a_sentence() {
        assert_eq!(
            mismatch().to_string(),
            "first expect_mismatch: expected `ok`, received `no`; step 5.2 `expect` of class chat \
             (line 12), user 7"
        );
        let elsewhere = ErrorExchange { awaited_elsewhere: true, ..mismatch() }.to_string();
        assert!(elsewhere.contains("`no`, which another `expect` waits for; step"), "{elsewhere}");
        let old = ErrorExchange { kind: "a".into(), got: "b".into(), ..Default::default() };
        assert_eq!(old.to_string(), "first a: expected , received b");
    }

    #[test]
    fn a_protocol_is_known_by_its_first_bytes() {
        let tls = [0x15, 3, 1, 0, 2, 2, 0x46];
        assert_eq!(SpokenProtocol::of(&tls), Some(SpokenProtocol::Tls));
        assert_eq!(SpokenProtocol::of(b"SSH-2.0-x"), Some(SpokenProtocol::Ssh));
        assert_eq!(SpokenProtocol::of(b"+OK hello"), Some(SpokenProtocol::StatusLines));
        assert_eq!(SpokenProtocol::of(b"hello"), None);
        let later: SpokenProtocol = serde_json::from_str("\"quic\"").unwrap();
        assert_eq!(later, SpokenProtocol::Unknown);
    }

    #[test]
    fn a_kind_has_one_time_or_two() {
        let times = |first_ms, last_ms| {
            let times = ErrorTimes { first_ms, last_ms };
            ExchangeSummary { times, ..Default::default() }
        };
        assert_eq!(times(2_120, 2_180).when(), "at 2.1 s");
        assert_eq!(times(2_120, 28_000).when(), "from 2.1 s to 28.0 s");
        let joined =
            ErrorTimes { first_ms: 5, last_ms: 9 }.joined(ErrorTimes { first_ms: 3, last_ms: 4 });
        assert_eq!(joined, ErrorTimes { first_ms: 3, last_ms: 9 });
    }
}
