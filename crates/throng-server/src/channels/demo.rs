//! The application of `throng serve channels`: rooms for any client to try.

use serde_json::{Map, Value};
use throng_proto::phoenix::PhoenixPayload;
use throng_pubsub::presence::PresenceError;

use super::pattern::PatternError;
use super::{Channel, Channels, JoinRefusal, Joining, Socket, page};

/// Makes channels at `/socket` with the topics `rooms:*`, `presence:*` and `private:*`, and a chat
/// page at `/`.
///
/// # Panics
/// Never: its patterns are correct.
pub fn demo() -> Channels {
    build().unwrap_or_else(|error| panic!("{error}"))
}

fn build() -> Result<Channels, PatternError> {
    Channels::new("/socket")
        .page("/", "text/html; charset=utf-8", page::PAGE)
        .channel::<Room>("rooms:*")?
        .channel::<Lounge>("presence:*")?
        .channel::<Private>("private:*")
}

/// A room. `new_msg` and `new:msg` are broadcast to all its members; each other event tries one
/// feature.
struct Room;

impl Channel for Room {
    fn join(_joining: &mut Joining<'_>) -> Result<Self, JoinRefusal> {
        Ok(Self)
    }

    fn handle_in(&mut self, event: &str, payload: PhoenixPayload<'_>, socket: &mut Socket<'_>) {
        match event {
            "new_msg" | "new:msg" => {
                socket.broadcast(event, payload);
                socket.reply("ok", PhoenixPayload::EMPTY);
            }
            "echo" => socket.reply("ok", payload),
            "push_me" => socket.push("pushed", payload),
            "error" => socket.reply("error", PhoenixPayload::Json(r#"{"reason":"asked"}"#)),
            "crash" => panic!("a client requested this panic"),
            "stop" => socket.stop(),
            _ => {}
        }
    }
}

/// A topic with presence. The payload of the join is `{"user": key, ...}`; all other fields become
/// the meta that the other members receive. The channel keeps both until it has joined.
struct Lounge {
    user: String,
    meta: String,
}

impl Channel for Lounge {
    fn join(joining: &mut Joining<'_>) -> Result<Self, JoinRefusal> {
        let PhoenixPayload::Json(json) = joining.payload() else {
            return Err(JoinRefusal::because("a user is missing"));
        };
        let mut fields: Map<String, Value> = serde_json::from_str(json).unwrap_or_default();
        match fields.remove("user") {
            Some(Value::String(user)) => {
                let meta = Value::Object(fields).to_string();
                match joining.may_track(&user, &meta) {
                    Ok(()) => Ok(Self { user, meta }),
                    Err(PresenceError::TooLong) => {
                        Err(JoinRefusal::because("the user or its meta is too long"))
                    }
                    Err(error) => Err(JoinRefusal::because(&error.to_string())),
                }
            }
            _ => Err(JoinRefusal::because("a user is missing")),
        }
    }

    fn joined(&mut self, socket: &mut Socket<'_>) {
        // Cannot fail with AlreadyTracked: only this channel tracks the user.
        let (user, meta) = (std::mem::take(&mut self.user), std::mem::take(&mut self.meta));
        let _ = socket.track(&user, &meta);
        socket.push_presence();
    }

    fn handle_in(&mut self, _event: &str, _payload: PhoenixPayload<'_>, _socket: &mut Socket<'_>) {}
}

/// A topic that refuses all joins.
struct Private;

impl Channel for Private {
    fn join(_joining: &mut Joining<'_>) -> Result<Self, JoinRefusal> {
        Err(JoinRefusal::because("unauthorized"))
    }

    fn handle_in(&mut self, _event: &str, _payload: PhoenixPayload<'_>, _socket: &mut Socket<'_>) {}
}
