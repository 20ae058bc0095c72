//! What is shown of a run: to Prometheus, and to people who send anything.

mod exposition;
mod hostile;
mod metrics;
