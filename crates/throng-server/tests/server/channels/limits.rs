//! The limits on what one client can make the server keep, and the answers beyond them.

use std::time::Duration;

use serde_json::{Value, json};
use throng_server::channels::{PresenceLimits, defaults, demo};
use throng_sim::{Faults, check};

use super::poller::{Poller, answer, on_cores};
use super::puppet::puppets;
use super::world::{Got, TEXT, World, frame, upgrade};

const PONG: u8 = 10;

/// Joins `presence:x` with a mood of this many bytes.
fn join_presence(world: &mut World<'_>, user: &str, bytes: usize) -> usize {
    let client = world.open("/socket/websocket?vsn=2.0.0", "");
    let payload = json!({"user": user, "mood": "x".repeat(bytes)});
    world.text(client, &json!(["1", "1", "presence:x", "phx_join", payload]).to_string());
    client
}

/// Returns the keys of the next list that a client receives.
#[track_caller]
fn list(world: &mut World<'_>, client: usize) -> Vec<String> {
    loop {
        let Got::Text(text) = world.next(client) else { panic!("no text") };
        let message: Value = serde_json::from_str(&text).unwrap();
        if message[3] == "presence_state" {
            assert_eq!(message[0], "1", "it is of the channel");
            return message[4].as_object().unwrap().keys().cloned().collect();
        }
    }
}

