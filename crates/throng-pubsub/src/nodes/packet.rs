//! Packets: what a node says to the others.

use std::sync::Arc;

use super::id::{NodeId, is_name};
use super::members::{self, Changes};
use super::wire::{Decoder, Encode};
use crate::presence::PresenceMember;

/// The beginning of every packet.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) kind: PacketKind,
    pub(super) from: NodeId,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PacketKind {
    /// Publications: see [`super::batch`].
    Batch,
    Heartbeat,
    Goodbye,
    Changes,
    StateRequest,
    StatePart,
}

/// A packet about nodes and presence.
#[derive(Debug)]
pub(super) enum Packet {
    /// The node lives.
    Heartbeat {
        /// The number of its latest changes.
        number: u64,
        /// Its address for clients.
        address: Option<Arc<str>>,
        is_draining: bool,
    },
    /// The node ends.
    Goodbye,
    /// Changes of the members that the node owns.
    Changes { number: u64, changes: Changes },
    /// A request for all members that the addressee owns.
    StateRequest { transfer: u64 },
    /// A part of the answer.
    StatePart(StatePart),
}

/// Some of the members that a node owns.
#[derive(Debug)]
pub(super) struct StatePart {
    /// The number that the request has.
    pub(super) transfer: u64,
    /// The number of the latest changes that the state contains.
    pub(super) number: u64,
    /// The number of this part, from 0.
    pub(super) part: u32,
    pub(super) is_last: bool,
    pub(super) members: Vec<Arc<PresenceMember>>,
}

impl PacketKind {
    /// All kinds; the place of each is its number on the wire.
    const ALL: [Self; 6] = [
        Self::Batch,
        Self::Heartbeat,
        Self::Goodbye,
        Self::Changes,
        Self::StateRequest,
        Self::StatePart,
    ];
}

impl Header {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.put_u16(VERSION);
        out.put_u8(self.kind as u8);
        out.put_bytes(self.from.name.as_bytes());
        out.put_u64(self.from.epoch);
    }

    /// Reads a header. `None` if it is none, or one of another version.
    pub(super) fn decode(rest: &mut Decoder<'_>) -> Option<Self> {
        if rest.u16()? != VERSION {
            return None;
        }
        let kind = *PacketKind::ALL.get(usize::from(rest.u8()?))?;
        let name = rest.text().filter(|name| is_name(name))?;
        Some(Self { kind, from: NodeId { name: name.into(), epoch: rest.u64()? } })
    }
}

impl Packet {
    pub(super) fn encode(&self, from: &NodeId) -> Vec<u8> {
        let mut out = Vec::new();
        Header { kind: self.kind(), from: from.clone() }.encode(&mut out);
        match self {
            Self::Heartbeat { number, address, is_draining } => {
                out.put_u64(*number);
                out.put_u8(u8::from(*is_draining));
                out.put_bytes(address.as_deref().unwrap_or_default().as_bytes());
            }
            Self::Goodbye => {}
            Self::Changes { number, changes } => {
                out.put_u64(*number);
                members::encode(&changes.joins, &mut out);
                out.put_u32(changes.leaves.len() as u32);
                changes.leaves.iter().for_each(|left| members::encode_ref(*left, &mut out));
            }
            Self::StateRequest { transfer } => out.put_u64(*transfer),
            Self::StatePart(StatePart { transfer, number, part, is_last, members }) => {
                out.put_u64(*transfer);
                out.put_u64(*number);
                out.put_u32(*part);
                out.put_u8(u8::from(*is_last));
                members::encode(members, &mut out);
            }
        }
        out
    }

    /// Reads a packet and the node that it comes from.
    pub(super) fn decode(payload: &[u8]) -> Option<(NodeId, Self)> {
        let mut rest = Decoder(payload);
        let Header { kind, from } = Header::decode(&mut rest)?;
        let rest = &mut rest;
        let packet = match kind {
            PacketKind::Batch => return None,
            PacketKind::Heartbeat => {
                let (number, is_draining) = (rest.u64()?, rest.u8()? != 0);
                let address = rest.text().filter(|address| is_address(address))?;
                let address = (!address.is_empty()).then(|| address.into());
                Self::Heartbeat { number, address, is_draining }
            }
            PacketKind::Goodbye => Self::Goodbye,
            PacketKind::Changes => {
                let number = rest.u64()?;
                let joins = members::decode(rest)?;
                let leaves: Option<_> =
                    (0..rest.u32()?).map(|_| members::decode_ref(rest)).collect();
                Self::Changes { number, changes: Changes { joins, leaves: leaves? } }
            }
            PacketKind::StateRequest => Self::StateRequest { transfer: rest.u64()? },
            PacketKind::StatePart => Self::StatePart(StatePart {
                transfer: rest.u64()?,
                number: rest.u64()?,
                part: rest.u32()?,
                is_last: rest.u8()? != 0,
                members: members::decode(rest)?,
            }),
        };
        rest.is_empty().then_some((from, packet))
    }

