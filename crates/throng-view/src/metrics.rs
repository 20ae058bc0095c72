//! Metrics for Prometheus: an HTTP endpoint that renders what a process measured anyway.
//!
//! Nothing is counted here. [`RunMetrics`] shows the last interval of a run, [`ServerMetrics`] a
//! server's snapshot. Names, units and help come from the tables of counters and metrics in
//! `throng-report`; `metrics/name.rs` says how.

mod buckets;
mod endpoint;
mod families;
mod name;
mod plain_text;
mod run;
mod server;

pub use endpoint::MetricsEndpoint;
/// What an endpoint renders at a scrape.
pub use prometheus_client::collector::Collector as MetricsCollector;
pub use run::RunMetrics;
pub use server::ServerMetrics;
