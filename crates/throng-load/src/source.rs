//! Source addresses and ports of the users.
//!
//! A connection is identified by four numbers. To one target port only the source address and port
//! vary, and one address has some 28,000 ports. The generator therefore spreads its users over
//! several source addresses, and computes before the run how many connections they allow.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::sync::Arc;

use throng_driver::SourceAddress;

/// The way in which a run chooses source ports. Explicit and late ports block each other, so a run
/// never mixes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourcePlan {
    /// The kernel chooses address and port.
    Any,
    /// Users take these addresses in turn. The kernel chooses the port at connect
    /// (`IP_BIND_ADDRESS_NO_PORT`), so that no unused port is reserved.
    Late(Arc<[IpAddr]>),
    /// The generator owns these ports of these addresses and assigns them itself.
    Explicit(Arc<[IpAddr]>, RangeInclusive<u16>),
}

/// One core's share of the sources: no two cores assign the same explicit port.
#[derive(Debug)]
pub struct SourceAddresses {
    plan: SourcePlan,
    /// Next index among the addresses (late) or among all pairs of port and address (explicit).
    index: u64,
    /// Distance to the next index of this core.
    stride: u64,
}

impl SourcePlan {
    /// Returns `count` addresses of the loopback network, for targets on this machine. They start
    /// at 127.1.0.1, so that they do not affect a test that uses 127.0.0.1.
    pub fn loopback(count: usize) -> Self {
        let address = |index: usize| {
            let [.., high, low] = (index as u32 % LOOPBACK_MAX).to_be_bytes();
            IpAddr::V4(Ipv4Addr::new(127, 1 + (index as u32 / LOOPBACK_MAX) as u8, high, low))
        };
        // 127.1.0.0 looks like a network address, so begin after it.
        Self::Late((1..=count).map(address).collect())
    }

    /// Returns the number of connections to one target that the sources allow. `range` is the
    /// kernel's port range.
    pub fn ports(&self, range: &RangeInclusive<u16>) -> u64 {
        let each = |range: &RangeInclusive<u16>| u64::from(range.end() - range.start()) + 1;
        match self {
            Self::Any => each(range),
            Self::Late(addresses) => addresses.len() as u64 * each(range),
            Self::Explicit(addresses, ports) => addresses.len() as u64 * each(ports),
        }
    }

    /// Reports whether connections may have `address` as their source.
    pub fn includes(&self, address: IpAddr) -> bool {
        match self {
            // The kernel chooses the target's own address if the target is this machine.
            Self::Any => true,
            Self::Late(addresses) | Self::Explicit(addresses, _) => addresses.contains(&address),
        }
    }

    /// Reports whether the generator assigns the ports itself.
    pub fn is_explicit(&self) -> bool {
        matches!(self, Self::Explicit(..))
    }

    /// Returns the number of source addresses; 1 if the kernel chooses.
    pub fn addresses(&self) -> usize {
        match self {
            Self::Any => 1,
            Self::Late(addresses) | Self::Explicit(addresses, _) => addresses.len(),
        }
    }

    /// Returns how many further ports a connect may try whose port was taken.
    pub(crate) fn port_tries_max(&self) -> u8 {
        match self {
            Self::Any => 0,
            Self::Late(addresses) => addresses.len().min(PORT_TRIES_MAX.into()) as u8,
            Self::Explicit(..) => PORT_TRIES_MAX,
        }
    }

    /// Returns the share of core `core` of `cores`.
    pub fn of_core(&self, core: usize, cores: usize) -> SourceAddresses {
        let (index, stride) = match self {
            Self::Any => (0, 0),
            // Cores begin far apart, and each uses all addresses.
            Self::Late(addresses) => ((core * addresses.len() / cores.max(1)) as u64, 1),
            Self::Explicit(..) => (core as u64, cores as u64),
        };
        SourceAddresses { plan: self.clone(), index, stride }
    }
}

/// Formats the addresses for people.
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
    /// Returns the source of the next connection.
    pub fn choose(&mut self) -> SourceAddress {
        let index = self.index;
        self.index = index.wrapping_add(self.stride);
        match &self.plan {
            SourcePlan::Any => SourceAddress::Any,
            SourcePlan::Late(addresses) => {
                SourceAddress::IpOnly(addresses[(index % addresses.len() as u64) as usize])
            }
            SourcePlan::Explicit(addresses, ports) => {
                // All addresses at one port, then the next port: a port is reused as late as
                // possible.
                let address = addresses[(index % addresses.len() as u64) as usize];
                let count = u64::from(ports.end() - ports.start()) + 1;
                let offset = (index / addresses.len() as u64) % count;
                SourceAddress::Explicit(SocketAddr::new(address, ports.start() + offset as u16))
            }
        }
    }
}

/// Ports that are tried for one connect before it counts as failed.
const PORT_TRIES_MAX: u8 = 8;
/// Addresses per second byte of 127.x.
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
