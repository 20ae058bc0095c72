//! The counters of a generator.

use serde::{Deserialize, Serialize};

use super::{CounterField, Merge};
use crate::metric::MetricKind;

counters! {
    /// Counters of a generator.
    ///
    /// Everything that begins ends in exactly one way. When all users have left,
    ///
    /// - `iterations` = `users_finished` + `users_failed` + `users_cut`
    /// - `connects_started` = `connects_ok` + `connects_failed` + `connects_waiting`
    /// - `upgrades_started` = `connects_ok` - `http_connects` + `upgrades_failed` +
    ///   `upgrades_waiting` over WebSockets
    /// - `tls_started` = `tls_ok` + `tls_failed` + `tls_waiting`
    /// - `messages_expected` = `messages_answered` + `messages_failed` + `messages_waiting`
    /// - `joins_started` = `joins_ok` + `joins_failed` + `joins_waiting`
    /// - `pushes_sent` = `pushes_ok` + `pushes_failed` + `pushes_waiting` + `pushes_without_reply`
    /// - `http_started` = `http_ok` + `http_failed` + `http_waiting`
    /// - `turns_intended` = `turns_started` + `turns_failed` + `turns_waiting`
    ///
    /// A request that a user still waits for counts as waiting at the moment when all users begin
    /// to leave, or when the schedule or `throng ctl` stops this user. Its later outcome is not
    /// counted.
    LoadCounters {
        /// Users (closed model) or arrivals (open model) that should have started by now.
        users_intended,
        /// Users that have started. Further iterations of the same user count in `iterations`.
        users_started,
        /// Times that a user began its program, the first time included.
        iterations,
        /// Iterations that ended without an error.
        users_finished,
        /// Iterations that ended with an error.
        users_failed,
        /// Iterations without an error that were cut off before their last step: the run ended, or
        /// the schedule or `throng ctl` stopped the user.
        users_cut,
        /// Gauge: users in an iteration.
        users_active: gauge,
        /// Gauge: connections established.
        connected: gauge,
        /// Gauge: those on which the server has answered a user at least once, right or wrong. The
        /// consent to an upgrade is no answer.
        served: gauge,
        /// Waits for an answer, or for the consent to an upgrade, that were given up on a
        /// connection on which the server had not answered once.
        timeouts_unserved,
        /// Those that were given up on a connection on which it had.
        timeouts_served,
        /// Connections that the server closed or reset before it had answered on them once.
        closed_unserved,
        /// Connects begun.
        connects_started,
        /// Connects that were established.
        connects_ok,
        /// Connects that failed, for any reason.
        connects_failed,
        /// Connects in progress when their user was stopped.
        connects_waiting,
        /// Handshakes of TLS begun: connects to a target over TLS whose TCP was established.
        tls_started,
        /// Handshakes of TLS after which the connection was open.
        tls_ok,
        /// The part of `tls_ok` that resumed an earlier session.
        tls_resumed,
        /// Handshakes of TLS, begun, that offered to resume an earlier session.
        tls_offered,
        /// Handshakes of TLS that failed, for any reason; so did their connects.
        tls_failed,
        /// Handshakes of TLS in progress when their user was stopped.
        tls_waiting,
        /// Connections that the server ended without `close_notify` while their user had them.
        tls_truncated,
        /// Connects of WebSockets whose connection was open and that sent their upgrade request.
        upgrades_started,
        /// Failed connects whose TCP was established.
        upgrades_failed,
        /// Waiting connects whose TCP was established.
        upgrades_waiting,
        /// Upgrade requests that offered permessage-deflate.
        deflate_offered,
        /// Upgrades whose server agreed to permessage-deflate.
        deflate_agreed,
        /// Those on which the server's messages refer to earlier ones, so that both ends keep its
        /// context.
        deflate_server_contexts,
        /// Those on which the user's messages refer to earlier ones, so that both ends keep its
        /// context.
        deflate_client_contexts,
        /// `send` steps done.
        messages_sent,
        /// `expect` steps begun.
        messages_expected,
        /// `expect` steps that received what they expected.
        messages_answered,
        /// `expect` steps that received something else, or nothing in time, or lost their
        /// connection.
        messages_failed,
        /// `expect` steps that waited when their user was stopped.
        messages_waiting,
        /// Steps that were about to send when their connection ended, while the server did not take
        /// the bytes sent before.
        sends_failed,
        /// Steps that were about to send when their user was stopped, while the server did not take
        /// the bytes sent before.
        sends_waiting,
        /// Turns of `every` that came due: those that have begun, and those before the last turn
        /// that began or was given up.
        turns_intended,
        /// Turns of `every` that have begun.
        turns_started,
        /// Turns of `every` that came due while their user waited, and never began because an error
        /// ended the loop.
        turns_failed,
        /// Turns of `every` that had come due and had not begun when their user was stopped.
        turns_waiting,
        /// Complete messages received over WebSockets, whether or not a step waited for them.
        messages_received,
        /// Messages (over TCP: receives) that arrived while no step waited for them, or that a step
        /// skipped: they answered nothing.
        messages_unasked,
        /// Answers that may belong to another user: messages that match their `expect` had arrived
        /// unrequested on the same connection.
        answers_doubtful,
        /// The part of `answers_doubtful` that may be no answers, but what the server says first:
        /// after the first answer of their connection came another, which no message asked for.
        answers_after_greeting,
        /// Answers that may be late answers to the previous request, which timed out. No histogram
        /// contains them.
        answers_out_of_step,
        /// Messages that a rule of `on_message` took. No step saw them.
        rules_matched,
        /// Messages that rules of `on_message` sent. `messages_sent` has none of them.
        rules_sent,
        /// Messages that rules of `on_message` did not send, because the server did not take the
        /// bytes sent before.
        rules_blocked,
        /// Messages over WebSockets of which only a part had arrived when a wait for an answer
        /// timed out, when the connection ended, or when the user held too much.
        messages_incomplete,
        /// Gauge: WebSockets on which a message has begun and not ended.
        messages_unfinished: gauge,
        /// Gauge: bytes that users hold of what the target sent: parts of messages and answers,
        /// data that no step has read yet, and stored values.
        held_bytes: gauge,
        /// Times that a user was refused more of these bytes, because of `held_bytes_max`.
        held_refused,
        /// Gauge: channels that users are joined to.
        joined: gauge,
        /// `join` steps begun.
        joins_started,
        /// `join` steps that were answered ok.
        joins_ok,
        /// `join` steps that were refused, not answered in time, or lost their connection.
        joins_failed,
        /// `join` steps that waited when their user was stopped.
        joins_waiting,
        /// `push` steps done.
        pushes_sent,
        /// Pushes that request no answer.
        pushes_without_reply,
        /// `push` steps that were answered ok.
        pushes_ok,
        /// `push` steps that were refused, not answered in time, or lost their connection or
        /// channel.
        pushes_failed,
        /// `push` steps that waited when their user was stopped.
        pushes_waiting,
        /// HTTP requests begun; a request that is sent again counts once.
        http_started,
        /// HTTP requests that were answered as expected.
        http_ok,
        /// HTTP requests that were answered otherwise, not answered in time, or lost their
        /// connection.
        http_failed,
        /// HTTP requests that waited when their user was stopped.
        http_waiting,
        /// Connections established for HTTP requests. `connects_ok` includes them.
        http_connects,
        /// Connects for HTTP requests that failed. `connects_failed` includes them.
        http_connects_failed,
        /// Connects for HTTP requests in progress when their user was stopped. `connects_waiting`
        /// includes them.
        http_connects_waiting,
        /// HTTP requests sent again on a new connection, because the server closed the old one
        /// before it answered.
        http_retried,
        /// HTTP requests that failed after a part of their answer had arrived: at their time-out,
        /// or at the end of their connection.
        http_incomplete,
        /// Answers to HTTP requests with a status from 200 to 299.
        http_2xx,
        /// Answers to HTTP requests with a status from 300 to 399.
        http_3xx,
        /// Answers to HTTP requests with a status from 400 to 499.
        http_4xx,
        /// Answers to HTTP requests with a status of 500 or more.
        http_5xx,
        /// Heartbeats sent.
        heartbeats_sent,
        /// Heartbeats that were answered.
        heartbeats_answered,
        /// Heartbeats that were not answered until the next was due, which ends a connection.
        heartbeats_missed,
        /// Users that waited for an answer (`expect`, `join`, `push`, `leave`) when all users began
        /// to leave.
        users_waiting,
        /// The longest wait of one of these users, from the intended moment, in microseconds.
        users_waiting_us_most: max,
        /// Waits for other users (`barrier`, `wait_for`) that have begun.
        cue_waits,
        /// Time of those that have ended, in microseconds.
        cue_waits_us,
        /// Gauge: users that wait for other users.
        cue_waiting: gauge,
    }
}

