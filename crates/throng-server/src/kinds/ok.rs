//! The server that answers `ok`.

use std::convert::Infallible;
use std::sync::Arc;

use throng_proto::Raw;

use super::KindOptions;
use super::start::start_server;
use crate::{AnyServer, Connection, Handler, StartError};

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

pub(super) fn start(options: &KindOptions) -> Result<Arc<dyn AnyServer>, StartError> {
    start_server(&options.server, |_| Ok)
}
