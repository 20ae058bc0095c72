//! The chat over two nodes.

use std::time::Duration;

use throng_bus::MemoryBus;

use super::nodes::{chat, chat_of_group, settle};
use crate::client::Client;
use crate::support::{eventually, snapshot};

#[test]
fn every_client_of_each_node_receives_every_message_once_and_in_order() {
    let bus = MemoryBus::new();
    let servers = [chat(&bus, "one"), chat(&bus, "two")];
    let mut clients: Vec<Client> =
        (0..12).map(|n| Client::of_chat(servers[n % 2].addr())).collect();
    for server in &servers {
        eventually("all are members", || snapshot(server).counters.memberships == 6);
        settle(server, 1, 1);
    }
    let writers = [0, 1, 7];
    for number in 0..100 {
        for writer in writers {
            clients[writer].say(format!("{writer}:{number}").as_bytes());
        }
    }
    for client in &mut clients {
        let received: Vec<_> = (0..300).map(|_| client.text()).collect();
        for writer in writers {
            let theirs =
                received.iter().filter_map(|said| said.strip_prefix(&format!("{writer}:")));
            let expected: Vec<String> = (0..100).map(|number: u32| number.to_string()).collect();
            assert_eq!(theirs.collect::<Vec<_>>(), expected);
        }
    }
    for (server, own) in servers.iter().zip([100, 200]) {
        let counters = snapshot(server).counters;
        assert_eq!((counters.published, counters.bus_published), (own, own));
        assert_eq!((counters.bus_received, counters.fanned_out), (300 - own, 1_800));
        // Each core gets what other nodes say once, and what the other core says.
        assert_eq!(counters.publishes_received, 2 * (300 - own) + own);
        let dropped = counters.bus_dropped + counters.bus_lost + counters.bus_refused;
        assert_eq!((dropped, counters.publishes_dropped), (0, 0));
    }
}

#[test]
fn groups_on_one_bus_do_not_hear_each_other() {
    let bus = MemoryBus::new();
    let here = chat(&bus, "one");
    let there = chat_of_group(&bus, "two", "other");
    let third = chat(&bus, "three");
    let mut clients = [&here, &there, &third].map(|server| Client::of_chat(server.addr()));
    settle(&here, 1, 1);
    settle(&third, 1, 1);
    settle(&there, 0, 1);
    clients[1].say(b"to the others of my group");
    assert_eq!(clients[1].text(), "to the others of my group");
    clients[0].say(b"hello");
    assert_eq!([clients[0].text(), clients[2].text()], ["hello", "hello"]);
    assert_eq!(snapshot(&there).counters.bus_received, 0);
}

#[test]
fn a_node_that_drains_tells_its_clients_where_to_go() {
    let bus = MemoryBus::new();
    let servers = ["one", "two", "three"].map(|name| chat(&bus, name));
    servers.iter().for_each(|server| settle(server, 2, 0));
    let mut client = Client::of_chat(servers[0].addr());
    eventually("it is a member", || snapshot(&servers[0]).counters.memberships == 1);
    std::thread::scope(|scope| {
        scope.spawn(|| servers[0].drain(Duration::from_secs(60)));
        let (code, reason) = client.close();
        let [two, three] = [&servers[1], &servers[2]].map(|server| server.addr().to_string());
        let either = [format!("{two} {three}"), format!("{three} {two}")];
        let to = reason.strip_prefix("the server ends; go to ").expect(&reason).to_owned();
        assert!(code == 1001 && either.contains(&to), "{code} {reason}");
        drop(client);
    });
    // The others do not send clients to the one that drains.
    let mut second = Client::of_chat(servers[1].addr());
    eventually("it is a member", || snapshot(&servers[1]).counters.memberships == 1);
    std::thread::scope(|scope| {
        scope.spawn(|| servers[1].drain(Duration::from_secs(60)));
        let (_, reason) = second.close();
        assert_eq!(reason, format!("the server ends; go to {}", servers[2].addr()));
        drop(second);
    });
}
