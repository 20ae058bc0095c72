//! The HTTP endpoint that a Prometheus scrapes.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use tokio::sync::Mutex;

use super::plain_text::plain_text;
use crate::http::HttpServer;

/// A running endpoint. It holds no secret, so it asks for no token and accepts any `host`.
#[derive(Debug)]
pub struct MetricsEndpoint {
    server: HttpServer,
}

impl MetricsEndpoint {
    /// Answers `GET /metrics` at `addr` with what `collector` says at that moment.
    ///
    /// # Errors
    /// The address cannot be listened at, or the thread cannot be started.
    pub fn start(addr: SocketAddr, collector: impl Collector) -> io::Result<Self> {
        let mut registry = Registry::default();
        let version = [("version", env!("CARGO_PKG_VERSION"))];
        registry.register("throng_build", "The version of throng", Info::new(version));
        registry.register_collector(Box::new(collector));
        let router = Router::new()
            .route(PATH, get(scrape))
            .fallback(async || (StatusCode::NOT_FOUND, format!("the metrics are at {PATH}\n")))
            .with_state(Arc::new(Scraper { registry, turn: Arc::default() }));
        Ok(Self { server: HttpServer::start(addr, router)? })
    }

    /// Returns the address, with the port that the kernel chose if none was asked for.
    pub fn addr(&self) -> SocketAddr {
        self.server.addr()
    }

    /// Returns the URL of the metrics.
    pub fn url(&self) -> String {
        format!("http://{}{PATH}", self.addr())
    }
}

/// What a scrape needs.
#[derive(Debug)]
struct Scraper {
    registry: Registry,
    /// The turn of a scrape. Others wait for it here: any number of clients costs one thread, and
    /// sends the cores of a server one question at a time.
    turn: Arc<Mutex<()>>,
}

/// Answers a scrape. It may have to wait for the cores of a server, so it has a thread of its own,
/// and other requests go on.
async fn scrape(State(scraper): State<Arc<Scraper>>, headers: HeaderMap) -> Response {
    let wants_open_metrics = wants_open_metrics(&headers);
    let turn = Arc::clone(&scraper.turn).lock_owned().await;
    let render = move || {
        // The turn ends with the work, even if the client has gone before.
        let _turn = turn;
        let mut text = String::new();
        text::encode(&mut text, &scraper.registry).ok()?;
        Some(if wants_open_metrics { text } else { plain_text(&text) })
    };
    let content_type = if wants_open_metrics { OPEN_METRICS } else { PLAIN_TEXT };
    match tokio::task::spawn_blocking(render).await {
        Ok(Some(text)) => {
            ([(header::CONTENT_TYPE, HeaderValue::from_static(content_type))], text).into_response()
        }
        _ => (StatusCode::INTERNAL_SERVER_ERROR, "the metrics cannot be read\n").into_response(),
    }
}

/// Reports whether the client asked for OpenMetrics, as Prometheus does.
fn wants_open_metrics(headers: &HeaderMap) -> bool {
    let accept = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accept.into_iter().any(|value| value.contains("application/openmetrics-text"))
}

const PATH: &str = "/metrics";
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const PLAIN_TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";
