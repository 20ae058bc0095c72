//! OpenSSL as the peer, over sockets of this machine.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use throng_tls::{
    CertifiedPair, PemFile, Suite, TicketKeys, TlsHandshakeKind, TlsVersion, TrustAnchors,
};

use crate::certificates::{Options, VERSIONS};
use crate::end::{End, Ours, exchange};

/// Returns false where there is no OpenSSL, and says so.
fn is_here() -> bool {
    let found = Command::new("openssl").arg("version").stdout(Stdio::null()).status().is_ok();
    if !found {
        eprintln!("not run: there is no openssl here");
    }
    found
}

/// Time after which a step of a test has failed.
const PATIENCE: Duration = Duration::from_secs(30);

/// End of ours with its socket.
struct Socket {
    end: Ours,
    stream: TcpStream,
}

impl Socket {
    fn new(end: Ours, stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        Self { end, stream }
    }

    fn flush(&mut self) {
        self.stream.write_all(&self.end.take_sent()).unwrap();
    }

    /// Receives and answers until the condition holds.
    fn until(&mut self, what: &str, mut is_so: impl FnMut(&Ours) -> bool) {
        let begun = Instant::now();
        let mut buffer = [0; 4_096];
        loop {
            self.flush();
            if is_so(&self.end) {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "not in time: {what}; {:?}", self.end.failure());
            match self.stream.read(&mut buffer) {
                Ok(0) => assert!(is_so(&self.end), "the end came before: {what}"),
                Ok(length) => self.end.receive(&buffer[..length]),
                Err(error) => assert!(
                    [std::io::ErrorKind::WouldBlock, std::io::ErrorKind::TimedOut]
                        .contains(&error.kind()),
                    "{what}: {error}"
                ),
            }
        }
    }

    /// Waits for this text of the peer.
    fn expect(&mut self, text: &str) {
        self.until(text, |end| String::from_utf8_lossy(&end.plain).contains(text));
        self.end.plain.clear();
    }

    fn write(&mut self, text: &str) {
        self.end.write(text.as_bytes());
        self.flush();
    }
}

/// Running `openssl`. It is killed when this is dropped.
struct OpenSsl {
    child: Child,
    input: Option<ChildStdin>,
    output: Receiver<Vec<u8>>,
    text: String,
}

impl OpenSsl {
    fn start(arguments: &[&str], folder: &Path) -> Self {
        let mut child = Command::new("openssl")
            .args(arguments)
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (sender, output) = channel();
        let pipes: [Box<dyn Read + Send>; 2] =
            [Box::new(child.stdout.take().unwrap()), Box::new(child.stderr.take().unwrap())];
        for mut pipe in pipes {
            let sender = sender.clone();
            std::thread::spawn(move || {
                let mut buffer = [0; 4_096];
                while let Ok(length @ 1..) = pipe.read(&mut buffer) {
                    if sender.send(buffer[..length].to_vec()).is_err() {
                        return;
                    }
                }
            });
        }
        let input = child.stdin.take();
        Self { child, input, output, text: String::new() }
    }

    /// Writes a line. A line of one letter may be a command.
    fn write(&mut self, line: &str) {
        let input = self.input.as_mut().unwrap();
        input.write_all(line.as_bytes()).and_then(|()| input.flush()).unwrap();
    }

    /// Waits for this text of OpenSSL.
    fn expect(&mut self, text: &str) {
        let begun = Instant::now();
        while !self.text.contains(text) {
            assert!(begun.elapsed() < PATIENCE, "`{text}` is not in:\n{}", self.text);
            if let Ok(bytes) = self.output.recv_timeout(Duration::from_millis(20)) {
                self.text.push_str(&String::from_utf8_lossy(&bytes));
            }
        }
    }
}

impl Drop for OpenSsl {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn version_flag(version: TlsVersion) -> &'static str {
    if version == TlsVersion::V13 { "-tls1_3" } else { "-tls1_2" }
}

