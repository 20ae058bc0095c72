//! Presence as clients of several cores see it.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value, json};
use throng_server::channels::demo;
use throng_sim::check;

use super::world::{Got, World};

/// A client's view of the list and the diffs, as phoenix.js computes it in the order of arrival.
#[derive(Default)]
struct Seen {
    /// The metas of each key.
    users: BTreeMap<String, Vec<Value>>,
    has_list: bool,
    /// Diffs that arrived before the list.
    early: Vec<Value>,
}

impl Seen {
    fn receive(&mut self, message: &Value) {
        let payload = &message[4];
        match message[3].as_str() {
            Some("presence_state") => {
                for (key, presence) in payload.as_object().unwrap() {
                    self.users.insert(key.clone(), presence["metas"].as_array().unwrap().clone());
                }
                self.has_list = true;
                std::mem::take(&mut self.early).iter().for_each(|diff| self.apply(diff));
            }
            Some("presence_diff") if self.has_list => self.apply(payload),
            Some("presence_diff") => self.early.push(payload.clone()),
            _ => {}
        }
    }

    fn apply(&mut self, diff: &Value) {
        let metas = |part: &str| -> Vec<(String, Vec<Value>)> {
            let part = diff[part].as_object().unwrap();
            part.iter()
                .map(|(key, now)| (key.clone(), now["metas"].as_array().unwrap().clone()))
                .collect()
        };
        for (key, joined) in metas("joins") {
            let known = self.users.entry(key).or_default();
            known.retain(|meta| joined.iter().all(|joined| joined["phx_ref"] != meta["phx_ref"]));
            known.extend(joined);
        }
        for (key, left) in metas("leaves") {
            let Some(known) = self.users.get_mut(&key) else { continue };
            known.retain(|meta| left.iter().all(|left| left["phx_ref"] != meta["phx_ref"]));
            if known.is_empty() {
                self.users.remove(&key);
            }
        }
    }

    /// Returns the keys, and how often each is present.
    fn who(&self) -> String {
        self.users.iter().map(|(key, metas)| format!("{key}:{} ", metas.len())).collect()
    }
}

fn hear_all(world: &mut World<'_>, clients: &mut BTreeMap<usize, Seen>) {
    world.wait(Duration::from_secs(1));
    for (&client, seen) in clients {
        while let Some(Got::Text(text)) = world.try_next(client) {
            seen.receive(&serde_json::from_str(&text).unwrap());
        }
    }
}

fn join(world: &mut World<'_>, user: &str) -> (usize, Seen) {
    let client = world.open("/socket/websocket?vsn=2.0.0", "");
    let payload = json!({ "user": user, "mood": "calm" });
    world.text(client, &json!(["1", "1", "presence:x", "phx_join", payload]).to_string());
    (client, Seen::default())
}

#[test]
fn every_member_sees_every_member_on_whichever_core() {
    for cores in [1, 2, 5] {
        check(10, |sim| {
            let mut world = World::new(sim, &demo(), cores);
            let mut clients: BTreeMap<_, _> = ["ada", "bob", "eve", "ada", "fay", "gus"]
                .map(|user| join(&mut world, user))
                .into();
            hear_all(&mut world, &mut clients);
            for seen in clients.values() {
                assert_eq!(seen.who(), "ada:2 bob:1 eve:1 fay:1 gus:1 ");
                let meta = &seen.users["bob"][0];
                assert_eq!(meta["mood"], "calm");
                assert_eq!(meta["user"], Value::Null);
                assert_eq!(meta["phx_ref"].as_str().unwrap().len(), 16);
            }
            // One leaves, one closes, one joins anew: the others follow by diffs alone.
            let mut left = clients.keys().copied().collect::<Vec<_>>().into_iter();
            let (leaves, closes, again) =
                (left.next().unwrap(), left.next().unwrap(), left.next().unwrap());
            world.text(leaves, r#"["1","2","presence:x","phx_leave",{}]"#);
            world.close(closes);
            world.text(again, r#"["2","2","presence:x","phx_join",{"user":"zoe"}]"#);
            clients.remove(&leaves);
            clients.remove(&closes);
            clients.insert(again, Seen::default());
            let (late, seen) = join(&mut world, "late");
            clients.insert(late, seen);
            hear_all(&mut world, &mut clients);
            for (client, seen) in &clients {
                assert_eq!(seen.who(), "ada:1 fay:1 gus:1 late:1 zoe:1 ", "client {client}");
            }
        });
    }
}

#[test]
fn a_user_without_a_name_is_refused() {
    check(3, |sim| {
        let mut world = World::new(sim, &demo(), 1);
        let client = world.open("/socket/websocket?vsn=2.0.0", "");
        for payload in ["{}", "[]", r#"{"user":7}"#, "null"] {
            world.text(client, &format!(r#"["1","1","presence:x","phx_join",{payload}]"#));
            let Got::Text(answer) = world.next(client) else { panic!("not a text") };
            assert!(answer.contains(r#""status":"error""#), "{answer}");
        }
        let empty: Map<String, Value> = Map::new();
        world.text(client, r#"["2","2","presence:x","phx_join",{"user":"ada"}]"#);
        world.expect(client, r#"["2","2","presence:x","phx_reply",{"status":"ok","response":{}}]"#);
        let Got::Text(list) = world.next(client) else { panic!("not a text") };
        let list: Value = serde_json::from_str(&list).unwrap();
        assert_eq!(list[3], "presence_state");
        assert_ne!(list[4].as_object(), Some(&empty));
    });
}

#[test]
fn a_user_with_a_long_meta_is_refused() {
    check(3, |sim| {
        let mut world = World::new(sim, &demo(), 1);
        let client = world.open("/socket/websocket?vsn=2.0.0", "");
        for payload in
            [json!({"user": "x".repeat(2_000)}), json!({"user": "ada", "mood": "x".repeat(20_000)})]
        {
            world.text(client, &json!(["1", "1", "presence:x", "phx_join", payload]).to_string());
            let reason = "the user or its meta is too long";
            let refused = json!({"status": "error", "response": {"reason": reason}});
            let Got::Text(answer) = world.next(client) else { panic!("not a text") };
            let answer: Value = serde_json::from_str(&answer).unwrap();
            assert_eq!(answer, json!(["1", "1", "presence:x", "phx_reply", refused]));
        }
    });
}
