//! The application of `throng serve channels`: something for any client to try.

use throng_proto::phoenix::Payload;

use super::pattern::PatternError;
use super::{Channel, Channels, Joining, Refused, Socket, page};

/// Channels at `/socket`, topics `rooms:*`, `presence:*` and `private:*`, and a chat page at `/`.
///
/// # Panics
/// Never: its patterns are right.
pub fn demo() -> Channels {
    build().unwrap_or_else(|error| panic!("{error}"))
}

fn build() -> Result<Channels, PatternError> {
    Ok(Channels::new("/socket").channel::<Room>("rooms:*")?.channel::<Private>("private:*")?.page(
        "/",
        "text/html; charset=utf-8",
        page::PAGE,
    ))
}

/// `new_msg` and `new:msg` go to everyone in the room; the other events try out one thing each.
struct Room;

impl Channel for Room {
    fn join(_joining: &mut Joining<'_>) -> Result<Self, Refused> {
        Ok(Self)
    }

    fn handle_in(&mut self, event: &str, payload: Payload<'_>, socket: &mut Socket<'_>) {
        match event {
            "new_msg" | "new:msg" => {
                socket.broadcast(event, payload);
                socket.reply("ok", Payload::EMPTY);
            }
            "echo" => socket.reply("ok", payload),
            "push_me" => socket.push("pushed", payload),
            "error" => socket.reply("error", Payload::Json(r#"{"reason":"asked"}"#)),
            "crash" => panic!("a client asked for this"),
            "stop" => socket.stop(),
            _ => {}
        }
    }
}

/// Nobody may join.
struct Private;

impl Channel for Private {
    fn join(_joining: &mut Joining<'_>) -> Result<Self, Refused> {
        Err(Refused::because("unauthorized"))
    }

    fn handle_in(&mut self, _event: &str, _payload: Payload<'_>, _socket: &mut Socket<'_>) {}
}
