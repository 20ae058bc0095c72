//! The servers of the experiments.

mod chat;

use std::convert::Infallible;

use throng_proto::Raw;

use crate::{Connection, Handler};

pub use chat::{Chat, ChatOptions};

/// Answers any packet with `ok`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ok;

impl Handler for Ok {
    type Session = Raw;
    type State = ();
    type Message = Infallible;
    const NAME: &'static str = "ok";

    fn event(&mut self, conn: &mut Connection<'_, Self>, _bytes: &[u8]) {
        conn.send(b"ok");
    }
}

/// Sends back what it receives.
#[derive(Clone, Copy, Debug, Default)]
pub struct Echo;

impl Handler for Echo {
    type Session = Raw;
    type State = ();
    type Message = Infallible;
    const NAME: &'static str = "echo";

    fn event(&mut self, conn: &mut Connection<'_, Self>, bytes: &[u8]) {
        conn.send(bytes);
    }
}

/// Accepts and keeps; what arrives is received and forgotten.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hold;

impl Handler for Hold {
    type Session = Raw;
    type State = ();
    type Message = Infallible;
    const NAME: &'static str = "hold";

    fn event(&mut self, _conn: &mut Connection<'_, Self>, _bytes: &[u8]) {}
}

/// Answers every `Ping` with `Pong`, as connscale's server does, however TCP cuts them. Whoever sends anything else
/// is disconnected.
#[derive(Clone, Copy, Debug, Default)]
pub struct PingPong;

impl Handler for PingPong {
    type Session = Raw;
    /// How many bytes of a `Ping` have arrived.
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
