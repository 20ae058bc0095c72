//! The long-poll transport: requests in, answers out.

use std::time::Duration;

use serde_json::json;
use throng_proto::websocket::WebSocketLimits;
use throng_sim::check;

use super::poller::{Poller, answer, on_cores, say};
use super::puppet::puppets;
use super::world::{Got, World};

#[test]
fn what_is_posted_is_answered_by_the_next_poll() {
    on_cores(&puppets(), |world| {
        let ada = Poller::new(world, "");
        assert_eq!(
            ada.post(world, r#"["1","1","puppet:a","phx_join",{"hello":"ä\n"}]"#),
            json!({"status": 200})
        );
        let joined =
            r#"["1","1","puppet:a","phx_reply",{"status":"ok","response":{"hello":"ä\n"}}]"#;
        assert_eq!(ada.messages(world), [joined]);
        // Several messages at once, in order; line ends of both kinds, and an empty line.
        let lines: Vec<_> =
            (2..60).map(|n| format!(r#"["1","{n}","puppet:a","ask",{{"n":{n}}}]"#)).collect();
        assert_eq!(ada.post(world, &(lines.join("\r\n") + "\n\n")), json!({"status": 200}));
        let replies: Vec<_> = (2..60)
            .map(|n| {
                format!(
                    r#"["1","{n}","puppet:a","phx_reply",{{"status":"ok","response":{{"n":{n}}}}}]"#
                )
            })
            .collect();
        assert_eq!(ada.messages(world), replies);
        // With any other content type the body is one frame.
        let client =
            ada.begin_post(world, "application/json", r#"["1","60","puppet:a","phx_leave",{}]"#);
        assert_eq!(answer(world, client), json!({"status": 200}));
        assert_eq!(
            ada.messages(world),
            [
                r#"["1","60","puppet:a","phx_reply",{"status":"ok","response":{}}]"#,
                r#"["1","1","puppet:a","phx_close",{}]"#
            ]
        );
    });
}

#[test]
fn a_poll_waits_for_ten_seconds_and_no_longer() {
    on_cores(&puppets(), |world| {
        let ada = Poller::new(world, "");
        let begun = world.sim.now();
        assert_eq!(ada.poll(world), json!({"status": 204, "token": ada.token, "messages": []}));
        let waited = world.sim.now().since(begun).as_secs_f64();
        assert!((10.0..10.1).contains(&waited), "{waited}");

        ada.post(world, r#"["1","1","puppet:a","phx_join",{}]"#);
        ada.messages(world);
        let poll = ada.begin_poll(world);
        world.wait(Duration::from_secs(7));
        assert_eq!(world.try_next(poll), None);
        let begun = world.sim.now();
        ada.post(world, r#"["1","2","puppet:a","ask",{}]"#);
        assert_eq!(answer(world, poll)["status"], 200);
        assert!(
            world.sim.now().since(begun) < Duration::from_millis(100),
            "it is answered at once"
        );
    });
}

#[test]
fn of_two_polls_the_later_one_waits() {
    on_cores(&puppets(), |world| {
        let ada = Poller::new(world, "");
        let first = ada.begin_poll(world);
        world.wait(Duration::from_secs(1));
        let second = ada.begin_poll(world);
        assert_eq!(answer(world, first)["status"], 204);
        ada.post(world, r#"["1","1","puppet:a","phx_join",{}]"#);
        assert_eq!(answer(world, second)["messages"].as_array().unwrap().len(), 1);
    });
}

#[test]
fn what_is_said_between_two_polls_waits_in_order() {
    on_cores(&puppets(), |world| {
        let ada = Poller::new(world, "");
        let bob = ada.with_a_websocket(world);
        let said = say(world, bob, 2..20);
        world.wait(Duration::from_secs(2));
        assert_eq!(ada.messages(world), said);
        // The other way round, while bob polls.
        ada.post(world, r#"["1","20","puppet:a","others",{"n":20}]"#);
        world.expect(bob, r#"[null,null,"puppet:a","said",{"n":20}]"#);
        ada.post(world, r#"["1","21","puppet:a","filtered",{"n":"secret"}]"#);
        ada.post(world, r#"["1","22","puppet:a","filtered",{"n":22}]"#);
        assert_eq!(ada.messages(world), [r#"["1",null,"puppet:a","filtered",{"n":22}]"#]);
    });
}

#[test]
fn who_may_not_connect_is_answered_403_in_the_body() {
    check(4, |sim| {
        let mut world = World::new(sim, &puppets().host("example.com"), 2);
        let mut get = |query: &str, header: &str| {
            let client = world.connect();
            world.request(
                client,
                &format!("GET /socket/longpoll?{query} HTTP/1.1\nhost: example.com\n{header}\n"),
            );
            answer(&mut world, client)["status"].clone()
        };
        assert_eq!(get("vsn=2.0.0&as=stranger", ""), 403);
        assert_eq!(get("vsn=2.0.0&as=too-many", ""), 403);
        assert_eq!(get("vsn=9.0.0", ""), 403);
        assert_eq!(get("vsn=2.0.0", "origin: http://evil.org\n"), 403);
        assert_eq!(get("vsn=2.0.0", "origin: http://example.com\n"), 410);
        assert_eq!(get("", ""), 410);
        // A token that was not issued makes it a first request.
        assert_eq!(get("vsn=2.0.0&token=AAAA", ""), 410);
    });
    check(2, |sim| {
        let mut world = World::new(sim, &puppets().poll_sessions_max(2), 3);
        let ada = Poller::new(&mut world, "");
        let bob = Poller::new(&mut world, "");
        for used in [&ada, &bob] {
            used.post(&mut world, r#"[null,"1","phoenix","heartbeat",{}]"#);
        }
        let eve = Poller { query: String::new(), token: String::new() };
        assert_eq!(eve.poll(&mut world), json!({"status": 403}));
        let counters = world.counters();
        assert_eq!((counters.poll_sessions, counters.poll_sessions_refused), (2, 1));
        world.wait(Duration::from_secs(20));
        Poller::new(&mut world, "");
        assert_ne!(ada.token, "");
    });
}

#[test]
fn a_page_of_another_site_is_refused_whatever_it_requests_and_the_session_gets_none_of_it() {
    check(2, |sim| {
        let mut world = World::new(sim, &puppets(), 2);
        let ada = Poller::new(&mut world, "");
        let join = r#"["1","1","rooms:lobby","phx_join",{}]"#;
        for (method, length) in [("GET", 0), ("POST", join.len()), ("OPTIONS", 0)] {
            let client = world.connect();
            let target = format!("/socket/longpoll?vsn=2.0.0&token={}", ada.token);
            world.request(
                client,
                &format!(
                    "{method} {target} HTTP/1.1\nhost: example.com\norigin: http://evil.org\n\
                    content-length: {length}\n\n"
                ),
            );
            world.send_raw(client, &join.as_bytes()[..length]);
            assert_eq!(answer(&mut world, client), json!({"status": 403}), "{method}");
        }
        assert_eq!(ada.poll(&mut world)["status"], 204, "no client has joined");
    });
}

#[test]
fn other_methods_are_a_preflight_or_wrong() {
    check(2, |sim| {
        let mut world = World::new(sim, &puppets(), 1);
        let client = world.connect();
        let headers = "host: example.com\naccess-control-request-headers: content-type, x-a\n";
        world.request(client, &format!("OPTIONS /socket/longpoll HTTP/1.1\n{headers}\n"));
        let Got::Answer(head, body) = world.next(client) else { panic!("no answer") };
        for line in [
            "HTTP/1.1 200 ",
            "access-control-allow-origin: *\r\n",
            "access-control-allow-headers: content-type, x-a\r\n",
            "access-control-allow-methods: get, post, options\r\n",
            "access-control-max-age: 3600",
        ] {
            assert!(head.contains(line), "{head}");
        }
        assert_eq!(body, "");
        world.request(client, "DELETE /socket/longpoll HTTP/1.1\nhost: example.com\n\n");
        assert_eq!(world.answer(client), (400, String::new()));
    });
}

#[test]
fn a_body_that_cannot_be_taken_apart_is_http_400_and_the_session_goes_on() {
    on_cores(&puppets(), |world| {
        let ada = Poller::new(world, "");
        let many = r#"[null,"1","phoenix","heartbeat",{}]
"#
        .repeat(101);
        for body in ["no base64!", &many] {
            let client = ada.begin_post(world, "application/x-ndjson", body);
            assert_eq!(world.answer(client), (400, String::new()));
        }
        // `echo` in base64 of a binary frame: a poll's answer cannot contain the binary reply.
        ada.post(world, r#"["1","1","puppet:a","phx_join",{}]"#);
        ada.messages(world);
        let posted = "AAEBCAMxMnB1cHBldDphYXNrZQ==\n[\"1\",\"3\",\"puppet:a\",\"ask\",{}]";
        assert_eq!(ada.post(world, posted), json!({"status": 200}));
        assert_eq!(
            ada.messages(world),
            [r#"["1","3","puppet:a","phx_reply",{"status":"ok","response":{}}]"#]
        );
    });
}

#[test]
fn a_frame_that_is_no_message_ends_the_session() {
    on_cores(&puppets(), |world| {
        let ada = Poller::new(world, "");
        let poll = ada.begin_poll(world);
        world.wait(Duration::from_secs(1));
        assert_eq!(ada.post(world, r#"["1","1","puppet:a"]"#), json!({"status": 410}));
        let again = answer(world, poll);
        assert_eq!(again["status"], 410);
        assert_ne!(again["token"], json!(ada.token));
    });
}

#[test]
fn v1_polls_too() {
    check(4, |sim| {
        let mut world = World::new(sim, &puppets(), 2);
        let client = world.connect();
        world.request(client, "GET /socket/longpoll HTTP/1.1\nhost: example.com\n\n");
        let token = answer(&mut world, client)["token"].as_str().unwrap().to_owned();
        let ada = Poller { query: String::new(), token };
        let join = r#"{"topic":"puppet:a","event":"phx_join","payload":{},"ref":"1"}"#;
        let client = ada.begin_post(&mut world, "application/json", join);
        assert_eq!(answer(&mut world, client), json!({"status": 200}));
        let joined = r#"{"topic":"puppet:a","event":"phx_reply","payload":{"status":"ok","response":{}},"ref":"1"}"#;
        assert_eq!(ada.messages(&mut world), [joined]);
    });
}

#[test]
fn what_the_replaced_channel_says_last_comes_before_its_close_here_too() {
    on_cores(&puppets(), |world| {
        let ada = Poller::new(world, "");
        ada.post(world, r#"["1","1","puppet:farewell","phx_join",{}]"#);
        ada.messages(world);
        ada.post(world, r#"["2","2","puppet:farewell","phx_join",{}]"#);
        assert_eq!(
            ada.messages(world),
            [
                r#"["2","2","puppet:farewell","phx_reply",{"status":"ok","response":{}}]"#,
                r#"["1",null,"puppet:farewell","farewell",{"why":"Duplicate"}]"#,
                r#"["1","1","puppet:farewell","phx_close",{}]"#,
            ]
        );
    });
}

#[test]
fn a_frame_longer_than_a_websockets_message_is_http_400_and_nothing_of_its_body_is_handled() {
    let limits = WebSocketLimits { message_bytes_max: 1_000, ..WebSocketLimits::default() };
    on_cores(&puppets().limits(limits), |world| {
        let ada = Poller::new(world, "");
        let join = r#"["1","1","puppet:a","phx_join",{}]"#;
        let ask = |bytes: usize| {
            let empty = r#"["1","2","puppet:a","ask",{"x":""}]"#.len();
            format!(r#"["1","2","puppet:a","ask",{{"x":"{}"}}]"#, "x".repeat(bytes - empty))
        };
        let binary = "AAAA".repeat(334);
        for (content_type, body) in [
            ("application/json", ask(1_001)),
            ("application/x-ndjson", format!("{join}\n{}", ask(1_001))),
            ("application/x-ndjson", format!("{join}\n{binary}")),
        ] {
            let client = ada.begin_post(world, content_type, &body);
            assert_eq!(world.answer(client), (400, String::new()));
        }
        // No client has joined, and the bytes are as many as a WebSocket may send.
        assert_eq!(ada.post(world, &format!("{join}\n{}", ask(1_000))), json!({"status": 200}));
        assert_eq!(ada.messages(world).len(), 2);
    });
}
