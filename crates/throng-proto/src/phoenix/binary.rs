//! Binary frames: a kind, the sizes of the names (one byte each), the names, and the rest is the payload.

use std::borrow::Cow;

use super::{DecodeError, EncodeError, Kind};

/// A push: from a client with a ref, from a server without.
pub(super) const PUSH: u8 = 0;
/// A reply, from a server.
pub(super) const REPLY: u8 = 1;
/// A broadcast, from a server.
pub(super) const BROADCAST: u8 = 2;

/// Appends a frame, or nothing.
pub(super) fn encode<const N: usize>(
    kind: u8,
    names: [(&'static str, &str); N],
    payload: &[u8],
    out: &mut Vec<u8>,
) -> Result<Kind, EncodeError> {
    for (field, name) in names {
        if name.len() > NAME_BYTES_MAX {
            return Err(EncodeError::FieldTooLong { field, bytes: name.len() });
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
    Ok(Kind::Binary)
}

/// The names and the payload of what follows the kind.
pub(super) fn decode<const N: usize>(bytes: &[u8]) -> Result<([&str; N], &[u8]), DecodeError> {
    let Some((sizes, mut rest)) = bytes.split_at_checked(N) else {
        return Err(DecodeError::Binary("it ends among its sizes"));
    };
    let mut names = [""; N];
    for (name, &size) in names.iter_mut().zip(sizes) {
        let Some((head, tail)) = rest.split_at_checked(size.into()) else {
            return Err(DecodeError::Binary("it ends within a name"));
        };
        *name =
            std::str::from_utf8(head).map_err(|_| DecodeError::Binary("a name is not UTF-8"))?;
        rest = tail;
    }
    Ok((names, rest))
}

/// A ref; none is written as an empty name.
pub(super) fn present(name: &str) -> Option<Cow<'_, str>> {
    (!name.is_empty()).then_some(Cow::Borrowed(name))
}

/// What one byte of size can tell.
const NAME_BYTES_MAX: usize = 255;
