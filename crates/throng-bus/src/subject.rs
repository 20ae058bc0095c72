//! Subjects: names in parts between dots, as NATS has them.

use crate::contract::BusError;

/// Bytes of a subject at most.
pub const SUBJECT_BYTES_MAX: usize = 255;

/// Checks the subject of a message.
pub(crate) fn check_subject(subject: &str) -> Result<(), BusError> {
    check(subject, |part, _| !matches!(part, "*" | ">"))
}

/// Checks the pattern of a subscription.
pub(crate) fn check_pattern(pattern: &str) -> Result<(), BusError> {
    check(pattern, |part, is_last| part != ">" || is_last)
}

/// Reports whether messages under `subject` go to subscribers of `pattern`.
pub(crate) fn matches(pattern: &str, subject: &str) -> bool {
    let mut subject = subject.split('.');
    for part in pattern.split('.') {
        match (part, subject.next()) {
            (">", Some(_)) => return true,
            ("*", Some(_)) => {}
            (part, Some(own)) if part == own => {}
            _ => return false,
        }
    }
    subject.next().is_none()
}

fn check(subject: &str, is_allowed: impl Fn(&str, bool) -> bool) -> Result<(), BusError> {
    let refuse = |why: &str| Err(BusError::Subject(format!("the subject `{subject}` {why}")));
    if subject.len() > SUBJECT_BYTES_MAX {
        return refuse(&format!("has more than {SUBJECT_BYTES_MAX} bytes"));
    }
    let parts = subject.split('.').count();
    for (n, part) in subject.split('.').enumerate() {
        if part.is_empty() {
            return refuse("has an empty part: the parts stand between single dots");
        }
        if part.bytes().any(|byte| byte.is_ascii_whitespace() || byte.is_ascii_control()) {
            return refuse("has a space or a control character");
        }
        if !is_allowed(part, n + 1 == parts) {
            return refuse("has a wildcard where none can stand");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_stand_for_one_part_or_for_the_rest() {
        for (pattern, subject, expected) in [
            ("a.b", "a.b", true),
            ("a.b", "a.c", false),
            ("a.b", "a.b.c", false),
            ("a.b.c", "a.b", false),
            ("a.*.c", "a.b.c", true),
            ("a.*", "a.b.c", false),
            ("a.>", "a.b.c", true),
            ("a.>", "a", false),
            (">", "a", true),
            ("*", "a", true),
            ("*", "a.b", false),
            ("a.b*", "a.bc", false),
        ] {
            assert_eq!(matches(pattern, subject), expected, "{pattern} {subject}");
        }
    }

    #[test]
    fn a_subject_that_is_none_is_refused_with_the_reason() {
        let long = "a".repeat(SUBJECT_BYTES_MAX + 1);
        for wrong in ["", "a..b", ".a", "a.", "a b", "a.\n", "a.*", ">", &long] {
            let BusError::Subject(why) = check_subject(wrong).unwrap_err() else { panic!() };
            assert!(why.contains(wrong), "{why}");
        }
        for pattern in ["a.*.b", "a.>", ">", "*"] {
            assert_eq!(check_pattern(pattern), Ok(()));
        }
        assert!(check_pattern("a.>.b").is_err());
    }
}
