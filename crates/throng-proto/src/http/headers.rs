//! The header fields of one head.

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
        self.lines
            .lines()
            .map_while(|line| line.split_once(':'))
            .map(|(name, value)| (name, value.trim_matches([' ', '\t'])))
    }

    /// The value of the first field of this name, in any case.
    pub fn get(&self, name: &str) -> Option<&'a str> {
        self.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

/// The members of a comma-separated value, without blanks; empty ones left out (RFC 9110 section 5.6.1).
pub(crate) fn members(value: &str) -> impl Iterator<Item = &str> {
    value
        .split(',')
        .map(|member| member.trim_matches([' ', '\t']))
        .filter(|member| !member.is_empty())
}

/// Whether a comma-separated value has this member, in any case.
pub(crate) fn has_member(value: &str, wanted: &str) -> bool {
    members(value).any(|member| member.eq_ignore_ascii_case(wanted))
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
