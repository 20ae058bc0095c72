//! A bus that is away, and names that are none.

use std::sync::Arc;

use throng_bus::{BusError, MemoryBus};
use throng_server::kinds::Chat;
use throng_server::{
    AcceptTopology, RunningServer, SharedTopics, StartError, WebSocketOptions, WebSockets,
};

use super::nodes::{chat, settle};
use crate::client::Client;
use crate::support::{eventually, options, snapshot};

#[test]
fn without_the_bus_each_node_goes_on_alone_and_counts_what_does_not_cross() {
    let bus = MemoryBus::new();
    let servers = [chat(&bus, "one"), chat(&bus, "two")];
    let mut clients = [0, 1].map(|n: usize| Client::of_chat(servers[n].addr()));
    servers.iter().for_each(|server| settle(server, 1, 1));
    bus.set_reachable(false);
    clients[0].say(b"alone");
    assert_eq!(clients[0].text(), "alone");
    eventually("it is counted", || snapshot(&servers[0]).counters.bus_dropped == 1);
    bus.set_reachable(true);
    clients[0].say(b"together");
    assert_eq!(clients[0].text(), "together");
    assert_eq!(clients[1].text(), "together", "what was said meanwhile is not repeated");
    assert_eq!(snapshot(&servers[1]).counters.bus_received, 1);
}

#[test]
fn a_subscription_that_the_bus_refused_begins_when_it_is_back() {
    let bus = MemoryBus::new();
    let servers = [chat(&bus, "one"), chat(&bus, "two")];
    servers.iter().for_each(|server| settle(server, 1, 0));
    bus.set_reachable(false);
    let mut clients = [0, 1].map(|n: usize| Client::of_chat(servers[n].addr()));
    eventually("it is a member", || snapshot(&servers[1]).counters.memberships == 1);
    bus.set_reachable(true);
    servers.iter().for_each(|server| settle(server, 1, 1));
    clients[0].say(b"hello");
    assert_eq!(clients[1].text(), "hello");
}

#[test]
fn a_name_that_is_none_is_refused() {
    let bus = Arc::new(MemoryBus::new());
    let long = "x".repeat(65);
    for name in ["", "a.b", "a b", "*", &long] {
        let started: Result<RunningServer<WebSockets<Chat>>, _> = RunningServer::start_shared(
            options(AcceptTopology::Reuseport, 1),
            SharedTopics::new(bus.clone(), name),
            |_| Chat::handler(WebSocketOptions::default()),
        );
        let error = started.err().expect("it is no name");
        assert!(matches!(&error, StartError::Bus(BusError::Subject(_))), "{error}");
    }
}
