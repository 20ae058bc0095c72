//! An HTTP server on a thread of its own, beside the cores.
//!
//! A connection that makes the server wait for its client gives its place to a new one when all
//! places are taken, so idle connections cost a scrape or a page nothing. See `HttpLimits`.

mod connection;
mod limits;
mod place;
mod places;
mod stream;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use axum::Router;
use tokio::sync::oneshot;
use tokio::task::yield_now;

use limits::HttpLimits;
use places::Places;

/// A running HTTP server. Dropping it closes all its connections.
#[derive(Debug)]
pub struct HttpServer {
    addr: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl HttpServer {
    /// Listens at `addr` and answers with `router`.
    ///
    /// # Errors
    /// The address cannot be listened at, or the thread cannot be started.
    pub fn start(addr: SocketAddr, router: Router) -> io::Result<Self> {
        Self::start_with(addr, |_| router)
    }

    /// Listens at `addr` and answers with the router that `router` returns for the address, with
    /// the port that the kernel chose.
    ///
    /// # Errors
    /// As for [`Self::start`].
    pub fn start_with(
        addr: SocketAddr,
        router: impl FnOnce(SocketAddr) -> Router,
    ) -> io::Result<Self> {
        Self::start_limited(addr, HttpLimits::default(), router)
    }

    /// Does the same with other limits.
    pub(crate) fn start_limited(
        addr: SocketAddr,
        limits: HttpLimits,
        router: impl FnOnce(SocketAddr) -> Router,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(addr)?;
        listener.set_nonblocking(true)?;
        let addr = listener.local_addr()?;
        let router = router(addr);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel();
        let serve = async move {
            let listener = tokio::net::TcpListener::from_std(listener)?;
            tokio::select! {
                // Dropping the runtime closes connections that never end, such as event streams.
                _ = stopped => Ok(()),
                never = accept(listener, limits, router) => never,
            }
        };
        let run = move || {
            // An error of a connection concerns that connection. `accept` itself does not fail.
            let _: io::Result<()> = runtime.block_on(serve);
        };
        let thread = thread::Builder::new().name("web".into()).spawn(run)?;
        Ok(Self { addr, stop: Some(stop), thread: Some(thread) })
    }

    /// Returns the address, with the port that the kernel chose if none was asked for.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Accepts connections, and gives each a place and a task.
async fn accept(
    listener: tokio::net::TcpListener,
    limits: HttpLimits,
    router: Router,
) -> io::Result<()> {
    let places = Arc::new(Places::new(limits));
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let place = places.take().await;
                tokio::spawn(connection::serve(stream, place, router.clone()));
                // The connection reads what its client has sent before the next one is accepted,
                // which may take the place of a connection that has sent nothing.
                yield_now().await;
            }
            // The client has gone, or the process has no room for another socket.
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

/// The pause after an error of `accept`.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests;
