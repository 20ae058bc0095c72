//! Alerts of a server over TLS reach their client, though it has sent more and goes on sending.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::process::{TestDir, eventually};

/// Sends `first`, then more: a server that closed after the first bytes would answer by a reset.
/// Returns all that the server says up to its FIN.
fn answer_to(addr: &str, first: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(addr).unwrap();
    stream.write_all(first).unwrap();
    for _ in 0..10 {
        stream.write_all(&[b'x'; 10_000]).expect("no reset");
        std::thread::sleep(Duration::from_millis(20));
    }
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("no reset");
    answer
}

#[test]
fn a_client_that_goes_on_sending_reads_why_its_handshake_failed() {
    let place = TestDir::new();
    let server = place.serve(&["chat", "--tls-self-signed"]);
    // A message of the handshake that no ClientHello is.
    let alert = answer_to(&server.addr, &[22, 3, 1, 0, 8, 1, 0, 0, 4, 9, 9, 9, 9]);
    let [21, 3, _, 0, 2, 2, _] = alert[..] else { panic!("no fatal alert: {alert:?}") };
    let answer = answer_to(&server.addr, b"POST / HTTP/1.1\r\ncontent-length: 100000\r\n\r\n");
    assert!(answer.starts_with(b"HTTP/1.1 400 "), "{}", answer.escape_ascii());
    eventually("both are counted when they have closed", || {
        let pid = server.process.pid().to_string();
        let snapshot = place.throng(&["ctl", "snapshot", "--json", "--pid", &pid]).json();
        snapshot["counters"]["tls_failures"] == 2
    });
}

#[test]
fn a_client_of_python_that_goes_on_sending_reads_the_alert_to_a_wrong_record() {
    let place = TestDir::new();
    if std::process::Command::new("python3").args(["-c", "import ssl"]).status().is_err() {
        println!("skipped: there is no python3");
        return;
    }
    let server = place.serve(&["echo", "--tls-self-signed"]);
    place.write("client.py", CLIENT);
    let line = format!("python3 client.py {}", server.addr);
    place.shell(&line).exits_with(0).stdout_contains(&["ALERT_BAD_RECORD_MAC", "then FIN"]);
}

/// Client whose records stop being right after the handshake. It prints the alert.
const CLIENT: &str = r#"
import socket, ssl, sys, time
host, port = sys.argv[1].rsplit(":", 1)
context = ssl.create_default_context()
context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
tls = context.wrap_bio(incoming, outgoing)
sock = socket.create_connection((host, int(port)), 30)

def until_done(call):
    while True:
        try:
            return call()
        except ssl.SSLWantReadError:
            sock.sendall(outgoing.read())
            incoming.write(sock.recv(65536))

until_done(tls.do_handshake)
tls.write(b"hello")
assert until_done(lambda: tls.read(5)) == b"hello"
sock.sendall(bytes([23, 3, 3, 0, 30]) + bytes(30))
for _ in range(10):
    sock.sendall(bytes(10_000))
    time.sleep(0.02)
try:
    until_done(lambda: tls.read(1))
except ssl.SSLError as error:
    print(error.reason)
if sock.recv(1) == b"":
    print("then FIN")
"#;
