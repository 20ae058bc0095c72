//! Wire format of `inet_diag`: encodes `struct inet_diag_req_v2` and decodes `struct
//! inet_diag_msg`, in the layout of `linux/inet_diag.h` and `linux/netlink.h`. Pure functions,
//! without I/O.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

use super::{Family, States};

/// Kernel's description of one socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Diag {
    /// Number of the TCP state: 1 is ESTABLISHED, 3 SYN-RECV, 10 LISTEN.
    pub state: u8,
    /// Local address.
    pub local: SocketAddr,
    /// Peer's address; port 0 for a listener.
    pub peer: SocketAddr,
    /// Bytes that are not read yet; for a listener, connections that are not accepted yet.
    pub receive_queue: u32,
    /// Bytes that the peer has not acknowledged; for a listener, its backlog.
    pub send_queue: u32,
    /// User who created the socket.
    pub uid: u32,
    /// Inode; 0 for a connection in SYN-RECV or TIME-WAIT, which has no socket.
    pub inode: u32,
    /// Segments that the socket dropped; for a listener, SYNs and final ACKs of handshakes. `None`
    /// unless the query requests it; Linux before 4.7 does not report it.
    pub drops: Option<u32>,
    /// True for a listener of IPv6 that takes no IPv4 connections. `None` for other sockets, and
    /// before Linux 4.2.
    pub v6_only: Option<bool>,
}

impl Diag {
    /// Reports whether the peer has closed the connection, and this side has not.
    pub fn is_close_wait(&self) -> bool {
        self.state == CLOSE_WAIT
    }
}

/// Number of the TCP state CLOSE-WAIT.
const CLOSE_WAIT: u8 = 8;

/// Message of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiagMessage {
    /// A socket.
    Socket(Diag),
    /// The answer is complete.
    Done,
    /// The answer ends with this errno.
    Failed(i32),
    /// A message to skip: padding, or the rest of an answer to an earlier query.
    Other,
}

/// Format error of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiagFormatError {
    /// The kernel sent nothing at all.
    Empty,
    /// A message is longer than the rest of the datagram.
    Truncated,
    /// A message is too short for its type.
    TooShort,
    /// A socket's address family is neither IPv4 nor IPv6.
    Family(u8),
    /// The errno is not a valid error number.
    Errno(i32),
}

impl fmt::Display for DiagFormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("empty"),
            Self::Truncated => f.write_str("cut short"),
            Self::TooShort => f.write_str("a message is too short for its type"),
            Self::Family(family) => write!(f, "unknown address family {family}"),
            Self::Errno(errno) => write!(f, "invalid error number {errno}"),
        }
    }
}

/// Returns the messages of one datagram that answers the query `sequence`.
pub fn parse_diag(datagram: &[u8], sequence: u32) -> DiagMessages<'_> {
    DiagMessages { rest: datagram, sequence }
}

/// Iterator over the messages of a datagram, from [`parse_diag`]. Ends after the first malformed
/// message.
#[derive(Clone, Debug)]
pub struct DiagMessages<'a> {
    rest: &'a [u8],
    sequence: u32,
}

impl Iterator for DiagMessages<'_> {
    type Item = Result<DiagMessage, DiagFormatError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let message = self.take();
        if message.is_err() {
            self.rest = &[];
        }
        Some(message)
    }
}

impl DiagMessages<'_> {
    fn take(&mut self) -> Result<DiagMessage, DiagFormatError> {
        match take_message(&mut self.rest, self.sequence)? {
            NetlinkMessage::Body(SOCK_DIAG_BY_FAMILY, body) => {
                socket(body).map(DiagMessage::Socket)
            }
            NetlinkMessage::Done => Ok(DiagMessage::Done),
            NetlinkMessage::Failed(errno) => Ok(DiagMessage::Failed(errno)),
            NetlinkMessage::Body(..) | NetlinkMessage::Other => Ok(DiagMessage::Other),
        }
    }
}

/// Netlink message of any protocol.
pub(super) enum NetlinkMessage<'a> {
    /// Message type and body.
    Body(u16, &'a [u8]),
    Done,
    Failed(i32),
    Other,
}

