//! Long-poll sessions of a whole server in a simulated world. Each byte, with the one or two behind
//! it, is a step of a client: open a session, join, post, poll, hang up, leave, wait, broadcast.
//!
//! The world comes from outside (`super::world`), because the server's own tests have it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Value, json};
use throng_base::Instant;
use throng_server::channels::demo;
use throng_sim::{Faults, Sim};

use super::world::{Got, World, rough};

/// Checks that nothing panics and every request is answered; that no session gets a message twice
/// or out of order, and one that polls to the end gets all of them; that the limits hold; and that
/// nothing is left of ended sessions.
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
    let mut players = Players {
        world: World::new(&mut sim, &channels, 1 + usize::from(setup >> 1) % 3),
        sessions: Vec::new(),
        speaker: None,
        number: 0,
        gets: 0,
    };
    let mut steps = steps.iter().copied().take(STEPS_MAX);
    while let Some(step) = steps.next() {
        let mut more = || steps.next().unwrap_or(0);
        players.take(step, &mut more);
    }
    players.end();
}

/// The world, and what its clients know.
struct Players<'s> {
    world: World<'s>,
    sessions: Vec<Session>,
    /// A WebSocket in the lobby.
    speaker: Option<usize>,
    /// What was said last.
    number: u64,
    /// Requests that may have begun a session, whether or not a client knows of it.
    gets: usize,
}

/// A session, as its client knows it.
#[derive(Default)]
struct Session {
    token: String,
    /// Connections whose polls are not answered.
    polls: Vec<usize>,
    is_joined: bool,
    /// What it must hear, unless it ends before.
    expected: BTreeSet<u64>,
    heard: BTreeSet<u64>,
    /// Of each speaker, what was heard of it last.
    last: BTreeMap<u64, u64>,
    /// Until then what is said may be lost with the connection of a poll that was hung up.
    loses_until: Instant,
    has_ended: bool,
    lists: usize,
}

