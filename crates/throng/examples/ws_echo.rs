//! A WebSocket server that sends back each message:
//! `cargo run --example ws_echo -- 127.0.0.1:5555`.

use throng::{Message, Peer, Server, WebSocketHandler};

struct Echo;

impl WebSocketHandler for Echo {
    type State = ();

    fn message(&mut self, peer: &mut Peer<'_, Self>, message: Message<'_>) {
        peer.send(message);
    }
}

fn main() -> throng::Result {
    let address = std::env::args().nth(1).unwrap_or("127.0.0.1:5555".into());
    Server::bind(address)
        .web_socket(|| Echo)
        .on_listening(|address| println!("listening on ws://{address}"))
        .run()
}
