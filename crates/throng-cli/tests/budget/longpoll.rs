//! Sessions that cost their client nothing, and a broadcast that all of them are to keep.

use crate::http::Http;
use crate::victim::{MIB, Victim};

/// The requests of one client's session.
fn target(token: &str) -> String {
    match token {
        "" => "/socket/longpoll?vsn=2.0.0".to_owned(),
        token => format!("/socket/longpoll?vsn=2.0.0&token={token}"),
    }
}

/// Asks for a session; says its token if there is one.
fn begin(http: &mut Http) -> Option<String> {
    let answer = http.ask("GET", &target(""), "");
    let body: serde_json::Value = serde_json::from_str(&answer.body).unwrap();
    match body["status"].as_u64() {
        Some(410) => Some(body["token"].as_str().unwrap().to_owned()),
        Some(403) => None,
        _ => panic!("{answer:?}"),
    }
}

/// Joins the lobby; says whether the session still lives.
fn join(http: &mut Http, token: &str) -> bool {
    let answer = http.ask("POST", &target(token), r#"[null,"1","rooms:lobby","phx_join",{}]"#);
    match &*answer.body {
        r#"{"status":200}"# => true,
        r#"{"status":410}"# => false,
        body => panic!("{body}"),
    }
}

/// Has a WebSocket say something of so many bytes to everyone in the lobby.
fn say(speaker: &mut Http, bytes: usize) {
    let body = "x".repeat(bytes);
    speaker.text(&format!(r#"["1","2","rooms:lobby","new_msg",{{"body":"{body}"}}]"#));
    while speaker.frame().is_some_and(|(_, payload)| !payload.starts_with(br#"["1","2""#)) {}
}

fn speaker(addr: &str) -> Http {
    let mut speaker = Http::connect(addr);
    speaker.upgrade("/socket/websocket?vsn=2.0.0");
    speaker.text(r#"["1","1","rooms:lobby","phx_join",{}]"#);
    speaker.frame().expect("it joins");
    speaker
}

#[test]
fn a_megabyte_for_twenty_thousand_sessions_of_one_client_costs_little() {
    let victim = Victim::serve(&["channels"]);
    let mut http = Http::connect(victim.addr());
    let mut tokens: Vec<String> = Vec::new();
    let mut asked = 0;
    // Once it is plain that no more are let in, asking goes on for a while and not for ever.
    while asked < 20_000 && asked < tokens.len() + 2_000 {
        asked += 1;
        tokens.extend(begin(&mut http));
    }
    let joined = tokens.iter().filter(|token| join(&mut http, token)).count() as u64;
    assert_eq!((joined, victim.count("poll_sessions")), (1_000, 1_000), "poll_sessions_max");
    assert_eq!(victim.count("poll_sessions_refused") + 1_000, asked as u64);
    let mut speaker = speaker(victim.addr());
    say(&mut speaker, 1 << 20);
    victim.wait_for("intercepted", joined);
    let grown = victim.grown_most();
    eprintln!("{joined} sessions joined; the server grew by {} MiB", grown / MIB);
    // docs/channels.md names the bound: poll_bytes_max is 64 MiB a core. What is shared is far
    // below it.
    assert!(grown < 64 * MIB, "{} MiB", grown / MIB);
}

#[test]
fn a_session_that_fetches_nothing_shares_what_it_keeps_with_all_others() {
    let sessions = 3_000;
    let victim = Victim::serve(&["channels", "--cores", "1", "--poll-sessions-max", "20k"]);
    let mut http = Http::connect(victim.addr());
    let tokens: Vec<String> = (0..sessions).filter_map(|_| begin(&mut http)).collect();
    assert_eq!(tokens.len() as u64, sessions);
    // What each of them has been answered would be the rest of its megabyte.
    assert!(tokens.iter().all(|token| join(&mut http, token)));
    let mut speaker = speaker(victim.addr());
    // Each of these is kept by all; the last is one too many for all.
    for round in 1..=5 {
        say(&mut speaker, 240 << 10);
        victim.wait_for("intercepted", (sessions * round).min(4 * sessions));
    }
    let grown = victim.grown_most();
    eprintln!("{sessions} sessions kept 960 KiB each; the server grew by {} MiB", grown / MIB);
    assert!(grown < 64 * MIB, "{} MiB", grown / MIB);
}

#[test]
fn polls_that_wait_and_do_not_read_share_their_answer() {
    let polls = 800;
    let victim = Victim::serve(&["channels", "--cores", "2", "--sndbuf", "16KiB"]);
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
    let mut speaker = speaker(victim.addr());
    say(&mut speaker, 1 << 20);
    victim.wait_for("intercepted", polls);
    let grown = victim.grown_most();
    eprintln!("{polls} polls were answered with a megabyte: {} MiB", grown / MIB);
    assert!(grown < 64 * MIB, "{} MiB", grown / MIB);
    // A client that reads after all gets the whole of it.
    let answer = waiting.pop().unwrap().answer().unwrap();
    assert!(answer.body.len() > 1 << 20 && answer.body.contains("new_msg"));
}
