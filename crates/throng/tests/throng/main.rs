//! The library as its users see it: errors, examples, sizes.

mod errors;
mod examples;
mod sizes;
mod tls;
