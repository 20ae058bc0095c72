//! The chat on real sockets.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;

use throng_server::kinds::Chat;
use throng_server::pubsub::{Policy, TopicRules};
use throng_server::{AcceptTopology, RunningServer, ServerOptions};
use throng_server::{WebSocketOptions, WebSockets};

use crate::client::Client;
use crate::support::{PATIENCE, connect, eventually, options, snapshot};

/// Returns the bytes of the next message.
fn receive(client: &mut Client) -> Vec<u8> {
    client.text().into_bytes()
}

fn start(options: ServerOptions, chat: WebSocketOptions) -> RunningServer<WebSockets<Chat>> {
    RunningServer::start(options, move |_| Chat::handler(chat.clone())).unwrap()
}

#[test]
fn every_client_receives_every_message_over_cores_and_in_order() {
    let server = start(options(AcceptTopology::Reuseport, 3), WebSocketOptions::default());
    let mut clients: Vec<_> = (0..20).map(|_| Client::of_chat(server.addr())).collect();
    eventually("all are members", || snapshot(&server).counters.memberships == 20);
    for number in 0..50u8 {
        clients[3].say(&[b'a', number]);
        clients[11].say(&[b'b', number]);
    }
    for client in &mut clients {
        let received: Vec<_> = (0..100).map(|_| receive(client)).collect();
        for who in [b'a', b'b'] {
            let theirs = received.iter().filter(|said| said[0] == who).map(|said| said[1]);
            assert_eq!(theirs.collect::<Vec<_>>(), (0..50).collect::<Vec<u8>>());
        }
    }
    let counters = snapshot(&server).counters;
    assert_eq!((counters.published, counters.fanned_out), (100, 2_000));
    assert_eq!(counters.publishes_received, 200);
    assert!(counters.fanout_writes <= counters.fanned_out);
    drop(clients);
    eventually("all have left", || snapshot(&server).counters.memberships == 0);
}

#[test]
fn a_request_that_is_no_upgrade_gets_the_reason() {
    let server = start(options(AcceptTopology::Reuseport, 1), WebSocketOptions::default());
    let mut stream = connect(server.addr());
    stream.write_all(b"GET / HTTP/1.1\r\nHost: chat\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 426 "), "{answer}");
    assert!(answer.contains("WebSocket"), "{answer}");
}

#[test]
fn a_client_that_sends_too_much_gets_the_close_frame_however_much_is_still_in_flight() {
    let server = start(options(AcceptTopology::Reuseport, 1), WebSocketOptions::default());
    let mut loud = Client::of_chat(server.addr());
    let mut others = [Client::of_chat(server.addr()), Client::of_chat(server.addr())];
    // A frame of 16 MiB, all of which is sent before anything is read.
    loud.stream.write_all(&[0x82, 0xff, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]).unwrap();
    (0..256).for_each(|_| loud.stream.write_all(&[0; 65_536]).expect("the server takes it"));
    let (opcode, payload) = loud.next();
    assert_eq!((opcode, &payload[..2]), (8, &1009u16.to_be_bytes()[..]));
    assert_eq!(loud.stream.read(&mut [0; 1]).expect("it is not reset"), 0);
    // It has left the room, although it has not closed.
    others[0].say(b"what was that?");
    others.iter_mut().for_each(|other| assert_eq!(receive(other), b"what was that?"));
    assert_eq!(snapshot(&server).counters.open, 3);
    drop(loud);
    eventually("it has left", || snapshot(&server).counters.open == 2);
    assert_eq!(snapshot(&server).counters.resets, 0);
}

#[test]
fn a_server_that_ends_sends_a_close_frame_and_lets_every_client_finish() {
    let server = start(options(AcceptTopology::Reuseport, 2), WebSocketOptions::default());
    let mut clients: Vec<_> = (0..5).map(|_| Client::of_chat(server.addr())).collect();
    std::thread::scope(|scope| {
        let drain = scope.spawn(|| server.drain(PATIENCE));
        for client in &mut clients {
            let (opcode, payload) = client.next();
            assert_eq!((opcode, &payload[..2]), (8, &1001u16.to_be_bytes()[..]));
            // The answer, masked with zeros.
            client.stream.write_all(&[0x88, 0x82, 0, 0, 0, 0, 3, 0xe9]).unwrap();
            assert!(is_cut_off(&mut client.stream));
        }
        assert!(drain.join().unwrap(), "no connection had to be closed");
    });
}

/// Lets one of `clients` send this many messages, and checks that all of them receive each.
fn talk(clients: &mut [Client], said: &[u8], times: usize) {
    for _ in 0..times {
        clients[0].say(said);
        for client in clients.iter_mut() {
            assert_eq!(receive(client), said);
        }
    }
}

#[test]
fn a_client_that_stops_reading_slows_no_other_and_meets_its_policy() {
    for policy in Policy::ALL {
        let options =
            ServerOptions { sndbuf_bytes: Some(16 << 10), ..options(AcceptTopology::Reuseport, 2) };
        let rules = TopicRules { policy, queue_bytes_max: 100_000, ..TopicRules::default() };
        let server = start(options, WebSocketOptions { rules, ..WebSocketOptions::default() });
        let mut clients: Vec<_> = (0..10).map(|_| Client::of_chat(server.addr())).collect();
        let said = [b'x'; 20_000];
        let mut idle = Client::of_chat(server.addr());
        eventually("all are members", || snapshot(&server).counters.memberships == 11);
        // More than the socket's buffers hold, which on loopback are several MB. A server that
        // waited for this client would wait forever.
        eventually("its queue is full", || {
            talk(&mut clients, &said, 30);
            let counters = snapshot(&server).counters;
            let lost = counters.dropped_newest + counters.dropped_oldest + counters.replaced;
            lost + counters.slow_closed > 20 || counters.slow_closed == 1
        });
        talk(&mut clients, &said, 30);
        let counters = snapshot(&server).counters;
        let is_its_own = match policy {
            Policy::DropNewest => counters.dropped_newest > 0,
            Policy::DropOldest => counters.dropped_oldest > 0,
            Policy::KeepLatest => counters.replaced > 0,
            Policy::Close => counters.slow_closed == 1 && counters.memberships == 10,
        };
        assert!(is_its_own, "{policy}: {counters:?}");
        if policy == Policy::Close {
            assert!(is_cut_off(&mut idle.stream));
        } else {
            // It reads again, and receives whole frames.
            (0..5).for_each(|_| assert_eq!(receive(&mut idle), said));
        }
    }
}

/// Reads until the peer has reset or closed the connection.
fn is_cut_off(stream: &mut TcpStream) -> bool {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    loop {
        match stream.read(&mut [0; 65_536]) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) => return error.kind() == ErrorKind::ConnectionReset,
        }
    }
}
