//! Refuses targets that a user of this machine may not load without permission.

use std::net::SocketAddr;

use throng_driver::netlink;
use throng_load::scenario::{Reach, Target, needs_no_permission};

/// A target that this machine may not load without permission.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotPermitted(String);

/// Refuses a target outside this machine's networks, unless `is_allowed`.
///
/// # Errors
/// It is outside; the error says what it is, and what to do.
pub fn check(
    target: &Target,
    addresses: &[SocketAddr],
    is_allowed: bool,
) -> Result<(), NotPermitted> {
    // If the kernel does not list the subnets, no address counts as this machine's own.
    let own = netlink::subnets().unwrap_or_default();
    let is_foreign = |address: &&SocketAddr| !needs_no_permission(address.ip(), &own);
    let Some(foreign) = addresses.iter().find(is_foreign).filter(|_| !is_allowed) else {
        return Ok(());
    };
    let ip = foreign.ip();
    let what = match Reach::of(ip) {
        Reach::Private => format!("the private address {ip}, in none of this machine's networks"),
        Reach::LinkLocal => format!("the link-local address {ip}, where clouds keep credentials"),
        _ => format!("the public address {ip}"),
    };
    Err(NotPermitted(format!(
        "{target} is {what}: refusing to load it; pass --i-am-allowed if you have its owner's \
         permission"
    )))
}
