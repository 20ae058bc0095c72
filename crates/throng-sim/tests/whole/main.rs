//! The real server and the real generator against each other, on virtual time.

mod accounts;
mod limits;
mod pair;
