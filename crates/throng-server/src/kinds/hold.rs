//! The server that only keeps connections open.

use std::convert::Infallible;
use std::sync::Arc;

use throng_proto::Raw;

use super::KindOptions;
use super::start::start_server;
use crate::{AnyServer, Connection, Handler, StartError};

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

pub(super) fn start(options: &KindOptions) -> Result<Arc<dyn AnyServer>, StartError> {
    start_server(&options.server, |_| Hold)
}