impl LoadCounters {
    /// Returns the number of answers to HTTP requests, whatever their status.
    pub fn http_answers(&self) -> u64 {
        self.http_2xx + self.http_3xx + self.http_4xx + self.http_5xx
    }

    /// Returns the number of connections that TCP established. A WebSocket counts before its
    /// upgrade is answered.
    pub fn tcp_connects(&self) -> u64 {
        let opened = self.connects_ok.max(self.upgrades_started + self.http_connects);
        opened.max(self.tls_started)
    }

    /// Returns the number of connects of `connect` steps that ended: those for HTTP requests are
    /// parts of the requests.
    pub fn connect_steps_ended(&self) -> u64 {
        let for_requests = self.http_connects + self.http_connects_failed;
        (self.connects_ok + self.connects_failed).saturating_sub(for_requests)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_web_socket_is_connected_before_its_upgrade_is_answered() {
        let web_sockets = LoadCounters {
            upgrades_started: 50,
            connects_ok: 10 + 7,
            http_connects: 7,
            ..LoadCounters::default()
        };
        assert_eq!(web_sockets.tcp_connects(), 57);
        let tcp = LoadCounters { connects_ok: 17, http_connects: 7, ..LoadCounters::default() };
        assert_eq!(tcp.tcp_connects(), 17);
    }

    #[test]
    fn requests_are_messages_pushes_and_http_requests() {
        let begun = LoadCounters {
            connects_ok: 40,
            connects_failed: 20,
            http_connects: 35,
            http_connects_failed: 15,
            messages_sent: 10,
            messages_answered: 9,
            pushes_sent: 200,
            pushes_ok: 100,
            http_started: 3_000,
            http_ok: 2_000,
            joins_started: 7,
            ..Default::default()
        };
        assert_eq!((begun.requests_begun(), begun.requests_answered()), (3_210, 2_109));
        assert_eq!(begun.connect_steps_ended(), 10);
    }
}
