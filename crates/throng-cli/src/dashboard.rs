//! `--ui` and `--open`: the live page of a run.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;

use clap::Args;
use throng_control::ControlTarget;
use throng_lab::{RunContent, RunResult};
use throng_report::Interval;
use throng_report::runfile::RunEnd;
use throng_view::dashboard::{Dashboard, DashboardFeed};

use crate::{Failure, output};

/// The flags of the live page.
#[derive(Clone, Debug, Args)]
pub(crate) struct UiFlags {
    /// Show the run live on a page, here or at this address; the link is printed. `0.0.0.0:8080`
    /// lets other machines connect
    #[arg(
        long,
        value_name = "ADDR",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "127.0.0.1:0",
        value_parser = parse_addr,
    )]
    ui: Option<SocketAddr>,
    /// Open the live page in a browser, too; implies --ui
    #[arg(long)]
    open: bool,
}

/// The live page of this process, if there is one.
#[derive(Debug)]
pub(crate) struct LivePage(Option<(Dashboard, DashboardFeed)>);

impl UiFlags {
    /// Serves the live page if the user asked for it, and prints its link: on standard error if
    /// standard output is for JSON. Until a run begins, the page says `waiting`.
    ///
    /// # Errors
    /// The address cannot be listened at.
    pub(crate) fn start(&self, waiting: &str, quiet: bool) -> Result<LivePage, Failure> {
        let addr = match self.ui {
            Some(addr) => addr,
            None if self.open => SocketAddr::new(HERE, 0),
            None => return Ok(LivePage(None)),
        };
        let dashboard = Dashboard::start(addr, waiting).map_err(|error| {
            Failure::new(format!(
                "--ui={addr}: cannot listen there: {error}; --ui alone takes any free port"
            ))
        })?;
        let url = dashboard.url();
        output::say_beside(quiet, format!("live page: {url}"));
        if !addr.ip().is_loopback() {
            output::print_error(format!(
                "--ui={addr}: the link is all that it takes to see and to stop this run, and it is \
                 not encrypted on the network"
            ));
        }
        if self.open {
            open(url);
        }
        let feed = dashboard.feed();
        Ok(LivePage(Some((dashboard, feed))))
    }
}

impl LivePage {
    /// Returns the sentence with its link.
    pub(crate) fn link(&self) -> Option<String> {
        self.0.as_ref().map(|(dashboard, _)| format!("live page: {}", dashboard.url()))
    }

    /// Begins a run.
    pub(crate) fn begin(&self, title: &str, content: impl FnOnce() -> RunContent) {
        self.feed().inspect(|feed| feed.begin(title, content()));
    }

    /// Lets the page steer the run, as long as `target` is there.
    pub(crate) fn steer(&self, target: &Arc<dyn ControlTarget>) {
        self.feed().inspect(|feed| feed.steer(target));
    }

    /// Adds an interval.
    pub(crate) fn interval(&self, interval: &Interval) {
        self.feed().inspect(|feed| feed.interval(interval));
    }

    /// Returns a callback for the recorder that adds each interval, and then calls `next`.
    pub(crate) fn before(
        &self,
        mut next: impl FnMut(&Interval, Option<&Interval>) + Send + 'static,
    ) -> impl FnMut(&Interval, Option<&Interval>) + Send + 'static {
        let feed = self.feed().cloned();
        move |interval, previous| {
            feed.iter().for_each(|feed| feed.interval(interval));
            next(interval, previous);
        }
    }

    /// Ends the run.
    pub(crate) fn end(&self, result: &RunResult) {
        self.feed().inspect(|feed| feed.end(result));
    }

    /// Ends a run whose run file was read to its end.
    pub(crate) fn end_read(&self, end: Option<&RunEnd>, lines_torn: u64) {
        self.feed().inspect(|feed| feed.end_read(end, lines_torn));
    }

    /// Waits until open pages have everything, but not for long.
    pub(crate) fn close(self) {
        if let Some((dashboard, _)) = self.0 {
            dashboard.close();
        }
    }

    fn feed(&self) -> Option<&DashboardFeed> {
        self.0.as_ref().map(|(_, feed)| feed)
    }
}

/// Opens the link in the user's browser, beside the run.
fn open(url: &str) {
    let mut command = Command::new(OPENER);
    command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let wait = move || {
        let said = match command.status() {
            Ok(status) if status.success() => return,
            Ok(status) => format!("{OPENER} ended with {status}"),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                format!("{OPENER} is not installed")
            }
            Err(error) => format!("cannot start {OPENER}: {error}"),
        };
        output::print_error(format!("--open: {said}; open the link yourself"));
    };
    // Without a thread nothing opens, and the link is on the screen.
    let _ = thread::Builder::new().name("open".into()).spawn(wait);
}

/// Parses an address, or a port on this machine.
fn parse_addr(text: &str) -> Result<SocketAddr, String> {
    if let Ok(addr) = text.parse() {
        return Ok(addr);
    }
    if let Ok(port) = text.trim_start_matches(':').parse() {
        return Ok(SocketAddr::new(HERE, port));
    }
    match text.strip_prefix("localhost:").and_then(|port| port.parse().ok()) {
        Some(port) => Ok(SocketAddr::new(HERE, port)),
        None => Err("write an address and a port, such as 127.0.0.1:8080; port 0 is any free one"
            .to_owned()),
    }
}

/// The program that opens links on a desktop.
const OPENER: &str = "xdg-open";
const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_may_be_a_port() {
        for (text, addr) in [
            ("127.0.0.1:0", Some("127.0.0.1:0")),
            ("[::1]:8080", Some("[::1]:8080")),
            ("0.0.0.0:80", Some("0.0.0.0:80")),
            ("8080", Some("127.0.0.1:8080")),
            (":8080", Some("127.0.0.1:8080")),
            ("localhost:8080", Some("127.0.0.1:8080")),
            ("localhost", None),
            ("scenario.yaml", None),
            ("70000", None),
        ] {
            let expected = addr.map(|addr| addr.parse().unwrap());
            assert_eq!(parse_addr(text).ok(), expected, "{text}");
        }
    }
}
