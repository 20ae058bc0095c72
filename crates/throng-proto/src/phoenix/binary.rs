//! Binary frames: a kind, the sizes of the names (one byte each), the names, and the payload.

use std::borrow::Cow;

use super::{FrameDecodeError, FrameEncodeError, FrameKind};

/// The kind of a push. A client's push has a ref, a server's has none.
pub(super) const PUSH: u8 = 0;
/// The kind of a reply, which servers send.
pub(super) const REPLY: u8 = 1;
/// The kind of a broadcast, which servers send.
pub(super) const BROADCAST: u8 = 2;

/// Appends a frame. Appends nothing if a name is too long.
pub(super) fn encode<const N: usize>(
    kind: u8,
    names: [(&'static str, &str); N],
    payload: &[u8],
    out: &mut Vec<u8>,
) -> Result<FrameKind, FrameEncodeError> {
    for (field, name) in names {
        if name.len() > NAME_BYTES_MAX {
            return Err(FrameEncodeError::FieldTooLong { field, bytes: name.len() });
        }
    }
    let bytes: usize = names.iter().map(|(_, name)| name.len()).sum();
    out.reserve(1 + N + bytes + payload.len());
    out.push(kind);
    out.extend(names.map(|(_, name)| name.len() as u8));
    for (_, name) in names {
        out.extend_from_slice(name.as_bytes());
    }
    out.extend_from_slice(payload);
    Ok(FrameKind::Binary)
}

/// Decodes the names and the payload, which follow the kind.
pub(super) fn decode<const N: usize>(bytes: &[u8]) -> Result<([&str; N], &[u8]), FrameDecodeError> {
    let Some((sizes, mut rest)) = bytes.split_at_checked(N) else {
        return Err(FrameDecodeError::Binary("the frame ends within the sizes"));
    };
    let mut names = [""; N];
    for (name, &size) in names.iter_mut().zip(sizes) {
        let Some((head, tail)) = rest.split_at_checked(size.into()) else {
            return Err(FrameDecodeError::Binary("the frame ends within a name"));
        };
        *name = std::str::from_utf8(head)
            .map_err(|_| FrameDecodeError::Binary("a name is not UTF-8"))?;
        rest = tail;
    }
    Ok((names, rest))
}

/// Returns a ref; an empty name means none.
pub(super) fn non_empty(name: &str) -> Option<Cow<'_, str>> {
    (!name.is_empty()).then_some(Cow::Borrowed(name))
}

/// The longest name: its size is one byte.
const NAME_BYTES_MAX: usize = 255;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_cut_anywhere_before_its_payload_is_refused() {
        let mut frame = Vec::new();
        encode(PUSH, [("a", "12"), ("b", ""), ("c", "tópic")], b"data", &mut frame).unwrap();
        assert_eq!(decode::<3>(&frame[1..]), Ok((["12", "", "tópic"], &b"data"[..])));
        for cut in 1..frame.len() - 4 {
            assert!(
                matches!(decode::<3>(&frame[1..cut]), Err(FrameDecodeError::Binary(_))),
                "{cut}"
            );
        }
        assert_eq!(decode::<3>(&frame[1..frame.len() - 4]), Ok((["12", "", "tópic"], &b""[..])));
    }

    #[test]
    fn a_name_that_is_not_utf8_is_refused() {
        assert!(matches!(decode::<1>(b"\x02\xc3\x28"), Err(FrameDecodeError::Binary(_))));
    }

    #[test]
    fn a_name_of_255_bytes_fits_and_one_more_does_not() {
        let (fits, long) = ("x".repeat(255), "x".repeat(256));
        let mut out = b"before".to_vec();
        assert_eq!(
            encode(PUSH, [("topic", "t"), ("event", &long)], b"", &mut out),
            Err(FrameEncodeError::FieldTooLong { field: "event", bytes: 256 })
        );
        assert_eq!(out, b"before");
        encode(PUSH, [("event", &fits)], b"!", &mut out).unwrap();
        assert_eq!(decode::<1>(&out[7..]), Ok(([&*fits], &b"!"[..])));
    }
}
