//! HTTP requests over real sockets, against servers of other people.

use serde_json::Value;
use throng_measure::{ErrorKind, Operation};

use crate::foreign::ForeignServer;
use crate::run::{Run, run_text};

const USERS: u64 = 20;

/// The load of twenty users, each of whom runs its steps once.
const LOAD: &str = "load: [arrivals: {rate: 100/s, for: 200ms, spacing: even}]\n";

fn python(version: &str, idle_timeout: &str) -> Option<ForeignServer> {
    ForeignServer::start("python3", "answers.py", &[version, idle_timeout])
}

fn run(target: &str, rest: &str) -> Run {
    run_text(&format!("target: {target}\n{LOAD}{rest}"))
}

/// Asserts that all users have finished without an error, and that the sums close.
#[track_caller]
fn assert_no_errors(run: &Run) {
    let counters = &run.last.counters;
    assert_eq!(run.last.errors.total(), 0, "{:?}", run.last.errors);
    assert_eq!(counters.connects_failed, 0, "{:?}", run.last.connect_failed);
    assert_eq!((counters.users_finished, counters.connected), (USERS, 0), "{counters:?}");
    assert_sums(run);
}

#[track_caller]
fn assert_sums(run: &Run) {
    let c = &run.last.counters;
    assert_eq!(c.http_started, c.http_ok + c.http_failed + c.http_waiting, "{c:?}");
    assert_eq!(c.connects_started, c.connects_ok + c.connects_failed + c.connects_waiting);
    assert_eq!(run.times[Operation::Http].count(), c.http_ok, "each request has its latency");
}

fn seen(value: &Value, name: &str) -> u64 {
    value[name].as_u64().unwrap_or_else(|| panic!("{value}"))
}

