//! Whether loading an address needs permission.

use std::net::{IpAddr, Ipv4Addr};

use throng_driver::netlink::Subnet;

/// Network from which an address is reachable. It decides whether loading the address needs
/// permission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reach {
    /// This machine: 127.0.0.0/8, ::1.
    Loopback,
    /// A private network: 10/8, 172.16/12, 192.168/16, fc00::/7. It may still belong to another
    /// team, or to another customer of the same cloud.
    Private,
    /// The local link: 169.254/16, fe80::/10. Clouds serve instance metadata and credentials there.
    LinkLocal,
    /// 198.18.0.0/15, reserved for benchmarks (RFC 2544).
    Benchmark,
    /// All other addresses, which belong to some owner.
    Public,
}

impl Reach {
    /// Classifies `address`. An IPv4-mapped IPv6 address counts as its IPv4 address.
    pub fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(v4) => Self::of_v4(v4),
            IpAddr::V6(v6) => match v6.to_ipv4_mapped() {
                Some(v4) => Self::of_v4(v4),
                None if v6.is_loopback() => Self::Loopback,
                None if v6.is_unique_local() => Self::Private,
                None if v6.is_unicast_link_local() => Self::LinkLocal,
                None => Self::Public,
            },
        }
    }

    fn of_v4(v4: Ipv4Addr) -> Self {
        let [a, b, ..] = v4.octets();
        if v4.is_loopback() {
            Self::Loopback
        } else if a == 198 && (b == 18 || b == 19) {
            Self::Benchmark
        } else if v4.is_private() {
            Self::Private
        } else if v4.is_link_local() {
            Self::LinkLocal
        } else {
            Self::Public
        }
    }
}

/// Reports whether `address` may be loaded without `--i-am-allowed`. `own` are the networks in
/// which this machine has an address.
pub fn needs_no_permission(address: IpAddr, own: &[Subnet]) -> bool {
    match Reach::of(address) {
        Reach::Loopback | Reach::Benchmark => true,
        Reach::Private => own.iter().any(|network| network.contains(address.to_canonical())),
        Reach::LinkLocal | Reach::Public => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reach_knows_the_reserved_ranges_and_their_edges() {
        use Reach::{Benchmark, LinkLocal, Loopback, Private, Public};
        for (address, reach) in [
            ("127.0.0.1", Loopback),
            ("127.255.255.255", Loopback),
            ("128.0.0.1", Public),
            ("::1", Loopback),
            ("::ffff:127.0.0.1", Loopback),
            ("10.0.0.1", Private),
            ("11.0.0.1", Public),
            ("172.15.255.255", Public),
            ("172.16.0.1", Private),
            ("172.31.255.255", Private),
            ("172.32.0.0", Public),
            ("192.168.1.1", Private),
            ("169.254.1.1", LinkLocal),
            ("198.17.255.255", Public),
            ("198.18.0.0", Benchmark),
            ("198.19.255.255", Benchmark),
            ("198.20.0.0", Public),
            ("::ffff:198.18.0.1", Benchmark),
            ("fc00::1", Private),
            ("fdff::1", Private),
            ("fe00::1", Public),
            ("fe80::1", LinkLocal),
            ("febf::1", LinkLocal),
            ("fec0::1", Public),
            ("2001:db8::1", Public),
            ("::ffff:8.8.8.8", Public),
            ("0.0.0.0", Public),
        ] {
            assert_eq!(Reach::of(address.parse().unwrap()), reach, "{address}");
        }
    }

    #[test]
    fn a_private_address_needs_leave_unless_it_is_in_a_network_of_this_machine() {
        let own = [("10.0.1.7", 24), ("fd00::1", 64), ("169.254.7.7", 16), ("8.8.8.1", 24)];
        let own = own.map(|(ip, prefix)| Subnet::new(ip.parse().unwrap(), prefix).unwrap());
        for (address, is_free) in [
            ("127.0.0.1", true),
            ("198.18.0.1", true),
            ("10.0.1.200", true),
            ("::ffff:10.0.1.200", true),
            ("10.0.2.1", false),
            ("192.168.1.1", false),
            ("fd00::9", true),
            ("fd00:0:0:1::9", false),
            ("169.254.169.254", false),
            ("fe80::1", false),
            ("8.8.8.8", false),
        ] {
            assert_eq!(needs_no_permission(address.parse().unwrap(), &own), is_free, "{address}");
        }
    }
}
