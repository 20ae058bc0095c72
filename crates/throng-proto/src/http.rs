//! HTTP/1.1 messages: heads, bodies of a known length, and the query of a target.
//!
//! What a server of connections needs of RFC 9110 and RFC 9112, and no more: the upgrade to WebSocket, a page,
//! a long-poll. Who reads them off a connection is [`crate::websocket::Server`] and [`crate::websocket::Client`].

mod fault;
mod headers;
mod query;
mod reader;
mod request;
mod response;

pub use fault::Fault;
pub use headers::Headers;
pub(crate) use headers::{has_member, members};
pub use query::{percent_decode, query_pairs};
pub(crate) use reader::{Bounds, Partial, ResponseExpectation, read_request};
pub use request::Request;
pub(crate) use response::{Persistence, fields, parse_response, write_answer};
pub use response::{Response, write_response};