#[test]
fn what_is_broadcast_to_sessions_is_kept_once_for_all_of_them() {
    check(5, |sim| {
        let mut world = World::new(sim, &puppets(), 1);
        let join = r#"["1","1","puppet:a","phx_join",{}]"#;
        let sessions: Vec<Poller> = (0..20).map(|_| Poller::new(&mut world, "")).collect();
        for session in &sessions {
            session.post(&mut world, join);
            session.messages(&mut world);
        }
        assert_eq!(world.counters().poll_bytes, 0);
        let speaker = sessions[0].with_a_websocket(&mut world);
        let long = format!(r#"{{"text":"{}"}}"#, "x\n".repeat(20_000).replace('\n', "\\n"));
        world.text(speaker, &format!(r#"["1","2","puppet:a","all",{long}]"#));
        world.next(speaker);
        world.wait(Duration::from_secs(1));
        let kept = world.counters().poll_bytes;
        assert!((60_000..90_000).contains(&kept), "{kept}");
        for (number, session) in sessions.iter().enumerate() {
            let messages = session.messages(&mut world);
            let said = format!(r#"[null,null,"puppet:a","said",{long}]"#);
            assert!(messages.contains(&said), "{number}");
        }
        assert_eq!(world.counters().poll_bytes, 0);
    });
}

#[test]
fn a_session_with_more_than_it_may_keep_ends_and_that_is_counted() {
    check(5, |sim| {
        let mut world = World::new(sim, &puppets(), 2);
        let ada = Poller::new(&mut world, "");
        let speaker = ada.with_a_websocket(&mut world);
        let long = format!(r#"{{"x":"{}"}}"#, "x".repeat(300_000));
        for number in 2..6 {
            world.text(speaker, &format!(r#"["1","{number}","puppet:a","all",{long}]"#));
            world.next(speaker);
        }
        world.wait(Duration::from_secs(1));
        let counters = world.counters();
        assert_eq!((counters.poll_sessions, counters.poll_overflows), (0, 1));
        assert_eq!((counters.poll_bytes, counters.memberships), (0, 1));
    });
}

#[test]
fn sessions_of_a_core_have_its_bytes_among_them() {
    check(5, |sim| {
        let mut world = World::new(sim, &puppets().poll_bytes_max(400_000), 1);
        let join = r#"["1","1","puppet:a","phx_join",{}]"#;
        let ask = format!(r#"["1","2","puppet:a","ask",{{"x":"{}"}}]"#, "x".repeat(60_000));
        let hogs: Vec<Poller> = (0..10).map(|_| Poller::new(&mut world, "")).collect();
        for hog in &hogs {
            hog.post(&mut world, join);
            hog.post(&mut world, &ask);
        }
        let counters = world.counters();
        assert!(counters.poll_overflows > 0, "{counters:?}");
        assert!(counters.poll_bytes < 400_000, "{}", counters.poll_bytes);
        // A session that keeps little still finds room.
        let modest = Poller::new(&mut world, "");
        modest.post(&mut world, join);
        assert_eq!(modest.messages(&mut world).len(), 1);
    });
}

#[test]
fn a_poll_that_waits_takes_what_there_is_when_more_comes_than_a_session_keeps() {
    on_cores(&puppets(), |world| {
        let ada = Poller::new(world, "");
        ada.post(world, r#"["1","1","puppet:a","phx_join",{}]"#);
        ada.messages(world);
        let poll = ada.begin_poll(world);
        world.wait(Duration::from_secs(1));
        let payload = format!(r#"{{"x":"{}"}}"#, "x".repeat(300_000));
        let asks: Vec<String> =
            (2..7).map(|n| format!(r#"["1","{n}","puppet:a","ask",{payload}]"#)).collect();
        assert_eq!(ada.post(world, &asks.join("\n")), json!({"status": 200}));
        let first = answer(world, poll)["messages"].as_array().unwrap().len();
        assert_eq!((first, ada.messages(world).len()), (3, 2));
    });
}

#[test]
fn one_answer_may_be_as_long_as_a_message() {
    check(1, |sim| {
        let mut world = World::new(sim, &puppets(), 2);
        let ada = Poller::new(&mut world, "");
        ada.post(&mut world, r#"["1","1","puppet:a","phx_join",{}]"#);
        ada.messages(&mut world);
        let ask = format!(r#"["1","2","puppet:a","ask",{{"x":"{}"}}]"#, "x".repeat(7 << 20));
        assert_eq!(ada.post(&mut world, &ask), json!({"status": 200}));
        assert!(ada.messages(&mut world)[0].len() > 7 << 20);
    });
}

#[test]
fn a_long_list_is_one_message_in_fragments_and_whole() {
    for cores in [1, 3] {
        check(6, |sim| {
            if sim.seed().is_multiple_of(2) {
                // So small that a list needs many turns.
                let window_bytes_min = 5_000;
                sim.set_faults(Faults {
                    window_bytes_min,
                    window_bytes_max: 9_000,
                    ..Faults::none()
                });
            }
            let mut world = World::new(sim, &demo(), cores);
            let users: Vec<String> = (0..60).map(|n| format!("user-{n:02}")).collect();
            let mut clients: Vec<usize> = Vec::new();
            for user in &users {
                clients.push(join_presence(&mut world, user, 900));
                world.wait(Duration::from_millis(50));
            }
            world.wait(Duration::from_secs(1));
            // The last client to join receives all of them.
            assert_eq!(list(&mut world, clients[59]), users);
            assert_eq!(list(&mut world, clients[0])[0], users[0]);
        });
    }
}

#[test]
fn a_list_that_is_longer_than_an_answer_comes_with_several_polls() {
    check(2, |sim| {
        let world = &mut World::new(sim, &demo(), 2);
        let users: Vec<String> = (0..400).map(|n| format!("user-{n:03}")).collect();
        let clients: Vec<usize> =
            users.iter().map(|user| join_presence(world, user, 990)).collect();
        world.wait(Duration::from_secs(2));
        let ada = Poller::new(world, "");
        ada.post(world, r#"["1","1","presence:x","phx_join",{"user":"ada"}]"#);
        let mut known = std::collections::BTreeSet::new();
        let (mut polls, mut states) = (0, 0);
        while known.len() < 401 {
            polls += 1;
            for text in ada.messages(world) {
                assert!(text.len() < 400_000, "{}", text.len());
                let message: Value = serde_json::from_str(&text).unwrap();
                let joined = match message[3].as_str().unwrap() {
                    "presence_state" => &message[4],
                    "presence_diff" => &message[4]["joins"],
                    _ => continue,
                };
                states += usize::from(message[3] == "presence_state");
                known.extend(joined.as_object().unwrap().keys().cloned());
            }
        }
        assert!((2..5).contains(&polls) && states == 1, "{polls} polls, {states} states");
        // Later changes arrive behind it.
        world.close(clients[7]);
        world.wait(Duration::from_secs(1));
        let messages = ada.messages(world);
        assert!(messages.iter().any(|text| text.contains(r#""leaves":{"user-007""#)));
    });
}

#[test]
fn a_topic_with_as_many_members_as_may_be_refuses_the_next() {
    let limits = PresenceLimits { members_max: 3, ..PresenceLimits::default() };
    check(5, |sim| {
        let mut world = World::new(sim, &demo().presence(limits), 2);
        for user in ["ada", "bob", "eve"] {
            join_presence(&mut world, user, 1);
            world.wait(Duration::from_millis(100));
        }
        let late = join_presence(&mut world, "late", 1);
        let reason = r#"{"status":"error","response":{"reason":"the topic has too many members"}}"#;
        world.expect(late, &format!(r#"["1","1","presence:x","phx_reply",{reason}]"#));
        let counters = world.counters();
        assert_eq!((counters.presence_refused, counters.joins_refused), (1, 1));
        // A meta is at most a kibibyte.
        world.text(
            late,
            &json!(["2", "2", "presence:y", "phx_join", {"user": "u", "a": "x".repeat(1_100)}])
                .to_string(),
        );
        let Got::Text(answer) = world.next(late) else { panic!("no answer") };
        assert!(answer.contains("too long"), "{answer}");
    });
}

#[test]
fn a_page_under_a_rebound_name_may_not_connect() {
    check(3, |sim| {
        let mut world = World::new(sim, &puppets(), 1);
        let mut ask = |request: &str, host: &str, origin: &str| {
            let client = world.connect();
            let headers = format!("host: {host}\norigin: {origin}\n");
            world.request(client, &request.replace("host: example.com\n", &headers));
            let (status, body) = world.answer(client);
            (
                status,
                serde_json::from_str::<Value>(&body)
                    .map_or(0, |body| body["status"].as_u64().unwrap()),
            )
        };
        let websocket = upgrade("/socket/websocket?vsn=2.0.0", "");
        let poll = "GET /socket/longpoll?vsn=2.0.0 HTTP/1.1\nhost: example.com\n\n";
        for (host, origin, allowed) in [
            ("evil.example:5555", "http://evil.example:5555", false),
            ("evil.example", "http://evil.example", false),
            ("127.0.0.1:5555", "http://evil.example:5555", false),
            ("127.0.0.1:5555", "http://127.0.0.1:5555", true),
            ("localhost:5555", "http://localhost:5555", true),
            ("[::1]:5555", "http://[::1]:5555", true),
        ] {
            let (upgraded, polled) = if allowed { (101, 410) } else { (403, 403) };
            assert_eq!(ask(&websocket, host, origin).0, upgraded, "{origin}");
            assert_eq!(ask(poll, host, origin), (200, polled), "{origin}");
        }
    });
}

#[test]
fn a_message_that_is_not_whole_in_time_ends_its_connection_whatever_it_pings() {
    let timeout = Duration::from_millis(defaults::limits().message_timeout_ms.into());
    check(3, |sim| {
        let mut world = World::new(sim, &puppets(), 1);
        let client = world.open("/socket/websocket?vsn=2.0.0", "");
        world.text(client, r#"["1","1","puppet:heard","phx_join",{}]"#);
        world.next(client);
        let mut begun = frame(TEXT, br#"["1","2","puppet:heard","ask",{"#);
        begun[0] &= 0x7f;
        world.send_raw(client, &begun);
        for _ in 0..5 {
            world.wait(timeout / 6);
            world.send(client, PONG, b"");
        }
        world.wait(timeout / 4);
        let counters = world.counters();
        assert_eq!(
            (counters.message_timeouts, counters.channels, counters.idle_timeouts),
            (1, 0, 0)
        );
        assert_eq!(world.next(client), Got::Close(Some(1008)));
        world.wait(Duration::from_secs(10));
        assert_eq!(world.counters().open, 0);
    });
}

#[test]
fn only_long_polls_have_bodies_and_what_is_too_large_is_counted() {
    check(3, |sim| {
        let mut world = World::new(sim, &puppets(), 1);
        for (target, length, status) in [
            ("/socket/longpoll?token=x", 10, 200),
            ("/socket/longpoll?token=x", (8 << 20) + 1, 413),
            ("/socket/websocket", 1, 413),
            ("/", 1, 413),
            ("/", 0, 404),
        ] {
            let client = world.connect();
            let head = "host: example.com\ncontent-type: text/plain";
            world.request(
                client,
                &format!("POST {target} HTTP/1.1\n{head}\ncontent-length: {length}\n\n"),
            );
            if status == 200 {
                world.send_raw(client, &vec![b'x'; length]);
            }
            assert_eq!(world.answer(client).0, status, "{target} {length}");
        }
        let loud = world.open("/socket/websocket?vsn=2.0.0", "");
        let mut head = frame(TEXT, &[]);
        head[1] = 0x80 | 127;
        head.splice(2..2, ((8u64 << 20) + 1).to_be_bytes());
        world.send_raw(loud, &head);
        assert_eq!(world.next(loud), Got::Close(Some(1009)));
        let counters = world.counters();
        assert_eq!((counters.requests_too_large, counters.messages_too_large), (3, 1));
    });
}
