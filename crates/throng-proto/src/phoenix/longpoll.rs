//! The long-poll transport's bodies: what a client posts, what it is answered, and the token that names its session.
//!
//! When to answer, and the HTTP around it, are the server's business.

mod answer;
mod post;
mod token;

pub use answer::{BETWEEN_MESSAGES, answer, begin_answer, end_of_answer};
pub use post::{PostError, PostFrame, Posts, post};
pub use token::{Claim, TokenError, Tokens};
