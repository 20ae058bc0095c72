//! Requests and messages that are begun and never finished.

use crate::http::{Http, frame};
use crate::victim::{MIB, Victim};

#[test]
fn a_body_that_no_path_takes_is_refused_before_it_is_received() {
    for server in ["channels", "chat"] {
        let victim = Victim::serve(&[server]);
        for target in ["/", "/socket/websocket", "/elsewhere"] {
            let mut http = Http::connect(victim.addr());
            let head = format!("POST {target} HTTP/1.1\r\nhost: 127.0.0.1\r\n");
            http.send(format!("{head}content-length: 1000000\r\n\r\n").as_bytes());
            assert_eq!(
                http.answer().expect("the server responds").status,
                413,
                "{server} {target}"
            );
        }
        assert_eq!(victim.count("requests_too_large"), 3, "{server}");
    }
}

#[test]
fn unfinished_messages_cost_the_bytes_sent_until_their_timeout() {
    for server in ["channels", "chat"] {
        let connections = 100;
        let victim = Victim::serve(&[server, "--message-timeout", "2s", "--message-max", "8MiB"]);
        let half = vec![b'x'; 1 << 20];
        let mut held: Vec<Http> = (0..connections)
            .map(|number| {
                let mut http = Http::connect(victim.addr());
                http.upgrade("/socket/websocket?vsn=2.0.0");
                // Half of the messages declare eight times as much, the others are fragments
                // without end.
                match number % 2 {
                    0 => http.send(&frame(0x81, 8 << 20, &half)),
                    _ => http.send(&frame(0x01, half.len(), &half)),
                }
                http
            })
            .collect();
        let sent = connections * MIB;
        victim.wait_for("message_timeouts", connections);
        let most = victim.grown_most();
        eprintln!("{server}: {} MiB for {} MiB sent", most / MIB, sent / MIB);
        assert!(most < 2 * sent + 16 * MIB, "{server}: {} MiB", most / MIB);
        assert!(victim.grown() < sent / 4, "{server}: {} MiB are left", victim.grown() / MIB);
        for http in &mut held {
            let (opcode, payload) = http.frame().expect("the server sends the reason");
            assert_eq!((opcode, &payload[..2]), (8, &1008u16.to_be_bytes()[..]), "{server}");
        }
    }
}
