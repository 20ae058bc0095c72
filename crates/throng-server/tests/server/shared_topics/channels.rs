//! Channels over two nodes: broadcasts, presence, lost nodes and drains.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use serde_json::{Value, json};
use throng_bus::MemoryBus;

use super::nodes::{ChannelServer, CutBus, channels, settle};
use crate::client::Client;
use crate::support::{eventually, snapshot};

const TOPIC: &str = "presence:lobby";

/// Returns a client in the topic.
fn member(server: &ChannelServer, payload: Value) -> Client {
    let mut client = Client::of_channels(server.addr());
    client.join(TOPIC, payload);
    client
}

/// Returns the keys that a new client finds in the list.
fn present(server: &ChannelServer, key: &str) -> BTreeSet<String> {
    let mut client = member(server, json!({"user": key}));
    let list = client.event("presence_state");
    list.as_object().unwrap().keys().filter(|known| *known != key).cloned().collect()
}

fn keys(payload: &Value, part: &str) -> Vec<String> {
    payload[part].as_object().unwrap().keys().cloned().collect()
}

/// Reads diffs until one has this key in this part.
fn await_diff(client: &mut Client, part: &str, key: &str) {
    while !keys(&client.event("presence_diff"), part).contains(&key.to_owned()) {}
}

#[test]
fn broadcasts_reach_the_members_on_all_nodes() {
    let bus = MemoryBus::new();
    let servers = [channels(bus.clone(), "one"), channels(bus.clone(), "two")];
    let mut clients = [0, 1, 0, 1].map(|n: usize| Client::of_channels(servers[n].addr()));
    for (client, topic) in clients.iter_mut().zip(["rooms:a", "rooms:a", "rooms:b", "rooms:b"]) {
        client.join(topic, json!({}));
    }
    servers.iter().for_each(|server| settle(server, 1, 2));
    for n in 0..50 {
        clients[0].push("rooms:a", "new_msg", json!({"n": n}));
        clients[3].push("rooms:b", "new_msg", json!({"n": n}));
    }
    for client in &mut clients {
        for n in 0..50 {
            assert_eq!(client.event("new_msg"), json!({"n": n}));
        }
    }
    let handle = servers[0].handle();
    let payload = throng_server::channels::PhoenixPayload::Json("{}");
    assert!(handle.broadcast("rooms:b", "news", payload));
    clients[3].event("news");
}

#[test]
fn presence_is_that_of_all_nodes() {
    let bus = MemoryBus::new();
    let one = channels(bus.clone(), "one");
    let mut ann = member(&one, json!({"user": "ann", "age": 7}));
    ann.event("presence_state");
    // A node that joins later gets the whole state.
    let two = channels(bus.clone(), "two");
    settle(&two, 1, 0);
    eventually("the node has the state", || present(&two, "a visitor").contains("ann"));
    let mut bob = member(&two, json!({"user": "bob"}));
    let list = bob.event("presence_state");
    assert_eq!(list["ann"]["metas"][0]["age"], 7, "{list}");
    await_diff(&mut ann, "joins", "bob");
    bob.say(json!(["1", "3", TOPIC, "phx_leave", {}]).to_string().as_bytes());
    await_diff(&mut ann, "leaves", "bob");
}

#[test]
fn a_node_that_ends_takes_its_members_with_it_and_one_that_starts_again_brings_new_ones() {
    let bus = MemoryBus::new();
    let (one, two) = (channels(bus.clone(), "one"), channels(bus.clone(), "two"));
    settle(&one, 1, 0);
    let node = one.inspect(1).node.unwrap();
    assert_eq!((&*node.name, &node.others[..]), ("one", &["two".to_owned()][..]));
    let mut ann = member(&one, json!({"user": "ann"}));
    let _bob = member(&two, json!({"user": "bob"}));
    await_diff(&mut ann, "joins", "bob");
    assert!(two.stop());
    await_diff(&mut ann, "leaves", "bob");
    let two = channels(bus.clone(), "two");
    let _eve = member(&two, json!({"user": "eve"}));
    await_diff(&mut ann, "joins", "eve");
    eventually("the new node has the state", || present(&two, "a visitor").contains("ann"));
}

#[test]
fn the_members_of_a_silent_node_leave_and_come_back_with_it() {
    let bus = MemoryBus::new();
    let cut = CutBus::new(&bus);
    let (one, two) = (channels(bus.clone(), "one"), channels(cut.clone(), "two"));
    settle(&one, 1, 0);
    let mut ann = member(&one, json!({"user": "ann"}));
    let _bob = member(&two, json!({"user": "bob"}));
    await_diff(&mut ann, "joins", "bob");
    cut.is_cut.store(true, SeqCst);
    await_diff(&mut ann, "leaves", "bob");
    assert_eq!(snapshot(&one).counters.nodes, 0);
    // What it changed meanwhile is not lost either.
    let _eve = member(&two, json!({"user": "eve"}));
    cut.is_cut.store(false, SeqCst);
    await_diff(&mut ann, "joins", "eve");
    let all = ["ann", "bob", "eve"].map(String::from).into();
    eventually("each core knows all", || present(&one, "a visitor") == all);
    let events: Vec<String> = one.events().iter().map(|event| event.kind.to_string()).collect();
    let lost = "the node two is silent: its members have left";
    assert_eq!(events.iter().filter(|event| **event == lost).count(), 1, "{events:?}");
}

#[test]
fn changes_that_the_bus_has_lost_are_found_out() {
    let bus = MemoryBus::new();
    let cut = CutBus::new(&bus);
    let (one, two) = (channels(bus.clone(), "one"), channels(cut.clone(), "two"));
    settle(&one, 1, 0);
    let mut ann = member(&one, json!({"user": "ann"}));
    cut.is_cut.store(true, SeqCst);
    let mut bob = member(&two, json!({"user": "bob"}));
    bob.event("presence_state");
    cut.is_cut.store(false, SeqCst);
    await_diff(&mut ann, "joins", "bob");
}

#[test]
fn a_node_that_drains_tells_its_clients_where_to_go() {
    let bus = MemoryBus::new();
    let (one, two) = (channels(bus.clone(), "one"), channels(bus.clone(), "two"));
    settle(&one, 1, 0);
    let mut client = Client::of_channels(one.addr());
    client.join("rooms:a", json!({}));
    std::thread::scope(|scope| {
        scope.spawn(|| one.drain(Duration::from_secs(60)));
        let message: Value = serde_json::from_str(&client.text()).unwrap();
        let nodes = json!({"nodes": [two.addr().to_string()]});
        assert_eq!(message, json!([null, null, "phoenix", "drain", nodes]));
        assert_eq!(client.close().0, 1012);
        drop(client);
    });
}
