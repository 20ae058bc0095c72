//! Long-poll sessions, which cost their client nothing, and a broadcast that all of them must keep.

use crate::http::Http;
use crate::victim::{MIB, Victim};

/// Returns the target of the requests of a session.
fn target(token: &str) -> String {
    match token {
        "" => "/socket/longpoll?vsn=2.0.0".to_owned(),
        token => format!("/socket/longpoll?vsn=2.0.0&token={token}"),
    }
}

/// Requests a session; returns its token if there is one.
fn begin(http: &mut Http) -> Option<String> {
    let answer = http.ask("GET", &target(""), "");
    let body: serde_json::Value = serde_json::from_str(&answer.body).unwrap();
    match body["status"].as_u64() {
        Some(410) => Some(body["token"].as_str().unwrap().to_owned()),
        Some(403) => None,
        _ => panic!("{answer:?}"),
    }
}

/// Joins the lobby; reports whether the session still lives.
fn join(http: &mut Http, token: &str) -> bool {
    let answer = http.ask("POST", &target(token), r#"[null,"1","rooms:lobby","phx_join",{}]"#);
    match &*answer.body {
        r#"{"status":200}"# => true,
        r#"{"status":410}"# => false,
        body => panic!("{body}"),
    }
}

/// Broadcasts a message of this many bytes from a WebSocket to the lobby.
fn broadcast(sender: &mut Http, bytes: usize) {
    let body = "x".repeat(bytes);
    sender.text(&format!(r#"["1","2","rooms:lobby","new_msg",{{"body":"{body}"}}]"#));
    while sender.frame().is_some_and(|(_, payload)| !payload.starts_with(br#"["1","2""#)) {}
}

fn sender(addr: &str) -> Http {
    let mut sender = Http::connect(addr);
    sender.upgrade("/socket/websocket?vsn=2.0.0");
    sender.text(r#"["1","1","rooms:lobby","phx_join",{}]"#);
    sender.frame().expect("it joins");
    sender
}

#[test]
fn a_megabyte_for_twenty_thousand_sessions_of_one_client_costs_little() {
    let victim = Victim::serve(&["channels"]);
    let mut http = Http::connect(victim.addr());
    let mut tokens: Vec<String> = Vec::new();
    let mut asked = 0;
    // Once the server refuses more sessions, the test continues for a while.
    while asked < 20_000 && asked < tokens.len() + 2_000 {
        asked += 1;
        tokens.extend(begin(&mut http));
    }
    let joined = tokens.iter().filter(|token| join(&mut http, token)).count() as u64;
    // One address has a fifth of poll_sessions_max: a quarter of what is then free.
    assert_eq!((joined, victim.count("poll_sessions")), (200, 200));
    assert_eq!(victim.count("poll_sessions_refused") + 200, asked as u64);
    let mut sender = sender(victim.addr());
    broadcast(&mut sender, 1 << 20);
    victim.wait_for("intercepted", joined);
    let grown = victim.grown_most();
    eprintln!("{joined} sessions joined; the server grew by {} MiB", grown / MIB);
    // docs/channels.md names the limit: poll_bytes_max is 64 MiB a core. Shared messages use far
    // less.
    assert!(grown < 64 * MIB, "{} MiB", grown / MIB);
}

#[test]
fn a_session_that_fetches_nothing_shares_what_it_keeps_with_all_others() {
    let sessions = 3_000;
    let victim = Victim::serve(&["channels", "--cores", "1", "--poll-sessions-max", "20k"]);
    let mut http = Http::connect(victim.addr());
    let tokens: Vec<String> = (0..sessions).filter_map(|_| begin(&mut http)).collect();
    assert_eq!(tokens.len() as u64, sessions);
    // The part that a session has received would be the rest of its megabyte.
    assert!(tokens.iter().all(|token| join(&mut http, token)));
    let mut sender = sender(victim.addr());
    // All sessions keep each of these messages; the last is one too many for all.
    for round in 1..=5 {
        broadcast(&mut sender, 240 << 10);
        victim.wait_for("intercepted", (sessions * round).min(4 * sessions));
    }
    let grown = victim.grown_most();
    eprintln!("{sessions} sessions kept 960 KiB each; the server grew by {} MiB", grown / MIB);
    assert!(grown < 64 * MIB, "{} MiB", grown / MIB);
}

#[test]
fn polls_that_wait_and_do_not_read_share_their_answer() {
    let polls = 800;
    let flags = ["channels", "--cores", "2", "--sndbuf", "16KiB", "--poll-sessions-max", "10k"];
    let victim = Victim::serve(&flags);
    let mut waiting: Vec<Http> = Vec::new();
    for _ in 0..polls {
        let mut http = Http::connect_small(victim.addr());
        let token = begin(&mut http).expect("there is room");
        assert!(join(&mut http, &token));
        let answer = http.ask("GET", &target(&token), "");
        assert!(answer.body.contains("phx_reply"), "{answer:?}");
        http.begin("GET", &target(&token), "");
        waiting.push(http);
    }
    let mut sender = sender(victim.addr());
    broadcast(&mut sender, 1 << 20);
    victim.wait_for("intercepted", polls);
    let grown = victim.grown_most();
    eprintln!("{polls} polls were answered with a megabyte: {} MiB", grown / MIB);
    assert!(grown < 64 * MIB, "{} MiB", grown / MIB);
    // A client that reads later gets the complete response.
    let answer = waiting.pop().unwrap().answer().unwrap();
    assert!(answer.body.len() > 1 << 20 && answer.body.contains("new_msg"));
}
