//! The kinds of errors that a wrong answer causes, with their words.

use throng_measure::{AnswerFault, ErrorKind, Operation};

use super::super::lost_answers::were_skipped_beside;
use super::super::{answers_disordered, not_http};
use crate::first_error::FirstError;
use crate::run_view::{Growth, RunView};

/// A kind of error that a wrong answer causes.
pub(super) struct WrongAnswerKind {
    /// Name among the errors or the failed connects.
    pub(super) name: ErrorKind,
    is_connect: bool,
    /// First part of the sentence; `{n}` stands for the errors and the attempts, with their word.
    what: &'static str,
    /// Word of one attempt, and of many.
    pub(super) noun: [&'static str; 2],
    /// Number of attempts.
    pub(super) of: fn(&RunView<'_>) -> u64,
    /// True if the example makes sense only with the expected answer.
    pub(super) shows_expected: bool,
    remedy: &'static str,
}

impl WrongAnswerKind {
    /// Returns the first part of the sentence, and the remedy. A server whose answer begins as HTTP
    /// does speak HTTP. A file of an older version does not say how it begins. Where most answers
    /// are right, none is a greeting: that would come on every connection.
    pub(super) fn words(
        &self,
        first: Option<FirstError<'_>>,
        is_mostly_right: bool,
    ) -> (String, &'static str) {
        if is_mostly_right && self.name == ErrorKind::ExpectMismatch {
            return (self.what.to_owned(), SOME_WRONG_REMEDY);
        }
        if first.is_some_and(|first| first.came_first) {
            return (self.what.to_owned(), GREETING_REMEDY);
        }
        let fault = first.and_then(|first| first.answer_fault);
        if self.name == not_http::KIND {
            return self.words_of_upgrade(fault);
        }
        if self.name != HTTP_VIOLATION {
            return (self.what.to_owned(), self.remedy);
        }
        match fault {
            Some(AnswerFault { is_http: false, .. }) => (self.what.to_owned(), self.remedy),
            Some(AnswerFault { field, reason, .. }) => {
                let is_coding = field.as_deref() == Some("transfer-encoding");
                let remedy = if is_coding { CODING_REMEDY } else { violation_remedy(reason) };
                (format!("{VIOLATION}: {reason}"), remedy)
            }
            None => (VIOLATION.to_owned(), VIOLATION_REMEDY),
        }
    }

    /// Returns the words for an answer to an upgrade. A server that answers in HTTP and breaks one
    /// rule is a WebSocket server with one fault.
    fn words_of_upgrade(&self, fault: Option<&AnswerFault>) -> (String, &'static str) {
        match fault {
            Some(AnswerFault { is_http: true, field: Some(field), reason, .. }) => {
                let remedy = UPGRADE_REMEDIES.iter().find(|(name, _)| name == field);
                let remedy = remedy.map_or(VIOLATION_REMEDY, |(_, remedy)| *remedy);
                (format!("The answer to {{n}} has a wrong {field}: {reason}"), remedy)
            }
            Some(AnswerFault { is_http: true, reason, .. }) => {
                (format!("{VIOLATION}: {reason}"), violation_remedy(reason))
            }
            _ => (self.what.to_owned(), self.remedy),
        }
    }

    /// Returns the growth of this kind of error.
    pub(super) fn growth(&self, run: &RunView<'_>) -> Option<Growth> {
        if self.name == answers_disordered::KIND && answers_disordered::RULE.find(run).is_some() {
            return None;
        }
        if self.name == not_http::KIND && not_http::RULE.find(run).is_some() {
            return None;
        }
        // A time-out shows a wrong answer only if other messages arrived in place of the answer.
        let is_wrong_answer = self.name != ErrorKind::ExpectTimeout
            || FirstError::of(run, self.name).is_some_and(|first| first.has_skipped())
                && !were_skipped_beside(run);
        let growth =
            if self.is_connect { run.connect_failures(self.name) } else { run.errors(self.name) };
        growth.filter(|_| is_wrong_answer)
    }
}

/// Returns what to do about an answer that cannot be read.
fn violation_remedy(reason: &str) -> &'static str {
    // The limits of heads are throng's own.
    let is_too_large = reason.contains("_max");
    if is_too_large { TOO_LARGE_REMEDY } else { VIOLATION_REMEDY }
}

/// All kinds of errors that a wrong answer causes.
pub(super) const KINDS: &[WrongAnswerKind] = &[
    WrongAnswerKind {
        name: ErrorKind::ExpectMismatch,
        is_connect: false,
        what: "The server gave a wrong answer in {n}",
        noun: ["answer", "answers"],
        of: |run| run.summary.message.answered + run.summary.errors.get(ErrorKind::ExpectMismatch),
        shows_expected: true,
        remedy: "find why the server answers this, or correct `expect` in the scenario",
    },
    WrongAnswerKind {
        name: ErrorKind::ExpectTimeout,
        is_connect: false,
        what: "Messages arrived, but not the expected one, in {n}",
        noun: ["wait", "waits"],
        of: |run| run.summary.message.answered + run.summary.errors.get(ErrorKind::ExpectTimeout),
        shows_expected: true,
        remedy: "compare `expect` in the scenario with what the server sends",
    },
    WrongAnswerKind {
        name: ErrorKind::UpgradeViolation,
        is_connect: true,
        what: "The server at {target} is not a WebSocket server: {n} got another answer",
        noun: ["upgrade", "upgrades"],
        of: |run| run.summary.connect_steps(),
        shows_expected: false,
        remedy: "correct the target's port or path, or use tcp:// for a server that does not speak \
                 WebSocket",
    },
    WrongAnswerKind {
        name: ErrorKind::JoinRefused,
        is_connect: false,
        what: "The server refused {n}",
        noun: ["join", "joins"],
        of: |run| run.summary.operation(Operation::Join).map_or(0, |join| join.started),
        shows_expected: false,
        remedy: "check the server's reason, and the topic and payload of `join`",
    },
    WrongAnswerKind {
        name: ErrorKind::PushRefused,
        is_connect: false,
        what: "The server refused {n}",
        noun: ["push", "pushes"],
        of: |run| run.summary.operation(Operation::Push).map_or(0, |push| push.started),
        shows_expected: false,
        remedy: "check the server's reason, and the event and payload of `push`",
    },
    WrongAnswerKind {
        name: ErrorKind::HttpMismatch,
        is_connect: false,
        what: "The server gave a wrong answer to {n}",
        noun: ["HTTP request", "HTTP requests"],
        of: |run| run.summary.http_requests(),
        shows_expected: true,
        remedy: "find why the server answers this, or correct `expect` and `capture` of the \
                 request",
    },
    WrongAnswerKind {
        name: HTTP_VIOLATION,
        is_connect: false,
        what: "The server at {target} does not speak HTTP/1.1: {n} got another answer",
        noun: ["HTTP request", "HTTP requests"],
        of: |run| run.summary.http_requests(),
        shows_expected: false,
        remedy: "correct the target's port, or use tcp:// for a server that does not speak HTTP",
    },
    WrongAnswerKind {
        name: ErrorKind::HttpTooLarge,
        is_connect: false,
        what: "The server's answer to {n} was too large: a head has 16 KiB at most, and a body \
               that a step reads 1 MiB",
        noun: ["HTTP request", "HTTP requests"],
        of: |run| run.summary.http_requests(),
        shows_expected: false,
        remedy: "find why the server sends so much, such as a head that never ends; a body that no \
                 `expect` and no `capture` reads may have any size",
    },
    WrongAnswerKind {
        name: ErrorKind::ChannelError,
        is_connect: false,
        what: "Channels crashed on the server (phx_error) in {n}",
        noun: ["join", "joins"],
        of: |run| run.summary.operation(Operation::Join).map_or(0, |join| join.ok),
        shows_expected: false,
        remedy: "find the crash in the server's log",
    },
    WrongAnswerKind {
        name: ErrorKind::BadMessage,
        is_connect: false,
        what: "The server sent messages that are not Phoenix Channels messages on {n}",
        noun: ["connection", "connections"],
        of: |run| run.summary.connect_steps_ok(),
        shows_expected: false,
        remedy: "check the version (vsn) in the scenario, and any proxy between generator and \
                 server",
    },
    WrongAnswerKind {
        name: ErrorKind::WebSocketViolation,
        is_connect: false,
        what: "The server violated the WebSocket protocol on {n}",
        noun: ["connection", "connections"],
        of: |run| run.summary.connect_steps_ok(),
        shows_expected: false,
        remedy: "check the frames that the server, or a proxy in front of it, sends",
    },
    WrongAnswerKind {
        name: ErrorKind::WebSocketTooLarge,
        is_connect: false,
        what: "The server sent messages that are too large on {n}",
        noun: ["connection", "connections"],
        of: |run| run.summary.connect_steps_ok(),
        shows_expected: false,
        remedy: "find why the server sends so much, such as a message that never ends",
    },
];

/// What to do about wrong answers among right ones: the scenario's `expect` is right.
const SOME_WRONG_REMEDY: &str = "find why the server sometimes answers this: read its log at the \
                                 time of the first, and look for an error that it answers";

/// What to do about a wrong answer that is the first message of its connection.
const GREETING_REMEDY: &str = "if the server speaks first, wait for that with `receive` between \
                               `connect` and `send`; else find why it answers this, or correct \
                               `expect` in the scenario";

/// What to do about a wrong field of an answer that agrees to an upgrade.
const UPGRADE_REMEDIES: &[(&str, &str)] = &[
    (
        "sec-websocket-protocol",
        "offer the subprotocol that the server chose (`subprotocols` of `connect`), or let the \
         server choose none",
    ),
    (
        "sec-websocket-extensions",
        "switch the extension or the parameter off in the server, or offer it: `deflate` of \
         `connect` has the parameters of permessage-deflate; throng offers no other extension",
    ),
    (
        "sec-websocket-accept",
        "correct how the server makes sec-websocket-accept of the client's key (RFC 6455 section \
         4.2.2), or what a proxy changes",
    ),
    (
        "upgrade",
        "let the server, and a proxy in front of it, answer with `upgrade: websocket` and \
         `connection: upgrade`",
    ),
];

/// The words for a server that speaks HTTP, but not as RFC 9112 asks.
const VIOLATION: &str = "The server's answers to {n} cannot be read";
const VIOLATION_REMEDY: &str = "correct this answer of the server, or of a proxy before it: it \
                                breaks the rule of the RFC";
const TOO_LARGE_REMEDY: &str = "find why the server, or a proxy before it, sends so large a head, \
                                such as one that never ends";
const CODING_REMEDY: &str = "switch this coding off in the server, or in a proxy in front of it: \
                             throng reads bodies with a content-length and chunked ones, and asks \
                             for no other";

/// The kind of error of an answer that is not HTTP/1.1.
pub(super) const HTTP_VIOLATION: ErrorKind = ErrorKind::HttpViolation;