/// Makes a folder with the certificates of these options.
fn folder(options: &Options) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let pair = &options.server.pairs[0];
    for (name, text) in [
        ("ca.pem", options.authority.pem.as_bytes()),
        ("chain.pem", pair.chain.text()),
        ("key.pem", pair.key.text()),
    ] {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

#[test]
fn s_client_talks_updates_keys_and_resumes() {
    if !is_here() {
        return;
    }
    for version in VERSIONS {
        let mut options = Options::new();
        options.server.tickets = Some(TicketKeys::new([1; 32]));
        let (config, folder) = (options.server(), folder(&options));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        for session in ["-sess_out", "-sess_in"] {
            let mut client = OpenSsl::start(
                &[
                    "s_client",
                    "-connect",
                    &address,
                    "-servername",
                    "localhost",
                    "-CAfile",
                    "ca.pem",
                    "-verify_return_error",
                    version_flag(version),
                    session,
                    "session",
                    "-record_padding",
                    "64",
                ],
                folder.path(),
            );
            let mut server = Socket::new(Ours::server(&config), listener.accept().unwrap().0);
            server.until("handshake", |end| end.is_open());
            let is_second = session == "-sess_in";
            assert_eq!(server.end.kind() == TlsHandshakeKind::Resumed, is_second, "{version:?}");
            client.expect("Verify return code: 0 (ok)");
            client.write("hello\n");
            server.expect("hello");
            server.write("from the server\n");
            client.expect("from the server");
            if version == TlsVersion::V13 {
                for command in ["K", "k"] {
                    let before = server.end.table.counters().key_updates;
                    client.write(&format!("{command}\n"));
                    server.until(command, |end| end.table.counters().key_updates > before);
                    client.write("after the update\n");
                    server.expect("after the update");
                    server.write(&format!("answer to {command}\n"));
                    client.expect(&format!("answer to {command}"));
                }
                server.end.update_keys();
                server.write("our update\n");
                client.expect("our update");
                client.write("still here\n");
                server.expect("still here");
            }
            client.write("Q\n");
            server.until("close_notify", Ours::is_finished);
        }
    }
}

#[test]
fn s_server_talks_updates_keys_and_resumes() {
    if !is_here() {
        return;
    }
    for version in VERSIONS {
        let mut options = Options::new();
        options.client.max = version;
        let (config, folder) = (options.client(), folder(&options));
        // A port that was free a moment ago: the server says when it has it.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let address = format!("127.0.0.1:{port}");
        let mut server = OpenSsl::start(
            &["s_server", "-accept", &address, "-cert", "chain.pem", "-key", "key.pem"],
            folder.path(),
        );
        server.expect("ACCEPT");
        for kind in [TlsHandshakeKind::Full, TlsHandshakeKind::Resumed] {
            let stream = TcpStream::connect(&address).unwrap();
            let mut client = Socket::new(Ours::client(&config, true), stream);
            client.until("handshake", |end| end.is_open());
            assert_eq!(client.end.kind(), kind, "{version:?}");
            client.until("ticket", |_| config.has_session());
            client.write("hello\n");
            server.expect("hello");
            server.write("from s_server\n");
            client.expect("from s_server");
            if version == TlsVersion::V13 {
                for command in ["K", "k"] {
                    let before = client.end.table.counters().key_updates;
                    server.write(&format!("{command}\n"));
                    client.until(command, |end| end.table.counters().key_updates > before);
                    server.write("after the update\n");
                    client.expect("after the update");
                    client.write(&format!("answer to {command}\n"));
                    server.expect(&format!("answer to {command}"));
                }
                client.end.update_keys();
                client.write("our update\n");
                server.expect("our update");
                server.write("still here\n");
                client.expect("still here");
            }
            client.end.close();
            client.flush();
            server.expect("DONE");
            server.text.clear();
        }
    }
}

#[test]
fn openssl_and_we_agree_on_each_suite() {
    if !is_here() {
        return;
    }
    for suite in Suite::PREFERENCE {
        let options = Options::new().only(suite);
        let (config, folder) = (options.server(), folder(&options));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let arguments = ["s_client", "-connect", &address, "-CAfile", "ca.pem", "-quiet"];
        let mut client = OpenSsl::start(&arguments, folder.path());
        let mut server = Socket::new(Ours::server(&config), listener.accept().unwrap().0);
        server.until("handshake", |end| end.is_open());
        assert_eq!(server.end.established.as_ref().unwrap().suite, suite);
        client.write(&"a line of some length\n".repeat(2_000));
        let all = 22 * 2_000;
        server.until("all lines", |end| end.plain.len() == all);
        server.write("and back\n");
        client.expect("and back");
    }
}

/// RSA costs a server four times as much as ECDSA: a turn has room for one such step.
#[test]
fn a_key_of_rsa_works_and_its_price_is_reported() {
    if !is_here() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let arguments = "req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out chain.pem -days 30 \
                     -subj /CN=localhost -addext subjectAltName=DNS:localhost";
    let made = Command::new("openssl")
        .args(arguments.split_whitespace())
        .current_dir(folder.path())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert!(made.success());
    let read = |name| PemFile::read(&folder.path().join(name)).unwrap();
    let mut options = Options::new();
    options.client.trust = TrustAnchors::Unverified;
    let rsa = CertifiedPair { chain: read("chain.pem"), key: read("key.pem") };
    options.server.pairs = vec![rsa];
    for version in VERSIONS {
        options.client.max = version;
        let mut client = Ours::client(&options.client(), false);
        let mut server = Ours::server(&options.server());
        exchange(&mut client, &mut server, usize::MAX);
        assert!(client.is_open());
        assert!((1_000..1_100).contains(&server.cost_us), "{}", server.cost_us);
    }
}
