//! The server that only keeps connections open.

use std::convert::Infallible;

use throng_proto::Raw;

use crate::{Connection, Handler};

/// A handler that keeps connections open. It receives bytes and discards them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hold;

impl Handler for Hold {
    type Session = Raw;
    type State = ();
    type Message = Infallible;
    const NAME: &'static str = "hold";

    fn event(&mut self, _conn: &mut Connection<'_, Self>, _bytes: &[u8]) {}
}
