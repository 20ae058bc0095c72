//! `throng serve`: runs a server on this machine until it is asked to stop.

mod limits;
mod panics;
mod reload;
mod shared;
mod sockets;
mod text;
mod tls;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use serde_json::json;
use throng_control::ProcessRole;
use throng_server::kinds::{KINDS, KindOptions, ServerKind, ServerProtocol};
use throng_server::{AcceptTopology, AnyServer, ServerOptions, SharedTopics};
use throng_view::metrics::{MetricsEndpoint, ServerMetrics};

pub(crate) use self::reload::TlsReload;
use crate::control::ServerControl;
use crate::interrupt::{Interrupt, LOOK_EVERY};
use crate::metrics::MetricsFlag;
use crate::{Exit, Failure, output, quantity};

/// The command `throng serve`.
#[derive(Debug, Args)]
#[command(
    about = about(),
    long_about = None,
    after_help = EXAMPLES,
    after_long_help = format!("{EXAMPLES}\n\n{}", limits::help())
)]
pub(crate) struct Serve {
    /// The kind of server
    #[arg(value_parser = kind())]
    kind: &'static ServerKind,
    /// Address to listen on; port 0 lets the kernel choose
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:5555",
        value_parser = quantity::listen)]
    listen: SocketAddr,
    /// Event loops [default: one per CPU; more if --connections-max needs their fd tables]
    #[arg(long, value_name = "N", value_parser = quantity::cores)]
    cores: Option<usize>,
    /// How connections reach a core: reuseport (a listener for each core), shared (one listener
    /// that all cores accept from), dispatch (one registry assigns the core)
    #[arg(long, value_name = "HOW", default_value = "reuseport",
        value_parser = PossibleValuesParser::new(["reuseport", "shared", "dispatch"]))]
    accept: String,
    /// Connections that may wait in the accept queue of each listener
    #[arg(long, value_name = "N", default_value = "4096", value_parser = quantity::backlog)]
    backlog: u32,
    /// Maximum of connections over all cores [default: what the fd tables hold]
    #[arg(long, value_name = "N", value_parser = quantity::count)]
    connections_max: Option<usize>,
    /// Close connections idle for longer than this; pings count as activity [default: never;
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
    #[command(flatten)]
    shared: shared::SharedFlags,
    #[command(flatten)]
    tls: tls::TlsFlags,
    /// On shutdown, wait this long for open connections to end
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = quantity::duration)]
    drain_timeout: Duration,
    /// Print a line of counters at this interval
    #[arg(long, value_name = "TIME", value_parser = quantity::interval)]
    stats: Option<Duration>,
    /// Print JSON: a line at the start, a line per interval with --stats, a line at the end
    #[arg(long)]
    json: bool,
    /// Socket that answers `throng ctl` [default: a file of this user]
    #[arg(long, value_name = "PATH")]
    control: Option<PathBuf>,
    #[command(flatten)]
    metrics: MetricsFlag,
    /// End when standard input closes, as it does when the parent process ends
    #[arg(long)]
    exit_with_parent: bool,
}

const EXAMPLES: &str = "\
Examples:
  throng serve echo
  throng serve ok --listen 0.0.0.0:9000 --accept shared --backlog 1024
  throng serve hold --listen '[::1]:5555' --connections-max 200k --stats 1s
  throng serve echo --metrics 9465
  throng serve pingpong --idle-timeout 90s --sndbuf 16KiB --rcvbuf 16KiB
  throng serve chat --listen 0.0.0.0:9160 --deflate --policy drop-oldest --queue 1MiB
  throng serve channels --listen 0.0.0.0:4000 --host chat.example.com --policy drop-oldest
  throng serve channels --tls-cert chain.pem --tls-key key.pem --listen 0.0.0.0:443
  throng serve chat --tls-cert chain.pem --tls-key key.pem --tls-ticket-keys tickets.keys
  throng serve chat --tls-self-signed --tls-keylog keys.log
  throng serve channels --check-origin //*.example.com --message-max 1MiB --poll-sessions-max 5k
  throng serve channels --listen 10.0.0.2:4000 --bus nats://10.0.0.1:4222 --node two";

