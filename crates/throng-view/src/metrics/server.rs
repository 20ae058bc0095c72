//! The metrics of a server.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use throng_measure::ServerSnapshot;
use throng_measure::metric::MetricKind;

use super::families::{Families, label_value};
use super::name::FamilyName;

/// The metrics of a running server, read at each scrape.
pub struct ServerMetrics<F> {
    snapshot: F,
}

impl<F: Fn() -> ServerSnapshot> ServerMetrics<F> {
    /// Returns metrics that read the server with `snapshot`. It must leave the server's maxima to
    /// the other readers; they have no metric, because their interval is that of another reader.
    pub fn new(snapshot: F) -> Self {
        Self { snapshot }
    }
}

impl<F> fmt::Debug for ServerMetrics<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerMetrics").finish_non_exhaustive()
    }
}

impl<F: Fn() -> ServerSnapshot + Send + Sync + 'static> Collector for ServerMetrics<F> {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        write(&mut Families::new(encoder), &(self.snapshot)())
    }
}

fn write(out: &mut Families<'_>, server: &ServerSnapshot) -> fmt::Result {
    let labels = vec![
        ("listen", label_value(&server.listen)),
        ("handler", label_value(&server.handler)),
        ("accept", label_value(&server.accept)),
    ];
    out.info("throng_server", "The server: its address, its handler, how it accepts.", &labels)?;
    out.gauge("throng_server_cores", "Cores that run.", server.cores)?;
    out.gauge(
        "throng_server_cores_silent",
        "Cores that did not answer in time: their counters are as of their last answer.",
        server.cores_silent,
    )?;
    out.gauge(
        "throng_server_connections_limit",
        "The limit of connections over all cores.",
        server.connections_max,
    )?;
    if server.backlog > 0 {
        let help = "The accept queue that each listener requested; the kernel may allow less.";
        out.gauge("throng_server_backlog", help, server.backlog)?;
    }
    let per_core = server.open_per_core.iter().enumerate();
    out.write(
        &FamilyName::plain("throng_server_core_connections"),
        MetricKind::Gauge,
        "Open connections of each core.",
        per_core.map(|(core, open)| (vec![("core", core.to_string())], *open as f64)),
    )?;
    let is_no_maximum = |kind| kind != MetricKind::Maximum;
    out.fields("throng_server", server.counters.fields(), is_no_maximum)?;
    out.fields("throng_server_core", server.core.fields(), is_no_maximum)?;
    let help = "Failures of accept4 by errno.";
    out.tally("throng_server_accept_errors", help, "errno", &server.accept_errors)?;
    let help = "Connections closed because TLS failed, by the name of the failure.";
    out.tally("throng_server_tls_errors", help, "failure", &server.tls_errors)?;
    out.own_process(&server.process)
}
