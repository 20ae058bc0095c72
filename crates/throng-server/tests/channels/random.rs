//! Clients that do anything in any order, and a model that knows what each of them must be told.

use std::collections::BTreeMap;

use throng_base::Prng;
use throng_sim::check;

use crate::puppet::puppets;
use crate::world::{Got, World, rough};

/// What the server knows of one client: the join_ref of each of its topics.
#[derive(Default)]
struct Model {
    joined: BTreeMap<String, String>,
    /// What it must be told, in order.
    told: Vec<String>,
}

impl Model {
    /// A message, and what follows from it.
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
fn every_client_is_told_what_the_model_says() {
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
            // Nobody else joins the topics in which a client talks.
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
