//! The echo server.

use std::convert::Infallible;

use throng_proto::Raw;

use crate::{Connection, Handler};

/// A handler that sends back all bytes it receives.
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