impl Players<'_> {
    fn take(&mut self, step: u8, more: &mut dyn FnMut() -> u8) {
        match step % 12 {
            0 => self.open(),
            1 => self.post(more(), &join("rooms:lobby", "{}"), |session| session.is_joined = true),
            2 => self.begin_poll(more()),
            3 => self.settle(),
            4 => self.echo(more(), more()),
            5 => self.say(more(), more()),
            6 => self.speak(more()),
            7 => self.world.wait(Duration::from_millis(20 * u64::from(more()))),
            8 => self.hang_up(more()),
            9 => self.post_what_is_none(more(), more()),
            10 => {
                let who = format!(r#"{{"user":"{}","mood":"{}"}}"#, self.number, mood(more()));
                self.post(more(), &join("presence:lobby", &who), |_| {});
            }
            _ => self.post(more(), r#"[null,"1","rooms:lobby","phx_leave",{}]"#, |session| {
                session.is_joined = false;
                session.expected.clear();
            }),
        }
        self.look();
    }

    /// Asks for a session. There is one unless there are enough.
    fn open(&mut self) {
        let client = self.world.connect();
        self.world.request(client, &get(""));
        self.gets += 1;
        let answer = self.answer(client);
        self.began(&answer);
    }

    fn began(&mut self, answer: &Value) {
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

    /// Posts for one of the sessions. True when it lives.
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
                .expect("an answer has a status"),
            other => panic!("{other:?} is no answer"),
        };
        match status {
            200 => then(&mut self.sessions[index]),
            410 => self.sessions[index].has_ended = true,
            400 => {}
            _ => panic!("{status} to {body:.40}"),
        }
    }

    /// Asks to be told the same again, some 64 bytes at a time.
    fn echo(&mut self, which: u8, size: u8) {
        self.number += 1;
        let (number, now) = (self.number, self.world.sim.now());
        let payload = format!(r#"{{"n":{number},"by":0,"x":"{}"}}"#, mood(size));
        let body = format!(r#"[null,"1","rooms:lobby","echo",{payload}]"#);
        self.post(which, &body, |session| {
            if session.is_joined && now >= session.loses_until {
                session.expected.insert(number);
            }
        });
    }

    /// A session says something to all, and hears it first.
    fn say(&mut self, which: u8, size: u8) {
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

    /// A WebSocket says something to all.
    fn speak(&mut self, size: u8) {
        let speaker = match self.speaker {
            Some(speaker) => speaker,
            None => {
                let speaker = self.world.open("/socket/websocket?vsn=2.0.0", "");
                self.world.text(speaker, &join("rooms:lobby", "{}"));
                self.world.next(speaker);
                *self.speaker.insert(speaker)
            }
        };
        let (number, body) = self.message(1_000, size);
        let now = self.world.sim.now();
        self.world.text(speaker, &body);
        // Its own copies come before the answer, and others' meanwhile.
        while !matches!(self.world.next(speaker), Got::Text(text) if text.contains("phx_reply")) {}
        self.expect(number, now);
    }

    fn message(&mut self, by: u64, size: u8) -> (u64, String) {
        self.number += 1;
        let payload = format!(r#"{{"n":{},"by":{by},"x":"{}"}}"#, self.number, mood(size));
        (self.number, format!(r#"[null,"1","rooms:lobby","new_msg",{payload}]"#))
    }

    /// All who are in the lobby are to hear this, which was said at that moment.
    fn expect(&mut self, number: u64, said_at: Instant) {
        let hears = |session: &&mut Session| session.is_joined && said_at >= session.loses_until;
        for session in self.sessions.iter_mut().filter(hears) {
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

    /// Looks which polls have been answered.
    fn settle(&mut self) {
        for index in 0..self.sessions.len() {
            let polls = std::mem::take(&mut self.sessions[index].polls);
            for client in polls {
                match self.world.try_next(client) {
                    Some(got) => self.polled(index, got),
                    None => self.sessions[index].polls.push(client),
                }
            }
        }
    }

    /// The answer to a poll.
    fn polled(&mut self, index: usize, got: Got) {
        let Got::Answer(head, body) = got else { panic!("{got:?} is no answer") };
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        let answer: Value = serde_json::from_str(&body).unwrap();
        let session = &mut self.sessions[index];
        match answer["status"].as_u64() {
            Some(200 | 204) if answer["token"] == *session.token => {
                let messages = answer["messages"].as_array().unwrap();
                messages.iter().for_each(|text| session.hear(text.as_str().unwrap()));
            }
            // Its session's core was too busy; nothing was taken from it.
            Some(204) => {}
            // It ended, and this is another one.
            Some(410) => {
                session.has_ended = true;
                self.began(&answer);
            }
            Some(403) => session.has_ended = true,
            _ => panic!("{answer}"),
        }
    }

    fn hang_up(&mut self, which: u8) {
        let Some(index) = self.index(which) else { return };
        let Session { polls, expected, loses_until, .. } = &mut self.sessions[index];
        if let Some(client) = polls.pop() {
            // What was on its way to it is lost, and the server has not heard of its end yet.
            expected.clear();
            *loses_until = self.world.sim.now() + FLIGHT;
            self.world.hang_up(client);
        }
    }

    /// A post whose body is none, or no message: the one changes nothing, the other ends the
    /// session.
    fn post_what_is_none(&mut self, which: u8, what: u8) {
        match what % 3 {
            0 => self.post(which, "no base64!", |_| panic!("it was taken")),
            1 => self.post(which, &"[]\n".repeat(101), |_| panic!("it was taken")),
            _ => self.post(which, "[1]", |_| panic!("it was taken")),
        }
    }

    fn index(&self, which: u8) -> Option<usize> {
        (!self.sessions.is_empty()).then(|| usize::from(which) % self.sessions.len())
    }

    fn answer(&mut self, client: usize) -> Value {
        match self.world.next(client) {
            Got::Answer(_, body) => serde_json::from_str(&body).unwrap(),
            other => panic!("{other:?} is no answer"),
        }
    }

    /// The limits hold at any moment.
    fn look(&mut self) {
        let counters = self.world.counters();
        assert!(counters.poll_sessions <= SESSIONS_MAX as u64, "{counters:?}");
        assert!(counters.poll_bytes <= BYTES_MAX * 3, "{counters:?}");
    }

    /// Polls for each session until nothing is left, lets all sessions end, and looks at what they
    /// leave behind.
    fn end(mut self) {
        for index in 0..self.sessions.len() {
            for _ in 0..POLLS_MAX {
                self.settle();
                let session = &self.sessions[index];
                if session.has_ended || session.is_content() {
                    break;
                }
                self.begin_poll(index as u8);
                self.world.wait(Duration::from_millis(200));
            }
        }
        self.world.wait(WINDOW * 2);
        self.settle();
        for session in &self.sessions {
            assert!(session.polls.is_empty(), "a poll was never answered");
            assert!(session.has_ended || session.is_content(), "missing: {:?}", session.missing());
        }
        self.world.wait(WINDOW * 4);
        let counters = self.world.counters();
        assert_eq!((counters.poll_sessions, counters.poll_bytes), (0, 0), "{counters:?}");
        let is_speaking = u64::from(self.speaker.is_some());
        assert_eq!((counters.channels, counters.memberships), (is_speaking, is_speaking));
        // Every place is free again.
        self.sessions.clear();
        (0..SESSIONS_MAX).for_each(|_| self.open());
        assert_eq!(self.sessions.len(), SESSIONS_MAX);
    }
}

impl Session {
    /// A message.
    fn hear(&mut self, text: &str) {
        let message: Value = serde_json::from_str(text).unwrap();
        let payload = &message[4];
        match message[3].as_str().unwrap() {
            "new_msg" => self.hear_number(payload),
            "phx_reply" if payload["response"]["n"].is_u64() => {
                self.hear_number(&payload["response"]);
            }
            "presence_state" => self.lists += 1,
            "presence_diff" => {
                let may_be_lost = self.loses_until > Instant::ZERO;
                assert!(self.lists > 0 || may_be_lost, "a diff before the list");
            }
            "phx_reply" | "phx_close" => {}
            event => panic!("{event}"),
        }
    }

    fn hear_number(&mut self, payload: &Value) {
        let (number, by) = (payload["n"].as_u64().unwrap(), payload["by"].as_u64().unwrap());
        assert!(self.heard.insert(number), "{number} was told twice");
        let last = self.last.insert(by, number).unwrap_or(0);
        assert!(last < number, "{number} came after {last}");
    }

    fn missing(&self) -> Vec<u64> {
        self.expected.difference(&self.heard).copied().collect()
    }

    /// Whether it has heard all that it must.
    fn is_content(&self) -> bool {
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

/// Up to 16 KiB of text.
fn mood(size: u8) -> String {
    "x".repeat(64 * usize::from(size))
}

const WINDOW: Duration = Duration::from_secs(2);
/// Longer than anything is on its way.
const FLIGHT: Duration = Duration::from_millis(100);
const SESSIONS_MAX: usize = 3;
const BYTES_MAX: u64 = 60_000;
/// An input of more steps takes longer than it finds.
const STEPS_MAX: usize = 200;
/// Polls after which a session must have heard everything.
const POLLS_MAX: usize = 50;
