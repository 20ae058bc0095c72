//! Faults, and the ends of connections.

use std::time::Duration;

use throng_server::channels::{CheckOrigin, ConnectGrant, ConnectRefusal};
use throng_sim::{Sim, check};

use super::puppet::puppets;
use super::world::{Got, World, transcript, upgrade};

#[test]
fn a_frame_that_is_no_message_closes_the_connection() {
    for frame in [
        "no json",
        "{}",
        r#"["1","1","puppet:a","ask"]"#,
        r#"["1","1","puppet:a","ask",{]"#,
        r#"["1","1",7,"ask",{}]"#,
        r#"{"topic":"puppet:a","event":"ask","payload":{},"ref":"1"}"#,
        "",
    ] {
        transcript(&puppets(), &format!("a > {frame}\na x 1011"));
    }
    for frame in
        [r#"["1","1","puppet:a","ask",{}]"#, r#"{"topic":"puppet:a","event":"ask","payload":{}}"#]
    {
        transcript(&puppets(), &format!("v1 > {frame}\nv1 x 1011"));
    }
    for frame in ["", "01 00 00 00 00", "00 01", "00 01 01 01 01 \"123\"", "00 00 00 01 00 ff"] {
        transcript(&puppets(), &format!("a >> {frame}\na x 1011"));
    }
    for frame in ["\"no json\"", "00 00 01 07 09 \"1\" \"phoenix\" \"heartbeat\"", "ff"] {
        transcript(&puppets(), &format!("v1 >> {frame}\nv1 x 1011"));
    }
}

#[test]
fn a_bad_frame_ends_the_channels_of_its_connection_and_no_others() {
    transcript(
        &puppets(),
        r#"
        b > ["1","1","puppet:b","phx_join",{}]
        b < ["1","1","puppet:b","phx_reply",{"status":"ok","response":{}}]
        a > ["1","1","puppet:heard","phx_join",{}]
        a < ["1","1","puppet:heard","phx_reply",{"status":"ok","response":{}}]
        a > ["2","2","puppet:farewell","phx_join",{}]
        a < ["2","2","puppet:farewell","phx_reply",{"status":"ok","response":{}}]
        a > no json
        a x 1011
        b < [null,null,"puppet:b","left",{"why":"Closed"}]
        b > ["1","2","puppet:b","ask",{}]
        b < ["1","2","puppet:b","phx_reply",{"status":"ok","response":{}}]
        "#,
    );
}

#[test]
fn a_client_that_says_nothing_for_a_minute_is_closed() {
    transcript(
        &puppets(),
        r#"
        a > [null,"1","phoenix","heartbeat",{}]
        a < [null,"1","phoenix","phx_reply",{"status":"ok","response":{}}]
        wait 59s
        a > [null,"2","phoenix","heartbeat",{}]
        a < [null,"2","phoenix","phx_reply",{"status":"ok","response":{}}]
        wait 59s
        a > ["3","3","puppet:a","phx_join",{}]
        a < ["3","3","puppet:a","phx_reply",{"status":"ok","response":{}}]
        wait 61s
        a x 1002
        "#,
    );
}

#[test]
fn what_others_say_does_not_keep_a_silent_client() {
    transcript(
        &puppets().timeout(Duration::from_secs(20)),
        r#"
        a > ["1","1","puppet:a","phx_join",{}]
        a < ["1","1","puppet:a","phx_reply",{"status":"ok","response":{}}]
        b > ["1","1","puppet:a","phx_join",{}]
        b < ["1","1","puppet:a","phx_reply",{"status":"ok","response":{}}]
        wait 15s
        b > ["1","2","puppet:a","all",{}]
        b < [null,null,"puppet:a","said",{}]
        a < [null,null,"puppet:a","said",{}]
        wait 6s
        a x 1002
        b > ["1","3","puppet:a","ask",{}]
        b < ["1","3","puppet:a","phx_reply",{"status":"ok","response":{}}]
        "#,
    );
}

#[test]
fn names_beyond_the_limit_match_nothing() {
    let long = "x".repeat(1_000_000);
    let topic = format!("puppet:{long}");
    check(3, |sim| {
        let mut world = World::new(sim, &puppets(), 1);
        let client = world.open("/socket/websocket?vsn=2.0.0", "");
        let unmatched = |r#ref: &str, topic: &str| {
            let error = r#"{"status":"error","response":{"reason":"unmatched topic"}}"#;
            format!(r#"[null,"{ref}","{topic}","phx_reply",{error}]"#)
        };
        world.text(client, &format!(r#"["1","1","{topic}","phx_join",{{}}]"#));
        world.expect(client, &unmatched("1", &topic));
        world.text(client, &format!(r#"["1","2","{topic}","ask",{{}}]"#));
        world.expect(client, &unmatched("2", &topic));
        world.text(client, &format!(r#"["{long}","3","puppet:a","phx_join",{{}}]"#));
        world.expect(client, &unmatched("3", "puppet:a"));
        world.text(client, &format!(r#"[null,"{long}","puppet:a","phx_join",{{}}]"#));
        world.expect(client, &unmatched(&long, "puppet:a"));
    });
}

#[test]
fn deep_json_is_passed_on_as_it_came() {
    let deep = format!("{}1{}", "[".repeat(10_000), "]".repeat(10_000));
    check(3, |sim| {
        let mut world = World::new(sim, &puppets(), 1);
        let client = world.open("/socket/websocket?vsn=2.0.0", "");
        world.text(client, r#"["1","1","puppet:a","phx_join",{}]"#);
        world.next(client);
        world.text(client, &format!(r#"["1","2","puppet:a","ask",{deep}]"#));
        world.expect(
            client,
            &format!(r#"["1","2","puppet:a","phx_reply",{{"status":"ok","response":{deep}}}]"#),
        );
        world.text(client, &format!(r#"["1","3","puppet:a","ask",{}]"#, "[".repeat(10_000)));
        assert_eq!(world.next(client), Got::Close(Some(1011)));
    });
}

#[test]
fn a_broadcast_of_disconnect_to_a_sockets_id_closes_it() {
    check(3, |sim| {
        let mut world = World::new(sim, &puppets(), 2);
        let path = |name| format!("/socket/websocket?vsn=2.0.0&as={name}");
        let seven: Vec<_> = (0..6).map(|_| world.open(&path("7"), "")).collect();
        let eight = world.open(&path("8"), "");
        world.text(eight, r#"["1","1","puppet:a","phx_join",{}]"#);
        world.next(eight);
        world.text(eight, r#"["1","2","puppet:a","who",{}]"#);
        world.expect(
            eight,
            r#"["1","2","puppet:a","phx_reply",{"status":"ok","response":{"name":"8"}}]"#,
        );
        world.text(eight, r#"["1","3","puppet:a","poke",{}]"#);
        world.wait(Duration::from_secs(1));
        assert_eq!(world.try_next(seven[0]), None, "only `disconnect` means something");
        world.text(eight, r#"["1","4","puppet:a","kick",{}]"#);
        for client in seven {
            assert_eq!(world.next(client), Got::Close(Some(1001)));
        }
        world.text(eight, r#"["1","5","puppet:a","ask",{}]"#);
        world.expect(eight, r#"["1","5","puppet:a","phx_reply",{"status":"ok","response":{}}]"#);
    });
}

#[test]
fn a_server_that_drains_tells_every_client_to_come_back_later() {
    transcript(
        &puppets(),
        r#"
        a > ["1","1","puppet:heard","phx_join",{}]
        a < ["1","1","puppet:heard","phx_reply",{"status":"ok","response":{}}]
        b > ["1","1","puppet:a","phx_join",{}]
        b < ["1","1","puppet:a","phx_reply",{"status":"ok","response":{}}]
        drain
        a x 1012
        b x 1012
        "#,
    );
}

#[test]
fn a_client_that_may_not_connect_gets_the_reason() {
    let channels = puppets().host("example.com");
    let limited =
        puppets().check_origin(CheckOrigin::List(vec!["//*.example.org".parse().unwrap()]));
    let agreed = puppets().subprotocols(&["mqtt"]);
    check(3, |sim| {
        let ask = |channels, request: &str, status, body: &str| {
            let mut sim = Sim::new(sim.seed());
            let mut world = World::new(&mut sim, channels, 1);
            let client = world.connect();
            world.request(client, request);
            assert_eq!(world.answer(client), (status, body.to_owned()), "{request}");
        };
        let path = "/socket/websocket?vsn=2.0.0";
        ask(&channels, &upgrade("/socket/websocket", ""), 101, "");
        ask(&channels, &upgrade(path, ""), 101, "");
        ask(&channels, &upgrade("/socket/websocket?vsn=2.0.7", ""), 101, "");
        ask(&channels, &upgrade("/socket/websocket?vsn=3.0.0", ""), 403, "");
        ask(&channels, &upgrade("/socket/websocket?vsn=2", ""), 403, "");
        ask(&channels, &upgrade("/socket/websocket?as=stranger", ""), 403, "");
        ask(&channels, &upgrade("/socket/websocket?as=too-many", ""), 429, "later");
        ask(&channels, &upgrade("/socket/elsewhere", ""), 404, "");
        ask(&channels, &upgrade(path, "origin: http://example.com\n"), 101, "");
        ask(&channels, &upgrade(path, "origin: https://example.com:7\n"), 101, "");
        ask(&channels, &upgrade(path, "origin: http://evil.org\n"), 403, "");
        ask(&limited, &upgrade(path, "origin: http://a.example.org\n"), 101, "");
        ask(&limited, &upgrade(path, "origin: http://example.com\n"), 403, "");
        ask(&channels, &upgrade(path, "sec-websocket-protocol: mqtt\n"), 101, "");
        ask(&agreed, &upgrade(path, "sec-websocket-protocol: amqp, mqtt\n"), 101, "");
        ask(&agreed, &upgrade(path, "sec-websocket-protocol: amqp\n"), 403, "");
        ask(&channels, "GET /socket/websocket HTTP/1.1\nhost: example.com\n\n", 400, "");
        ask(
            &channels,
            "POST /socket/websocket HTTP/1.1\nhost: example.com\ncontent-length: 0\n\n",
            400,
            "",
        );
    });
}

#[test]
fn what_happens_is_counted() {
    check(3, |sim| {
        let mut world = World::new(sim, &puppets(), 2);
        let client = world.open("/socket/websocket?vsn=2.0.0", "");
        for (topic, event) in [
            ("puppet:a", "phx_join"),
            ("puppet:b", "phx_join"),
            ("puppet:no", "phx_join"),
            ("nowhere", "phx_join"),
            ("puppet:panic", "phx_join"),
            ("puppet:b", "panic"),
        ] {
            world.text(client, &format!(r#"["1","1","{topic}","{event}",{{}}]"#));
            world.next(client);
        }
        let refused = world.connect();
        world.request(refused, &upgrade("/socket/websocket?vsn=2.0.0&as=stranger", ""));
        world.answer(refused);
        let bad = world.open("/socket/websocket?vsn=2.0.0", "");
        world.text(bad, "no json");
        world.next(bad);
        let poll = world.connect();
        world.request(poll, "GET /socket/longpoll HTTP/1.1\nhost: example.com\n\n");
        world.answer(poll);
        let counters = world.counters();
        assert_eq!((counters.channels, counters.joins, counters.joins_refused), (1, 2, 3));
        assert_eq!((counters.channel_crashes, counters.connects_refused), (2, 1));
        assert_eq!((counters.bad_messages, counters.poll_sessions), (1, 1));
        world.wait(Duration::from_secs(90));
        let counters = world.counters();
        assert_eq!((counters.channels, counters.poll_sessions, counters.open), (0, 0, 0));
        assert_eq!((counters.memberships, counters.topics, counters.idle_timeouts), (0, 0, 1));
    });
}

#[test]
fn a_token_may_hide_among_the_subprotocols() {
    let channels = puppets().auth_token(true).connect(|connect| match connect.auth_token() {
        Some("secret ?>") => Ok(ConnectGrant::default().with_assigns("ann".to_owned())),
        Some(_) => Err(ConnectRefusal::status(401)),
        None => Ok(ConnectGrant::default()),
    });
    check(3, |sim| {
        let ask = |protocols: &str| {
            let mut sim = Sim::new(sim.seed());
            let mut world = World::new(&mut sim, &channels, 1);
            let client = world.connect();
            let header = format!("sec-websocket-protocol: {protocols}\n");
            world.request(client, &upgrade("/socket/websocket?vsn=2.0.0", &header));
            let Got::Answer(head, _) = world.next(client) else { panic!("no answer") };
            let agreed =
                head.lines().find_map(|line| line.strip_prefix("sec-websocket-protocol: "));
            (head[9..12].to_owned(), agreed.map(str::to_owned))
        };
        let agreed =
            |status: &str, agreed: Option<&str>| (status.to_owned(), agreed.map(str::to_owned));
        // Both alphabets of base64, with its padding and without.
        for token in ["c2VjcmV0ID8+", "c2VjcmV0ID8-"] {
            let protocols = format!("phoenix, base64url.bearer.phx.{token}");
            assert_eq!(ask(&protocols), agreed("101", Some("phoenix")));
        }
        assert_eq!(ask("phoenix, base64url.bearer.phx.b3RoZXI"), agreed("401", None));
        assert_eq!(ask("phoenix, base64url.bearer.phx.b3RoZXI="), agreed("401", None));
        assert_eq!(ask("phoenix, base64url.bearer.phx.!"), agreed("403", None));
        assert_eq!(ask("phoenix"), agreed("101", Some("phoenix")));
        assert_eq!(ask("mqtt"), agreed("403", None));
    });
}

#[test]
fn who_offers_to_inflate_gets_what_is_long_compressed() {
    let long = "long ".repeat(100);
    check(3, |sim| {
        let mut world = World::new(sim, &puppets().deflate(true), 2);
        let offer = "sec-websocket-extensions: permessage-deflate; client_max_window_bits\n";
        let clients =
            [offer, "", offer].map(|offer| world.open("/socket/websocket?vsn=2.0.0", offer));
        let got = |index: usize, text: &str| match index {
            1 => Got::Text(text.to_owned()),
            _ => Got::Deflated(text.to_owned()),
        };
        for (index, client) in clients.into_iter().enumerate() {
            let hello = format!(r#"{{"hello":"{long}"}}"#);
            world.text(client, &format!(r#"["1","1","puppet:a","phx_join",{hello}]"#));
            let joined =
                format!(r#"["1","1","puppet:a","phx_reply",{{"status":"ok","response":{hello}}}]"#);
            assert_eq!(world.next(client), got(index, &joined));
        }
        for n in 0..3 {
            world.text(clients[n], &format!(r#"["1","2","puppet:a","all",{{"{long}":{n}}}]"#));
            for (index, client) in clients.into_iter().enumerate() {
                let said = format!(r#"[null,null,"puppet:a","said",{{"{long}":{n}}}]"#);
                assert_eq!(world.next(client), got(index, &said));
            }
        }
    });
}
