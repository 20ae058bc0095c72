//! `--ui` and `--open`: the live page of a run.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;

use clap::Args;
use throng_control::ControlTarget;
use throng_measure::Interval;
use throng_measure::runfile::RunEnd;
use throng_run::{RunContent, RunResult};
use throng_view::dashboard::{Dashboard, DashboardFeed};

use crate::{Failure, output, quantity};

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
        value_parser = quantity::local_listen,
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
        output::say_beside(quiet, live_page(&dashboard));
        if !addr.ip().is_loopback() {
            output::print_error(format!(
                "--ui={addr}: the link is all that it takes to see and to stop this run, and it is \
                 not encrypted on the network"
            ));
        }
        if self.open {
            // The browser is on this machine.
            open(&url.replace(&addr.ip().to_string(), &reachable(addr.ip()).to_string()));
        }
        let feed = dashboard.feed();
        Ok(LivePage(Some((dashboard, feed))))
    }
}

impl LivePage {
    /// Returns the sentence with its link.
    pub(crate) fn link(&self) -> Option<String> {
        self.0.as_ref().map(|(dashboard, _)| live_page(dashboard))
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

    /// Returns the feed of the page, if there is one.
    pub(crate) fn feed(&self) -> Option<&DashboardFeed> {
        self.0.as_ref().map(|(_, feed)| feed)
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
}

/// Returns the sentence with the link. A server at all addresses has no address of its own.
fn live_page(dashboard: &Dashboard) -> String {
    let (url, ip) = (dashboard.url(), dashboard.addr().ip());
    if ip.is_unspecified() {
        return format!("live page: {url} (put an IP address of this machine in place of {ip})");
    }
    format!("live page: {url}")
}

/// Returns the address by which this machine reaches a server at `ip`.
fn reachable(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
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

/// The program that opens links on a desktop.
const OPENER: &str = "xdg-open";
const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
