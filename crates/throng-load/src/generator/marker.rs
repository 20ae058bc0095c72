//! The marker that identifies deliveries of a probe among everything else that arrives.
//!
//! A JSON object gets a member, `"throng_probe":"1a2b3c4d-17"`. A text gets a suffix, `
//! throng_probe=1a2b3c4d-17`: eight hexadecimal digits of the run and the number of the probe. The
//! marker survives a server that parses and re-encodes JSON, wherever the member ends up.

use memchr::memmem::Finder;

/// Writer and finder of the markers of one run.
#[derive(Debug)]
pub(super) struct ProbeMarker {
    run: u32,
    finder: Finder<'static>,
}

impl ProbeMarker {
    /// Creates the marker of run `run`. Markers of other runs on the same server are ignored.
    pub(super) fn new(run: u32) -> Self {
        Self { run, finder: Finder::new(NAME) }
    }

    /// Appends the marker of probe `number`.
    pub(super) fn mark(&self, number: u32, out: &mut Vec<u8>) {
        out.extend_from_slice(format!("{NAME}={:08x}-{number}", self.run).as_bytes());
    }

    /// Appends `text` followed by the marker of probe `number`.
    pub(super) fn mark_text(&self, text: &[u8], number: u32, out: &mut Vec<u8>) {
        out.extend_from_slice(text);
        out.push(b' ');
        self.mark(number, out);
    }

    /// Appends the JSON object `object` with the marker of probe `number` as its first member.
    pub(super) fn mark_object(&self, object: &[u8], number: u32, out: &mut Vec<u8>) {
        let rest = object.strip_prefix(b"{").unwrap_or(object).trim_ascii_start();
        out.extend_from_slice(format!("{{\"{NAME}\":\"{:08x}-{number}\"", self.run).as_bytes());
        if rest != b"}" {
            out.push(b',');
        }
        out.extend_from_slice(rest);
    }

    /// Returns the number of the probe that `message` is a delivery of.
    pub(super) fn find(&self, message: &[u8]) -> Option<u32> {
        let mut rest = message;
        loop {
            rest = &rest[self.finder.find(rest)? + NAME.len()..];
            if let Some(number) = self.parse(rest) {
                return Some(number);
            }
        }
    }

    /// Parses what follows the name: quotes, spaces, the colon or the equals sign, the run and the
    /// number.
    fn parse(&self, rest: &[u8]) -> Option<u32> {
        let begin = rest.iter().take(SEPARATORS_MAX).position(u8::is_ascii_alphanumeric)?;
        let (run, rest) = rest[begin..].split_at_checked(8)?;
        let run = std::str::from_utf8(run).ok()?;
        if u32::from_str_radix(run, 16).ok()? != self.run {
            return None;
        }
        let digits = rest.strip_prefix(b"-")?;
        let count = digits.iter().take_while(|digit| digit.is_ascii_digit()).count();
        std::str::from_utf8(&digits[..count]).ok()?.parse().ok()
    }
}

/// Name at the start of the marker.
const NAME: &str = "throng_probe";
/// Bytes between the name and the run: `": "`, or more with backslashes if JSON is nested in JSON.
const SEPARATORS_MAX: usize = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_found_again_however_the_server_writes_json() {
        let marker = ProbeMarker::new(0x1a2b_3c4d);
        let marked = |object: &str| {
            let mut out = Vec::new();
            marker.mark_object(object.as_bytes(), 17, &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(marked("{}"), r#"{"throng_probe":"1a2b3c4d-17"}"#);
        assert_eq!(marked("{ }"), r#"{"throng_probe":"1a2b3c4d-17"}"#);
        assert_eq!(marked(r#"{"body":"x"}"#), r#"{"throng_probe":"1a2b3c4d-17","body":"x"}"#);
        for text in [
            r#"{"throng_probe":"1a2b3c4d-17","body":"x"}"#,
            r#"{"body":"throng_probe", "throng_probe" : "1a2b3c4d-17"}"#,
            r#"["{\"throng_probe\":\"1a2b3c4d-17\"}"]"#,
            "hello throng_probe=1a2b3c4d-17",
        ] {
            assert_eq!(marker.find(text.as_bytes()), Some(17), "{text}");
        }
    }

    #[test]
    fn a_text_is_marked_behind_it() {
        let marker = ProbeMarker::new(7);
        let mut out = Vec::new();
        marker.mark_text(b"hello", 4_000_000_000, &mut out);
        assert_eq!(out, b"hello throng_probe=00000007-4000000000");
        assert_eq!(marker.find(&out), Some(4_000_000_000));
    }

    #[test]
    fn what_is_not_of_this_run_is_no_mark() {
        let marker = ProbeMarker::new(0x1a2b_3c4d);
        for text in [
            "",
            "throng_probe",
            "throng_probe=1a2b3c4",
            "throng_probe=1a2b3c4e-17",
            "throng_probe=1a2b3c4d-",
            "throng_probe=1a2b3c4d-99999999999",
            "throng_probe=éééé1-7",
            "throng_prob=1a2b3c4d-17",
        ] {
            assert_eq!(marker.find(text.as_bytes()), None, "{text}");
        }
    }
}
