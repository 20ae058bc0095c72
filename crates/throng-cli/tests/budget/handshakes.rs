//! TLS handshakes that are never begun, and such that never end.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::victim::{KIB, MIB, Victim};

/// Clients that connect and say nothing, and clients that send their first message byte by byte.
const SILENT: u64 = 300;
const DRIPPING: u64 = 150;

/// Begin of a ClientHello of 512 bytes: the header of its record, its type, length and version.
const HELLO: [u8; 11] = [22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3];

#[test]
fn users_are_served_beside_silent_and_dripping_handshakes_which_a_deadline_ends() {
    let victim = Victim::serve(&["echo", "--tls-self-signed", "--cores", "2"]);
    let connect = || TcpStream::connect(victim.addr()).unwrap();
    let mut silent: Vec<_> = (0..SILENT).map(|_| connect()).collect();
    let mut dripping: Vec<_> = (0..DRIPPING).map(|_| connect()).collect();
    let scenario = format!(
        "target: tls://{}\ntls: {{verify: none}}\nload: [arrivals: {{rate: 20/s, for: 2s}}]\n\
         user: [connect, {{send: hello}}, {{expect: hello}}, close]\nthresholds: [errors < 0.1%]\n",
        victim.addr()
    );
    let summary = std::thread::scope(|scope| {
        let users = scope.spawn(|| victim.run(&scenario));
        let mut sent = HELLO.into_iter().chain(std::iter::repeat(0));
        while !users.is_finished() {
            let byte = sent.next().expect("zeros without end");
            for stream in &mut dripping {
                // Those whose deadline is over are closed.
                let _ = stream.write_all(&[byte]);
            }
            std::thread::sleep(Duration::from_millis(200));
        }
        users.join().expect("the run ends")
    });
    let connect = &summary["connect"];
    assert!(connect["ok"].as_u64() > Some(20), "{summary}");
    assert_eq!(connect["ok"], connect["intended"], "{summary}");
    assert_eq!(summary["errors"], serde_json::json!({}), "{summary}");
    let of_each = victim.grown_most().saturating_sub(8 * MIB) / (SILENT + DRIPPING);
    eprintln!("{} KiB at most, beside 8 MiB, for each", of_each / KIB);
    assert!(of_each < 16 * KIB, "{of_each} bytes for a handshake that is not finished");
    victim.wait_for("tls_handshake_timeouts", SILENT + DRIPPING);
    let snapshot = victim.snapshot();
    for gauge in ["tls_under_way", "tls_part_bytes", "open"] {
        assert_eq!(snapshot["counters"][gauge], 0, "{gauge}: {snapshot}");
    }
    for stream in silent.iter_mut().chain(&mut dripping) {
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let ended = stream.read(&mut [0; 64]);
        let is_reset = |error: &std::io::Error| error.kind() == std::io::ErrorKind::ConnectionReset;
        assert!(matches!(&ended, Ok(0)) || ended.as_ref().is_err_and(is_reset), "{ended:?}");
    }
}
