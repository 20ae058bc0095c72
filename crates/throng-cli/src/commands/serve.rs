//! `throng serve`: a server on this machine, until it is told to end.

mod limits;
mod panics;
mod sockets;
mod text;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum};
use serde_json::json;
use throng_control::ProcessRole;
use throng_driver::CoreId;
use throng_report::{RunEvent, ServerSnapshot};
use throng_server::{AcceptTopology, Handler, Server, ServerOptions, channels, handlers};

use crate::control::{AnyServer, ServerControl};
use crate::interrupt::{Interrupt, LOOK_EVERY};
use crate::{Exit, Failure, output, quantity};

/// Run a server: ok, echo, pingpong, hold, chat or channels
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, after_long_help = format!("{EXAMPLES}\n\n{}", limits::help()))]
pub(crate) struct Serve {
    /// What it does with its connections
    handler: ServerKind,
    /// Where to listen; port 0 lets the kernel choose
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:5555",
        value_parser = quantity::listen)]
    listen: SocketAddr,
    /// Event loops [default: one a CPU, more where --connections-max needs their fd tables]
    #[arg(long, value_name = "N", value_parser = quantity::cores)]
    cores: Option<usize>,
    /// How connections find their core: a listener a core, one listener for all, or one registry
    #[arg(long, value_name = "HOW", default_value = "reuseport",
        value_parser = PossibleValuesParser::new(["reuseport", "shared", "dispatch"]))]
    accept: String,
    /// Connections that may wait for accept, for each listener
    #[arg(long, value_name = "N", default_value = "4096", value_parser = quantity::backlog)]
    backlog: u32,
    /// Connections over all cores [default: what the fd tables hold]
    #[arg(long, value_name = "N", value_parser = quantity::count)]
    connections_max: Option<usize>,
    /// Close a connection of which nothing was heard for so long; pings count [default: never;
    /// channels: 60s]
    #[arg(long, value_name = "TIME", value_parser = quantity::duration)]
    idle_timeout: Option<Duration>,
    /// Send buffer of each connection, such as 64KiB [default: the kernel's]
    #[arg(long, value_name = "BYTES", value_parser = quantity::socket_bytes)]
    sndbuf: Option<u32>,
    /// Receive buffer of each connection [default: the kernel's]
    #[arg(long, value_name = "BYTES", value_parser = quantity::socket_bytes)]
    rcvbuf: Option<u32>,
    #[command(flatten)]
    sockets: sockets::Flags,
    /// How long open connections may take to end once the server is told to
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = quantity::duration)]
    drain_timeout: Duration,
    /// Print a line in every interval of this length
    #[arg(long, value_name = "TIME", value_parser = quantity::interval)]
    stats: Option<Duration>,
    /// Print JSON: a line when it listens, one an interval with --stats, one at the end
    #[arg(long)]
    json: bool,
    /// Where to answer `throng ctl` [default: a file of this user]
    #[arg(long, value_name = "PATH")]
    control: Option<PathBuf>,
    /// End when standard input does, as it does when the parent process is gone
    #[arg(long)]
    exit_with_parent: bool,
}

/// A built-in handler.
#[derive(Clone, Copy, Debug, ValueEnum)]
#[value(rename_all = "lowercase")]
enum ServerKind {
    /// Answer any packet with `ok`
    Ok,
    /// Send back what comes
    Echo,
    /// Answer each 4-byte `Ping` with `Pong`
    PingPong,
    /// Accept, and keep
    Hold,
    /// Everyone hears everyone: a chat of one room over WebSockets
    Chat,
    /// Phoenix Channels at /socket, with rooms to try, and a chat page at /
    Channels,
}

const EXAMPLES: &str = "\
Examples:
  throng serve echo
  throng serve ok --listen 0.0.0.0:9000 --accept shared --backlog 1024
  throng serve hold --listen '[::1]:5555' --connections-max 200k --stats 1s
  throng serve pingpong --idle-timeout 90s --sndbuf 16KiB --rcvbuf 16KiB
  throng serve chat --listen 0.0.0.0:9160 --deflate --policy drop-oldest --queue 1MiB
  throng serve channels --listen 0.0.0.0:4000 --host chat.example.com --policy drop-oldest
  throng serve channels --check-origin //*.example.com --message-max 1MiB --poll-sessions-max 5k";

