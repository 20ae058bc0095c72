//! Clients that act in any order, and a model that predicts what each of them must receive.

use std::collections::BTreeMap;

use serde_json::Value;
use throng_base::Prng;
use throng_sim::check;

use super::puppet::puppets;
use super::world::{Got, World, rough};

/// The server's state of one client: the join_ref of each of its topics.
#[derive(Default)]
struct Model {
    joined: BTreeMap<String, String>,
    /// The messages that it must receive, in order.
    told: Vec<String>,
}

impl Model {
    /// Predicts the effects of a message.
    fn say(&mut self, join_ref: Option<&str>, r#ref: &str, topic: &str, event: &str) -> String {
        let known = self.joined.get(topic).cloned();
        let quoted =
            |text: Option<&str>| text.map_or("null".to_owned(), |text| format!("\"{text}\""));
        let reply = |join_ref: Option<&str>, status: &str, response: &str| {
            let payload = format!(r#"{{"status":"{status}","response":{response}}}"#);
            format!(r#"[{},"{ref}","{topic}","phx_reply",{payload}]"#, quoted(join_ref))
        };
        let end = |known: &str, event: &str, payload: &str| {
            format!(r#"["{known}","{known}","{topic}","{event}",{payload}]"#)
        };
        let is_stale = known.is_some() && join_ref.is_some() && join_ref != known.as_deref();
        let mut tell = |text| self.told.push(text);
        match (event, known) {
            ("phx_join", known) => {
                match topic {
                    "puppet:no" => tell(reply(join_ref, "error", r#"{"reason":"unauthorized"}"#)),
                    "puppet:panic" => {
                        tell(reply(join_ref, "error", r#"{"reason":"join crashed"}"#))
                    }
                    "nowhere" => tell(reply(None, "error", r#"{"reason":"unmatched topic"}"#)),
                    _ => {
                        tell(reply(join_ref, "ok", "{}"));
                        self.joined.insert(topic.to_owned(), join_ref.unwrap_or(r#ref).to_owned());
                    }
                }
                if let Some(known) = known {
                    self.told.push(end(&known, "phx_close", "{}"));
                }
            }
            _ if is_stale => {}
            ("phx_leave", None) => tell(reply(join_ref, "ok", "{}")),
            ("phx_leave", Some(known)) => {
                tell(reply(Some(&known), "ok", "{}"));
                tell(end(&known, "phx_close", "{}"));
                self.joined.remove(topic);
            }
            (_, None) => tell(reply(None, "error", r#"{"reason":"unmatched topic"}"#)),
            ("ask", Some(known)) => tell(reply(Some(&known), "ok", "{}")),
            ("push_then_reply", Some(known)) => {
                tell(format!(r#"["{known}",null,"{topic}","pushed",{{}}]"#));
                tell(reply(Some(&known), "ok", "{}"));
            }
            ("all", Some(_)) => tell(format!(r#"[null,null,"{topic}","said",{{}}]"#)),
            ("filtered", Some(_)) | ("unknown", Some(_)) => {}
            ("stop", Some(known)) => {
                tell(end(&known, "phx_close", "{}"));
                self.joined.remove(topic);
            }
            ("panic", Some(known)) => {
                tell(end(&known, "phx_error", r#"{"reason":"channel_crash"}"#));
                self.joined.remove(topic);
            }
            (event, Some(_)) => panic!("{event} is not in the model"),
        }
        format!(r#"[{},"{ref}","{topic}","{event}",{{}}]"#, quoted(join_ref))
    }
}

fn pick<'a>(prng: &mut Prng, from: &[&'a str]) -> &'a str {
    from[prng.below(from.len() as u64) as usize]
}

const EVENTS: [&str; 13] = [
    "phx_join",
    "phx_join",
    "phx_join",
    "phx_leave",
    "ask",
    "ask",
    "push_then_reply",
    "all",
    "all",
    "unknown",
    "stop",
    "panic",
    "ask",
];

#[test]
fn every_client_receives_what_the_model_predicts() {
    check(60, |sim| {
        let mut prng = sim.prng();
        sim.set_faults(rough(&mut prng));
        let mut world = World::new(sim, &puppets(), 1 + prng.below(3) as usize);
        let mut models = BTreeMap::new();
        for _ in 0..3 {
            let client = world.open("/socket/websocket?vsn=2.0.0", "");
            models.insert(client, Model::default());
        }
        for number in 0..150 {
            let client = *models.keys().nth(prng.below(3) as usize).unwrap();
            let model = models.get_mut(&client).unwrap();
            // No other client joins the topics in which a client broadcasts.
            let own = [format!("puppet:{client}-a"), format!("puppet:{client}-b")];
            let topics = [&own[0], &own[1], &own[0], "puppet:no", "puppet:panic", "nowhere"];
            let topic = pick(&mut prng, &topics).to_owned();
            let event = pick(&mut prng, &EVENTS);
            let r#ref = number.to_string();
            let join_ref = match prng.below(10) {
                0 => None,
                1 => Some("stale".to_owned()),
                _ if event == "phx_join" => Some(r#ref.clone()),
                _ => model.joined.get(&topic).cloned(),
            };
            let text = model.say(join_ref.as_deref(), &r#ref, &topic, event);
            world.text(client, &text);
            if prng.below(4) == 0 {
                world.wait(std::time::Duration::from_millis(prng.below(20)));
            }
        }
        for (client, model) in &models {
            for told in &model.told {
                assert_eq!(world.next(*client), Got::Text(told.clone()), "client {client}");
            }
            assert_eq!(world.try_next(*client), None, "client {client} was told something else");
        }
    });
}

/// The broadcasts that a client of a busy room has received since it joined: for each sender, the
/// number of the last one.
#[derive(Default)]
struct Listener {
    /// The join_ref of its channel.
    joined: Option<String>,
    last_of: BTreeMap<u64, u64>,
}

impl Listener {
    fn receive(&mut self, text: &str) {
        let message: Value = serde_json::from_str(text).unwrap();
        match message[3].as_str().unwrap() {
            "phx_reply" if message[4]["response"]["joined"] == true => {
                self.joined = message[0].as_str().map(str::to_owned);
                self.last_of.clear();
            }
            // A replaced channel closes after the other one has joined.
            "phx_close" if message[0].as_str() == self.joined.as_deref() => self.joined = None,
            "said" => {
                assert!(self.joined.is_some(), "a client that is not in the room received {text}");
                let (sender, number) = (&message[4]["by"], message[4]["n"].as_u64().unwrap());
                let before = self.last_of.insert(sender.as_u64().unwrap(), number);
                assert!(
                    before.is_none_or(|before| before + 1 == number),
                    "{before:?}, then {text}"
                );
            }
            _ => {}
        }
    }
}

#[test]
fn a_client_that_comes_and_goes_misses_nothing_and_receives_nothing_twice() {
    check(25, |sim| {
        let mut prng = sim.prng();
        let faults = rough(&mut prng);
        sim.set_faults(faults);
        let mut world = World::new(sim, &puppets(), 1 + prng.below(3) as usize);
        let clients: Vec<_> =
            (0..12).map(|_| world.open("/socket/websocket?vsn=2.0.0", "")).collect();
        let mut listeners: Vec<_> = clients.iter().map(|_| Listener::default()).collect();
        let mut said = vec![0; clients.len()];
        // The client itself has seen the reply to its join.
        let mut wants = vec![false; clients.len()];
        for number in 0..400 {
            let index = prng.below(12) as usize;
            match prng.below(10) {
                0..3 => {
                    let hello = r#"{"hello":1,"joined":true}"#;
                    let join =
                        format!(r#"["{number}","{number}","puppet:room","phx_join",{hello}]"#);
                    world.text(clients[index], &join);
                    wants[index] = true;
                }
                3 => {
                    let leave = format!(r#"[null,"{number}","puppet:room","phx_leave",{{}}]"#);
                    world.text(clients[index], &leave);
                    wants[index] = false;
                }
                _ if wants[index] => {
                    said[index] += 1;
                    let payload = format!(r#"{{"by":{index},"n":{}}}"#, said[index]);
                    let say = format!(r#"[null,"{number}","puppet:room","all",{payload}]"#);
                    world.text(clients[index], &say);
                }
                _ => {}
            }
            if prng.below(3) == 0 {
                world.wait(std::time::Duration::from_millis(prng.below(10)));
            }
        }
        world.wait(std::time::Duration::from_secs(5));
        // The last broadcast of each sender, which all remaining members must have received if they
        // received any of that sender.
        for (client, listener) in clients.iter().zip(&mut listeners) {
            while let Some(got) = world.try_next(*client) {
                match got {
                    Got::Text(text) => listener.receive(&text),
                    other => panic!("{other:?}"),
                }
            }
        }
        for (index, listener) in listeners.iter().enumerate() {
            assert_eq!(listener.joined.is_some(), wants[index], "client {index}");
            for (&sender, &last) in listener.last_of.iter().filter(|_| wants[index]) {
                assert_eq!(
                    last, said[sender as usize],
                    "client {index} missed the end of {sender}"
                );
            }
        }
    });
}
