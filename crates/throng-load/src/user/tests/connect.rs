//! `connect`: outcomes of TCP and of the upgrade.

use super::play::{TCP, WS, check};

#[test]
fn a_connect_over_tcp_succeeds_when_it_is_established() {
    check(
        TCP,
        "[connect, stay]",
        &[
            ("0 begin", "begin, connect, time-out 5000, connects_started +1"),
            ("7 opened", "connected 7, no deadline, connected +1"),
        ],
    );
}

#[test]
fn a_connect_over_a_websocket_succeeds_after_its_upgrade() {
    check(
        WS,
        "[connect, stay]",
        &[
            ("0 begin", "begin, connect, time-out 5000, connects_started +1"),
            ("7 opened", "TCP connected 7, sent the upgrade, upgrades_started +1"),
            ("9 upgraded", "connected 9, no deadline, connected +1"),
        ],
    );
}

#[test]
fn a_connect_that_takes_too_long_fails_and_is_reset() {
    check(
        TCP,
        "[connect: {timeout: 1s}, stay]",
        &[
            ("0 begin", "begin, connect, time-out 1000, connects_started +1"),
            ("1000 deadline", "unanswered 1000, connect failed timeout, reset"),
            ("1000 closed requested", "end failed, rest, until 2004"),
            (
                "2100 deadline",
                "late 95, rest over, begin, connect, time-out 3100, connects_started +1",
            ),
        ],
    );
}

#[test]
fn an_upgrade_that_takes_too_long_fails_and_is_reset() {
    check(
        WS,
        "[connect: {timeout: 1s}, stay]",
        &[
            ("0 begin", "begin, connect, time-out 1000, connects_started +1"),
            ("5 opened", "TCP connected 5, sent the upgrade, upgrades_started +1"),
            ("1000 deadline", "unanswered 1000, connect failed timeout, reset, upgrades_failed +1"),
            ("1000 closed requested", "end failed, rest, until 2089"),
        ],
    );
}

#[test]
fn a_refused_connect_is_told_from_other_failures() {
    check(
        TCP,
        "[connect, stay]",
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
fn a_refused_upgrade_fails_with_its_status() {
    check(
        WS,
        "[connect, stay]",
        &[
            ("0 begin", "begin, connect, time-out 5000, connects_started +1"),
            ("1 opened", "TCP connected 1, sent the upgrade, upgrades_started +1"),
            (
                "2 refused 503",
                "sample, connect failed http_503, no deadline, close, upgrades_failed +1",
            ),
            ("3 closed requested", "end failed, rest, until 1092"),
        ],
    );
}

#[test]
fn an_answer_that_violates_the_protocol_fails_the_connect() {
    check(
        WS,
        "[connect, stay]",
        &[
            ("0 begin", "begin, connect, time-out 5000, connects_started +1"),
            ("1 opened", "TCP connected 1, sent the upgrade, upgrades_started +1"),
            (
                "2 violated ICY 200",
                "sample, connect failed upgrade_violation, no deadline, close, upgrades_failed +1",
            ),
            ("3 closed requested", "end failed, rest, until 1092"),
        ],
    );
}

#[test]
fn a_value_that_would_break_the_upgrade_fails_the_connect() {
    for path in ["${raw(p)}", "/${raw(p)}"] {
        check(
            WS,
            &format!("[set: {{p: \"a b\"}}, connect: {{path: \"{path}\"}}, stay]"),
            &[
                ("0 begin", "begin, connect, time-out 5000, connects_started +1"),
                (
                    "1 opened",
                    "TCP connected 1, sample, connect failed bad_value, no deadline, close, \
                     upgrades_failed +1, upgrades_started +1",
                ),
            ],
        );
    }
}

#[test]
fn a_connect_tries_another_port_as_often_as_it_may() {
    check(
        TCP,
        "[connect, stay]",
        &[
            ("0 ports 2; 0 begin", "begin, connect, time-out 5000, connects_started +1"),
            ("1 closed port-taken", "connect, time-out 5001"),
            ("2 closed port-taken", "connect, time-out 5002"),
            ("3 closed port-taken", "connect failed EADDRNOTAVAIL, end failed, rest, until 1007"),
        ],
    );
}

#[test]
fn a_connection_to_itself_is_reset() {
    check(
        TCP,
        "[connect, stay]",
        &[
            ("0 begin", "begin, connect, time-out 5000, connects_started +1"),
            ("1 self-connected", "connect failed self_connected, no deadline, reset"),
            ("1 closed requested", "end failed, rest, until 1005"),
        ],
    );
}

#[test]
fn the_latency_of_a_connect_counts_from_its_intended_moment() {
    check(
        TCP,
        "[wait: 10ms, connect, stay]",
        &[
            ("0 begin", "begin, until 10"),
            ("15 deadline", "late 5, connect, time-out 5015, connects_started +1"),
            ("18 opened", "connected 8, no deadline, connected +1"),
        ],
    );
}
