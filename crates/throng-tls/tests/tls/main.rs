//! Whole connections of both roles: with our other end, with rustls as it comes, with peers.

mod certificates;
mod chromium;
mod config;
mod end;
mod handshake;
mod hostile;
mod key_update;
mod openssl;
mod peers;
mod program;
mod resumption;
mod rustls_end;
mod socket;
