//! The header fields of one head.

use std::iter;

use memchr::memchr;

/// Header fields, as they stand in the receive buffer. They were checked when they were received, so reading
/// them is splitting lines; nothing is kept beside them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Headers<'a> {
    lines: &'a str,
}

impl<'a> Headers<'a> {
    /// `lines` are whole, valid field lines (`name: value`); an empty one ends them.
    pub const fn new(lines: &'a str) -> Self {
        Self { lines }
    }

    /// All fields in the order they came in: name as it was written, value without the blanks around it.
    pub fn iter(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        let mut rest = self.lines;
        iter::from_fn(move || {
            let end = memchr(b'\n', rest.as_bytes()).map_or(rest.len(), |at| at + 1);
            let (line, after) = rest.split_at(end);
            rest = after;
            // A name is short: its bytes are looked through sooner than a search is set up.
            let colon = line.bytes().position(|byte| byte == b':')?;
            Some((&line[..colon], line[colon + 1..].trim_ascii()))
        })
    }

    /// The value of the first field of this name, in any case.
    pub fn get(&self, name: &str) -> Option<&'a str> {
        self.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

/// The members of a comma-separated value, without blanks; empty ones left out (RFC 9110 section 5.6.1).
pub(crate) fn members(value: &str) -> impl Iterator<Item = &str> {
    value.split(',').map(str::trim_ascii).filter(|member| !member.is_empty())
}

/// Whether a comma-separated value has this member, in any case.
pub(crate) fn has_member(value: &str, wanted: &str) -> bool {
    let is_it = |member: &str| member.eq_ignore_ascii_case(wanted);
    // Nearly always it is the only one.
    is_it(value) || members(value).any(is_it)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_in_any_case_and_without_blanks() {
        let headers = Headers::new(
            "Host: a:1\r\nX-Empty:\r\ncookie: \t b=c \r\nhost: later\r\n\r\nno: field",
        );
        assert_eq!(headers.get("host"), Some("a:1"));
        assert_eq!(headers.get("x-empty"), Some(""));
        assert_eq!(headers.get("Cookie"), Some("b=c"));
        assert_eq!(headers.get("no"), None);
        assert_eq!(headers.iter().count(), 4);
    }

    #[test]
    fn a_member_is_not_a_part_of_a_word() {
        assert!(has_member("keep-alive, , Upgrade", "upgrade"));
        assert!(!has_member("keep-alive, upgraded", "upgrade"));
    }
}
