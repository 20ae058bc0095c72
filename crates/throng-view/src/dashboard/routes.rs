//! The requests that the dashboard answers.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{DefaultBodyLimit, Query, Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::sse::{KeepAlive, Sse};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::{Value, json};
use throng_control::{ControlRequest, REQUEST_BYTES_MAX};
use throng_report::page;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use super::access::Access;
use super::live_run::steering_verbs;
use super::store::{DashboardStore, READERS_MAX};
use super::stream::ReaderPlace;
use crate::PAGE;

/// What the handlers need.
#[derive(Clone)]
struct Handlers {
    shared: Arc<DashboardStore>,
    /// Room for requests that steer. Each takes a thread, for up to some seconds.
    steering: Arc<Semaphore>,
}

/// Returns the routes of the dashboard. Each request is checked first, whatever it asks for.
pub(super) fn router(shared: Arc<DashboardStore>, access: Access) -> Router {
    let handlers = Handlers { shared, steering: Arc::new(Semaphore::new(STEERING_MAX)) };
    Router::new()
        .route("/", get(page))
        .route("/run", get(run))
        .route("/rows", get(rows))
        .route("/ctl", post(ctl))
        .layer(DefaultBodyLimit::max(REQUEST_BYTES_MAX))
        .with_state(handlers)
        .layer(from_fn_with_state(Arc::new(access), checked))
}

async fn checked(State(access): State<Arc<Access>>, request: Request, next: Next) -> Response {
    let mut response = match access.check(request.method(), request.uri(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(reason) => (StatusCode::FORBIDDEN, format!("{reason}\n")).into_response(),
    };
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// The headers of every answer. The policy for the page's own content is in the page.
const HEADERS: [(HeaderName, &str); 4] = [
    (CONTENT_SECURITY_POLICY, "frame-ancestors 'none'; object-src 'none'; base-uri 'none'"),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    // The token is in the page's address, which stays here.
    (REFERRER_POLICY, "no-referrer"),
    (CACHE_CONTROL, "no-store"),
];

async fn page() -> Html<String> {
    Html(page::live_html(PAGE))
}

async fn run(State(handlers): State<Handlers>) -> Response {
    let state = handlers.shared.lock();
    let json = match &state.run {
        Some(run) => run.json(),
        None => json!({"run": 0, "waiting": state.waiting}).to_string(),
    };
    ([(CONTENT_TYPE, "application/json")], json).into_response()
}

/// The place of a reader, as it writes it.
#[derive(Deserialize)]
struct RowsQuery {
    run: u64,
    #[serde(default)]
    from: String,
    #[serde(default)]
    summary: u64,
}

async fn rows(State(handlers): State<Handlers>, Query(query): Query<RowsQuery>) -> Response {
    let RowsQuery { run, from, summary } = query;
    match ReaderPlace::enter(handlers.shared, run, from.parse().ok(), summary) {
        Some(place) => {
            let alive = KeepAlive::new().interval(KEEP_ALIVE);
            Sse::new(place.events()).keep_alive(alive).into_response()
        }
        None => {
            let text = format!("{READERS_MAX} pages are open already: close one of them\n");
            (StatusCode::SERVICE_UNAVAILABLE, text).into_response()
        }
    }
}

async fn ctl(State(handlers): State<Handlers>, body: String) -> Response {
    let target = handlers.shared.lock().run.as_ref().and_then(|run| run.control());
    let Some(target) = target else {
        return refused(StatusCode::CONFLICT, "no run goes on that can be steered");
    };
    let request = match ControlRequest::parse(&body, &steering_verbs(&*target)) {
        Ok(request) => request,
        Err(error) => return refused(StatusCode::BAD_REQUEST, &error),
    };
    let Ok(permit) = handlers.steering.try_acquire_owned() else {
        return refused(StatusCode::TOO_MANY_REQUESTS, "earlier requests are not answered yet");
    };
    let answer = spawn_blocking(move || {
        let answer = target.answer(&request);
        drop(permit);
        answer
    });
    match answer.await {
        Ok(Ok(data)) => Json(json!({"ok": true, "data": data})).into_response(),
        Ok(Err(reason)) => refused(StatusCode::BAD_REQUEST, &reason),
        Err(_) => refused(StatusCode::INTERNAL_SERVER_ERROR, "the request failed"),
    }
}

fn refused(status: StatusCode, reason: &str) -> Response {
    let body: Value = json!({"ok": false, "error": reason});
    (status, Json(body)).into_response()
}

/// The most requests that steer at a time.
const STEERING_MAX: usize = 4;
/// The time without an event after which a comment shows that the connection works.
const KEEP_ALIVE: Duration = Duration::from_secs(5);
