//! A channel that executes commands.

use throng_server::channels::{
    Address, Channel, Channels, ConnectGrant, ConnectRefusal, Info, JoinRefusal, Joining,
    LeaveReason, PhoenixPayload, Reference, Socket,
};

use super::world::transcript;

pub(crate) struct Puppet {
    later: Vec<Reference>,
    address: Option<Address>,
}

impl Channel for Puppet {
    const INTERCEPT: &'static [&'static str] = &["filtered"];

    fn join(joining: &mut Joining<'_>) -> Result<Self, JoinRefusal> {
        match joining.topic() {
            "puppet:no" => return Err(JoinRefusal::because("unauthorized")),
            "puppet:no-more" => return Err(JoinRefusal::json(r#"{"left":0}"#)),
            "puppet:panic" => panic!("as asked (this is the test's)"),
            "puppet:welcome" => joining.welcome(r#"{"id":7}"#),
            _ => {}
        }
        if let PhoenixPayload::Json(json) = joining.payload()
            && json.contains("hello")
        {
            joining.welcome(json);
        }
        Ok(Self { later: Vec::new(), address: None })
    }

    fn joined(&mut self, socket: &mut Socket<'_>) {
        self.address = Some(socket.address());
        if socket.topic() == "puppet:greeting" {
            socket.push("greeting", PhoenixPayload::EMPTY);
        }
    }

    fn handle_in(&mut self, event: &str, payload: PhoenixPayload<'_>, socket: &mut Socket<'_>) {
        match event {
            "ask" => socket.reply("ok", payload),
            "ask_oddly" => socket.reply("so-so", payload),
            "push" => socket.push("pushed", payload),
            "push_then_reply" => {
                socket.push("pushed", payload);
                socket.reply("ok", PhoenixPayload::EMPTY);
            }
            "all" => socket.broadcast("said", payload),
            "others" => socket.broadcast_from("said", payload),
            "filtered" => socket.broadcast("filtered", payload),
            "elsewhere" => socket.broadcast_to("puppet:b", "said", payload),
            "kick" => socket.broadcast_to("user:7", "disconnect", PhoenixPayload::EMPTY),
            "poke" => socket.broadcast_to("user:7", "poke", PhoenixPayload::EMPTY),
            "later" => self.later.push(socket.reference()),
            "now" => socket.send_self(Box::new("answer")),
            "endless" => socket.send_self(Box::new("again")),
            "crash_later" => socket.send_self(Box::new("crash")),
            "to_address" => {
                let to = self.address.clone().expect("it has joined");
                assert!(socket.send(&to, Box::new("answer")).is_ok());
            }
            "stop" => socket.stop(),
            "stop_and_reply" => {
                socket.reply("ok", PhoenixPayload::EMPTY);
                socket.stop();
            }
            "who" => {
                let name = socket.assigns::<String>().cloned().unwrap_or_default();
                socket.reply("ok", PhoenixPayload::Json(&format!(r#"{{"name":"{name}"}}"#)));
            }
            "panic" => panic!("as asked (this is the test's)"),
            _ => {}
        }
    }

    fn handle_info(&mut self, info: Info, socket: &mut Socket<'_>) {
        match info.downcast_ref::<&str>() {
            Some(&"answer") => {
                for reference in self.later.drain(..) {
                    socket.reply_to(&reference, "ok", PhoenixPayload::Json(r#"{"late":true}"#));
                }
            }
            Some(&"again") => socket.send_self(Box::new("again")),
            _ => panic!("as asked (this is the test's)"),
        }
    }

    fn handle_out(&mut self, event: &str, payload: PhoenixPayload<'_>, socket: &mut Socket<'_>) {
        let PhoenixPayload::Json(json) = payload else { return };
        if !json.contains("secret") {
            socket.push(event, payload);
        }
    }

    fn terminate(&mut self, why: LeaveReason, socket: &mut Socket<'_>) {
        if socket.topic().ends_with("farewell") {
            socket.push("farewell", PhoenixPayload::Json(&format!(r#"{{"why":"{why:?}"}}"#)));
        }
        if socket.topic() == "puppet:heard" {
            socket.broadcast_to(
                "puppet:b",
                "left",
                PhoenixPayload::Json(&format!(r#"{{"why":"{why:?}"}}"#)),
            );
        }
    }
}

/// A channel for an exact topic pattern.
struct Exact;

impl Channel for Exact {
    fn join(_joining: &mut Joining<'_>) -> Result<Self, JoinRefusal> {
        Ok(Self)
    }

    fn handle_in(&mut self, _event: &str, _payload: PhoenixPayload<'_>, _socket: &mut Socket<'_>) {}
}

pub(crate) fn puppets() -> Channels {
    Channels::new("/socket")
        .channel::<Puppet>("puppet:*")
        .and_then(|channels| channels.channel::<Exact>("exact"))
        .unwrap()
        .connect(|connect| match connect.param("as").as_deref() {
            Some("stranger") => Err(ConnectRefusal::default()),
            Some("too-many") => Err(ConnectRefusal::status(429).with_body("later")),
            Some(name) => Ok(ConnectGrant::default()
                .with_id(format!("user:{name}"))
                .with_assigns(name.to_owned())),
            None => Ok(ConnectGrant::default()),
        })
}

/// Runs a transcript against puppets.
#[track_caller]
pub(crate) fn check(text: &str) {
    transcript(&puppets(), text);
}
