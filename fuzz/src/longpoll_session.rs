//! Long-poll sessions of a complete server in a simulated world. Each byte, with the one or two
//! that follow it, is a step of a client: open a session, join, post, poll, disconnect, leave,
//! wait, broadcast.
//!
//! The world comes from outside (`super::world`), because the server's own tests include it, too.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Value, json};
use throng_base::Instant;
use throng_server::channels::demo;
use throng_sim::{Faults, Sim};

use super::world::{Got, World, rough};

/// Checks that nothing panics and that every request gets a response; that no session receives a
/// message twice or out of order, and that one which polls to the end receives all of them; that
/// the limits hold; and that nothing remains of ended sessions.
pub fn check(bytes: &[u8]) {
    let Some((&setup, steps)) = bytes.split_first() else { return };
    let mut sim = Sim::new(u64::from(setup));
    let faults = match setup & 1 {
        0 => Faults::none(),
        _ => rough(&mut sim.prng()),
    };
    sim.set_faults(faults);
    let channels = demo()
        .poll_window(WINDOW)
        .poll_sessions_max(SESSIONS_MAX)
        .poll_bytes_max(BYTES_MAX as usize)
        .timeout(Duration::from_secs(3_600));
    let mut clients = Clients {
        world: World::new(&mut sim, &channels, 1 + usize::from(setup >> 1) % 3),
        sessions: Vec::new(),
        sender: None,
        number: 0,
        gets: 0,
    };
    let mut steps = steps.iter().copied().take(STEPS_MAX);
    while let Some(step) = steps.next() {
        let mut more = || steps.next().unwrap_or(0);
        clients.run_step(step, &mut more);
    }
    clients.finish();
}

/// The world, and the state of its clients.
struct Clients<'s> {
    world: World<'s>,
    sessions: Vec<Session>,
    /// The connection of a WebSocket in the lobby.
    sender: Option<usize>,
    /// The number of the last message.
    number: u64,
    /// The number of requests that may have opened a session, whether or not a client received its
    /// token.
    gets: usize,
}

/// A session, from the view of its client.
#[derive(Default)]
struct Session {
    token: String,
    /// The connections whose polls have no response yet.
    polls: Vec<usize>,
    is_joined: bool,
    /// The messages that it must receive, unless it ends before.
    expected: BTreeSet<u64>,
    received: BTreeSet<u64>,
    /// The last message received from each sender.
    last: BTreeMap<u64, u64>,
    /// Messages before this time may be lost with the connection of a cancelled poll.
    loses_until: Instant,
    has_ended: bool,
    lists: usize,
}

