//! A server over real sockets, and clients that do nothing.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use axum::routing::{get, post};
use futures_util::stream::{once, unfold};

use super::HttpServer;
use super::limits::HttpLimits;

fn started(limits: HttpLimits) -> HttpServer {
    let router = Router::new()
        .route("/fast", get(async || "done"))
        .route("/take", post(async |body: Bytes| format!("{} bytes", body.len())))
        .route("/foreign", get(async || StatusCode::FORBIDDEN))
        .route("/slow", get(async || Body::from_stream(once(slow()))));
    HttpServer::start_limited("127.0.0.1:0".parse().unwrap(), limits, |_| router).unwrap()
}

/// An answer that takes several times the time that a client has.
async fn slow() -> Result<Bytes, axum::Error> {
    tokio::time::sleep(SHORT * 5).await;
    Ok(Bytes::from_static(b"late"))
}

fn short() -> HttpLimits {
    HttpLimits { connections_max: 4, head_timeout: SHORT, body_timeout: SHORT, idle_timeout: SHORT }
}

/// Limits that no test reaches by time.
fn places(connections_max: usize) -> HttpLimits {
    let long = Duration::from_secs(3_600);
    HttpLimits { connections_max, head_timeout: long, body_timeout: long, idle_timeout: long }
}

fn connect(addr: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(addr).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream
}

fn send(stream: &mut TcpStream, path: &str) {
    write!(stream, "GET {path} HTTP/1.1\r\nhost: here\r\n\r\n").unwrap();
}

/// Sends a request and returns its answer up to `end`.
fn ask(stream: &mut TcpStream, path: &str, end: &str) -> String {
    send(stream, path);
    read_to(stream, end)
}

fn read_to(stream: &mut TcpStream, end: &str) -> String {
    let mut read = Vec::new();
    let mut byte = [0];
    while !read.ends_with(end.as_bytes()) && stream.read(&mut byte).unwrap() > 0 {
        read.push(byte[0]);
    }
    String::from_utf8(read).unwrap()
}

#[track_caller]
fn is_closed(stream: &mut TcpStream) {
    let mut rest = Vec::new();
    // A reset closes it too.
    let _ = stream.read_to_end(&mut rest);
    assert_eq!(rest, b"");
}

#[test]
fn connections_that_wait_for_their_clients_are_closed_after_their_time() {
    let server = started(short());
    let mut silent = connect(server.addr());
    let mut half = connect(server.addr());
    half.write_all(b"GET /fast HTTP/1.1\r\n").unwrap();
    let mut idle = connect(server.addr());
    assert!(ask(&mut idle, "/fast", "done").starts_with("HTTP/1.1 200"));
    [&mut silent, &mut half, &mut idle].into_iter().for_each(is_closed);
}

#[test]
fn a_body_that_arrives_slowly_is_not_awaited_for_ever() {
    let limits = HttpLimits { body_timeout: SHORT, ..places(4) };
    let server = started(limits);
    let head = "POST /take HTTP/1.1\r\nhost: here\r\ncontent-length: 4\r\n\r\n";
    let mut whole = connect(server.addr());
    write!(whole, "{head}body").unwrap();
    assert!(read_to(&mut whole, "bytes").ends_with("4 bytes"));
    let mut slow = connect(server.addr());
    write!(slow, "{head}bod").unwrap();
    is_closed(&mut slow);
}

#[test]
fn an_answer_may_take_longer_than_a_client() {
    let server = started(short());
    let mut stream = connect(server.addr());
    assert!(ask(&mut stream, "/slow", "late").ends_with("late"));
}

#[test]
fn a_client_that_does_not_read_loses_its_connection() {
    let is_dropped = Arc::new(AtomicBool::new(false));
    let mark = Arc::clone(&is_dropped);
    let endless = async move || {
        let bytes = Bytes::from(vec![b'x'; 1 << 16]);
        Body::from_stream(unfold((bytes, SetWhenDropped(mark)), async |(bytes, mark)| {
            Some((Ok::<_, axum::Error>(bytes.clone()), (bytes, mark)))
        }))
    };
    let router = Router::new().route("/endless", get(endless));
    let address = "127.0.0.1:0".parse().unwrap();
    let server = HttpServer::start_limited(address, short(), |_| router).unwrap();
    let mut stream = connect(server.addr());
    send(&mut stream, "/endless");
    let until = Instant::now() + Duration::from_secs(60);
    while !is_dropped.load(Ordering::SeqCst) {
        assert!(Instant::now() < until, "the connection stays");
        std::thread::sleep(Duration::from_millis(1));
    }
}

struct SetWhenDropped(Arc<AtomicBool>);

impl Drop for SetWhenDropped {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
fn idle_connections_cost_a_client_nothing() {
    let server = started(places(8));
    let mut silent: Vec<_> = (0..64).map(|_| connect(server.addr())).collect();
    for stream in &mut silent[..32] {
        stream.write_all(b"GET /fast HTTP/1.1\r\nhost:").unwrap();
    }
    for _ in 0..20 {
        let mut stream = connect(server.addr());
        assert!(ask(&mut stream, "/fast", "done").starts_with("HTTP/1.1 200"));
    }
}

#[test]
fn those_who_are_let_in_keep_their_places() {
    let server = started(places(4));
    let mut known = connect(server.addr());
    assert!(ask(&mut known, "/fast", "done").ends_with("done"));
    let mut streaming = connect(server.addr());
    send(&mut streaming, "/slow");
    let mut refused = Vec::new();
    for _ in 0..32 {
        let mut stream = connect(server.addr());
        assert!(ask(&mut stream, "/foreign", "\r\n\r\n").starts_with("HTTP/1.1 403"));
        refused.push(stream);
    }
    is_closed(&mut refused[0]);
    assert!(ask(&mut known, "/fast", "done").ends_with("done"));
    assert!(read_to(&mut streaming, "late").ends_with("late"));
}

#[test]
fn a_head_without_an_end_is_refused() {
    let server = started(places(4));
    let mut stream = connect(server.addr());
    let _ = stream.write_all(b"GET /fast HTTP/1.1\r\n");
    let field = format!("x: {}\r\n", "y".repeat(1_000));
    while stream.write_all(field.as_bytes()).is_ok() {}
}

/// A time that is over soon.
const SHORT: Duration = Duration::from_millis(100);
