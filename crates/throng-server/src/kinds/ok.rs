//! The server that answers `ok`.

use std::convert::Infallible;

use throng_proto::Raw;

use crate::{Connection, Handler};

/// A handler that answers every packet with `ok`.
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