#[test]
fn a_user_logs_in_and_opens_its_websocket_with_the_token_and_the_cookie() {
    let Some(server) = ForeignServer::start("node", "login.js", &[]) else { return };
    let run = run(
        &format!("ws://127.0.0.1:{}/chat", server.port),
        "user:
  - post:
      path: /login
      json: {user: \"u${user.id}\", password: secret}
      expect: {status: 200, json: {ok: true}}
      capture: {token: /token, sid: {header: set-cookie, regex: \"sid=([^;]+)\"}}
  - connect: {query: {token: \"${token}\"}}
  - send: \"hello ${sid}\"
  - expect: \"hello s-u${user.id}\"
  - close
",
    );
    assert_no_errors(&run);
    let counters = &run.last.counters;
    assert_eq!((counters.http_ok, counters.http_2xx), (USERS, USERS));
    assert_eq!((counters.connects_ok, counters.http_connects), (2 * USERS, USERS));
    assert_eq!(counters.connect_steps_ended(), USERS);
    assert_eq!(
        run.times[Operation::Connect].count(),
        USERS,
        "the histogram is that of the sockets alone"
    );
    assert_eq!(run.times[Operation::Message].count(), USERS);
    let seen_by = server.seen();
    for name in ["logins", "upgraded", "echoed"] {
        assert_eq!(seen(&seen_by, name), USERS, "{name}");
    }
    assert_eq!(seen(&seen_by, "connections"), 2 * USERS, "{seen_by}");
}

#[test]
fn a_websocket_without_its_cookie_or_its_token_is_refused() {
    let Some(server) = ForeignServer::start("node", "login.js", &[]) else { return };
    let login = "post: {path: /login, json: {user: \"u${user.id}\", password: secret}, \
                 capture: {token: /token}}";
    let target = format!("ws://127.0.0.1:{}/chat", server.port);
    for connect in ["{query: {token: \"${token}\"}, headers: {cookie: none}}", "{}"] {
        let steps = format!("user: [{login}, connect: {connect}, stay]\non_error: stop\n");
        let run = run(&target, &steps);
        assert_eq!(
            run.last.connect_failed.get(ErrorKind::UpgradeStatus.with(401)),
            USERS,
            "{:?}",
            run.last.connect_failed
        );
        assert_eq!(run.last.counters.http_ok, USERS);
        assert_sums(&run);
    }
    let wrong = "user: [post: {path: /login, json: {user: a, password: b}}, connect, stay]\n\
                 on_error: stop\n";
    let run = run(&target, wrong);
    assert_eq!(
        run.last.errors.get(ErrorKind::HttpStatus.with(403)),
        USERS,
        "{:?}",
        run.last.errors
    );
    assert_eq!((run.last.counters.http_4xx, run.last.counters.http_failed), (USERS, USERS));
    assert_sums(&run);
    let seen_by = server.seen();
    assert_eq!((seen(&seen_by, "refused"), seen(&seen_by, "upgraded")), (2 * USERS, 0));
}

#[test]
fn all_requests_of_a_user_share_a_connection_that_is_kept() {
    let Some(server) = python("HTTP/1.1", "60") else { return };
    let run = run(
        &format!("http://127.0.0.1:{}", server.port),
        "user:
  - repeat:
      times: 10
      do:
        - get: {path: \"/a?n=${counter}\", expect: {text: ok}}
        - get: {path: /chunked, expect: {regex: \"^hello (chunks){2000}$\"}}
        - get: /large
        - post: {path: /form, form: {a: \"${user.id} &\"}, expect: {text: \"a=${user.id}%20%26\"}}
        - put: {path: /json, json: {n: 1}, expect: {status: 201, json: {n: 1}}}
        - delete: /a
",
    );
    assert_no_errors(&run);
    let counters = &run.last.counters;
    assert_eq!((counters.http_ok, counters.connects_ok), (60 * USERS, USERS));
    assert_eq!(run.times[Operation::Connect].count(), USERS);
    let seen_by = server.seen();
    assert_eq!((seen(&seen_by, "requests"), seen(&seen_by, "connections")), (60 * USERS, USERS));
    let bodies = seen_by["bodies"].to_string();
    assert!(bodies.contains(r#"["application/json","{\"n\":1}"]"#), "{bodies}");
    assert!(bodies.contains("application/x-www-form-urlencoded"), "{bodies}");
}

#[test]
fn a_connection_that_the_server_ends_is_replaced_by_the_next_request() {
    // The answer of each user's first request lasts until the connection ends. That of the second
    // one says nothing of the end that follows it: the user may see it before its next request, or
    // only by it.
    let Some(server) = python("HTTP/1.1", "60") else { return };
    let run = run(
        &format!("http://127.0.0.1:{}", server.port),
        "user: [get: {path: /until-close, expect: {text: until the end}}, get: /last, \
         get: /b]\n",
    );
    assert_no_errors(&run);
    assert_eq!((run.last.counters.http_ok, run.last.counters.connects_ok), (3 * USERS, 3 * USERS));
    assert_eq!(seen(&server.seen(), "connections"), 3 * USERS);
}

#[test]
fn a_server_of_http_1_0_gets_a_connection_for_each_request() {
    let Some(server) = python("HTTP/1.0", "60") else { return };
    let target = format!("http://127.0.0.1:{}", server.port);
    let run = run(&target, "user: [get: /a, get: /b, get: {path: /c, expect: {text: ok}}]\n");
    assert_no_errors(&run);
    assert_eq!(seen(&server.seen(), "connections"), 3 * USERS);
}

#[test]
fn a_share_of_500s_is_counted_and_the_others_are_measured() {
    let Some(server) = python("HTTP/1.1", "60") else { return };
    let target = format!("http://127.0.0.1:{}", server.port);
    let run = run(
        &target,
        "user: [repeat: {times: 8, do: [get: /share]}, get: /moved]\non_error: continue\n",
    );
    let counters = &run.last.counters;
    let (crashed, done) = (counters.http_5xx, counters.http_ok + counters.http_failed);
    assert_eq!((done, counters.http_3xx), (9 * USERS, USERS));
    assert!((8 * USERS / 5..=9 * USERS / 4).contains(&crashed), "{crashed}");
    let errors = &run.last.errors;
    assert_eq!(
        (errors.get(ErrorKind::HttpStatus.with(500)), errors.get(ErrorKind::HttpStatus.with(302))),
        (crashed, USERS)
    );
    assert_eq!(errors.total(), crashed + USERS, "{errors:?}");
    let statuses = &run.last.http_statuses;
    assert_eq!((statuses.get("200"), statuses.get("500")), (counters.http_ok, crashed));
    assert_eq!(statuses.total(), done, "{statuses:?}");
    assert_eq!(counters.connects_ok, USERS, "an error does not end a connection that is kept");
    assert_sums(&run);
}

#[test]
fn the_latency_is_that_of_the_server() {
    let Some(server) = python("HTTP/1.1", "60") else { return };
    let target = format!("http://127.0.0.1:{}", server.port);
    let run = run(&target, "user: [repeat: {times: 5, do: [get: /slow]}]\n");
    assert_no_errors(&run);
    let seen_by = server.seen();
    let mut own: Vec<u64> =
        seen_by["slow_us"].as_array().unwrap().iter().flat_map(Value::as_u64).collect();
    own.sort_unstable();
    // The server measures a part of what its client waits for. The histogram rounds by a
    // thousandth.
    for (rank, percent) in [(0, 0.0), (own.len() / 2, 50.0), (own.len() - 1, 100.0)] {
        let (own, measured) = (own[rank], run.times[Operation::Http].percentile(percent));
        assert!(measured + measured / 500 >= own, "{percent} %: {measured} of {own}");
    }
    assert!(own[0] >= 200_000, "{own:?}");
    // A user's requests follow one another: together they took no longer than the run.
    let all: u64 = run.times[Operation::Http].iter().map(|(us, count)| us * u64::from(count)).sum();
    let most = USERS * run.took.as_micros() as u64;
    assert!(all <= most + most / 500, "{all} of {most}");
}
