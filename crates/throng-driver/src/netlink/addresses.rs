//! Networks in which this machine has an address (`RTM_GETADDR`), in the layout of
//! `linux/if_addr.h` and `linux/rtnetlink.h`.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::wire::{DiagFormatError, NetlinkMessage, dump_header, take_message, u16_at};
use super::{ANSWER_BYTES_MAX, DiagError, connect};

/// Network: all addresses with the same first `prefix` bits as `address`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Subnet {
    address: IpAddr,
    prefix: u8,
}

impl Subnet {
    /// Returns the network of `address` with a prefix of `prefix` bits; `None` if the address has
    /// fewer bits.
    pub fn new(address: IpAddr, prefix: u8) -> Option<Self> {
        let address = match address {
            IpAddr::V4(v4) => {
                let host = 32_u8.checked_sub(prefix)?;
                let mask = u32::MAX.checked_shl(host.into()).unwrap_or(0);
                Ipv4Addr::from_bits(v4.to_bits() & mask).into()
            }
            IpAddr::V6(v6) => {
                let host = 128_u8.checked_sub(prefix)?;
                let mask = u128::MAX.checked_shl(host.into()).unwrap_or(0);
                Ipv6Addr::from_bits(v6.to_bits() & mask).into()
            }
        };
        Some(Self { address, prefix })
    }

    /// Reports whether the network contains `address`.
    pub fn contains(&self, address: IpAddr) -> bool {
        address.is_ipv4() == self.address.is_ipv4()
            && Self::new(address, self.prefix).as_ref() == Some(self)
    }
}

/// Formats the network as `10.0.1.0/24`.
impl fmt::Display for Subnet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

/// Returns the networks in which the calling thread's network namespace has an address.
///
/// # Errors
/// Netlink is not available, or it answers with an error.
pub fn subnets() -> Result<Vec<Subnet>, DiagError> {
    const SEQUENCE: u32 = 1;
    // Protocol 0 is NETLINK_ROUTE.
    let fd = connect(None)?;
    let mut request = dump_header(RTM_GETADDR, ADDRESS_BYTES, SEQUENCE);
    // Any family.
    request.extend_from_slice(&[0; ADDRESS_BYTES]);
    send(&fd, &request, SendFlags::empty()).map_err(DiagError::Send)?;
    let mut found = Vec::new();
    let mut buffer = vec![0; ANSWER_BYTES_MAX];
    loop {
        let (_, length) = match recv(&fd, &mut buffer[..], RecvFlags::TRUNC) {
            Err(Errno::INTR) => continue,
            answer => answer.map_err(DiagError::Receive)?,
        };
        let datagram = buffer.get(..length).filter(|datagram| !datagram.is_empty());
        let datagram = datagram.ok_or(DiagError::Malformed(DiagFormatError::Truncated))?;
        if parse_addresses(datagram, SEQUENCE, &mut found)? {
            return Ok(found);
        }
    }
}

/// Adds the networks of one datagram that answers the query `sequence`. Returns true when the
/// answer is complete.
///
/// # Errors
/// [`DiagError::Malformed`], or [`DiagError::Refused`] with the kernel's error.
pub fn parse_addresses(
    mut datagram: &[u8],
    sequence: u32,
    found: &mut Vec<Subnet>,
) -> Result<bool, DiagError> {
    while !datagram.is_empty() {
        match take_message(&mut datagram, sequence).map_err(DiagError::Malformed)? {
            NetlinkMessage::Body(RTM_NEWADDR, body) => {
                address(body, found).map_err(DiagError::Malformed)?;
            }
            NetlinkMessage::Done => return Ok(true),
            NetlinkMessage::Failed(errno) => return Err(DiagError::refused(errno)),
            NetlinkMessage::Body(..) | NetlinkMessage::Other => {}
        }
    }
    Ok(false)
}

/// Reads a `struct ifaddrmsg` and its attributes.
fn address(body: &[u8], found: &mut Vec<Subnet>) -> Result<(), DiagFormatError> {
    let header = body.get(..ADDRESS_BYTES).ok_or(DiagFormatError::TooShort)?;
    let (family, prefix) = (header[0], header[1]);
    let mut rest = &body[ADDRESS_BYTES..];
    while !rest.is_empty() {
        let (length, kind) = (usize::from(u16_at(rest, 0)?), u16_at(rest, 2)?);
        let value = rest.get(..length).ok_or(DiagFormatError::Truncated)?;
        let value = value.get(ATTRIBUTE_BYTES..).ok_or(DiagFormatError::TooShort)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        // On a point-to-point link, the network is the peer's, and the local address is a network
        // of its own.
        let (address, prefix) = match kind {
            IFA_ADDRESS => (ip(family, value), prefix),
            IFA_LOCAL => (ip(family, value), 32),
            _ => continue,
        };
        // A prefix of zero bits would contain all addresses.
        let network = address.filter(|_| prefix > 0).and_then(|ip| Subnet::new(ip, prefix));
        if let Some(network) = network.filter(|network| !found.contains(network)) {
            found.push(network);
        }
    }
    Ok(())
}

