//! Two `throng serve channels` that share topics over a real `nats-server`: clients of both, and a
//! restart of one of them.

use std::collections::BTreeSet;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::client::Client;
use crate::nats_server::NatsServer;
use crate::process::{Serving, TestDir, eventually};

/// Returns a client that has joined a topic.
fn member(server: &Serving, topic: &str, payload: Value) -> Client {
    let mut client = Client::of_channels(&server.addr);
    client.join(topic, payload);
    client
}

/// Waits until a server knows so many other nodes and has so many topics of the bus.
fn settle(place: &TestDir, server: &Serving, nodes: u64, subscriptions: u64) {
    let pid = server.process.pid().to_string();
    eventually("the node knows the others and is subscribed", || {
        let snapshot = place.throng(&["ctl", "snapshot", "--pid", &pid]).exits_with(0).json();
        let counters = &snapshot["counters"];
        (&counters["nodes"], &counters["bus_subscriptions"])
            == (&json!(nodes), &json!(subscriptions))
    });
}

/// Lets the first client of each node say numbered messages; every client must receive each of them
/// once and in order.
fn assert_all_receive(rooms: &mut [&mut Vec<Client>], round: u32) {
    let nodes = rooms.len();
    for number in 0..MESSAGES {
        for (node, clients) in rooms.iter_mut().enumerate() {
            let payload = json!({"round": round, "node": node, "number": number});
            clients[0].push("rooms:a", "new_msg", payload);
        }
    }
    for client in rooms.iter_mut().flat_map(|clients| clients.iter_mut()) {
        let mut received = vec![Vec::new(); nodes];
        for _ in 0..nodes * MESSAGES {
            let said = client.event("new_msg");
            assert_eq!(said["round"], round, "a message of the round before came twice");
            received[said["node"].as_u64().unwrap() as usize].push(said["number"].clone());
        }
        let expected: Vec<Value> = (0..MESSAGES).map(|number| json!(number)).collect();
        assert!(received.iter().all(|numbers| *numbers == expected), "{received:?}");
    }
}

#[test]
fn two_nodes_are_one_while_one_of_them_restarts_and_after_it_was_killed() {
    let Some(nats) = NatsServer::start() else { return };
    let bus = format!("nats://127.0.0.1:{}", nats.port());
    let place = TestDir::new();
    let serve = |name: &str| place.serve(&["channels", "--bus", &bus, "--node", name]);
    let room = |server: &Serving| -> Vec<Client> {
        (0..CLIENTS).map(|_| member(server, "rooms:a", json!({}))).collect()
    };
    let (one, two) = (serve("one"), serve("two"));
    assert_eq!(one.hello["node"], "one");
    let (mut here, mut there) = (room(&one), room(&two));
    settle(&place, &one, 1, 1);
    settle(&place, &two, 1, 1);
    assert_all_receive(&mut [&mut here, &mut there], 1);

    // A restart in order: its clients learn where to go, and the others miss nothing.
    let mut ann = member(&one, "presence:lobby", json!({"user": "ann"}));
    let bob = member(&two, "presence:lobby", json!({"user": "bob"}));
    while !ann.event("presence_diff")["joins"].as_object().unwrap().contains_key("bob") {}
    two.process.signal(Signal::TERM);
    for client in &mut there {
        assert_eq!(client.event("drain"), json!({"nodes": [one.addr]}));
        assert_eq!(client.close().0, 1012);
    }
    drop((there, bob));
    two.process.finish().exits_with(0);
    while !ann.event("presence_diff")["leaves"].as_object().unwrap().contains_key("bob") {}
    assert_all_receive(&mut [&mut here], 2);
    let two = serve("two");
    let mut there = room(&two);
    settle(&place, &one, 1, 2);
    settle(&place, &two, 1, 1);
    assert_all_receive(&mut [&mut here, &mut there], 3);

    // A kill: its members leave within a bounded time, and the rest goes on.
    let eve = member(&two, "presence:lobby", json!({"user": "eve"}));
    while !ann.event("presence_diff")["joins"].as_object().unwrap().contains_key("eve") {}
    two.process.signal(Signal::KILL);
    while !ann.event("presence_diff")["leaves"].as_object().unwrap().contains_key("eve") {}
    drop((there, eve));
    assert_all_receive(&mut [&mut here], 4);

    let mut visitor = member(&one, "presence:lobby", json!({"user": "visitor"}));
    let list = visitor.event("presence_state");
    let present: BTreeSet<&String> = list.as_object().unwrap().keys().collect();
    assert_eq!(present, [&"ann".to_owned(), &"visitor".to_owned()].into());
}

const CLIENTS: usize = 10;
const MESSAGES: usize = 100;
