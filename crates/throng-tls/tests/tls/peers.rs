//! TLS of other people as the peer, in both roles: a row of a table, and a program in
//! `tests/peers/`.
//!
//! A program is started with its role, a folder of certificates and, as a client, our port; a
//! server prints its port. It makes or accepts two connections, one after the other, and the second
//! resumes the session of the first if it can. It sends back what it receives until `close_notify`.
//! Of each connection it prints the version, whether a session was resumed, and whether
//! `close_notify` arrived; `?` stands for what it does not know.

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use throng_tls::{TicketKeys, TlsHandshakeKind, TlsVersion};

use crate::certificates::{Options, VERSIONS};
use crate::end::{End, Ours};
use crate::program::{Program, is_here};
use crate::socket::{PATIENCE, Socket};

/// Peer: a program, and what it can.
struct Peer {
    /// Program; with a `/`, a file of the repository.
    program: &'static str,
    /// Arguments before those of the role; the last is a file in `tests/peers/`.
    arguments: &'static [&'static str],
    /// Arguments that show that the program is here.
    check: &'static [&'static str],
    /// Versions that it resumes as a client, and as a server.
    resumes: [&'static [TlsVersion]; 2],
    /// It starts key updates.
    updates_keys: bool,
}

const GO: Peer = Peer {
    program: "go",
    arguments: &["run", "go/peer.go"],
    check: &["version"],
    resumes: [&VERSIONS, &VERSIONS],
    updates_keys: false,
};

const NODE: Peer = Peer {
    program: "node",
    arguments: &["node/peer.js"],
    check: &["--version"],
    resumes: [&VERSIONS, &VERSIONS],
    updates_keys: false,
};

const JAVA: Peer = Peer {
    program: "java",
    arguments: &["java/Peer.java"],
    check: &["-version"],
    resumes: [&VERSIONS, &VERSIONS],
    updates_keys: true,
};

const PYTHON: Peer = Peer {
    program: "python3",
    arguments: &["python/peer.py"],
    check: &["-c", "import ssl"],
    resumes: [&VERSIONS, &VERSIONS],
    updates_keys: false,
};

const TLSLITE: Peer = Peer {
    program: "target/clients/python/bin/python",
    arguments: &["tlslite/peer.py"],
    check: &["-c", "import tlslite"],
    resumes: [&VERSIONS, &VERSIONS],
    updates_keys: true,
};

#[test]
fn go_is_a_client_and_a_server() {
    check(&GO);
}

#[test]
fn node_is_a_client_and_a_server() {
    check(&NODE);
}

#[test]
fn java_is_a_client_and_a_server() {
    check(&JAVA);
}

#[test]
fn python_is_a_client_and_a_server() {
    check(&PYTHON);
}

#[test]
fn tlslite_is_a_client_and_a_server() {
    check(&TLSLITE);
}

fn check(peer: &Peer) {
    if !is_here(&peer.path(), peer.check) {
        return;
    }
    for version in VERSIONS {
        check_client(peer, version);
        check_server(peer, version);
    }
}

/// The peer is the client.
fn check_client(peer: &Peer, version: TlsVersion) {
    let mut options = Options::new();
    (options.server.min, options.server.max) = (version, version);
    options.server.tickets = Some(TicketKeys::new([1; 32]));
    let (config, folder) = (options.server(), options.folder());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let mut program = peer.start(&["client", &path(&folder), &port]);
    for is_second in [false, true] {
        let mut server = Socket::new(Ours::server(&config), accept(&listener, &mut program));
        let is_resumed = is_second && peer.resumes[0].contains(&version);
        talk(peer, &mut server, version, is_resumed);
        check_words(&mut program, version, is_resumed);
    }
}

/// The peer is the server.
fn check_server(peer: &Peer, version: TlsVersion) {
    let mut options = Options::new();
    (options.client.min, options.client.max) = (version, version);
    let (config, folder) = (options.client(), options.folder());
    let mut program = peer.start(&["server", &path(&folder)]);
    let port = program.line();
    let port: u16 = port.parse().unwrap_or_else(|_| panic!("{port}{}", program.text));
    for is_second in [false, true] {
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let mut client = Socket::new(Ours::client(&config, true), stream);
        let is_resumed = is_second && peer.resumes[1].contains(&version);
        talk(peer, &mut client, version, is_resumed);
        check_words(&mut program, version, is_resumed);
    }
}

/// Compares what the peer prints of a connection with what is so.
fn check_words(program: &mut Program, version: TlsVersion, is_resumed: bool) {
    let line = program.line();
    let version = if version == TlsVersion::V13 { "TLSv1.3" } else { "TLSv1.2" };
    let right = [version.to_owned(), is_resumed.to_string(), true.to_string()];
    let words: Vec<String> =
        line.replace("TLS 1", "TLSv1").split(' ').map(str::to_lowercase).collect();
    let fits = |(word, right): (&String, &String)| word == "?" || *word == right.to_lowercase();
    let is_right = words.len() == 3 && words.iter().zip(&right).all(fits);
    assert!(is_right, "not {right:?}:\n{line}\n{}", program.rest());
}

/// Accepts a connection of the program.
fn accept(listener: &TcpListener, program: &mut Program) -> TcpStream {
    let begun = Instant::now();
    loop {
        if let Ok((stream, _)) = listener.accept() {
            stream.set_nonblocking(false).unwrap();
            return stream;
        }
        program.read();
        assert!(begun.elapsed() < PATIENCE, "no connection:\n{}", program.text);
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Talks with the peer until both ends have closed.
fn talk(peer: &Peer, socket: &mut Socket, version: TlsVersion, is_resumed: bool) {
    socket.until("handshake", |end| end.is_open());
    let report = socket.end.established.clone().unwrap();
    assert_eq!(report.suite.version(), version);
    assert_eq!(
        report.kind == TlsHandshakeKind::Resumed,
        is_resumed,
        "{}, {version:?}",
        peer.program
    );
    echo(socket, "hello\n");
    if version == TlsVersion::V13 {
        socket.end.update_keys();
        echo(socket, "after our update\n");
        echo(socket, "update\n");
        echo(socket, "after your update\n");
    }
    echo(socket, &"a line of some length\n".repeat(3_000));
    echo(socket, "the last one\n");
    if version == TlsVersion::V13 {
        let updates = socket.end.table.counters().key_updates;
        let least = if peer.updates_keys { 3 } else { 2 };
        assert!(updates >= least, "{}: {updates} key updates", peer.program);
    }
    socket.end.close();
    socket.until("close_notify", Ours::is_finished);
}

/// Sends a text, and waits until it is back.
fn echo(socket: &mut Socket, text: &str) {
    socket.write(text);
    socket.until(text, |end| end.plain.len() >= text.len());
    assert!(socket.end.take_plain() == text.as_bytes());
}

impl Peer {
    fn path(&self) -> String {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
        match self.program.contains('/') {
            true => path(root.join(self.program)),
            false => self.program.to_owned(),
        }
    }

    fn start(&self, of_role: &[&str]) -> Program {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/peers");
        Program::start(&self.path(), &[self.arguments, of_role].concat(), &folder)
    }
}

fn path(path: impl AsRef<Path>) -> String {
    path.as_ref().to_str().unwrap().to_owned()
}