/// Takes the first message of `rest`, a part of the answer to the query `sequence`.
pub(super) fn take_message<'a>(
    rest: &mut &'a [u8],
    sequence: u32,
) -> Result<NetlinkMessage<'a>, DiagFormatError> {
    let header = rest.get(..HEADER_BYTES).ok_or(DiagFormatError::Truncated)?;
    let length = u32_at(header, 0)? as usize;
    let (kind, answered) = (u16_at(header, 4)?, u32_at(header, 8)?);
    let body = rest.get(..length).ok_or(DiagFormatError::Truncated)?;
    let body = body.get(HEADER_BYTES..).ok_or(DiagFormatError::TooShort)?;
    // The last message of a datagram may lack its padding.
    *rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    if answered != sequence {
        return Ok(NetlinkMessage::Other);
    }
    match kind {
        NLMSG_DONE => Ok(match errno(body) {
            Ok(code @ 1..) => NetlinkMessage::Failed(code),
            _ => NetlinkMessage::Done,
        }),
        NLMSG_ERROR => errno(body).map(NetlinkMessage::Failed),
        _ => Ok(NetlinkMessage::Body(kind, body)),
    }
}

/// Returns the header of a dump query, which `body_bytes` bytes follow.
pub(super) fn dump_header(kind: u16, body_bytes: usize, sequence: u32) -> Vec<u8> {
    let length = HEADER_BYTES + body_bytes;
    let mut bytes = Vec::with_capacity(length);
    bytes.extend_from_slice(&(length as u32).to_ne_bytes());
    bytes.extend_from_slice(&kind.to_ne_bytes());
    bytes.extend_from_slice(&((libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16).to_ne_bytes());
    bytes.extend_from_slice(&sequence.to_ne_bytes());
    bytes.extend_from_slice(&0_u32.to_ne_bytes());
    bytes
}

/// Decodes a `struct inet_diag_msg` and the attribute of the memory, if it is there.
fn socket(body: &[u8]) -> Result<Diag, DiagFormatError> {
    let (body, attributes) = body.split_at_checked(DIAG_BYTES).ok_or(DiagFormatError::TooShort)?;
    let family = body[0];
    let interface = u32_at(body, 40)?;
    let address = |port_at: usize, ip_at: usize| {
        let port = u16::from_be_bytes([body[port_at], body[port_at + 1]]);
        let ip: [u8; 16] =
            body[ip_at..ip_at + 16].try_into().map_err(|_| DiagFormatError::TooShort)?;
        match i32::from(family) {
            libc::AF_INET => {
                Ok(SocketAddr::new(IpAddr::V4(Ipv4Addr::new(ip[0], ip[1], ip[2], ip[3])), port))
            }
            libc::AF_INET6 => {
                Ok(SocketAddr::V6(SocketAddrV6::new(Ipv6Addr::from(ip), port, 0, interface)))
            }
            _ => Err(DiagFormatError::Family(family)),
        }
    };
    Ok(Diag {
        state: body[1],
        local: address(4, 8)?,
        peer: address(6, 24)?,
        receive_queue: u32_at(body, 56)?,
        send_queue: u32_at(body, 60)?,
        uid: u32_at(body, 64)?,
        inode: u32_at(body, 68)?,
        drops: attribute(attributes, INET_DIAG_SKMEMINFO)
            .and_then(|memory| u32_at(memory, SK_MEMINFO_DROPS * size_of::<u32>()).ok()),
        v6_only: attribute(attributes, INET_DIAG_SKV6ONLY)
            .and_then(|value| value.first())
            .map(|value| *value != 0),
    })
}

/// Returns the value of one attribute of a socket's message. An attribute that is cut short ends
/// the search.
fn attribute(mut attributes: &[u8], wanted: u16) -> Option<&[u8]> {
    loop {
        let length = usize::from(u16_at(attributes, 0).ok()?);
        let kind = u16_at(attributes, 2).ok()?;
        let value = attributes.get(ATTRIBUTE_BYTES..length)?;
        if kind == wanted {
            return Some(value);
        }
        attributes = attributes.get(length.next_multiple_of(4)..)?;
    }
}

/// Decodes an errno, which the kernel sends as a negative number.
fn errno(body: &[u8]) -> Result<i32, DiagFormatError> {
    Ok(u32_at(body, 0)?.cast_signed().saturating_neg())
}

/// Returns the query: a dump of all sockets of `family` in one of `states`, filtered by local port.
/// `ports` has at most [`RANGES_MAX`] ranges; none means all ports.
pub(super) fn request(
    family: Family,
    states: States,
    ports: &[PortRange],
    sequence: u32,
) -> Vec<u8> {
    let filter = port_filter(ports);
    let attribute = if filter.is_empty() { 0 } else { ATTRIBUTE_BYTES + filter.len() };
    let mut bytes = dump_header(SOCK_DIAG_BY_FAMILY, REQUEST_BYTES + attribute, sequence);

    let family = match family {
        Family::V4 => libc::AF_INET,
        Family::V6 => libc::AF_INET6,
    };
    // The other states have too many sockets for an attribute each.
    let extensions = if states == States::LISTEN { 1 << (INET_DIAG_SKMEMINFO - 1) } else { 0 };
    bytes.extend_from_slice(&[family as u8, libc::IPPROTO_TCP as u8, extensions, 0]);
    bytes.extend_from_slice(&states.0.to_ne_bytes());
    // A socket id of zeros is a wildcard in a dump.
    bytes.resize(HEADER_BYTES + REQUEST_BYTES, 0);

    if !filter.is_empty() {
        bytes.extend_from_slice(&(attribute as u16).to_ne_bytes());
        bytes.extend_from_slice(&INET_DIAG_REQ_BYTECODE.to_ne_bytes());
        bytes.extend_from_slice(&filter);
    }
    bytes
}

/// First and last port of a range.
pub(super) type PortRange = (u16, u16);

/// Returns the fewest ranges that hold exactly `ports`.
pub(super) fn ranges(ports: &[u16]) -> Vec<PortRange> {
    let mut sorted = ports.to_vec();
    sorted.sort_unstable();
    let mut ranges: Vec<PortRange> = Vec::new();
    for port in sorted {
        match ranges.last_mut() {
            Some((_, last)) if port <= last.saturating_add(1) => *last = port,
            _ => ranges.push((port, port)),
        }
    }
    ranges
}

/// Returns a program in the kernel's filter language that accepts the local ports of `ranges`;
/// empty accepts all.
///
/// Each range is `port >= first`, `port <= last` and, except for the last range, a jump to the end
/// of the program. An offset exactly to the end accepts; an offset to four bytes past it rejects.
fn port_filter(ranges: &[PortRange]) -> Vec<u8> {
    debug_assert!(ranges.len() <= RANGES_MAX, "the offsets have 16 bits");
    let mut code = Vec::with_capacity(ranges.len() * (2 * TEST_BYTES + OP_BYTES));
    let mut op = |code_: u8, yes: u8, no: u16| {
        code.extend_from_slice(&[code_, yes]);
        code.extend_from_slice(&no.to_ne_bytes());
    };
    for (index, (first, last)) in ranges.iter().enumerate() {
        let after = ranges.len() - index - 1;
        let skip_jump = OP_BYTES as u16;
        op(S_GE, TEST_BYTES as u8, 2 * TEST_BYTES as u16 + skip_jump);
        op(0, 0, *first);
        op(S_LE, TEST_BYTES as u8, TEST_BYTES as u16 + skip_jump);
        op(0, 0, *last);
        if after > 0 {
            // Past this jump and the blocks after it; the last of them has no jump.
            let to_end = OP_BYTES + after * (2 * TEST_BYTES + OP_BYTES) - OP_BYTES;
            op(JMP, OP_BYTES as u8, to_end as u16);
        }
    }
    code
}

pub(super) fn u16_at(bytes: &[u8], at: usize) -> Result<u16, DiagFormatError> {
    let bytes = bytes.get(at..at + 2).ok_or(DiagFormatError::TooShort)?;
    Ok(u16::from_ne_bytes([bytes[0], bytes[1]]))
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> Result<u32, DiagFormatError> {
    let bytes = bytes.get(at..at + 4).ok_or(DiagFormatError::TooShort)?;
    Ok(u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
}

/// Size of `struct nlmsghdr`.
const HEADER_BYTES: usize = 16;
/// Size of `struct inet_diag_req_v2`.
const REQUEST_BYTES: usize = 56;
/// Size of `struct inet_diag_msg`.
const DIAG_BYTES: usize = 72;
/// Size of `struct rtattr`.
const ATTRIBUTE_BYTES: usize = 4;
/// Size of `struct inet_diag_bc_op`.
const OP_BYTES: usize = 4;
/// Size of a test for a port: an op, and a second op whose `no` holds the operand.
const TEST_BYTES: usize = 2 * OP_BYTES;

/// Most ranges of ports in a kernel filter. The 16-bit offsets would allow 3,000, but the kernel
/// takes a second to check such a filter: the time grows with the square.
pub(super) const RANGES_MAX: usize = 300;

const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const INET_DIAG_REQ_BYTECODE: u16 = 1;
/// Attribute with the numbers of `SK_MEMINFO_*`, 32 bits each.
const INET_DIAG_SKMEMINFO: u16 = 7;
/// Index of the drops in it.
const SK_MEMINFO_DROPS: usize = 8;
/// Attribute of a listener of IPv6: a byte that is not 0 if it takes no IPv4 connections.
const INET_DIAG_SKV6ONLY: u16 = 11;

/// Values of `inet_diag_bc_op::code`.
const JMP: u8 = 1;
const S_GE: u8 = 2;
const S_LE: u8 = 3;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns a message in the kernel's format.
    fn message(kind: u16, sequence: u32, body: &[u8]) -> Vec<u8> {
        let mut bytes = ((HEADER_BYTES + body.len()) as u32).to_ne_bytes().to_vec();
        bytes.extend_from_slice(&kind.to_ne_bytes());
        bytes.extend_from_slice(&[2, 0]);
        bytes.extend_from_slice(&sequence.to_ne_bytes());
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(body);
        bytes
    }

    /// Returns a listener at 127.0.0.1:5555, where 3 connections wait and the backlog is 128.
    fn listener(family: i32) -> Vec<u8> {
        let mut body = vec![family as u8, 10, 0, 0];
        body.extend_from_slice(&5555_u16.to_be_bytes());
        body.extend_from_slice(&[0; 2]);
        body.extend_from_slice(&[127, 0, 0, 1]);
        body.resize(56, 0);
        for value in [3_u32, 128, 1000, 4711] {
            body.extend_from_slice(&value.to_ne_bytes());
        }
        body
    }

    #[test]
    fn a_listener_is_read_with_its_queue_and_backlog() {
        let mut bytes = message(SOCK_DIAG_BY_FAMILY, 7, &listener(libc::AF_INET));
        bytes.extend(message(NLMSG_DONE, 7, &[0; 4]));
        let messages: Vec<_> = parse_diag(&bytes, 7).collect::<Result<_, _>>().unwrap();
        let DiagMessage::Socket(diag) = messages[0] else { panic!("{messages:?}") };
        assert_eq!(diag.local, "127.0.0.1:5555".parse().unwrap());
        assert_eq!((diag.state, diag.receive_queue, diag.send_queue), (10, 3, 128));
        assert_eq!((diag.uid, diag.inode), (1000, 4711));
        assert_eq!(messages[1], DiagMessage::Done);
    }

    #[test]
    fn the_drops_of_a_listener_are_read_from_its_attributes() {
        let attribute = |kind: u16, value: &[u8]| {
            let mut bytes = ((ATTRIBUTE_BYTES + value.len()) as u16).to_ne_bytes().to_vec();
            bytes.extend_from_slice(&kind.to_ne_bytes());
            bytes.extend_from_slice(value);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
            bytes
        };
        let memory: Vec<u8> = (0..9_u32).flat_map(|n| (100 + n).to_ne_bytes()).collect();
        let shutdown = attribute(8, &[3]);
        let of = |attributes: Vec<u8>| {
            socket(&[listener(libc::AF_INET), attributes].concat()).unwrap().drops
        };
        assert_eq!(of(Vec::new()), None);
        assert_eq!(of([shutdown.clone(), attribute(7, &memory)].concat()), Some(108));
        assert_eq!(of([attribute(7, &memory[..32]), shutdown].concat()), None, "before Linux 4.7");
        assert_eq!(of(attribute(7, &memory)[..20].to_vec()), None);
        assert_eq!(of(vec![0; 8]), None, "an attribute without a length");
    }

    #[test]
    fn a_listener_of_ipv6_alone_is_told_from_one_of_both_versions() {
        let of = |attributes: &[u8]| {
            socket(&[&listener(libc::AF_INET6)[..], attributes].concat()).unwrap().v6_only
        };
        let with = |value: u8| {
            let mut bytes = 5_u16.to_ne_bytes().to_vec();
            bytes.extend_from_slice(&INET_DIAG_SKV6ONLY.to_ne_bytes());
            bytes.extend_from_slice(&[value, 0, 0, 0]);
            of(&bytes)
        };
        assert_eq!((with(1), with(0), of(&[])), (Some(true), Some(false), None));
    }

    #[test]
    fn errors_and_foreign_messages_are_told_apart() {
        let check = |bytes: Vec<u8>, expected| {
            assert_eq!(parse_diag(&bytes, 7).next(), Some(expected));
        };
        let enoent = (-libc::ENOENT).to_ne_bytes();
        check(message(NLMSG_ERROR, 7, &enoent), Ok(DiagMessage::Failed(libc::ENOENT)));
        check(message(NLMSG_DONE, 7, &enoent), Ok(DiagMessage::Failed(libc::ENOENT)));
        check(message(NLMSG_ERROR, 6, &enoent), Ok(DiagMessage::Other));
        check(message(NLMSG_ERROR, 7, &[]), Err(DiagFormatError::TooShort));
        check(message(SOCK_DIAG_BY_FAMILY, 7, &[2; 71]), Err(DiagFormatError::TooShort));
        check(message(SOCK_DIAG_BY_FAMILY, 7, &listener(1)), Err(DiagFormatError::Family(1)));
        let whole = message(SOCK_DIAG_BY_FAMILY, 7, &listener(libc::AF_INET));
        check(whole[..40].to_vec(), Err(DiagFormatError::Truncated));
    }

    /// Runs a filter as the kernel does.
    fn accepts(filter: &[u8], port: u16) -> bool {
        let mut at = 0;
        while at < filter.len() {
            let (code, yes) = (filter[at], usize::from(filter[at + 1]));
            let no = usize::from(u16_at(filter, at + 2).unwrap());
            let operand = || u16_at(filter, at + OP_BYTES + 2).unwrap();
            let taken = match code {
                JMP => false,
                S_GE => port >= operand(),
                S_LE => port <= operand(),
                code => panic!("op {code}"),
            };
            at += if taken { yes } else { no };
        }
        at == filter.len()
    }

    proptest! {
        #[test]
        fn a_filter_accepts_its_ports_alone(
            ports in proptest::collection::vec(any::<u16>(), 1..9), other: u16,
        ) {
            let filter = port_filter(&ranges(&ports));
            for port in &ports {
                prop_assert!(accepts(&filter, *port));
            }
            prop_assert_eq!(accepts(&filter, other), ports.contains(&other));
        }

        #[test]
        fn ranges_hold_their_ports_and_no_others(
            ports in proptest::collection::vec(prop_oneof![0_u16..20, 65_500_u16..], 0..40),
        ) {
            let ranges = ranges(&ports);
            let held: Vec<u16> = ranges.iter().flat_map(|&(first, last)| first..=last).collect();
            let expected: std::collections::BTreeSet<u16> = ports.into_iter().collect();
            prop_assert!(held.iter().eq(&expected), "{:?}", ranges);
            let apart = |pair: &[PortRange]| pair[0].1 + 1 < pair[1].0;
            prop_assert!(ranges.windows(2).all(apart), "{:?}", ranges);
        }

        #[test]
        fn random_bytes_never_panic_and_always_end(bytes: Vec<u8>, sequence: u32) {
            prop_assert!(parse_diag(&bytes, sequence).count() <= bytes.len());
        }

        #[test]
        fn a_damaged_answer_never_panics(at in 0_usize..88, value: u8, cut in 0_usize..200) {
            let mut bytes = message(SOCK_DIAG_BY_FAMILY, 7, &listener(libc::AF_INET6));
            bytes.extend(message(SOCK_DIAG_BY_FAMILY, 7, &listener(libc::AF_INET)));
            bytes[at] = value;
            bytes.truncate(cut);
            prop_assert!(parse_diag(&bytes, 7).count() <= 2 + bytes.len() / HEADER_BYTES);
        }
    }
}
