//! Members that receive the list of all others, and do not read.

use crate::http::Http;
use crate::victim::{KIB, MIB, Victim};

#[test]
fn members_who_do_not_read_cost_what_they_sent_and_a_little_more() {
    for policy in ["close", "drop-newest", "drop-oldest", "keep-latest"] {
        let members = 600;
        let victim = Victim::serve(&["channels", "--policy", policy, "--sndbuf", "16KiB"]);
        // The largest entry of a member: 1 KiB, less the text around it.
        let mood = "x".repeat(1_000);
        let mut held = Vec::new();
        for member in 0..members {
            let mut http = Http::connect_small(victim.addr());
            http.upgrade("/socket/websocket?vsn=2.0.0");
            let meta = format!(r#"{{"user":"user-{member}","mood":"{mood}"}}"#);
            http.text(&format!(r#"["1","1","presence:lobby","phx_join",{meta}]"#));
            held.push(http);
            // Each member joins after the one before, so it receives the list of all of them.
            if member % 50 == 49 {
                victim.wait_for("joins", member + 1);
            }
        }
        victim.wait_for("joins", members);
        let (sent, grown) = (members * KIB, victim.grown_most());
        eprintln!("{policy}: {members} members, {} KiB each", grown / members / KIB);
        // The last list is 600 KiB, all together are 180 MiB, and there are diffs besides.
        assert!(grown < 48 * sent + 16 * MIB, "{policy}: {} MiB", grown / MIB);
        let mut last = held.pop().unwrap();
        if policy != "close" {
            let list = last.list();
            assert_eq!(list.len() as u64, members, "{policy}");
        }
    }
}

impl Http {
    /// Returns the members from `presence_state`.
    fn list(&mut self) -> serde_json::Map<String, serde_json::Value> {
        let mut text = Vec::new();
        loop {
            let (opcode, payload) = self.frame().expect("the server sends the list");
            if opcode != 0 {
                text.clear();
            }
            text.extend(payload);
            let Ok(message) = serde_json::from_slice::<serde_json::Value>(&text) else { continue };
            if message[3] == "presence_state" {
                return message[4].as_object().unwrap().clone();
            }
        }
    }
}
