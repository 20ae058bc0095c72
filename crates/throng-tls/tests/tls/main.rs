//! Whole connections of both roles: with our other end, with rustls as it comes, with OpenSSL.

mod certificates;
mod config;
mod end;
mod handshake;
mod hostile;
mod key_update;
mod openssl;
mod resumption;
mod rustls_end;
