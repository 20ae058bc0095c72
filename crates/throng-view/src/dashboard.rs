//! The live dashboard: the page of a run, served while the run goes on.
//!
//! [`DashboardFeed`] takes what the recorder measures and passes it to a thread of the dashboard,
//! so the recorder never waits for a reader. That thread keeps the [`RunContent`] of the run. A
//! reader gets the page and its data once, and then a stream of parts. The server stores nothing
//! for a reader but its place in the page: a slow reader gets larger parts, or is told to fetch
//! the data anew.
//!
//! | request | answer |
//! |---|---|
//! | `GET /` | the page |
//! | `GET /run` | its data so far |
//! | `GET /rows?run=N&from=CURSOR` | server-sent events |
//! | `POST /ctl` | executes a verb of `throng ctl`: `{"verb":"start","n":100}` |
//!
//! The events are `rows`, `summary`, `end` (of a run), `run` (fetch the data anew) and `over` (no
//! further run begins).
//!
//! [`RunContent`]: throng_run::RunContent

mod access;
mod feed;
mod live_run;
mod routes;
mod store;
mod stream;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::http::HttpServer;
use access::Access;
pub use feed::DashboardFeed;
use store::DashboardStore;

/// A running dashboard. Dropping it closes the connections of its readers.
#[derive(Debug)]
pub struct Dashboard {
    server: HttpServer,
    feed: DashboardFeed,
    shared: Arc<DashboardStore>,
    url: String,
}

impl Dashboard {
    /// Serves the dashboard at `addr`. Until a run begins, the page shows the sentence `waiting`.
    ///
    /// # Errors
    /// The address cannot be listened at, or the system has no random numbers or no thread.
    pub fn start(addr: SocketAddr, waiting: &str) -> io::Result<Self> {
        let mut random = [0; TOKEN_BYTES];
        getrandom::fill(&mut random).map_err(io::Error::other)?;
        let token: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        let shared = Arc::new(DashboardStore::new(waiting));
        let feed = feed::start(Arc::clone(&shared))?;
        let routes = |addr| routes::router(Arc::clone(&shared), Access::new(addr, token.clone()));
        let server = HttpServer::start_with(addr, routes)?;
        let url = format!("http://{}/?token={token}", server.addr());
        Ok(Self { server, feed, shared, url })
    }

    /// Returns the address to open, with the token.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the address that the dashboard listens at.
    pub fn addr(&self) -> SocketAddr {
        self.server.addr()
    }

    /// Returns the feed, through which the dashboard learns of runs.
    pub fn feed(&self) -> DashboardFeed {
        self.feed.clone()
    }

    /// Ends the dashboard: waits until each reader has the end, but not for long.
    pub fn close(self) {
        self.feed.over();
        let until = Instant::now() + LAST_READERS;
        while !self.shared.has_said_all() && Instant::now() < until {
            thread::sleep(LOOK_EVERY);
        }
    }
}

/// The token has 128 bits, so that it cannot be guessed.
const TOKEN_BYTES: usize = 16;
/// The time that readers have to fetch the end.
const LAST_READERS: Duration = Duration::from_secs(2);
const LOOK_EVERY: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests;
