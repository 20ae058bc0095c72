//! Servers of plain TCP that a closure answers.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;

use throng_proto::Raw;

use crate::{Connection, Handler};

/// A connection of plain TCP, for the length of one call.
pub type TcpConnection<'a> = Connection<'a, BytesHandler>;

/// The handler that calls a closure with the bytes of each receive. TCP knows no messages: one may
/// arrive in pieces, and several may arrive at once.
#[derive(Clone)]
pub struct BytesHandler(Arc<OnBytes>);

type OnBytes = dyn Fn(&mut TcpConnection<'_>, &[u8]) + Send + Sync;

impl BytesHandler {
    /// Wraps `on_bytes`, which all cores share.
    pub fn new(on_bytes: impl Fn(&mut TcpConnection<'_>, &[u8]) + Send + Sync + 'static) -> Self {
        Self(Arc::new(on_bytes))
    }
}

impl Handler for BytesHandler {
    type Session = Raw;
    type State = ();
    type Message = Infallible;
    const NAME: &'static str = "bytes";

    fn event(&mut self, conn: &mut TcpConnection<'_>, bytes: &[u8]) {
        (self.0)(conn, bytes);
    }
}

impl fmt::Debug for BytesHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BytesHandler").finish_non_exhaustive()
    }
}
