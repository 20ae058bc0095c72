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
    let end = bytes.iter().take(HEAD_BYTES_MAX).position(|byte| *byte == b'\n')?;
    let envelope = serde_json::from_slice(&bytes[..end]).ok()?;
    Some((envelope, &bytes[end + 1..]))
}

/// Bytes of an envelope without its packet at most: four names.
const HEAD_BYTES_MAX: usize = 1 << 10;

#[cfg(test)]
mod tests {
    use throng_bus::Name;

    use super::*;
    use crate::message::RunKey;

    #[test]
    fn a_packet_comes_out_of_its_envelope_as_it_went_in() {
        let name = |text: &str| Name::new(text).unwrap();
        let key = RunKey { run: name("r"), coordinator: name("c") };
        let envelope = Envelope { key, agent: name("a"), incarnation: name("1") };
        for packet in [&b""[..], b"\n\n", b"{}\nbytes"] {
            let bytes = encode(&envelope, packet);
            assert_eq!(decode(&bytes), Some((envelope.clone(), packet)));
        }
        assert_eq!(decode(b"{}"), None);
        assert_eq!(decode(b"{}\n"), None);
        let bytes = String::from_utf8(encode(&envelope, b"")).unwrap();
        assert_eq!(decode(bytes.replace("\"a\"", "\"\\u001b[2J\"").as_bytes()), None);
        assert_eq!(decode(format!("{}{bytes}", " ".repeat(HEAD_BYTES_MAX)).as_bytes()), None);
    }
}
