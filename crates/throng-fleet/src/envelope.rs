//! A packet with the run and the agent that it belongs to.

use crate::message::Envelope;

/// Returns the bytes of an envelope with its packet.
pub(crate) fn encode(envelope: &Envelope, packet: &[u8]) -> Vec<u8> {
    let mut bytes = serde_json::to_vec(envelope).expect("names are JSON");
    bytes.push(b'\n');
    bytes.extend_from_slice(packet);
    bytes
}

/// Returns an envelope and its packet; `None` if the bytes are none.
pub(crate) fn decode(bytes: &[u8]) -> Option<(Envelope, &[u8])> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let envelope = serde_json::from_slice(&bytes[..end]).ok()?;
    Some((envelope, &bytes[end + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::RunKey;

    #[test]
    fn a_packet_comes_out_of_its_envelope_as_it_went_in() {
        let key = RunKey { run: "r".into(), coordinator: "c".into() };
        let envelope = Envelope { key, agent: "a\nb".into(), incarnation: "1".into() };
        for packet in [&b""[..], b"\n\n", b"{}\nbytes"] {
            let bytes = encode(&envelope, packet);
            assert_eq!(decode(&bytes), Some((envelope.clone(), packet)));
        }
        assert_eq!(decode(b"{}"), None);
        assert_eq!(decode(b"{}\n"), None);
    }
}
