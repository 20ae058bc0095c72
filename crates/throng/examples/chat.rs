//! A chat with rooms and names, over WebSockets. `/room?name=ann` enters `room` as `ann`:
//! `cargo run --example chat -- 127.0.0.1:5555`.

use std::sync::Arc;

use throng::{
    ConnectRefusal, DisconnectReason, Message, Peer, Request, Server, WebSocketHandler,
    WebSocketOptions,
};

struct Chat;

/// A member: its name, and the room that it is in.
#[derive(Default)]
struct Member {
    name: String,
    room: Arc<str>,
}

impl WebSocketHandler for Chat {
    type State = Member;

    fn connect(
        &mut self,
        request: &Request<'_>,
        member: &mut Member,
    ) -> Result<(), ConnectRefusal> {
        let mut pairs = request.query().unwrap_or_default().split('&');
        let name = pairs.find_map(|pair| pair.strip_prefix("name="));
        let Some(name) = name.filter(|name| !name.is_empty()) else {
            let body = "say who you are: /room?name=ann\n";
            return Err(ConnectRefusal::status(400).with_body(body));
        };
        *member = Member { name: name.to_owned(), room: request.path().into() };
        Ok(())
    }

    fn open(&mut self, peer: &mut Peer<'_, Self>) {
        let (room, text) = line(peer, "is here");
        peer.subscribe(&room);
        peer.publish(room, &text);
    }

    fn message(&mut self, peer: &mut Peer<'_, Self>, message: Message<'_>) {
        match message {
            Message::Text(text) => {
                let (room, text) = line(peer, text);
                peer.publish(room, &text);
            }
            // 1003: a kind of data that this server does not take.
            Message::Binary(_) => peer.close(1003, "text only"),
        }
    }

    fn closed(&mut self, peer: &mut Peer<'_, Self>, _why: DisconnectReason) {
        let (room, text) = line(peer, "has left");
        peer.publish_to_others(room, &text);
    }
}

/// Returns the member's room, and a line of the chat.
fn line(peer: &mut Peer<'_, Chat>, text: &str) -> (Arc<str>, String) {
    let member = peer.state();
    (Arc::clone(&member.room), format!("{}: {text}", member.name))
}

fn main() -> throng::Result {
    let address = std::env::args().nth(1).unwrap_or("127.0.0.1:5555".into());
    let options = WebSocketOptions { deflate: true, ..WebSocketOptions::default() };
    Server::bind(address)
        .web_socket_with(options, || Chat)
        .on_listening(|address| println!("listening on ws://{address}/room?name=ann"))
        .run()
}
