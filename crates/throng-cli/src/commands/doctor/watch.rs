//! `throng doctor --watch`: observes a server's host under load from elsewhere.

mod standing_queue;
mod summary;
mod text;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use throng_run::watch::{HostWatch, Publisher, WatchOptions};

use crate::interrupt::Interrupt;
use crate::{Exit, Failure, quantity};
use summary::WatchSummary;
use text::Lines;

/// The flags of `--watch` alone.
#[derive(Debug, Args)]
pub(super) struct WatchFlags {
    /// Observe a server's host under load: one line per interval, and a diagnosis at the end
    #[arg(long, conflicts_with = "connections")]
    pub(super) watch: bool,
    /// With --watch: time between two lines
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = quantity::interval)]
    interval: Duration,
    /// With --watch: end after this many seconds
    #[arg(long, value_name = "N", value_parser = quantity::seconds, requires = "watch")]
    seconds: Option<u64>,
    /// With --watch: send the same facts as JSON lines to every client of this address (throng run
    /// --server-facts)
    #[arg(long, value_name = "ADDR:PORT", value_parser = listen, requires = "watch")]
    listen: Option<SocketAddr>,
    /// With --watch: control socket of a throng server [default: found by its process]
    #[arg(long, value_name = "PATH", requires = "watch")]
    server_control: Option<PathBuf>,
}

impl WatchFlags {
    /// Watches until a request to end, or for the given time.
    pub(super) fn run(&self, ports: &[u16], pid: Option<u32>, json: bool) -> Result<Exit, Failure> {
        let interrupt = Interrupt::install(false)?;
        let options = WatchOptions {
            ports: ports.to_vec(),
            pid,
            control: self.server_control.clone(),
            counts_established: true,
        };
        // Bind before this thread enters the server's network namespace: readers connect to the
        // host.
        let bind = |address| {
            Publisher::bind(address).map_err(|error| {
                Failure::new(format!(
                    "cannot listen on {address}: {error}; choose another --listen"
                ))
            })
        };
        let publisher = self.listen.map(bind).transpose()?;
        let mut watch = HostWatch::new(options).map_err(Failure::new)?;
        let header = watch.header(self.interval);
        let publisher = publisher.map(|publisher| publisher.start(&header)).transpose()?;
        let mut seen = WatchSummary::default();
        let mut lines = Lines::new(json);
        lines.begin(&header, &watch, publisher.as_ref().map(Publisher::addr));

        let length = self.seconds.map(Duration::from_secs);
        let is_ended = || interrupt.requested().is_some();
        watch.run(self.interval, length, is_ended, |_, line| {
            if let Some(publisher) = &publisher {
                publisher.publish(&line);
            }
            lines.line(&line, seen.last());
            seen.add(line);
        });
        lines.end(&seen);
        Ok(Exit::Met)
    }
}

/// Parses the address of `--listen`. A port alone is on loopback: facts about a host leave it only
/// if the user names an address.
fn listen(text: &str) -> Result<SocketAddr, String> {
    match text.parse::<u16>() {
        Ok(port) => Ok(SocketAddr::from(([127, 0, 0, 1], port))),
        Err(_) => quantity::listen(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_is_one_of_loopback() {
        assert_eq!(listen("5599"), Ok("127.0.0.1:5599".parse().unwrap()));
        assert_eq!(listen("0.0.0.0:5599"), Ok("0.0.0.0:5599".parse().unwrap()));
        assert!(listen("host:5599").is_err());
    }
}
