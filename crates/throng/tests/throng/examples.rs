//! Each example does what its first lines say, run as a program of its own.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::{Error, Message, WebSocket};

#[test]
fn echo_sends_back_bytes_and_drains_at_sigterm() {
    let server = Server::start("echo");
    let mut client = TcpStream::connect(server.address).unwrap();
    client.write_all(b"hello").unwrap();
    let mut answer = [0; 5];
    client.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"hello");
    drop(client);
    server.end();
}

#[test]
fn ws_echo_answers_messages_and_pings_and_says_goodbye() {
    let server = Server::start("ws_echo");
    let mut client = server.web_socket("/");
    for message in [Message::text("hello"), Message::binary(vec![1, 2, 3])] {
        client.send(message.clone()).unwrap();
        assert_eq!(client.read().unwrap(), message);
    }
    client.send(Message::Ping("p".into())).unwrap();
    assert_eq!(client.read().unwrap(), Message::Pong("p".into()));
    server.signal();
    let Message::Close(Some(close)) = client.read().unwrap() else { panic!("a close frame") };
    assert_eq!(close.code, CloseCode::Away);
    while client.read().is_ok() {}
    server.wait();
}

#[test]
fn chat_tells_a_room_who_comes_says_and_leaves() {
    let server = Server::start("chat");
    let mut ann = server.web_socket("/lobby?name=ann");
    assert_eq!(text(&mut ann), "ann: is here");
    let mut bob = server.web_socket("/lobby?name=bob");
    assert_eq!(text(&mut ann), "bob: is here");
    assert_eq!(text(&mut bob), "bob: is here");
    let mut other = server.web_socket("/elsewhere?name=eve");
    assert_eq!(text(&mut other), "eve: is here");
    bob.send(Message::text("hello")).unwrap();
    assert_eq!(text(&mut ann), "bob: hello");
    bob.close(None).unwrap();
    assert_eq!(text(&mut ann), "bob: has left");

    let url = format!("ws://{}/lobby", server.address);
    let refused = tungstenite::client(url, TcpStream::connect(server.address).unwrap());
    let Err(tungstenite::HandshakeError::Failure(Error::Http(response))) = refused else {
        panic!("a client without a name is refused")
    };
    assert_eq!(response.status(), 400);
    drop((ann, other));
    server.end();
}

#[test]
fn channels_let_a_client_join_and_broadcast() {
    let server = Server::start("channels");
    let mut client = server.web_socket("/socket/websocket?vsn=2.0.0");
    let mut ask = |frame: &str| {
        client.send(Message::text(frame)).unwrap();
        text(&mut client)
    };
    let joined = ask(r#"["1","1","rooms:lobby","phx_join",{}]"#);
    assert!(joined.contains(r#""status":"ok""#), "{joined}");
    let refused = ask(r#"["2","2","rooms:secret","phx_join",{}]"#);
    assert!(refused.contains("members only"), "{refused}");
    let first = ask(r#"["1","3","rooms:lobby","new_msg",{"body":"hello"}]"#);
    let both = first + &text(&mut client);
    assert!(both.contains(r#""body":"hello""#) && both.contains(r#""status":"ok""#), "{both}");
    drop(client);
    server.end();
}

#[test]
fn session_reads_messages_however_they_arrive() {
    let server = Server::start("session");
    let mut client = TcpStream::connect(server.address).unwrap();
    client.set_nodelay(true).unwrap();
    for byte in b"\0\x05hello\0\0" {
        client.write_all(&[*byte]).unwrap();
    }
    client.write_all(b"\0\x02ab\0\x01").unwrap();
    client.write_all(b"z").unwrap();
    let mut answers = [0; 16];
    client.read_exact(&mut answers).unwrap();
    assert_eq!(&answers, b"\0\x05olleh\0\0\0\x02ba\0\x01z");
    drop(client);
    server.end();
}

#[test]
fn load_prints_a_summary_and_a_verdict() {
    let printed = run("load", &[]);
    for part in [" connects, ", "p99 of an answer: ", "grade: "] {
        assert!(printed.contains(part), "{part:?} in {printed}");
    }
}

#[test]
fn lab_prints_a_row_for_each_size() {
    let printed = run("lab", &[]);
    for size in ["16", "1024", "16384"] {
        let is_row = |line: &str| line.split_whitespace().next() == Some(size);
        assert!(printed.lines().any(is_row), "{size} in {printed}");
    }
}

#[test]
fn run_file_prints_what_was_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.jsonl");
    let server = throng::Server::bind("127.0.0.1:0")
        .on_bytes(|conn, bytes| conn.send(bytes))
        .start()
        .unwrap();
    let outcome = throng::Load::new(
        "target: tcp://127.0.0.1:1\nload: [{ramp: {to: 5, over: 100ms}}, {hold: {for: 1s}}]\n\
         user: [connect, send: hello, expect: hello, stay]\n",
    )
    .target(format!("tcp://{}", server.addr()))
    .record(&path)
    .run()
    .unwrap();
    let printed = run("run_file", &[path.to_str().unwrap()]);
    let messages = format!("{} messages", outcome.result.summary.message.answered);
    assert!(printed.contains(&messages), "{messages:?} in {printed}");
    assert!(printed.contains("connected"), "{printed}");
}

#[test]
fn doctor_prints_a_verdict_and_a_line_for_each_limit() {
    let printed = run("doctor", &["1000"]);
    assert!(printed.contains("memory") && printed.contains("fd tables"), "{printed}");
}

/// An example that serves.
struct Server {
    process: Child,
    address: SocketAddr,
}

impl Server {
    fn start(example: &str) -> Self {
        let mut command = Command::new(program(example));
        let mut process = command.arg("127.0.0.1:0").stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().rsplit(' ').next().unwrap_or_default();
        let address = address.trim_start_matches("ws://").split('/').next().unwrap_or_default();
        let address = address.parse().unwrap_or_else(|error| panic!("{error}: {line:?}"));
        Self { process, address }
    }

    fn web_socket(&self, path: &str) -> WebSocket<TcpStream> {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        tungstenite::client(format!("ws://{}{path}", self.address), stream).unwrap().0
    }

    fn signal(&self) {
        kill_process(Pid::from_child(&self.process), Signal::TERM).unwrap();
    }

    /// Ends the server by SIGTERM, after which it has succeeded.
    fn end(self) {
        self.signal();
        self.wait();
    }

    /// Waits for the end of a server that was sent a signal.
    fn wait(mut self) {
        assert!(self.process.wait().unwrap().success());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Runs an example to its end and returns what it printed.
fn run(example: &str, arguments: &[&str]) -> String {
    let output = Command::new(program(example)).args(arguments).output().unwrap();
    let (printed, errors) = (&output.stdout, String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{example}: {errors}");
    String::from_utf8(printed.clone()).unwrap()
}

/// The program of an example, which `cargo test` builds beside the tests.
pub(crate) fn program(example: &str) -> PathBuf {
    let own = std::env::current_exe().unwrap();
    own.parent().unwrap().parent().unwrap().join("examples").join(example)
}

fn text(client: &mut WebSocket<TcpStream>) -> String {
    match client.read().unwrap() {
        Message::Text(text) => text.to_string(),
        other => panic!("a text message, not {other:?}"),
    }
}

/// Long enough for a machine with other things to do: nothing is measured.
const PATIENCE: Duration = Duration::from_secs(300);
