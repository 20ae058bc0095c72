//! The targets that an agent loads, as the owner of its machine says. No order overrides it.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use throng_driver::netlink::{self, Subnet};
use throng_load::scenario::needs_no_permission;

/// The targets that an agent loads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AllowedTargets {
    /// Those that need no permission on its machine: the machine itself, its networks, and
    /// addresses for benchmarks.
    #[default]
    Own,
    /// Those in one of these networks.
    Networks(Vec<TargetNetwork>),
}

/// A network of targets, or one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TargetNetwork {
    address: IpAddr,
    prefix: u8,
    subnet: Subnet,
}

impl AllowedTargets {
    /// Checks the addresses of a target.
    ///
    /// # Errors
    /// The agent does not load one of them. The error says which, and the flag that would let it.
    pub fn check(&self, targets: &[SocketAddr]) -> Result<(), String> {
        // If the kernel does not list the networks, no address counts as this machine's own.
        let own = match self {
            Self::Own => netlink::subnets().unwrap_or_default(),
            Self::Networks(_) => Vec::new(),
        };
        let is_refused = |address: &IpAddr| match self {
            Self::Own => !needs_no_permission(*address, &own),
            Self::Networks(all) => !all.iter().any(|network| network.contains(*address)),
        };
        match targets.iter().map(|target| target.ip().to_canonical()).find(is_refused) {
            None => Ok(()),
            Some(refused) => Err(format!(
                "this agent does not load {refused}: it loads {self}, whatever a run says; \
                 `throng agent --targets {refused}` on its machine lets it"
            )),
        }
    }
}

impl TargetNetwork {
    fn contains(&self, address: IpAddr) -> bool {
        self.subnet.contains(address.to_canonical())
    }
}

impl FromStr for TargetNetwork {
    type Err = String;

    /// Parses `10.0.0.0/8`, `fd00::/8` or an address.
    fn from_str(text: &str) -> Result<Self, String> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr =
            address.parse().map_err(|_| format!("`{address}` is not an IP address"))?;
        let bits = if address.is_ipv4() { 32 } else { 128 };
        let prefix = prefix.map_or(Some(bits), |prefix| prefix.parse().ok());
        let subnet = prefix.and_then(|prefix| Some((prefix, Subnet::new(address, prefix)?)));
        let (prefix, subnet) =
            subnet.ok_or_else(|| format!("a prefix is a number from 0 to {bits}"))?;
        Ok(Self { address, prefix, subnet })
    }
}

impl fmt::Display for TargetNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

impl fmt::Display for AllowedTargets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Own => f.write_str("what needs no permission on its machine"),
            Self::Networks(all) => {
                let all: Vec<_> = all.iter().map(ToString::to_string).collect();
                f.write_str(&all.join(", "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks which of these addresses an agent loads.
    #[track_caller]
    fn check(targets: &AllowedTargets, loaded: &[&str], refused: &[&str]) {
        let address = |text: &&str| SocketAddr::new(text.parse().unwrap(), 80);
        let all: Vec<_> = loaded.iter().map(address).collect();
        assert_eq!(targets.check(&all), Ok(()));
        for text in refused {
            let with_one = [&all[..], &[address(text)]].concat();
            let error = targets.check(&with_one).unwrap_err();
            let shown = text.trim_start_matches("::ffff:");
            assert!(error.contains(&format!("does not load {shown}: ")), "{error}");
            assert!(error.contains(&format!("--targets {shown}`")), "{error}");
        }
    }

    #[test]
    fn an_agent_loads_what_its_owner_says_and_nothing_else() {
        let networks = |text: &str| {
            AllowedTargets::Networks(text.split(',').map(|it| it.parse().unwrap()).collect())
        };
        check(
            &networks("10.0.0.0/8,127.0.0.0/8"),
            &["10.255.0.1", "127.0.0.1", "::ffff:10.0.0.1"],
            &["11.0.0.1", "192.168.0.1", "::1", "8.8.8.8", "::ffff:8.8.8.8"],
        );
        check(&networks("192.0.2.7"), &["192.0.2.7"], &["192.0.2.8", "127.0.0.1"]);
        check(&networks("fd00::/8"), &["fd12::1"], &["fe00::1", "10.0.0.1"]);
        check(&networks("0.0.0.0/0"), &["8.8.8.8"], &["2001:db8::1"]);
    }

    #[test]
    fn by_default_an_agent_loads_what_needs_no_permission_on_its_machine() {
        check(
            &AllowedTargets::default(),
            &["127.0.0.1", "::1", "198.18.0.1"],
            &["8.8.8.8", "192.0.2.1", "169.254.169.254", "2001:db8::1"],
        );
    }

    #[test]
    fn a_network_that_is_none_is_refused() {
        for wrong in ["", "host", "10.0.0.0/33", "10.0.0.0/x", "fd00::/129", "10.0.0.0/-1", "/8"] {
            assert!(wrong.parse::<TargetNetwork>().is_err(), "{wrong}");
        }
    }
}
