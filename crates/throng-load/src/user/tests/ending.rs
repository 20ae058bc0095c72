//! The tables of `ending`: what the end of a connection means, and what `on_error` makes of it.

use throng_driver::Errno;
use throng_engine::CloseReason;
use throng_proto::TransportError;

use super::play::{TCP, check};
use crate::user::ending::Ending;
use crate::user::state::{Link, Packed, UserWait};
use crate::user::{ConnectFailure, ErrorKind};

const ALL_WAITS: [UserWait; 12] = [
    UserWait::Connect { tries: 0 },
    UserWait::Upgrade,
    ANSWER,
    UserWait::Reply { number: Packed::new(1) },
    UserWait::Pause,
    UserWait::Turn { index: Packed::new(0) },
    UserWait::SendSpace,
    UserWait::RunEnd,
    UserWait::Yield,
    UserWait::Close,
    UserWait::CloseAfterFailedConnect,
    UserWait::CloseAfterError,
];
const ANSWER: UserWait = UserWait::Answer { matched: Packed::new(0) };
const LINKS: [Link; 4] = [Link::Uncounted, Link::Connected, Link::HalfClosed, Link::Faulty];
const RESET: CloseReason = CloseReason::Failed(Errno::CONN_RESET);
const REFUSED: CloseReason = CloseReason::ConnectFailed(Errno::CONN_REFUSED);
const BROKEN: CloseReason = CloseReason::TransportFailed(TransportError::BadRecordMac);
const ALL_REASONS: [CloseReason; 8] = [
    CloseReason::Requested,
    CloseReason::Finished,
    REFUSED,
    RESET,
    CloseReason::HandshakeTimeout,
    BROKEN,
    CloseReason::Overflow,
    CloseReason::Panicked,
];

/// A row: waits, links and reasons that fit, and their meaning.
type Row<'a> = (&'a [UserWait], &'a [Link], &'a [CloseReason], Ending);

/// The rows of the table in `ending`'s documentation, in their order. An empty list stands for any.
fn expected(wait: UserWait, link: Link, reason: CloseReason) -> Ending {
    use Ending::*;
    let closing = [UserWait::CloseAfterFailedConnect, UserWait::CloseAfterError];
    let opening = [UserWait::Connect { tries: 0 }, UserWait::Upgrade];
    let slow = [CloseReason::HandshakeTimeout];
    let tls = ConnectFailure::Tls;
    let rows: [Row<'_>; 17] = [
        (&closing, &[], &[], Counted),
        (&[], &[], &[REFUSED], ConnectFailed(ConnectFailure::Errno(Errno::CONN_REFUSED))),
        (&opening, &[], &[RESET], ConnectFailed(ConnectFailure::Errno(Errno::CONN_RESET))),
        (&opening, &[], &[CloseReason::Panicked], ConnectFailed(ConnectFailure::Internal)),
        (&opening, &[], &slow, ConnectFailed(tls(ErrorKind::TlsTimeout))),
        (&opening, &[], &[BROKEN], ConnectFailed(tls(ErrorKind::TlsViolation))),
        (&opening, &[], &[], ConnectFailed(ConnectFailure::Closed)),
        (&[], &[], &[CloseReason::Panicked], Lost(ErrorKind::Internal)),
        (&[], &[Link::Faulty], &[], Counted),
        (&[UserWait::Close], &[], &[CloseReason::Requested, CloseReason::Finished], Planned),
        (&[ANSWER], &[], &[CloseReason::Finished], Lost(ErrorKind::ClosedByPeer)),
        (&[], &[Link::HalfClosed], &[CloseReason::Finished], Planned),
        (&[], &[], &[RESET], Lost(ErrorKind::ResetByPeer)),
        (&[], &[], &[slow[0], BROKEN], Lost(ErrorKind::TransportFailed)),
        (&[], &[], &[CloseReason::Overflow], Lost(ErrorKind::SendOverflow)),
        (&[], &[], &[CloseReason::Finished], Lost(ErrorKind::ClosedByPeer)),
        (&[], &[], &[CloseReason::Requested], Lost(ErrorKind::ClosedByPeer)),
    ];
    let fits = |(waits, links, reasons, _): &&Row<'_>| {
        (waits.is_empty() || waits.contains(&wait))
            && (links.is_empty() || links.contains(&link))
            && (reasons.is_empty() || reasons.contains(&reason))
    };
    rows.iter().find(fits).unwrap().3
}

#[test]
fn the_end_of_a_connection_means_the_same_in_code_and_table() {
    for wait in ALL_WAITS {
        for link in LINKS {
            for reason in ALL_REASONS {
                let meaning = Ending::of(wait, link, reason);
                assert_eq!(meaning, expected(wait, link, reason), "{wait:?} {link:?} {reason:?}");
            }
        }
    }
}

