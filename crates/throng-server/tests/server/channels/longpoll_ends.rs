//! The ends of long-poll sessions and of their connections, and the messages sent meanwhile.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use throng_server::CoreMessage;
use throng_server::channels::demo;
use throng_sim::{Faults, check_over_all};

use super::poller::{Poller, answer, on_cores, say};
use super::puppet::puppets;
use super::world::{Got, World};

#[test]
fn a_session_without_polls_ends_and_the_next_poll_begins_another() {
    on_cores(&puppets(), |world| {
        let bob = world.open("/socket/websocket?vsn=2.0.0", "");
        world.text(bob, r#"["1","1","puppet:b","phx_join",{}]"#);
        world.next(bob);
        let ada = Poller::new(world, "");
        ada.post(world, r#"["1","1","puppet:heard","phx_join",{}]"#);
        ada.messages(world);
        world.wait(Duration::from_secs(14));
        assert_eq!(world.try_next(bob), None);
        assert_eq!(
            ada.post(world, r#"[null,"2","phoenix","heartbeat",{}]"#),
            json!({"status": 200})
        );
        world.wait(Duration::from_secs(2));
        world.expect(bob, r#"[null,null,"puppet:b","left",{"why":"Closed"}]"#);
        assert_eq!(
            ada.post(world, r#"[null,"3","phoenix","heartbeat",{}]"#),
            json!({"status": 410})
        );
        let again = ada.poll(world);
        assert_eq!((&again["status"], &again["messages"]), (&json!(410), &json!([])));
        let new =
            Poller { query: String::new(), token: again["token"].as_str().unwrap().to_owned() };
        assert_ne!(new.token, ada.token);
        new.post(world, r#"["1","1","puppet:a","phx_join",{}]"#);
        assert_eq!(new.messages(world).len(), 1);
    });
}

#[test]
fn a_sockets_id_disconnects_its_sessions() {
    on_cores(&puppets(), |world| {
        let ada = Poller::new(world, "&as=7");
        let poll = ada.begin_poll(world);
        let bob = world.open("/socket/websocket?vsn=2.0.0&as=8", "");
        world.text(bob, r#"["1","1","puppet:a","phx_join",{}]"#);
        world.next(bob);
        world.text(bob, r#"["1","2","puppet:a","kick",{}]"#);
        let again = answer(world, poll);
        assert_eq!(again["status"], 410);
        assert_ne!(again["token"], json!(ada.token));
        assert_eq!(
            ada.post(world, r#"[null,"3","phoenix","heartbeat",{}]"#),
            json!({"status": 410})
        );
    });
}

#[test]
fn one_whose_session_ends_is_present_no_more() {
    on_cores(&demo(), |world| {
        let ada = Poller::new(world, "");
        ada.post(world, r#"["1","1","presence:x","phx_join",{"user":"ada"}]"#);
        let bob = world.open("/socket/websocket?vsn=2.0.0", "");
        world.text(bob, r#"["1","1","presence:x","phx_join",{"user":"bob"}]"#);
        world.next(bob);
        let Got::Text(list) = world.next(bob) else { panic!("no list") };
        assert!(list.contains(r#""ada":{"metas""#) && list.contains(r#""bob":{"metas""#), "{list}");
        world.next(bob);
        world.wait(Duration::from_secs(16));
        let Got::Text(diff) = world.next(bob) else { panic!("no diff") };
        assert!(diff.contains("presence_diff") && diff.contains(r#""leaves":{"ada""#), "{diff}");
    });
}

#[test]
fn an_inbox_that_no_poll_empties_ends_the_session() {
    check_over_all(3, |sim| {
        let mut world = World::new(sim, &puppets(), 2);
        let ada = Poller::new(&mut world, "");
        ada.post(&mut world, r#"["1","1","puppet:a","phx_join",{}]"#);
        ada.messages(&mut world);
        let large = "x".repeat(300_000);
        let ask = format!(r#"["1","2","puppet:a","ask",{{"x":"{large}"}}]"#);
        for _ in 0..3 {
            assert_eq!(ada.post(&mut world, &ask), json!({"status": 200}));
        }
        ada.post(&mut world, &ask);
        assert_eq!(ada.post(&mut world, &ask), json!({"status": 410}));
    });
}

#[test]
fn a_session_has_no_idle_timeout() {
    check_over_all(3, |sim| {
        let channels = puppets().poll_window(Duration::from_secs(2));
        let idle_timeout = Some(Duration::from_secs(5));
        let mut world = World::with_idle_timeout(sim, &channels, 2, idle_timeout);
        let ada = Poller::new(&mut world, "");
        for _ in 0..5 {
            let answer = ada.poll(&mut world);
            assert_eq!((&answer["status"], &answer["token"]), (&json!(204), &json!(ada.token)));
        }
    });
}

#[test]
fn a_poll_that_is_hung_up_takes_no_messages_with_it() {
    on_cores(&puppets(), |world| {
        let ada = Poller::new(world, "");
        let bob = ada.with_a_websocket(world);
        let poll = ada.begin_poll(world);
        world.wait(Duration::from_secs(1));
        world.close(poll);
        let said = say(world, bob, 2..5);
        world.wait(Duration::from_secs(1));
        assert_eq!(ada.messages(world), said);
        // The client polls no more, so the session ends in time.
        let poll = ada.begin_poll(world);
        world.wait(Duration::from_secs(1));
        world.close(poll);
        world.wait(Duration::from_secs(14));
        assert_eq!(world.counters().poll_sessions, 1);
        world.wait(Duration::from_secs(2));
        assert_eq!(world.counters().poll_sessions, 0);
    });
}

#[test]
fn a_drain_closes_connections_with_their_answers_until_the_server_listens_again() {
    check_over_all(4, |sim| {
        let mut world = World::new(sim, &puppets(), 1);
        let ada = Poller::new(&mut world, "");
        let poll = ada.begin_poll(&mut world);
        world.wait(Duration::from_secs(1));
        world.cores.send_message(0, CoreMessage::drain());
        let Got::Answer(head, body) = world.next(poll) else { panic!("no answer") };
        assert!(head.contains("\r\nconnection: close") && body.contains("410"), "{head}: {body}");
        assert_eq!(world.next(poll), Got::End);
        // A client that connects now gets the same answer.
        let late = world.connect();
        world.wait(Duration::from_millis(100));
        assert_eq!(world.try_next(late), Some(Got::End));

        world.listen();
        let ada = Poller::new(&mut world, "");
        let poll = ada.begin_poll(&mut world);
        for _ in 0..2 {
            let Got::Answer(head, body) = world.next(poll) else { panic!("no answer") };
            assert!(!head.contains("connection: close") && body.contains("204"), "{head}: {body}");
            world.wait(Duration::from_secs(1));
            assert_eq!(world.try_next(poll), None, "it stays open");
            let target = format!("/socket/longpoll?vsn=2.0.0&token={}", ada.token);
            world.request(poll, &format!("GET {target} HTTP/1.1\nhost: example.com\n\n"));
        }
    });
}

#[test]
fn a_poll_that_waits_is_answered_with_the_other_nodes_when_its_node_drains() {
    check_over_all(4, |sim| {
        let mut world = World::new(sim, &puppets(), 1);
        let ada = Poller::new(&mut world, "");
        let poll = ada.begin_poll(&mut world);
        world.wait(Duration::from_secs(1));
        let nodes: [Arc<str>; 2] = ["10.0.0.2:4000", "10.0.0.3:4000"].map(Arc::from);
        world.cores.send_message(0, CoreMessage::drain_to(Arc::new(nodes)));
        let Got::Answer(head, body) = world.next(poll) else { panic!("no answer") };
        assert!(head.contains("\r\nconnection: close"), "{head}");
        let answer: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(answer["status"], 200);
        let message: Value = serde_json::from_str(answer["messages"][0].as_str().unwrap()).unwrap();
        assert_eq!((&message[2], &message[3]), (&json!("phoenix"), &json!("drain")));
        let mut nodes: Vec<&str> =
            message[4]["nodes"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        nodes.sort_unstable();
        assert_eq!(nodes, ["10.0.0.2:4000", "10.0.0.3:4000"]);
        assert_eq!(world.next(poll), Got::End);
        assert_eq!(world.counters().poll_sessions, 0);
    });
}

#[test]
fn messages_of_an_answer_that_finds_no_connection_wait_for_the_next_poll() {
    check_over_all(20, |sim| {
        // The connection ends before the session can know of it.
        let mail_delay_max = Duration::from_millis(30);
        sim.set_faults(Faults { message_delay_max: mail_delay_max, ..Faults::none() });
        let mut world = World::new(sim, &puppets(), 3);
        let ada = Poller::new(&mut world, "");
        let bob = ada.with_a_websocket(&mut world);
        for n in 2..10 {
            let poll = ada.begin_poll(&mut world);
            world.wait(Duration::from_secs(1));
            world.hang_up(poll);
            world.wait(Duration::from_millis(1));
            let said = say(&mut world, bob, n..n + 1);
            world.wait(Duration::from_secs(1));
            assert_eq!(ada.messages(&mut world), said);
        }
    });
}
