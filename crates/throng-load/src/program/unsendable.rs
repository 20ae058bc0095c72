//! What cannot be sent: a value that stands as it is (`raw`) and would break its request, and a
//! value that has no bytes, such as a number that does not fit.

use crate::excerpt::Excerpt;

/// A part of a request or a message that cannot be sent, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum UnsendablePart {
    /// A path that does not begin with `/`: its first bytes.
    PathBegin(Vec<u8>),
    /// A path with a byte that cannot stand in it: what is before that byte, and what the byte is.
    Path(Vec<u8>, &'static str),
    /// A value that has no bytes.
    Value(&'static str),
    /// The value of the header field of this name, and what cannot stand in it.
    Header(String, &'static str),
}

impl UnsendablePart {
    /// Finds the first part that would break a request with this path and these header fields (RFC
    /// 9112 sections 3 and 5).
    pub(crate) fn find<'a>(
        path: &[u8],
        headers: impl IntoIterator<Item = (&'a str, &'a [u8])>,
    ) -> Option<Self> {
        if path.first() != Some(&b'/') {
            return Some(Self::PathBegin(path[..path.len().min(BEGIN_BYTES)].to_vec()));
        }
        // A blank ends the path.
        let fault = |byte: u8| if byte == b' ' { Some("a blank") } else { control(byte) };
        if let Some((before, fault)) = first_fault(path, fault) {
            return Some(Self::Path(before.to_vec(), fault));
        }
        let of_header = |byte: u8| if byte == b'\t' { None } else { control(byte) };
        let mut headers = headers.into_iter();
        headers.find_map(|(name, value)| {
            let (_, fault) = first_fault(value, of_header)?;
            Some(Self::Header(name.to_owned(), fault))
        })
    }

    /// Describes the part. A secret may follow what is shown.
    pub(crate) fn describe(&self, excerpt: Excerpt<'_>) -> String {
        match self {
            Self::PathBegin(begin) if begin.is_empty() => "an empty path".to_owned(),
            Self::PathBegin(begin) => format!("a path that begins with {}", excerpt.bytes(begin)),
            Self::Path(before, fault) => format!("{fault} after {}", excerpt.bytes(before)),
            Self::Value(fault) => (*fault).to_owned(),
            Self::Header(name, fault) => format!("{fault} in the header `{name}`"),
        }
    }
}

/// Returns the first byte with a fault, as what is before it and what it is.
fn first_fault(
    text: &[u8],
    fault: impl Fn(u8) -> Option<&'static str>,
) -> Option<(&[u8], &'static str)> {
    let mut bytes = text.iter().enumerate();
    let found = bytes.find_map(|(at, byte)| Some((&text[..at], fault(*byte)?)));
    found.or_else(|| {
        let error = std::str::from_utf8(text).err()?;
        Some((&text[..error.valid_up_to()], "a byte that is not UTF-8"))
    })
}

fn control(byte: u8) -> Option<&'static str> {
    match byte {
        b'\r' | b'\n' => Some("a line break"),
        _ => byte.is_ascii_control().then_some("a control character"),
    }
}

/// Bytes that are shown of a path with another beginning. A user's name may follow `http://`.
const BEGIN_BYTES: usize = 7;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_breaks_a_request_cannot_be_sent() {
        for (path, value, says) in [
            ("/a?b=%20&c=/é#f", "b=\tc é", None),
            ("", "", Some("an empty path")),
            ("a/b", "", Some("a path that begins with `a/b`")),
            ("http://user:pw@h/", "", Some("a path that begins with `http://`")),
            ("/a?token=b c", "", Some("a blank after `/a?token=***`")),
            ("/a\r\nb", "", Some("a line break after `/a`")),
            ("/a\u{7f}", "", Some("a control character after `/a`")),
            ("/a", "b\nc", Some("a line break in the header `x`")),
            ("/a", "b\0c", Some("a control character in the header `x`")),
        ] {
            let found = UnsendablePart::find(path.as_bytes(), [("x", value.as_bytes())]);
            let shown = found.map(|part| part.describe(Excerpt::short(&[])));
            assert_eq!(shown.as_deref(), says, "{path:?} {value:?}");
        }
        let found = UnsendablePart::find(b"/a\xff", []);
        assert_eq!(found, Some(UnsendablePart::Path(b"/a".to_vec(), "a byte that is not UTF-8")));
    }
}