fn on_error(policy: &str) -> String {
    format!("{TCP}\non_error: {policy}")
}

#[test]
fn with_continue_a_user_that_waits_for_an_answer_goes_on() {
    check(
        &on_error("continue"),
        "[connect, send: hi, expect: ho, wait: 1s]",
        &[
            (
                "0 begin; 1 opened",
                "connected 1, no deadline, time-out 5001, sent hi, connected +1, \
                 messages_expected +1, messages_sent +1",
            ),
            (
                "9 closed reset",
                "error reset_by_peer, lost, until 1009, connected -1, messages_failed +1",
            ),
        ],
    );
}

#[test]
fn with_continue_a_user_in_a_wait_goes_on() {
    check(
        &on_error("continue"),
        "[connect, wait: 1s, close]",
        &[
            ("0 begin; 1 opened", "connected 1, no deadline, until 1001, connected +1"),
            ("9 closed reset", "error reset_by_peer, lost, until 1001, connected -1"),
        ],
    );
}

#[test]
fn with_continue_a_user_between_two_turns_goes_on() {
    check(
        &on_error("continue"),
        "[connect, every: {period: 10ms, do: [send: x]}]",
        &[
            (
                "0 begin; 0 opened",
                "connected 0, no deadline, turns due 1, until 10, sent x, connected +1, \
                 messages_sent +1, turns_started +1",
            ),
            ("5 closed reset", "error reset_by_peer, lost, until 10, connected -1"),
        ],
    );
}

#[test]
fn with_continue_a_user_that_stays_goes_on() {
    check(
        &on_error("continue"),
        "[connect, stay]",
        &[
            ("0 begin; 1 opened", "connected 1, no deadline, connected +1"),
            (
                "9 closed finished",
                "error closed_by_peer, lost, end failed, rest, until 1013, connected -1",
            ),
        ],
    );
}

#[test]
fn with_continue_a_user_that_is_blocked_goes_on() {
    check(
        &on_error("continue"),
        "[connect, wait: 1ms, send: hi, wait: 1s]",
        &[
            ("0 begin; 1 opened", "connected 1, no deadline, until 2, connected +1"),
            ("1 blocked; 2 deadline", "late 0, no deadline"),
            ("9 closed overflow", "error send_overflow, until 1009, connected -1, sends_failed +1"),
        ],
    );
}

#[test]
fn with_continue_a_user_that_closes_goes_on() {
    check(
        &on_error("continue"),
        "[connect, close, wait: 1s]",
        &[
            ("0 begin; 1 opened", "connected 1, no deadline, close, no deadline, connected +1"),
            ("9 closed reset", "error reset_by_peer, lost, until 1009, connected -1"),
        ],
    );
}

#[test]
fn with_continue_a_user_whose_connect_fails_goes_on() {
    check(
        &on_error("continue"),
        "[connect, wait: 1s]",
        &[
            ("0 begin", "begin, connect, time-out 5000, connects_started +1"),
            ("1 closed refused", "refused, connect failed ECONNREFUSED, until 1001"),
        ],
    );
}

#[test]
fn with_restart_a_user_that_waits_for_an_answer_rests() {
    check(
        &on_error("restart"),
        "[connect, send: hi, expect: ho, wait: 1s]",
        &[
            (
                "0 begin; 1 opened",
                "connected 1, no deadline, time-out 5001, sent hi, connected +1, \
                 messages_expected +1, messages_sent +1",
            ),
            (
                "9 closed reset",
                "error reset_by_peer, lost, end failed, rest, until 1013, connected -1, \
                 messages_failed +1",
            ),
        ],
    );
}

#[test]
fn with_restart_a_user_in_a_wait_rests() {
    check(
        &on_error("restart"),
        "[connect, wait: 1s, close]",
        &[
            ("0 begin; 1 opened", "connected 1, no deadline, until 1001, connected +1"),
            (
                "9 closed reset",
                "error reset_by_peer, lost, end failed, rest, until 1013, connected -1",
            ),
        ],
    );
}

#[test]
fn with_restart_a_user_between_two_turns_rests() {
    check(
        &on_error("restart"),
        "[connect, every: {period: 10ms, do: [send: x]}]",
        &[
            (
                "0 begin; 0 opened",
                "connected 0, no deadline, turns due 1, until 10, sent x, connected +1, \
                 messages_sent +1, turns_started +1",
            ),
            (
                "5 closed reset",
                "error reset_by_peer, lost, turns due 0, missed 0, end failed, rest, \
                 until 1009, connected -1",
            ),
        ],
    );
}

