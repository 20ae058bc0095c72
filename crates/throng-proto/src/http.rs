//! HTTP/1.1 messages: heads, bodies, cookies, and the query of a target.
//!
//! The part of RFC 9110 and RFC 9112 that a connection server needs: the upgrade to WebSocket, a
//! page, a long-poll. [`crate::websocket::WebSocketServer`] and
//! [`crate::websocket::WebSocketClient`] read the messages from a connection. [`HttpClient`] sends
//! one request after another and reads any response, [`CookieJar`] keeps the cookies.

mod chunked;
mod client;
mod cookie_jar;
mod cookie_refusal;
mod date;
mod headers;
mod query;
mod reader;
mod request;
mod request_error;
mod response;
mod response_error;
mod response_head;
mod response_limits;
mod response_reader;

pub use client::{
    FinishedResponse, HttpClient, HttpEvent, HttpRequestHead, HttpResponse, write_field,
};
pub use cookie_jar::{COOKIE_BYTES_MAX, COOKIES_MAX, CookieJar, JAR_BYTES_MAX};
pub use cookie_refusal::{CookieRefusal, cookie_name};
pub use headers::Headers;
pub(crate) use headers::{has_list_member, list_members};
pub use query::{percent_decode, query_pairs};
pub(crate) use reader::{PendingInput, RequestLimits, ResponseExpectation, read_request};
pub use request::Request;
pub use request_error::RequestError;
pub(crate) use response::{Persistence, parse_response, write_fields, write_response_head};
pub use response::{Response, write_response};
pub use response_error::ResponseError;
pub use response_limits::{
    BODY_BYTES_MAX, BODY_EXCERPT_BYTES_MAX, HEAD_BYTES_MAX, INTERIM_RESPONSES_MAX,
};
pub use response_reader::PartialResponse;
