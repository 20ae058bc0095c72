//! One connection: its requests and its answers.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use hyper::body::{Frame, SizeHint};
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpStream;

use super::place::PlaceState;
use super::places::{Place, SharedPlace};
use super::stream::PlacedStream;

/// Answers the requests of a connection until it is closed, or must give its place.
pub(super) async fn serve(stream: TcpStream, place: Place, router: Router) {
    let shared = &place.shared;
    let router = router.layer(from_fn_with_state(Arc::clone(shared), answer));
    let stream = TokioIo::new(PlacedStream::new(stream, Arc::clone(shared)));
    let connection = http1::Builder::new()
        .max_buf_size(BUFFER_BYTES_MAX)
        .serve_connection(stream, TowerToHyperService::new(router));
    tokio::select! {
        // An error of a connection concerns no other.
        _ = connection => {}
        () = shared.must_close() => {}
    }
}

/// Notes how long the server works at an answer, and whether it lets the request in.
async fn answer(State(place): State<Arc<SharedPlace>>, request: Request, next: Next) -> Response {
    place.update(|state| state.begin_answer());
    let answering = Answering(Arc::clone(&place));
    let request = request.map(|body| await_body(body, &place));
    let response = next.run(request).await;
    if response.status().is_success() {
        place.update(|state| state.let_in());
    }
    response.map(|body| Body::new(GuardedBody { body, _guard: answering }))
}

/// Returns the body of a request, which has a time to arrive whole.
fn await_body(body: Body, place: &Arc<SharedPlace>) -> Body {
    if body.is_end_stream() {
        return body;
    }
    place.update(|state| state.begin_body(Instant::now()));
    Body::new(GuardedBody { body, _guard: AwaitedBody(Arc::clone(place)) })
}

/// The wait for a body. It ends when this is dropped, however it ends.
struct AwaitedBody(Arc<SharedPlace>);

impl Drop for AwaitedBody {
    fn drop(&mut self) {
        self.0.update(PlaceState::end_body);
    }
}

/// The work at an answer. It ends when this is dropped, however it ends.
struct Answering(Arc<SharedPlace>);

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.update(|state| state.end_answer(Instant::now()));
    }
}

/// A body, and what lasts until its last part is taken, or nothing wants it any more.
struct GuardedBody<G> {
    body: Body,
    _guard: G,
}

impl<G: Unpin> HttpBody for GuardedBody<G> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The most bytes of a request's head, and about the most that wait to be sent.
const BUFFER_BYTES_MAX: usize = 64 << 10;
