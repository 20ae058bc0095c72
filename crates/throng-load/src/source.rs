//! From which addresses and ports the users connect.
//!
//! A connection is named by four numbers, and to one target port only the source address and port are
//! free: one address has some 28,000 ports (`net.ipv4.ip_local_port_range`). The generator therefore spreads
//! its users over several source addresses, and knows beforehand how far they reach.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::sync::Arc;

use throng_driver::SourceAddress;

use crate::generator::User;

/// The one way of choosing ports of a run. Explicit and late ports block each other, so they never mix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourcePlan {
    /// The kernel chooses address and port.
    Any,
    /// Users take turns over these addresses; the kernel chooses the port at connect
    /// (`IP_BIND_ADDRESS_NO_PORT`), so that nothing is reserved that is not used.
    Late(Arc<[IpAddr]>),
    /// The generator owns these ports of these addresses and hands them out itself.
    Explicit(Arc<[IpAddr]>, RangeInclusive<u16>),
}

/// One core's share of the sources: no two cores hand out the same explicit port.
#[derive(Debug)]
pub struct SourceAddresses {
    plan: SourcePlan,
    /// The next place among the addresses (late) or among all pairs of port and address (explicit).
    place: u64,
    /// To the next place of this core.
    stride: u64,
}

impl SourcePlan {
    /// `count` addresses of the loopback network, for targets on this machine. They are 127.1.0.1 and following:
    /// a test that pins the plain 127.0.0.1 is left alone.
    pub fn loopback(count: usize) -> Self {
        let address = |place: usize| {
            let [.., high, low] = (place as u32 % LOOPBACK_MAX).to_be_bytes();
            IpAddr::V4(Ipv4Addr::new(127, 1 + (place as u32 / LOOPBACK_MAX) as u8, high, low))
        };
        // 127.1.0.0 looks like a network's own address; begin behind it.
        Self::Late((1..=count).map(address).collect())
    }

    /// How many connections to one target the sources reach, with `range` as the kernel's own ports.
    pub fn ports(&self, range: &RangeInclusive<u16>) -> u64 {
        let each = |range: &RangeInclusive<u16>| u64::from(range.end() - range.start()) + 1;
        match self {
            Self::Any => each(range),
            Self::Late(addresses) => addresses.len() as u64 * each(range),
            Self::Explicit(addresses, ports) => addresses.len() as u64 * each(ports),
        }
    }

    /// Whether connections may leave from `address`.
    pub fn may_be(&self, address: IpAddr) -> bool {
        match self {
            // The kernel takes the target's own address where that is this machine's.
            Self::Any => true,
            Self::Late(addresses) | Self::Explicit(addresses, _) => addresses.contains(&address),
        }
    }

    /// Whether the generator hands out the ports itself.
    pub fn is_explicit(&self) -> bool {
        matches!(self, Self::Explicit(..))
    }

    /// How many source addresses there are; one where the kernel chooses.
    pub fn addresses(&self) -> usize {
        match self {
            Self::Any => 1,
            Self::Late(addresses) | Self::Explicit(addresses, _) => addresses.len(),
        }
    }

    /// The share of core `core` of `cores`.
    pub fn of_core(&self, core: usize, cores: usize) -> SourceAddresses {
        let (place, stride) = match self {
            Self::Any => (0, 0),
            // Cores begin far from one another and all go over all addresses.
            Self::Late(addresses) => ((core * addresses.len() / cores.max(1)) as u64, 1),
            Self::Explicit(..) => (core as u64, cores as u64),
        };
        SourceAddresses { plan: self.clone(), place, stride }
    }
}

/// The addresses, in words.
impl fmt::Display for SourcePlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("any address"),
            Self::Late(addresses) | Self::Explicit(addresses, _) => match &addresses[..] {
                [] => f.write_str("no address"),
                [only] => write!(f, "{only}"),
                [first, rest @ ..] => write!(f, "{first} and {} more", rest.len()),
            },
        }
    }
}

impl SourceAddresses {
    /// Where the next connection leaves from.
    pub fn choose(&mut self) -> SourceAddress {
        let place = self.place;
        self.place = place.wrapping_add(self.stride);
        match &self.plan {
            SourcePlan::Any => SourceAddress::Any,
            SourcePlan::Late(addresses) => {
                SourceAddress::IpOnly(addresses[(place % addresses.len() as u64) as usize])
            }
            SourcePlan::Explicit(addresses, ports) => {
                // All addresses at one port, then the next port: a port is used again as late as possible.
                let address = addresses[(place % addresses.len() as u64) as usize];
                let count = u64::from(ports.end() - ports.start()) + 1;
                let offset = (place / addresses.len() as u64) % count;
                SourceAddress::Explicit(SocketAddr::new(address, ports.start() + offset as u16))
            }
        }
    }

    /// Whether a user whose port was taken should try the next one; remembers that it does.
    pub(crate) fn tries_again(&self, user: &mut User) -> bool {
        let tries_max = match &self.plan {
            SourcePlan::Any => 0,
            SourcePlan::Late(addresses) => addresses.len().min(PORT_TRIES_MAX),
            SourcePlan::Explicit(..) => PORT_TRIES_MAX,
        };
        user.tries_again(tries_max)
    }
}

/// Ports that are tried for one connect before it counts as failed.
const PORT_TRIES_MAX: usize = 8;
/// Addresses a second byte of 127.x.
const LOOPBACK_MAX: u32 = 1 << 16;

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn explicit_ports_are_handed_out_once_over_all_cores() {
        let addresses = [address("127.1.0.1"), address("127.1.0.2"), address("127.1.0.3")];
        let plan = SourcePlan::Explicit(addresses.into(), 1000..=1009);
        let mut seen = HashSet::new();
        for core in 0..3 {
            let mut sources = plan.of_core(core, 3);
            for _ in 0..10 {
                let SourceAddress::Explicit(source) = sources.choose() else { panic!("{plan:?}") };
                assert!(seen.insert(source), "{source} twice");
            }
        }
        assert_eq!(seen.len() as u64, plan.ports(&(0..=0)));
    }

    #[test]
    fn loopback_addresses_are_all_different_and_none_is_plain() {
        let SourcePlan::Late(addresses) = SourcePlan::loopback(70_000) else { panic!() };
        assert_eq!(addresses.iter().collect::<HashSet<_>>().len(), 70_000);
        assert!(addresses.iter().all(|a| a.is_loopback() && *a != address("127.0.0.1")));
        assert_eq!(addresses[0], address("127.1.0.1"));
    }

    #[test]
    fn one_address_reaches_as_far_as_its_ports() {
        let range = 32_768..=60_999;
        assert_eq!(SourcePlan::Any.ports(&range), 28_232);
        assert_eq!(SourcePlan::loopback(4).ports(&range), 4 * 28_232);
    }
}