    const fn kind(&self) -> PacketKind {
        match self {
            Self::Heartbeat { .. } => PacketKind::Heartbeat,
            Self::Goodbye => PacketKind::Goodbye,
            Self::Changes { .. } => PacketKind::Changes,
            Self::StateRequest { .. } => PacketKind::StateRequest,
            Self::StatePart(_) => PacketKind::StatePart,
        }
    }
}

/// Reports whether a text can be the address of a node for clients: printable ASCII, or none.
fn is_address(text: &str) -> bool {
    text.len() <= ADDRESS_BYTES_MAX && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// The longest address of a node.
const ADDRESS_BYTES_MAX: usize = 256;
/// The version of the encoding. A node ignores packets of other versions.
const VERSION: u16 = 1;
/// The bytes beyond which a packet takes no further member.
pub const PACKET_BYTES_MAX: usize = 128 << 10;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::presence::PresenceRef;

    fn member(topic: &str, key: &str, n: u8) -> Arc<PresenceMember> {
        let r#ref = PresenceRef::from_bytes([n; 12]);
        Arc::new(PresenceMember::of_other_node(topic.into(), key, r#ref, r#"{"a":1}"#))
    }

    fn samples() -> Vec<Packet> {
        let members = vec![member("t", "ann", 1), member("t", "bob", 2), member("u", "ann", 3)];
        let changes =
            Changes { joins: members.clone(), leaves: vec![PresenceRef::from_bytes([4; 12])] };
        let part = StatePart { transfer: 1, number: 2, part: 3, is_last: true, members };
        vec![
            Packet::Heartbeat { number: 7, address: Some("a:1".into()), is_draining: true },
            Packet::Heartbeat { number: 0, address: None, is_draining: false },
            Packet::Goodbye,
            Packet::Changes { number: 1, changes },
            Packet::StateRequest { transfer: 1 },
            Packet::StatePart(part),
        ]
    }

    #[test]
    fn a_packet_is_read_as_it_was_written() {
        let from = NodeId::new("one", 5);
        for packet in samples() {
            let (sender, read) = Packet::decode(&packet.encode(&from)).unwrap();
            assert_eq!((sender, format!("{read:?}")), (from.clone(), format!("{packet:?}")));
        }
    }

    #[test]
    fn a_packet_of_another_version_is_none() {
        let mut bytes = Packet::Goodbye.encode(&NodeId::new("one", 5));
        bytes[0] += 1;
        assert!(Packet::decode(&bytes).is_none());
    }

    #[test]
    fn a_packet_of_a_node_with_a_name_or_an_address_that_is_none_is_none() {
        let long = "x".repeat(65);
        for name in ["", "a.b", "x\x1b]0;PWNED\x07", "\u{202e}a", "a b", &long] {
            assert!(Packet::decode(&Packet::Goodbye.encode(&NodeId::new(name, 5))).is_none());
        }
        for address in ["a\nb", "a b", "\x1b[2J", "\u{202e}", &"x".repeat(257)] {
            let address = Some(address.into());
            let packet = Packet::Heartbeat { number: 1, address, is_draining: false };
            assert!(Packet::decode(&packet.encode(&NodeId::new("one", 5))).is_none());
        }
    }

    #[test]
    fn a_meta_that_is_no_object_is_none() {
        let r#ref = PresenceRef::from_bytes([0; 12]);
        let wrong = PresenceMember::of_other_node("t".into(), "ann", r#ref, "{}}");
        let changes = Changes { joins: vec![Arc::new(wrong)], leaves: Vec::new() };
        let bytes = Packet::Changes { number: 1, changes }.encode(&NodeId::new("one", 5));
        assert!(Packet::decode(&bytes).is_none());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(
            bytes in prop::collection::vec(any::<u8>(), 0..100),
            sample in 0_usize..6,
            place in 0_usize..200,
        ) {
            _ = Packet::decode(&bytes);
            let mut real = samples()[sample].encode(&NodeId::new("one", 5));
            if let Some(byte) = real.get_mut(place) {
                *byte ^= bytes.first().copied().unwrap_or(1);
            }
            _ = Packet::decode(&real);
        }
    }
}
