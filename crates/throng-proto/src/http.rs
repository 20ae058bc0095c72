//! HTTP/1.1 messages: heads, bodies of a known length, and the query of a target.
//!
//! The part of RFC 9110 and RFC 9112 that a connection server needs: the upgrade to WebSocket, a
//! page, a long-poll. [`crate::websocket::WebSocketServer`] and
//! [`crate::websocket::WebSocketClient`] read the messages from a connection.

mod headers;
mod query;
mod reader;
mod request;
mod request_error;
mod response;

pub use headers::Headers;
pub(crate) use headers::{has_list_member, list_members};
pub use query::{percent_decode, query_pairs};
pub(crate) use reader::{PendingInput, RequestLimits, ResponseExpectation, read_request};
pub use request::Request;
pub use request_error::RequestError;
pub(crate) use response::{Persistence, parse_response, write_fields, write_response_head};
pub use response::{Response, write_response};
