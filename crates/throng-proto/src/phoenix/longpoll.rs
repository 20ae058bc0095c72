//! The bodies of the long-poll transport: posts, responses, and the token that names a session.
//!
//! The server decides when to respond, and writes the HTTP around the bodies.

mod post;
mod response;
mod token;

pub use post::{PostError, PostFrame, PostFrames, parse_post};
pub use response::{MESSAGE_SEPARATOR, begin_response, end_of_response, write_response};
pub use token::{Claim, TokenError, Tokens};
