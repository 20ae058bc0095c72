//! The helpers of the tests on real sockets.
#![allow(dead_code, unreachable_pub)]

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use throng_measure::ServerSnapshot;
use throng_server::{AcceptTopology, Handler, RunningServer, ServerOptions};

pub const TOPOLOGIES: [AcceptTopology; 3] =
    [AcceptTopology::Reuseport, AcceptTopology::Shared, AcceptTopology::Dispatch];
/// Longer than any expected event takes, on a busy machine too.
pub const PATIENCE: Duration = Duration::from_secs(300);
/// Long enough for an event that must not happen.
pub const A_WHILE: Duration = Duration::from_millis(200);

/// Makes options with private fd tables, as `throng serve` uses them.
pub fn options(accept: AcceptTopology, cores: usize) -> ServerOptions {
    ServerOptions { accept, cores: Some(cores), private_fds: true, ..ServerOptions::default() }
}

/// Connects a client whose reads time out after [`PATIENCE`].
pub fn connect(addr: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect_timeout(&addr, PATIENCE).expect("the server takes connects");
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Sends a byte and waits for the `ok`.
pub fn ask(stream: &mut TcpStream) {
    stream.write_all(b"?").unwrap();
    let mut answer = [0; 2];
    stream.read_exact(&mut answer).expect("the server answers");
    assert_eq!(&answer, b"ok");
}

/// Reports whether the `ok` for a sent byte arrives within [`A_WHILE`].
pub fn is_answered(stream: &mut TcpStream) -> bool {
    stream.set_read_timeout(Some(A_WHILE)).unwrap();
    let read = stream.read(&mut [0; 2]);
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    match read {
        Ok(read) => read > 0,
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => false,
        Err(error) => panic!("{error}"),
    }
}

/// Reports whether the peer has closed, in order or by reset.
pub fn is_closed_by_peer(stream: &mut TcpStream) -> bool {
    match stream.read(&mut [0; 64]) {
        Ok(read) => read == 0,
        Err(error) => error.kind() == ErrorKind::ConnectionReset,
    }
}

/// Connects, and reports whether the server closes the connection at once: perhaps by a reset
/// before the client has noticed that it is connected.
pub fn is_turned_away(addr: SocketAddr) -> bool {
    match TcpStream::connect_timeout(&addr, PATIENCE) {
        Ok(mut stream) => {
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            is_closed_by_peer(&mut stream)
        }
        Err(error) => error.kind() == ErrorKind::ConnectionReset,
    }
}

/// Waits until `condition` holds; panics if it does not within [`PATIENCE`].
pub fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "{what}: not within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Returns the counters of every core. If a core is kept from running, it is asked again.
pub fn snapshot<H: Handler>(server: &RunningServer<H>) -> ServerSnapshot {
    let mut last = server.snapshot();
    eventually("every core answers", || {
        if last.cores_silent > 0 {
            last = server.snapshot();
        }
        last.cores_silent == 0
    });
    last
}

/// Reads the `ok` for a sent byte.
pub fn read_ok(stream: &mut TcpStream) {
    let mut answer = [0; 2];
    stream.read_exact(&mut answer).expect("the server answers");
    assert_eq!(&answer, b"ok");
}
