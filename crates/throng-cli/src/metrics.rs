//! The flag `--metrics`: metrics for Prometheus, of every command that runs for a while.

use std::net::SocketAddr;
use std::sync::Arc;

use clap::Args;
use throng_view::metrics::{MetricsCollector, MetricsEndpoint, RunMetrics};

use crate::{Failure, quantity};

/// The flag, for commands to include.
#[derive(Debug, Default, Args)]
pub(crate) struct MetricsFlag {
    /// Serve metrics for Prometheus at this address; a port alone is on 127.0.0.1, and port 0 lets
    /// the kernel choose
    #[arg(long, value_name = "[ADDR:]PORT", value_parser = quantity::local_listen)]
    metrics: Option<SocketAddr>,
}

/// The metrics of a run, while they are served.
pub(crate) struct RunEndpoint {
    pub(crate) metrics: Arc<RunMetrics>,
    endpoint: MetricsEndpoint,
}

impl MetricsFlag {
    /// Starts the endpoint, if the flag was given.
    ///
    /// # Errors
    /// The address cannot be listened at.
    pub(crate) fn serve(
        &self,
        collector: impl MetricsCollector,
    ) -> Result<Option<MetricsEndpoint>, Failure> {
        let Some(addr) = self.metrics else { return Ok(None) };
        MetricsEndpoint::start(addr, collector).map(Some).map_err(|error| {
            Failure::new(format!(
                "--metrics {addr}: {error}\n  pass another port, or 0 for any that is free"
            ))
        })
    }

    /// Starts the endpoint of a run, if the flag was given.
    ///
    /// # Errors
    /// The address cannot be listened at.
    pub(crate) fn serve_run(&self) -> Result<Option<RunEndpoint>, Failure> {
        let metrics = Arc::new(RunMetrics::default());
        let endpoint = self.serve(Arc::clone(&metrics))?;
        Ok(endpoint.map(|endpoint| RunEndpoint { metrics, endpoint }))
    }
}

impl RunEndpoint {
    /// Returns a sentence with the URL.
    pub(crate) fn note(&self) -> String {
        format!("metrics: {}", self.endpoint.url())
    }
}