fn ip(family: u8, bytes: &[u8]) -> Option<IpAddr> {
    match i32::from(family) {
        libc::AF_INET => <[u8; 4]>::try_from(bytes).ok().map(IpAddr::from),
        libc::AF_INET6 => <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from),
        _ => None,
    }
}

const RTM_NEWADDR: u16 = 20;
const RTM_GETADDR: u16 = 22;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
/// Size of `struct ifaddrmsg`.
const ADDRESS_BYTES: usize = 8;
/// Size of `struct rtattr`.
const ATTRIBUTE_BYTES: usize = 4;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn subnet(address: &str, prefix: u8) -> Subnet {
        Subnet::new(address.parse().unwrap(), prefix).unwrap()
    }

    #[test]
    fn a_network_holds_the_addresses_that_begin_like_it() {
        for (network, inside, outside) in [
            (subnet("10.0.1.7", 24), "10.0.1.255", "10.0.2.0"),
            (subnet("192.168.1.130", 25), "192.168.1.128", "192.168.1.127"),
            (subnet("10.8.0.2", 32), "10.8.0.2", "10.8.0.3"),
            (subnet("fd00::1", 64), "fd00::ffff", "fd00:0:0:1::"),
            (subnet("10.0.0.0", 8), "10.255.255.255", "::ffff:10.0.0.1"),
        ] {
            assert!(network.contains(inside.parse().unwrap()), "{network} {inside}");
            assert!(!network.contains(outside.parse().unwrap()), "{network} {outside}");
        }
        assert_eq!(subnet("10.0.1.7", 24).to_string(), "10.0.1.0/24");
        assert!(Subnet::new("10.0.0.1".parse().unwrap(), 33).is_none());
        assert!(subnet("0.0.0.0", 0).contains("8.8.8.8".parse().unwrap()));
    }

    /// Returns an answer about one address; `attributes` are pairs of a kind and a value.
    fn answer(prefix: u8, attributes: &[(u16, [u8; 4])]) -> Vec<u8> {
        let mut body = vec![libc::AF_INET as u8, prefix, 0, 0, 1, 0, 0, 0];
        for (kind, value) in attributes {
            body.extend_from_slice(&8_u16.to_ne_bytes());
            body.extend_from_slice(&kind.to_ne_bytes());
            body.extend_from_slice(value);
        }
        let mut bytes = dump_header(RTM_NEWADDR, body.len(), 7);
        bytes.extend_from_slice(&body);
        bytes
    }

    fn parse(bytes: &[u8]) -> Result<Vec<String>, DiagError> {
        let mut found = Vec::new();
        parse_addresses(bytes, 7, &mut found)?;
        Ok(found.iter().map(Subnet::to_string).collect())
    }

    #[test]
    fn addresses_are_read_with_their_networks() {
        let lan =
            answer(24, &[(IFA_ADDRESS, [10, 0, 1, 7]), (IFA_LOCAL, [10, 0, 1, 7]), (3, [0; 4])]);
        assert_eq!(parse(&lan).unwrap(), ["10.0.1.0/24", "10.0.1.7/32"]);
        let tunnel = answer(32, &[(IFA_ADDRESS, [10, 8, 0, 1]), (IFA_LOCAL, [10, 8, 0, 2])]);
        assert_eq!(parse(&tunnel).unwrap(), ["10.8.0.1/32", "10.8.0.2/32"]);
        assert_eq!(parse(&answer(0, &[(IFA_ADDRESS, [10, 0, 1, 7])])).unwrap(), [""; 0]);
        let cut = &lan[..lan.len() - 2];
        assert_eq!(parse(cut), Err(DiagError::Malformed(DiagFormatError::Truncated)));
    }

    #[test]
    fn an_error_is_the_kernels_own_or_none() {
        let failed = |errno: i32| {
            let mut bytes = dump_header(NLMSG_ERROR, 4, 7);
            bytes.extend_from_slice(&(-errno).to_ne_bytes());
            parse(&bytes).unwrap_err()
        };
        assert_eq!(failed(libc::EPERM), DiagError::Refused(Errno::PERM));
        for errno in [0, 4_096, i32::MAX] {
            assert_eq!(failed(errno), DiagError::Malformed(DiagFormatError::Errno(errno)));
        }
    }

    const NLMSG_ERROR: u16 = 2;

    #[test]
    #[cfg_attr(miri, ignore = "miri has no netlink")]
    fn this_machine_has_an_address_of_its_own() {
        match subnets() {
            Ok(found) => {
                let loopback = "127.0.0.1".parse().unwrap();
                assert!(found.iter().any(|network| network.contains(loopback)), "{found:?}");
            }
            Err(error) => println!("skipped: {error}"),
        }
    }

    proptest! {
        #[test]
        fn a_damaged_answer_never_panics(at in 0_usize..48, value: u8, cut in 0_usize..60) {
            let mut bytes = answer(24, &[(IFA_ADDRESS, [10, 0, 1, 7]), (IFA_LOCAL, [10, 0, 1, 7])]);
            let at = at % bytes.len();
            bytes[at] = value;
            bytes.truncate(cut);
            let _ = parse(&bytes);
        }
    }
}