#[test]
fn with_restart_a_user_that_stays_rests() {
    check(
        &on_error("restart"),
        "[connect, stay]",
        &[
            ("0 begin; 1 opened", "connected 1, no deadline, connected +1"),
            (
                "9 closed finished",
                "error closed_by_peer, lost, end failed, rest, until 1013, connected -1",
            ),
        ],
    );
}

#[test]
fn with_restart_a_user_that_is_blocked_rests() {
    check(
        &on_error("restart"),
        "[connect, wait: 1ms, send: hi, wait: 1s]",
        &[
            ("0 begin; 1 opened", "connected 1, no deadline, until 2, connected +1"),
            ("1 blocked; 2 deadline", "late 0, no deadline"),
            (
                "9 closed overflow",
                "error send_overflow, end failed, rest, until 1013, connected -1, sends_failed +1",
            ),
        ],
    );
}

#[test]
fn with_restart_a_user_that_closes_rests() {
    check(
        &on_error("restart"),
        "[connect, close, wait: 1s]",
        &[
            ("0 begin; 1 opened", "connected 1, no deadline, close, no deadline, connected +1"),
            (
                "9 closed reset",
                "error reset_by_peer, lost, end failed, rest, until 966, connected -1",
            ),
        ],
    );
}

#[test]
fn with_restart_a_user_whose_connect_fails_rests() {
    check(
        &on_error("restart"),
        "[connect, wait: 1s]",
        &[
            ("0 begin", "begin, connect, time-out 5000, connects_started +1"),
            (
                "1 closed refused",
                "refused, connect failed ECONNREFUSED, end failed, rest, until 1005",
            ),
        ],
    );
}

#[test]
fn with_stop_a_user_that_waits_for_an_answer_is_removed() {
    check(
        &on_error("stop"),
        "[connect, send: hi, expect: ho, wait: 1s]",
        &[
            (
                "0 begin; 1 opened",
                "connected 1, no deadline, time-out 5001, sent hi, connected +1, \
                 messages_expected +1, messages_sent +1",
            ),
            (
                "9 closed reset",
                "error reset_by_peer, lost, end failed, remove, connected -1, messages_failed +1",
            ),
        ],
    );
}

#[test]
fn with_stop_a_user_in_a_wait_is_removed() {
    check(
        &on_error("stop"),
        "[connect, wait: 1s, close]",
        &[
            ("0 begin; 1 opened", "connected 1, no deadline, until 1001, connected +1"),
            ("9 closed reset", "error reset_by_peer, lost, end failed, remove, connected -1"),
        ],
    );
}

#[test]
fn with_stop_a_user_between_two_turns_is_removed() {
    check(
        &on_error("stop"),
        "[connect, every: {period: 10ms, do: [send: x]}]",
        &[
            (
                "0 begin; 0 opened",
                "connected 0, no deadline, turns due 1, until 10, sent x, connected +1, \
                 messages_sent +1, turns_started +1",
            ),
            (
                "5 closed reset",
                "error reset_by_peer, lost, turns due 0, missed 0, end failed, remove, \
                 connected -1",
            ),
        ],
    );
}

#[test]
fn with_stop_a_user_that_stays_is_removed() {
    check(
        &on_error("stop"),
        "[connect, stay]",
        &[
            ("0 begin; 1 opened", "connected 1, no deadline, connected +1"),
            ("9 closed finished", "error closed_by_peer, lost, end failed, remove, connected -1"),
        ],
    );
}

#[test]
fn with_stop_a_user_that_is_blocked_is_removed() {
    check(
        &on_error("stop"),
        "[connect, wait: 1ms, send: hi, wait: 1s]",
        &[
            ("0 begin; 1 opened", "connected 1, no deadline, until 2, connected +1"),
            ("1 blocked; 2 deadline", "late 0, no deadline"),
            (
                "9 closed overflow",
                "error send_overflow, end failed, remove, connected -1, sends_failed +1",
            ),
        ],
    );
}

#[test]
fn with_stop_a_user_that_closes_is_removed() {
    check(
        &on_error("stop"),
        "[connect, close, wait: 1s]",
        &[
            ("0 begin; 1 opened", "connected 1, no deadline, close, no deadline, connected +1"),
            ("9 closed reset", "error reset_by_peer, lost, end failed, remove, connected -1"),
        ],
    );
}

#[test]
fn with_stop_a_user_whose_connect_fails_is_removed() {
    check(
        &on_error("stop"),
        "[connect, wait: 1s]",
        &[
            ("0 begin", "begin, connect, time-out 5000, connects_started +1"),
            ("1 closed refused", "refused, connect failed ECONNREFUSED, end failed, remove"),
        ],
    );
}
