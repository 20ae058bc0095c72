//! `--source` and `--source-ports`: the local addresses and ports of connections.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;

use crate::Failure;

/// An address, or all addresses of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Network {
    first: IpAddr,
    count: u32,
}

/// Parses `10.0.0.7`, `10.0.1.0/28` or `fd00::/120`. The first and the last address of an IPv4
/// network with more than two addresses are left out: they are the network's own address and its
/// broadcast address.
pub(crate) fn parse(text: &str) -> Result<Network, String> {
    let (address, prefix) = match text.split_once('/') {
        Some((address, prefix)) => (address, Some(prefix)),
        None => (text, None),
    };
    let first: IpAddr = address.parse().map_err(|_| format!("`{address}` is not an IP address"))?;
    let bits = if first.is_ipv4() { 32 } else { 128 };
    let prefix = match prefix.map(str::parse::<u32>) {
        None => bits,
        Some(Ok(prefix)) if prefix <= bits => prefix,
        Some(_) => return Err(format!("a prefix is a number from 0 to {bits}")),
    };
    let free = bits - prefix;
    if free > FREE_BITS_MAX {
        let least = bits - FREE_BITS_MAX;
        return Err(format!("at most {ADDRESSES_MAX} addresses: a prefix of /{least} or longer"));
    }
    let count = 1u32 << free;
    let network = match first {
        IpAddr::V4(v4) => IpAddr::V4(Ipv4Addr::from_bits(v4.to_bits() & (u32::MAX << free))),
        IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & (u128::MAX << free))),
    };
    match network {
        IpAddr::V4(v4) if count > 2 => {
            Ok(Network { first: Ipv4Addr::from_bits(v4.to_bits() + 1).into(), count: count - 2 })
        }
        _ => Ok(Network { first: network, count }),
    }
}

/// Parses `10000-60000`.
pub(crate) fn parse_ports(text: &str) -> Result<RangeInclusive<u16>, String> {
    let expected = || "expected ports as LOW-HIGH, such as 10000-60000".to_owned();
    let (low, high) = text.split_once('-').ok_or_else(expected)?;
    let port = |text: &str| text.parse::<u16>().ok().filter(|port| *port > 0).ok_or_else(expected);
    match (port(low)?, port(high)?) {
        (low, high) if low <= high => Ok(low..=high),
        (low, high) => Err(format!("{low} is above {high}")),
    }
}

/// Returns all addresses of `networks`.
///
/// # Errors
/// An address does not belong to this machine: every connect from it would fail.
pub(crate) fn addresses(networks: &[Network]) -> Result<Vec<IpAddr>, Failure> {
    let all: Vec<IpAddr> = networks.iter().flat_map(|network| network.addresses()).collect();
    if all.len() > ADDRESSES_MAX {
        return Err(Failure::new(format!(
            "--source has {} addresses; the limit is {ADDRESSES_MAX}",
            all.len()
        )));
    }
    match all.iter().find(|address| !throng_run::header::is_local(**address)) {
        None => Ok(all),
        Some(foreign) => Err(Failure::new(format!(
            "--source {foreign} is not an address of this machine\n  as root, \
             `ip address add {foreign}/{} dev DEVICE` adds it",
            if foreign.is_ipv4() { 32 } else { 128 },
        ))),
    }
}

impl Network {
    fn addresses(self) -> impl Iterator<Item = IpAddr> {
        (0..self.count).map(move |n| match self.first {
            IpAddr::V4(v4) => IpAddr::V4(Ipv4Addr::from_bits(v4.to_bits() + n)),
            IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() + u128::from(n))),
        })
    }
}

const FREE_BITS_MAX: u32 = 16;
const ADDRESSES_MAX: usize = 1 << FREE_BITS_MAX;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, count: usize, first: &str, last: &str) {
        let all: Vec<_> = parse(text).unwrap().addresses().map(|a| a.to_string()).collect();
        assert_eq!((all.len(), &*all[0], &*all[all.len() - 1]), (count, first, last), "{text}");
    }

    #[test]
    fn networks_are_all_their_addresses() {
        check("10.0.0.7", 1, "10.0.0.7", "10.0.0.7");
        check("10.0.0.7/32", 1, "10.0.0.7", "10.0.0.7");
        check("10.0.0.6/31", 2, "10.0.0.6", "10.0.0.7");
        check("10.0.0.7/28", 14, "10.0.0.1", "10.0.0.14");
        check("127.1.2.3/16", 65_534, "127.1.0.1", "127.1.255.254");
        check("fd00::1", 1, "fd00::1", "fd00::1");
        check("fd00::ff/120", 256, "fd00::", "fd00::ff");
    }

    #[test]
    fn what_is_no_network_is_refused() {
        for text in
            ["", "host", "10.0.0.1/33", "10.0.0.0/8", "fd00::/64", "10.0.0.1/x", "10.0.0.1/-1"]
        {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn ports_are_a_range_from_low_to_high() {
        assert_eq!(parse_ports("1024-65535"), Ok(1024..=65535));
        for text in ["1024", "0-5", "9-5", "1-65536", "a-b"] {
            assert!(parse_ports(text).is_err(), "{text}");
        }
    }

    #[test]
    fn only_addresses_of_this_machine_are_taken() {
        assert_eq!(addresses(&[parse("127.0.0.0/30").unwrap()]).unwrap().len(), 2);
        let error = addresses(&[parse("198.51.100.1").unwrap()]).unwrap_err().to_string();
        assert!(error.contains("ip address add 198.51.100.1/32"), "{error}");
    }
}
