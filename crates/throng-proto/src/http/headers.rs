//! The header fields of one head.

use std::iter;

use memchr::memchr;

/// The header fields of one head, as they stand in the receive buffer. The parser has checked them,
/// so an accessor only splits lines, and nothing is stored beside the text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Headers<'a> {
    lines: &'a str,
}

impl<'a> Headers<'a> {
    /// Wraps `lines`: complete, valid field lines (`name: value`). An empty line ends them.
    pub const fn new(lines: &'a str) -> Self {
        Self { lines }
    }

    /// Returns the lines.
    pub(super) const fn lines(self) -> &'a str {
        self.lines
    }

    /// Returns all fields in order of arrival: the name as written, and the value without blanks
    /// around it.
    pub fn iter(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        let mut rest = self.lines;
        iter::from_fn(move || {
            let end = memchr(b'\n', rest.as_bytes()).map_or(rest.len(), |at| at + 1);
            let (line, after) = rest.split_at(end);
            rest = after;
            // A name is short: a scan of its bytes is faster than the setup of a search.
            let colon = line.bytes().position(|byte| byte == b':')?;
            Some((&line[..colon], line[colon + 1..].trim_ascii()))
        })
    }

    /// Returns the value of the first field with this name, compared without case.
    pub fn get(&self, name: &str) -> Option<&'a str> {
        self.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

/// Returns the members of a comma-separated value, without blanks and without empty members (RFC
/// 9110 section 5.6.1).
pub(crate) fn list_members(value: &str) -> impl Iterator<Item = &str> {
    value.split(',').map(str::trim_ascii).filter(|member| !member.is_empty())
}

/// Reports whether a comma-separated value has this member, compared without case.
pub(crate) fn has_list_member(value: &str, wanted: &str) -> bool {
    let matches = |member: &str| member.eq_ignore_ascii_case(wanted);
    // The value nearly always has one member only.
    matches(value) || list_members(value).any(matches)
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
        assert!(has_list_member("keep-alive, , Upgrade", "upgrade"));
        assert!(!has_list_member("keep-alive, upgraded", "upgrade"));
    }
}