impl Serve {
    pub(crate) fn run(&self) -> Result<Exit, Failure> {
        self.check_flags()?;
        let interrupt = Interrupt::install(self.exit_with_parent)?;
        panics::limit_output();
        let shared = self.shared.topics(self.kind)?;
        let node = shared.as_ref().map(|shared| shared.node.to_string());
        let (server, tls) = self.start(shared)?;
        let reload = TlsReload::new(&server, &self.tls, self.json)?;
        let control = ServerControl {
            server: Arc::clone(&server),
            reload: reload.clone(),
            interrupt: interrupt.clone(),
            drain_timeout: self.drain_timeout,
        };
        let title = format!("{} on {}", self.kind.name, server.addr());
        let control = throng_control::serve(
            self.control.as_deref(),
            ProcessRole::Server,
            &title,
            Arc::new(control),
        )?;
        let measured = Arc::clone(&server);
        let endpoint = self.metrics.serve(ServerMetrics::new(move || measured.peek()))?;
        let metrics = endpoint.as_ref().map(MetricsEndpoint::url);
        let snapshot = server.snapshot();
        let mut listening = json!({
            "event": "listening",
            "addr": server.addr().to_string(),
            "pid": std::process::id(),
            "control": control.path(),
            "cores": snapshot.cores,
            "connections_max": snapshot.connections_max,
        });
        if let Some(url) = &metrics {
            listening["metrics"] = json!(url);
        }
        if let Some(node) = &node {
            listening["node"] = json!(node);
        }
        if let Some(tls) = &tls {
            listening["tls"] = tls.json();
        }
        let metrics = metrics.as_deref();
        let mut text = text::listening(&snapshot, self, control.path(), metrics, tls.as_ref());
        if let Some(node) = &node {
            text.push_str(&format!("\n{}", self.shared.describe(node)));
        }
        output::say_either(self.json, &listening, text);
        for warning in tls.iter().flat_map(tls::TlsFacts::warnings) {
            output::say_beside(self.json, warning);
        }
        let by = self.print_until_interrupted(&*server, &interrupt, reload.as_ref());
        server.suspend();
        let open = server.open();
        output::say_either(
            self.json,
            &json!({"event": "draining", "by": by, "open": open}),
            format!("{by}: accepting has stopped; {open} connections are open"),
        );
        let drained = server.drain(self.drain_timeout);
        let last = server.snapshot();
        drop((control, endpoint));
        output::say_either(
            self.json,
            &json!({"event": "stopped", "by": by, "drained": drained, "snapshot": last}),
            text::stopped(&last, open, drained),
        );
        server.stop();
        Ok(Exit::Met)
    }

    /// Refuses a flag that this kind of server does not read.
    fn check_flags(&self) -> Result<(), Failure> {
        let needs_more = |(_, protocol): &(_, ServerProtocol)| *protocol > self.kind.protocol;
        let mut given = self.sockets.given().into_iter().chain(self.shared.given());
        let Some((flag, protocol)) = given.find(needs_more) else {
            return Ok(());
        };
        let readers: Vec<String> = KINDS
            .iter()
            .filter(|kind| kind.protocol >= protocol)
            .map(|kind| format!("`throng serve {}`", kind.name))
            .collect();
        let (name, readers) = (self.kind.name, readers.join(" and "));
        Err(Failure::new(format!(
            "`throng serve {name}` does not support `{flag}`: leave it out; it is for {readers}"
        )))
    }

    fn start(
        &self,
        shared: Option<SharedTopics>,
    ) -> Result<(Arc<dyn AnyServer>, Option<tls::TlsFacts>), Failure> {
        let mut server = self.options();
        let tls = self.tls.set(self.kind, &mut server)?;
        let options = KindOptions {
            server,
            websocket: self.sockets.websocket(),
            channels: self.sockets.channels(),
            shared,
        };
        let server = (self.kind.start)(&options).map_err(|error| text::not_started(&error))?;
        Ok((server, tls))
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
            ..ServerOptions::default()
        }
    }

    /// Prints events and statistics until the process is asked to stop. Returns what asked for it.
    fn print_until_interrupted(
        &self,
        server: &dyn AnyServer,
        interrupt: &Interrupt,
        reload: Option<&TlsReload>,
    ) -> String {
        let mut before = (Instant::now(), server.snapshot());
        loop {
            if let Some(by) = interrupt.requested() {
                return by.to_string();
            }
            std::thread::sleep(LOOK_EVERY);
            if let Some(reload) = reload {
                reload.look_for_signal(interrupt);
            }
            for event in server.events() {
                match self.json {
                    true => output::say_json(&event),
                    false => output::say_note(event.to_string()),
                }
            }
            if self.stats.is_some_and(|interval| before.0.elapsed() >= interval) {
                let now = (Instant::now(), server.snapshot());
                output::say_either(
                    self.json,
                    &json!({"event": "stats", "snapshot": now.1}),
                    text::stats(&before.1, &now.1, now.0 - before.0),
                );
                before = now;
            }
        }
    }
}

/// Returns the first line of the help, which lists all kinds.
fn about() -> String {
    let names: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
    format!("Run a server: {}", names.join(", "))
}

/// Reads the name of a kind; the names and the help of each come from [`KINDS`].
fn kind() -> impl TypedValueParser<Value = &'static ServerKind> {
    let names = KINDS.iter().map(|kind| PossibleValue::new(kind.name).help(kind.about));
    PossibleValuesParser::new(names)
        .map(|name| ServerKind::named(&name).expect("the parser accepts the names of kinds only"))
}
