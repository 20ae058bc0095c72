//! An HTTP server on a thread of its own, beside the cores.

mod listener;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::thread::{self, JoinHandle};

use axum::Router;
use tokio::sync::oneshot;

use listener::BoundedListener;

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
        let listener = TcpListener::bind(addr)?;
        listener.set_nonblocking(true)?;
        let addr = listener.local_addr()?;
        let router = router(addr);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel();
        let serve = async move {
            let listener = BoundedListener::new(tokio::net::TcpListener::from_std(listener)?);
            tokio::select! {
                // Dropping the runtime closes connections that never end, such as event streams.
                _ = stopped => Ok(()),
                served = axum::serve(listener, router) => served,
            }
        };
        let run = move || {
            // An error of a connection concerns that connection. `serve` itself does not fail.
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
