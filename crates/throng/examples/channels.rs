//! Phoenix Channels: a room in which each message goes to all, for any client of Phoenix:
//! `cargo run --example channels -- 127.0.0.1:4000`.

use throng::Server;
use throng::channels::{Channel, Channels, JoinRefusal, Joining, PhoenixPayload, Socket};

struct Room;

impl Channel for Room {
    fn join(joining: &mut Joining<'_>) -> Result<Self, JoinRefusal> {
        match joining.topic() {
            "rooms:secret" => Err(JoinRefusal::because("members only")),
            _ => Ok(Self),
        }
    }

    fn handle_in(&mut self, event: &str, payload: PhoenixPayload<'_>, socket: &mut Socket<'_>) {
        if event == "new_msg" {
            socket.broadcast(event, payload);
            socket.reply("ok", PhoenixPayload::EMPTY);
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args().nth(1).unwrap_or("127.0.0.1:4000".into());
    let channels = Channels::new("/socket").channel::<Room>("rooms:*")?;
    Server::bind(address)
        .channels(channels)
        .on_listening(|address| println!("listening on ws://{address}/socket/websocket"))
        .run()?;
    Ok(())
}
