//! The server that answers `Ping` with `Pong`.

use std::convert::Infallible;

use throng_proto::Raw;

use crate::{Connection, Handler};

/// A handler that answers every `Ping` with `Pong`, as the server of connscale does, however TCP
/// splits the bytes. It closes a connection that sends anything else.
#[derive(Clone, Copy, Debug, Default)]
pub struct PingPong;

impl Handler for PingPong {
    type Session = Raw;
    /// Bytes of a `Ping` that have arrived.
    type State = u8;
    type Message = Infallible;
    const NAME: &'static str = "pingpong";

    fn event(&mut self, conn: &mut Connection<'_, Self>, bytes: &[u8]) {
        let mut seen = usize::from(*conn.state());
        for &byte in bytes {
            if byte != PING[seen] {
                return conn.close();
            }
            seen += 1;
            if seen == PING.len() {
                conn.send(b"Pong");
                seen = 0;
            }
        }
        *conn.state() = seen as u8;
    }
}

const PING: &[u8; 4] = b"Ping";