impl Clients<'_> {
    fn run_step(&mut self, step: u8, more: &mut dyn FnMut() -> u8) {
        match step % 12 {
            0 => self.open(),
            1 => self.post(more(), &join("rooms:lobby", "{}"), |session| session.is_joined = true),
            2 => self.begin_poll(more()),
            3 => self.handle_answered_polls(),
            4 => self.echo(more(), more()),
            5 => self.broadcast_by_session(more(), more()),
            6 => self.broadcast_by_websocket(more()),
            7 => self.world.wait(Duration::from_millis(20 * u64::from(more()))),
            8 => self.cancel_poll(more()),
            9 => self.post_invalid(more(), more()),
            10 => {
                let who = format!(r#"{{"user":"{}","mood":"{}"}}"#, self.number, filler(more()));
                self.post(more(), &join("presence:lobby", &who), |_| {});
            }
            _ => self.post(more(), r#"[null,"1","rooms:lobby","phx_leave",{}]"#, |session| {
                session.is_joined = false;
                session.expected.clear();
            }),
        }
        self.check_limits();
    }

    /// Requests a session. The server opens one unless the limit is reached.
    fn open(&mut self) {
        let client = self.world.connect();
        self.world.request(client, &get(""));
        self.gets += 1;
        let answer = self.answer(client);
        self.add_session(&answer);
    }

    fn add_session(&mut self, answer: &Value) {
        match answer["status"].as_u64() {
            Some(410) => {
                let token = answer["token"].as_str().unwrap().to_owned();
                assert!(!token.is_empty() && answer["messages"] == json!([]));
                assert!(self.sessions.iter().all(|session| session.token != token));
                self.sessions.push(Session { token, ..Session::default() });
            }
            Some(403) => assert!(self.gets > SESSIONS_MAX, "there is room"),
            _ => panic!("{answer}"),
        }
    }

    /// Posts to one of the sessions, and runs `then` if the session lives.
    fn post(&mut self, which: u8, body: &str, then: impl FnOnce(&mut Session)) {
        let Some(index) = self.index(which) else { return };
        let client = self.world.connect();
        let (token, length) = (&self.sessions[index].token, body.len());
        let head = format!("POST /socket/longpoll?token={token} HTTP/1.1\nhost: localhost\n");
        let length = format!("content-type: application/x-ndjson\ncontent-length: {length}\n\n");
        self.world.request(client, &(head + &length));
        self.world.send_raw(client, body.as_bytes());
        let status = match self.world.next(client) {
            Got::Answer(head, _) if head.starts_with("HTTP/1.1 400 ") => 400,
            Got::Answer(_, body) => serde_json::from_str::<Value>(&body).unwrap()["status"]
                .as_u64()
                .expect("a response has a status"),
            other => panic!("{other:?} is not a response"),
        };
        match status {
            200 => then(&mut self.sessions[index]),
            410 => self.sessions[index].has_ended = true,
            400 => {}
            _ => panic!("{status} to {body:.40}"),
        }
    }

    /// Posts a message of `size` times 64 bytes that the server echoes.
    fn echo(&mut self, which: u8, size: u8) {
        self.number += 1;
        let (number, now) = (self.number, self.world.sim.now());
        let payload = format!(r#"{{"n":{number},"by":0,"x":"{}"}}"#, filler(size));
        let body = format!(r#"[null,"1","rooms:lobby","echo",{payload}]"#);
        self.post(which, &body, |session| {
            if session.is_joined && now >= session.loses_until {
                session.expected.insert(number);
            }
        });
    }

    /// Broadcasts from a session, which receives its own message first.
    fn broadcast_by_session(&mut self, which: u8, size: u8) {
        let Some(index) = self.index(which) else { return };
        if !self.sessions[index].is_joined {
            return;
        }
        let (number, body) = self.message(1 + index as u64, size);
        let now = self.world.sim.now();
        self.post(which, &body, |_| {});
        if !self.sessions[index].has_ended {
            self.expect(number, now);
        }
    }

    /// Broadcasts from a WebSocket.
    fn broadcast_by_websocket(&mut self, size: u8) {
        let sender = match self.sender {
            Some(sender) => sender,
            None => {
                let sender = self.world.open("/socket/websocket?vsn=2.0.0", "");
                self.world.text(sender, &join("rooms:lobby", "{}"));
                self.world.next(sender);
                *self.sender.insert(sender)
            }
        };
        let (number, body) = self.message(1_000, size);
        let now = self.world.sim.now();
        self.world.text(sender, &body);
        // Its own copies arrive before the reply, and those of others in between.
        while !matches!(self.world.next(sender), Got::Text(text) if text.contains("phx_reply")) {}
        self.expect(number, now);
    }

    fn message(&mut self, by: u64, size: u8) -> (u64, String) {
        self.number += 1;
        let payload = format!(r#"{{"n":{},"by":{by},"x":"{}"}}"#, self.number, filler(size));
        (self.number, format!(r#"[null,"1","rooms:lobby","new_msg",{payload}]"#))
    }

    /// Expects this message in all sessions that had joined the lobby at that time.
    fn expect(&mut self, number: u64, sent_at: Instant) {
        let expects = |session: &&mut Session| session.is_joined && sent_at >= session.loses_until;
        for session in self.sessions.iter_mut().filter(expects) {
            session.expected.insert(number);
        }
    }

    fn begin_poll(&mut self, which: u8) {
        let Some(index) = self.index(which) else { return };
        let client = self.world.connect();
        self.world.request(client, &get(&self.sessions[index].token));
        self.gets += 1;
        self.sessions[index].polls.push(client);
    }

    /// Handles the polls that have a response.
    fn handle_answered_polls(&mut self) {
        for index in 0..self.sessions.len() {
            let polls = std::mem::take(&mut self.sessions[index].polls);
            for client in polls {
                match self.world.try_next(client) {
                    Some(got) => self.handle_poll_response(index, got),
                    None => self.sessions[index].polls.push(client),
                }
            }
        }
    }

    /// Handles the response to a poll.
    fn handle_poll_response(&mut self, index: usize, got: Got) {
        let Got::Answer(head, body) = got else { panic!("{got:?} is not a response") };
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        let answer: Value = serde_json::from_str(&body).unwrap();
        let session = &mut self.sessions[index];
        match answer["status"].as_u64() {
            Some(200 | 204) if answer["token"] == *session.token => {
                let messages = answer["messages"].as_array().unwrap();
                messages.iter().for_each(|text| session.receive(text.as_str().unwrap()));
            }
            // The core of the session was too busy, and no message was taken from it.
            Some(204) => {}
            // The session ended, and the server opened another one.
            Some(410) => {
                session.has_ended = true;
                self.add_session(&answer);
            }
            Some(403) => session.has_ended = true,
            _ => panic!("{answer}"),
        }
    }

    fn cancel_poll(&mut self, which: u8) {
        let Some(index) = self.index(which) else { return };
        let Session { polls, expected, loses_until, .. } = &mut self.sessions[index];
        if let Some(client) = polls.pop() {
            // Messages in flight are lost, and the server does not know of the disconnect yet.
            expected.clear();
            *loses_until = self.world.sim.now() + FLIGHT;
            self.world.hang_up(client);
        }
    }

    /// Posts an invalid body, which changes nothing, or an invalid message, which ends the session.
    fn post_invalid(&mut self, which: u8, what: u8) {
        match what % 3 {
            0 => self.post(which, "no base64!", |_| panic!("the server accepted it")),
            1 => self.post(which, &"[]\n".repeat(101), |_| panic!("the server accepted it")),
            _ => self.post(which, "[1]", |_| panic!("the server accepted it")),
        }
    }

    fn index(&self, which: u8) -> Option<usize> {
        (!self.sessions.is_empty()).then(|| usize::from(which) % self.sessions.len())
    }

    fn answer(&mut self, client: usize) -> Value {
        match self.world.next(client) {
            Got::Answer(_, body) => serde_json::from_str(&body).unwrap(),
            other => panic!("{other:?} is not a response"),
        }
    }

    /// Checks the limits, which hold at any moment, but for a session whose place another one has
    /// got: it ends in the next turn of its core.
    fn check_limits(&mut self) {
        let mut counters = self.world.counters();
        if counters.poll_sessions > SESSIONS_MAX as u64 {
            self.world.wait(Duration::from_millis(1));
            counters = self.world.counters();
        }
        assert!(counters.poll_sessions <= SESSIONS_MAX as u64, "{counters:?}");
        assert!(counters.poll_bytes <= BYTES_MAX * 3, "{counters:?}");
    }

    /// Polls each session until no message is left, lets all sessions end, and checks what remains.
    fn finish(mut self) {
        for index in 0..self.sessions.len() {
            for _ in 0..POLLS_MAX {
                self.handle_answered_polls();
                let session = &self.sessions[index];
                if session.has_ended || session.is_complete() {
                    break;
                }
                self.begin_poll(index as u8);
                self.world.wait(Duration::from_millis(200));
            }
        }
        self.world.wait(WINDOW * 2);
        self.handle_answered_polls();
        for session in &self.sessions {
            assert!(session.polls.is_empty(), "a poll has no response");
            assert!(session.has_ended || session.is_complete(), "missing: {:?}", session.missing());
        }
        self.world.wait(WINDOW * 4);
        let counters = self.world.counters();
        assert_eq!((counters.poll_sessions, counters.poll_bytes), (0, 0), "{counters:?}");
        let is_sender_joined = u64::from(self.sender.is_some());
        assert_eq!((counters.channels, counters.memberships), (is_sender_joined, is_sender_joined));
        // Every session slot is free again.
        self.sessions.clear();
        (0..SESSIONS_MAX).for_each(|_| self.open());
        assert_eq!(self.sessions.len(), SESSIONS_MAX);
    }
}

impl Session {
    /// Records a received message.
    fn receive(&mut self, text: &str) {
        let message: Value = serde_json::from_str(text).unwrap();
        let payload = &message[4];
        match message[3].as_str().unwrap() {
            "new_msg" => self.receive_number(payload),
            "phx_reply" if payload["response"]["n"].is_u64() => {
                self.receive_number(&payload["response"]);
            }
            "presence_state" => self.lists += 1,
            "presence_diff" => {
                let may_be_lost = self.loses_until > Instant::ZERO;
                assert!(self.lists > 0 || may_be_lost, "a presence diff arrived before the list");
            }
            "phx_reply" | "phx_close" => {}
            event => panic!("{event}"),
        }
    }

    fn receive_number(&mut self, payload: &Value) {
        let (number, by) = (payload["n"].as_u64().unwrap(), payload["by"].as_u64().unwrap());
        assert!(self.received.insert(number), "message {number} arrived twice");
        let last = self.last.insert(by, number).unwrap_or(0);
        assert!(last < number, "message {number} arrived after {last}");
    }

    fn missing(&self) -> Vec<u64> {
        self.expected.difference(&self.received).copied().collect()
    }

    /// Reports whether it has received all expected messages.
    fn is_complete(&self) -> bool {
        self.missing().is_empty()
    }
}

fn join(topic: &str, payload: &str) -> String {
    format!(r#"[null,"1","{topic}","phx_join",{payload}]"#)
}

fn get(token: &str) -> String {
    let token = if token.is_empty() { String::new() } else { format!("&token={token}") };
    format!("GET /socket/longpoll?vsn=2.0.0{token} HTTP/1.1\nhost: localhost\n\n")
}

/// Returns up to 16 KiB of text.
fn filler(size: u8) -> String {
    "x".repeat(64 * usize::from(size))
}

const WINDOW: Duration = Duration::from_secs(2);
/// The time in flight: longer than any message takes.
const FLIGHT: Duration = Duration::from_millis(100);
const SESSIONS_MAX: usize = 3;
const BYTES_MAX: u64 = 60_000;
/// The most steps: an input with more takes longer than it is worth.
const STEPS_MAX: usize = 200;
/// The polls after which a session must have received everything.
const POLLS_MAX: usize = 50;
