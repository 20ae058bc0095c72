//! `net.ipv4.ip_local_port_range` and `ip_local_reserved_ports`: the ports that the kernel may
//! choose for a connection, for IPv6 as well. They belong to one network namespace.

use throng_measure::Limit;

use crate::fact::{Fact, ParseFailure, Unknown};
use crate::proc_root::ProcRoot;
use crate::sysctl::{parse_list, sysctl_path};

/// The ports for connections without a given source port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalPorts {
    /// First port.
    pub first: u16,
    /// Last port.
    pub last: u16,
    /// Reserved ranges, first and last port each, in ascending order.
    pub reserved: Vec<(u16, u16)>,
}

impl LocalPorts {
    /// Reports whether the kernel may choose `port`.
    pub fn has(&self, port: u16) -> bool {
        (self.first..=self.last).contains(&port)
            && !self.reserved.iter().any(|(first, last)| (*first..=*last).contains(&port))
    }

    /// Returns the number of ports for each pair of own address and target.
    pub fn count(&self) -> u32 {
        (self.first..=self.last).filter(|port| self.has(*port)).count() as u32
    }
}

/// Reads the range and the reserved ports.
pub fn local_ports(root: &ProcRoot) -> Fact<LocalPorts> {
    let read = || -> Result<LocalPorts, Unknown> {
        let range = root.read(&sysctl_path(Limit::PORTS.name()), parse_range);
        let reserved = root.read(&sysctl_path("net.ipv4.ip_local_reserved_ports"), parse_ranges);
        let (first, last) = range.into_result()?;
        Ok(LocalPorts { first, last, reserved: reserved.into_result()? })
    };
    read().into()
}

/// Parses the range: first and last.
pub fn parse_range(text: &str) -> Result<(u16, u16), ParseFailure> {
    let [first, last] = parse_list(text)?;
    match (u16::try_from(first), u16::try_from(last)) {
        (Ok(first), Ok(last)) if first <= last => Ok((first, last)),
        _ => Err(ParseFailure("two ports")),
    }
}

/// Parses `ip_local_reserved_ports`: `8080,9000-9100`, or nothing.
pub fn parse_ranges(text: &str) -> Result<Vec<(u16, u16)>, ParseFailure> {
    let port = |text: &str| text.parse::<u16>().map_err(|_| ParseFailure("a port"));
    let range = |item: &str| match item.split_once('-') {
        None => port(item).map(|port| (port, port)),
        Some((first, last)) => Ok((port(first)?, port(last)?)),
    };
    text.trim().split(',').filter(|item| !item.is_empty()).map(range).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorded_root;

    #[test]
    fn reserved_ports_are_left_out() {
        let found = local_ports(&recorded_root("linux-6.18")).into_result().unwrap();
        assert_eq!(found.count(), 60_999 - 32_768 + 1);

        let found = local_ports(&recorded_root("linux-4.19")).into_result().unwrap();
        assert_eq!(found.reserved, [(5_555, 5_555), (9_000, 9_100), (65_000, 65_535)]);
        assert_eq!(found.count(), 64_512 - 1 - 101 - 536);
        assert!(found.has(5_554) && !found.has(5_555) && !found.has(1_023) && !found.has(65_535));
    }

    #[test]
    fn malformed_text_is_refused() {
        for text in ["", "1024", "1024 70000", "2000 1000", "1 2 3"] {
            assert!(parse_range(text).is_err(), "{text:?}");
        }
        for text in ["x", "1-", "1-2-3", "70000"] {
            assert!(parse_ranges(text).is_err(), "{text:?}");
        }
        assert_eq!(parse_ranges("\n"), Ok(vec![]));
    }
}
