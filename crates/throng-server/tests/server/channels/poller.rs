//! A client of the long-poll transport.

use std::ops::Range;

use serde_json::{Value, json};
use throng_server::channels::Channels;
use throng_sim::check_over_all;

use super::world::{Got, World};

/// A client of one session. Each of its requests has a connection of its own, to any core.
pub(crate) struct Poller {
    pub(crate) query: String,
    pub(crate) token: String,
}

impl Poller {
    pub(crate) fn new(world: &mut World<'_>, query: &str) -> Self {
        let mut poller = Self { query: query.to_owned(), token: String::new() };
        let begun = poller.poll(world);
        assert_eq!((&begun["status"], &begun["messages"]), (&json!(410), &json!([])));
        poller.token = begun["token"].as_str().unwrap().to_owned();
        poller
    }

    pub(crate) fn begin_poll(&self, world: &mut World<'_>) -> usize {
        let Self { query, token } = self;
        let client = world.connect();
        let token = if token.is_empty() { String::new() } else { format!("&token={token}") };
        let path = format!("/socket/longpoll?vsn=2.0.0{query}{token}");
        world.request(client, &format!("GET {path} HTTP/1.1\nhost: example.com\n\n"));
        client
    }

    #[track_caller]
    pub(crate) fn poll(&self, world: &mut World<'_>) -> Value {
        let client = self.begin_poll(world);
        answer(world, client)
    }

    /// Returns the messages of the next poll.
    #[track_caller]
    pub(crate) fn messages(&self, world: &mut World<'_>) -> Vec<String> {
        let got = self.poll(world);
        assert_eq!((&got["status"], &got["token"]), (&json!(200), &json!(self.token)));
        got["messages"]
            .as_array()
            .unwrap()
            .iter()
            .map(|text| text.as_str().unwrap().to_owned())
            .collect()
    }

    pub(crate) fn begin_post(
        &self,
        world: &mut World<'_>,
        content_type: &str,
        body: &str,
    ) -> usize {
        let client = world.connect();
        let (token, length) = (&self.token, body.len());
        let head = format!(
            "POST /socket/longpoll HTTP/1.1\nhost: example.com\nx-phoenix-longpoll-token: {token}\n\
            content-type: {content_type}\ncontent-length: {length}\n\n"
        );
        world.request(client, &head);
        world.send_raw(client, body.as_bytes());
        client
    }

    #[track_caller]
    pub(crate) fn post(&self, world: &mut World<'_>, body: &str) -> Value {
        let client = self.begin_post(world, "application/x-ndjson", body);
        answer(world, client)
    }

    /// Connects a WebSocket and joins it to the same puppet as this client.
    pub(crate) fn with_a_websocket(&self, world: &mut World<'_>) -> usize {
        let join = r#"["1","1","puppet:a","phx_join",{}]"#;
        self.post(world, join);
        self.messages(world);
        let bob = world.open("/socket/websocket?vsn=2.0.0", "");
        world.text(bob, join);
        world.next(bob);
        bob
    }
}

/// Lets a WebSocket broadcast each of `numbers`, and returns what each client receives.
pub(crate) fn say(world: &mut World<'_>, bob: usize, numbers: Range<u64>) -> Vec<String> {
    let say = |n| {
        world.text(bob, &format!(r#"["1","{n}","puppet:a","all",{{"n":{n}}}]"#));
        world.next(bob);
        format!(r#"[null,null,"puppet:a","said",{{"n":{n}}}]"#)
    };
    numbers.map(say).collect()
}

#[track_caller]
pub(crate) fn answer(world: &mut World<'_>, client: usize) -> Value {
    match world.next(client) {
        Got::Answer(head, body) => {
            for line in [
                "HTTP/1.1 200 ",
                "\r\ncontent-type: application/json; charset=utf-8\r\n",
                "\r\ncache-control: no-store\r\n",
                "\r\naccess-control-allow-origin: *",
            ] {
                assert!(head.contains(line), "{head}");
            }
            serde_json::from_str(&body).unwrap()
        }
        other => panic!("{other:?}"),
    }
}

/// Runs a test with few and with many cores.
pub(crate) fn on_cores(channels: &Channels, test: impl Fn(&mut World<'_>)) {
    for cores in [1, 2, 5] {
        check_over_all(4, |sim| test(&mut World::new(sim, channels, cores)));
    }
}
