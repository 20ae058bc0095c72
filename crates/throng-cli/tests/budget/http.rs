//! A client connection: requests, and frames after an upgrade.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use rustix::net::{AddressFamily, SocketType, sockopt};

/// A connection that stays open between two requests.
pub(crate) struct Http {
    stream: BufReader<TcpStream>,
}

/// A response to a request.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: String,
}

impl Http {
    pub(crate) fn connect(addr: &str) -> Self {
        Self { stream: BufReader::new(connect(addr, None)) }
    }

    /// Connects with a receive buffer so small that most unread data stays at the server.
    pub(crate) fn connect_small(addr: &str) -> Self {
        Self { stream: BufReader::new(connect(addr, Some(4 << 10))) }
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.get_mut().write_all(bytes).expect("the server receives");
    }

    /// Sends a request with a body without waiting for the response.
    pub(crate) fn begin(&mut self, method: &str, target: &str, body: &str) {
        let length = body.len();
        let head = format!("{method} {target} HTTP/1.1\r\nhost: 127.0.0.1\r\n");
        self.send(format!("{head}content-length: {length}\r\n\r\n{body}").as_bytes());
    }

    pub(crate) fn ask(&mut self, method: &str, target: &str, body: &str) -> Answer {
        self.begin(method, target, body);
        self.answer().expect("the server answers")
    }

    /// Returns the next response; `None` once the connection has ended.
    pub(crate) fn answer(&mut self) -> Option<Answer> {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if self.stream.read_line(&mut head).ok()? == 0 {
                return None;
            }
        }
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
        self.stream.read_exact(&mut body).ok()?;
        let status = head[9..12].parse().unwrap();
        Some(Answer { status, body: String::from_utf8(body).unwrap() })
    }

    /// Upgrades the connection to a WebSocket.
    pub(crate) fn upgrade(&mut self, target: &str) {
        let upgrade = "upgrade: websocket\r\nconnection: Upgrade\r\nsec-websocket-version: 13\r\n\
             sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
        self.send(format!("GET {target} HTTP/1.1\r\nhost: 127.0.0.1\r\n{upgrade}").as_bytes());
        assert_eq!(self.answer().expect("the server answers").status, 101);
    }

    /// Sends a text message.
    pub(crate) fn text(&mut self, text: &str) {
        let frame = frame(0x81, text.len(), text.as_bytes());
        self.send(&frame);
    }

    /// Returns the opcode and payload of the next frame; `None` once the connection has ended.
    pub(crate) fn frame(&mut self) -> Option<(u8, Vec<u8>)> {
        let mut head = [0; 2];
        self.stream.read_exact(&mut head).ok()?;
        let mut long = [0; 8];
        let length = match head[1] {
            126 => {
                self.stream.read_exact(&mut long[6..]).ok()?;
                u64::from_be_bytes(long)
            }
            127 => {
                self.stream.read_exact(&mut long).ok()?;
                u64::from_be_bytes(long)
            }
            short => short.into(),
        };
        let mut payload = vec![0; length as usize];
        self.stream.read_exact(&mut payload).ok()?;
        Some((head[0] & 0x0f, payload))
    }
}

/// Encodes the start of a client frame of `length` bytes, with only the given part of its payload.
pub(crate) fn frame(first: u8, length: usize, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![first, 0x80 | 127];
    match length {
        0..126 => frame[1] = 0x80 | length as u8,
        126..0x1_0000 => {
            frame[1] = 0x80 | 126;
            frame.extend((length as u16).to_be_bytes());
        }
        _ => frame.extend((length as u64).to_be_bytes()),
    }
    // A mask of zeros changes nothing.
    frame.extend([0; 4]);
    frame.extend(payload);
    frame
}

/// Connects, with a receive buffer of this size if one is given.
fn connect(addr: &str, receive_bytes: Option<usize>) -> TcpStream {
    let addr: SocketAddr = addr.parse().unwrap();
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    if let Some(bytes) = receive_bytes {
        sockopt::set_socket_recv_buffer_size(&socket, bytes).unwrap();
    }
    rustix::net::connect(&socket, &addr).expect("the server listens");
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// The timeout, longer than any response takes.
const PATIENCE: Duration = Duration::from_secs(300);