impl Serve {
    pub(crate) fn run(&self) -> Result<Exit, Failure> {
        self.check_flags()?;
        let interrupt = Interrupt::install(self.exit_with_parent)?;
        panics::print_seldom();
        let server = self.start()?;
        let control = ServerControl {
            server: Arc::clone(&server),
            interrupt: interrupt.clone(),
            drain_timeout: self.drain_timeout,
        };
        let title = format!("{} on {}", self.handler.name(), server.addr());
        let control = throng_control::serve(
            self.control.as_deref(),
            ProcessRole::Server,
            &title,
            Arc::new(control),
        )
        .map_err(|error| Failure::new(error.to_string()))?;
        let snapshot = server.snapshot();
        if self.json {
            output::say_json(&json!({
                "event": "listening",
                "addr": server.addr().to_string(),
                "pid": std::process::id(),
                "control": control.path(),
                "cores": snapshot.cores,
                "connections_max": snapshot.connections_max,
            }));
        } else {
            output::say(text::beginning(&snapshot, self, control.path()));
        }
        let by = self.watch(&*server, &interrupt);
        server.suspend();
        let open = server.open();
        match self.json {
            true => output::say_json(&json!({"event": "draining", "by": by, "open": open})),
            false => output::say(format!("{by}: no more connections; {open} are open")),
        }
        let drained = server.drain(self.drain_timeout);
        let last = server.snapshot();
        drop(control);
        if self.json {
            output::say_json(
                &json!({"event": "stopped", "by": by, "drained": drained, "snapshot": last}),
            );
        } else {
            output::say(text::end(&last, open, drained));
        }
        server.stop();
        Ok(Exit::Met)
    }

    /// A flag that would do nothing is a mistake.
    fn check_flags(&self) -> Result<(), Failure> {
        let (flag, belongs_to) = match self.handler {
            ServerKind::Channels => return Ok(()),
            ServerKind::Chat => (self.sockets.of_channels(), "`throng serve channels`"),
            _ => (self.sockets.of_websockets(), "`throng serve chat` or `throng serve channels`"),
        };
        let Some(flag) = flag else { return Ok(()) };
        let name = self.handler.name();
        let problem = format!("`{flag}` means nothing to `throng serve {name}`");
        Err(Failure::new(format!("{problem}: leave it out; it belongs to {belongs_to}")))
    }

    fn start(&self) -> Result<Arc<dyn AnyServer>, Failure> {
        match self.handler {
            ServerKind::Ok => self.with(|| handlers::Ok),
            ServerKind::Echo => self.with(|| handlers::Echo),
            ServerKind::PingPong => self.with(|| handlers::PingPong),
            ServerKind::Hold => self.with(|| handlers::Hold),
            ServerKind::Channels => {
                let channels = self.sockets.channels(channels::demo(), self.idle_timeout);
                start(self.options_of_sockets(), move |core| channels.handler(core))
            }
            ServerKind::Chat => {
                let chat = self.sockets.chat(self.idle_timeout);
                start(self.options_of_sockets(), move |_| handlers::Chat::new(chat.clone()))
            }
        }
    }

    fn with<H: Handler>(&self, make: fn() -> H) -> Result<Arc<dyn AnyServer>, Failure>
    where
        Server<H>: Send + Sync,
    {
        start(self.options(), move |_| make())
    }

    /// Of a server whose handler knows the idle timeout itself: a WebSocket that is silent for too long is told so before it is
    /// closed.
    fn options_of_sockets(&self) -> ServerOptions {
        ServerOptions { idle_timeout: None, ..self.options() }
    }

    fn options(&self) -> ServerOptions {
        ServerOptions {
            listen: self.listen,
            cores: self.cores,
            accept: self.accept.parse().unwrap_or(AcceptTopology::Reuseport),
            backlog: self.backlog,
            connections_max: self.connections_max,
            idle_timeout: self.idle_timeout,
            sndbuf_bytes: self.sndbuf,
            rcvbuf_bytes: self.rcvbuf,
            // No handler of ours uses an fd that another thread opened.
            private_fds: true,
            ..ServerOptions::default()
        }
    }

    /// Prints what was asked for until somebody wants the server to end, and says who.
    fn watch(&self, server: &dyn AnyServer, interrupt: &Interrupt) -> String {
        let mut before = (Instant::now(), server.snapshot());
        loop {
            if let Some(by) = interrupt.requested() {
                return by.to_string();
            }
            std::thread::sleep(LOOK_EVERY);
            server.events().iter().for_each(|event| self.tell(event));
            if self.stats.is_some_and(|interval| before.0.elapsed() >= interval) {
                let now = (Instant::now(), server.snapshot());
                self.show(&before.1, &now.1, now.0 - before.0);
                before = now;
            }
        }
    }

    fn tell(&self, event: &RunEvent) {
        match self.json {
            true => output::say_json(event),
            false => output::say(event.to_string()),
        }
    }

    fn show(&self, before: &ServerSnapshot, now: &ServerSnapshot, span: Duration) {
        match self.json {
            true => output::say_json(&json!({"event": "stats", "snapshot": now})),
            false => output::say(text::stats(before, now, span)),
        }
    }
}

fn start<H: Handler>(
    options: ServerOptions,
    make: impl Fn(CoreId) -> H + Send + Sync + 'static,
) -> Result<Arc<dyn AnyServer>, Failure>
where
    Server<H>: Send + Sync,
{
    match Server::start(options, make) {
        Ok(server) => Ok(Arc::new(server)),
        Err(error) => Err(text::not_started(&error)),
    }
}

impl ServerKind {
    fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }
}
