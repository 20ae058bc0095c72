//! The echo server.

use std::convert::Infallible;
use std::sync::Arc;

use throng_proto::Raw;

use super::KindOptions;
use super::start::start_server;
use crate::{AnyServer, Connection, Handler, StartError};

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

pub(super) fn start(options: &KindOptions) -> Result<Arc<dyn AnyServer>, StartError> {
    start_server(&options.server, |_| Echo)
}
