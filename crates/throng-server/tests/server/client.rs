//! A client over a WebSocket, of the chat or of channels.

use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use serde_json::{Value, json};

use crate::wire;

pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    received: Vec<u8>,
}

impl Client {
    pub(crate) fn of_chat(server: impl ToSocketAddrs) -> Self {
        Self::open(server, "/")
    }

    pub(crate) fn of_channels(server: impl ToSocketAddrs) -> Self {
        Self::open(server, "/socket/websocket?vsn=2.0.0")
    }

    fn open(server: impl ToSocketAddrs, path: &str) -> Self {
        let mut stream = TcpStream::connect(server).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.set_nodelay(true).unwrap();
        let request = wire::HANDSHAKE.replace("/any/path", path);
        stream.write_all(request.as_bytes()).unwrap();
        let mut client = Self { stream, received: Vec::new() };
        let head = client.until(wire::take_head);
        assert!(head.contains(wire::ACCEPT), "{head}");
        client
    }

    pub(crate) fn say(&mut self, payload: &[u8]) {
        self.stream.write_all(&wire::text(payload)).unwrap();
    }

    /// Returns the next frame: its opcode and its payload.
    pub(crate) fn next(&mut self) -> (u8, Vec<u8>) {
        self.until(wire::take)
    }

    pub(crate) fn text(&mut self) -> String {
        let (opcode, payload) = self.next();
        assert_eq!(opcode, 1, "{payload:?}");
        String::from_utf8(payload).unwrap()
    }

    /// Returns the code and the reason of the close frame that comes next.
    pub(crate) fn close(&mut self) -> (u16, String) {
        let (opcode, payload) = self.next();
        assert_eq!(opcode, 8, "{payload:?}");
        let (code, reason) = payload.split_first_chunk().unwrap();
        (u16::from_be_bytes(*code), String::from_utf8(reason.to_vec()).unwrap())
    }

    /// Joins a topic of channels.
    pub(crate) fn join(&mut self, topic: &str, payload: Value) {
        self.say(json!(["1", "1", topic, "phx_join", payload]).to_string().as_bytes());
        let reply = self.event("phx_reply");
        assert_eq!(reply["status"], "ok", "{reply}");
    }

    pub(crate) fn push(&mut self, topic: &str, event: &str, payload: Value) {
        self.say(json!(["1", "2", topic, event, payload]).to_string().as_bytes());
    }

    /// Returns the payload of the next event of this name. Others before it are skipped.
    pub(crate) fn event(&mut self, name: &str) -> Value {
        loop {
            let message: Value = serde_json::from_str(&self.text()).unwrap();
            if message[3] == name {
                return message[4].clone();
            }
        }
    }

    fn until<T>(&mut self, take: fn(&mut Vec<u8>) -> Option<T>) -> T {
        loop {
            if let Some(taken) = take(&mut self.received) {
                return taken;
            }
            let mut buffer = [0; 4_096];
            let count = self.stream.read(&mut buffer).expect("the server answers");
            assert!(count > 0, "the server has closed");
            self.received.extend(&buffer[..count]);
        }
    }
}
