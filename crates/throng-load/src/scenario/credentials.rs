//! User and password in a target: `http://user:password@host`.

use std::fmt;
use std::ops::Range;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::escape::Escape;
use super::target::TargetError;

/// A user with a password, which a request shows in its header field `authorization` (RFC 7617).
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Credentials {
    user: String,
    password: String,
}

impl Credentials {
    /// Parses what stands before the `@` of a URL, at byte `at` of it. An empty text has none.
    pub(super) fn parse(text: &str, at: usize) -> Result<Option<Self>, TargetError> {
        if text.is_empty() {
            return Ok(None);
        }
        let (user, password) = text.split_once(':').unwrap_or((text, ""));
        let decoded_user = decode(user, at)?;
        if decoded_user.contains(':') {
            let problem = "a user with a colon in its name cannot be sent (RFC 7617 section 2)";
            return Err(wrong(at..at + user.len(), problem));
        }
        let password = decode(password, at + user.len() + 1)?;
        Ok(Some(Self { user: decoded_user, password }))
    }

    /// Returns the value of the header field `authorization`.
    pub(crate) fn authorization(&self) -> String {
        format!("Basic {}", self.token())
    }

    /// Returns the texts that no report and no trace shows.
    pub(crate) fn secrets(&self) -> Vec<String> {
        let mut secrets = vec![self.token()];
        if !self.password.is_empty() {
            secrets.extend(Escape::forms(&self.password));
        }
        secrets
    }

    /// Returns what stands before the `@` of a URL.
    pub(super) fn userinfo(&self) -> String {
        let [user, password] = [&self.user, &self.password].map(|part| {
            let mut encoded = part.as_bytes().to_vec();
            Escape::Percent.apply(&mut encoded, 0);
            String::from_utf8_lossy(&encoded).into_owned()
        });
        format!("{user}:{password}")
    }

    fn token(&self) -> String {
        STANDARD.encode(format!("{}:{}", self.user, self.password))
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("user", &self.user).finish_non_exhaustive()
    }
}

/// Decodes the percent-encoding (RFC 3986 section 2.1) of a part that begins at byte `at`.
fn decode(text: &str, at: usize) -> Result<String, TargetError> {
    let mut bytes = Vec::new();
    let mut rest = text.char_indices();
    while let Some((from, letter)) = rest.next() {
        if letter != '%' {
            bytes.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
            continue;
        }
        let digits = text.get(from + 1..from + 3).filter(|digits| is_hex(digits));
        let Some(byte) = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) else {
            let problem = "two hexadecimal digits belong after `%`; a `%` itself is written %25";
            return Err(wrong(at + from..at + from + 1, problem));
        };
        bytes.push(byte);
        rest.nth(1);
    }
    let decoded = String::from_utf8(bytes).ok();
    let is_sendable = |text: &String| !text.chars().any(char::is_control);
    decoded.filter(is_sendable).ok_or_else(|| {
        let problem = "user and password are UTF-8 without control characters (RFC 7617)";
        wrong(at..at + text.len(), problem)
    })
}

fn is_hex(digits: &str) -> bool {
    digits.bytes().all(|digit| digit.is_ascii_hexdigit())
}

fn wrong(span: Range<usize>, problem: &str) -> TargetError {
    TargetError { span, problem: problem.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Credentials {
        Credentials::parse(text, 0).unwrap().unwrap()
    }

    #[test]
    fn user_and_password_become_a_header_and_are_written_as_they_were() {
        for (text, header, written) in [
            ("user:secret", "Basic dXNlcjpzZWNyZXQ=", "user:secret"),
            ("user", "Basic dXNlcjo=", "user:"),
            ("user:p%40s:s%25", "Basic dXNlcjpwQHM6cyU=", "user:p%40s%3As%25"),
            (":pw", "Basic OnB3", ":pw"),
            ("ü:é", "Basic w7w6w6k=", "%C3%BC:%C3%A9"),
        ] {
            let credentials = parse(text);
            assert_eq!(credentials.authorization(), header, "{text}");
            assert_eq!(credentials.userinfo(), written);
            assert_eq!(parse(written), credentials);
        }
        assert_eq!(Credentials::parse("", 7), Ok(None));
    }

    #[test]
    fn a_password_is_a_secret_in_each_of_its_forms() {
        let credentials = parse("user:p%40s");
        assert_eq!(credentials.secrets(), ["dXNlcjpwQHM=", "p@s", "p%40s"]);
        assert!(!format!("{credentials:?}").contains("p@s"));
    }

    #[test]
    fn what_cannot_be_sent_is_pointed_at() {
        for (text, at, says) in [
            ("user:100%", "%", "written %25"),
            ("us%zzer:a", "%", "written %25"),
            ("us%3Aer:a", "us%3Aer", "a colon in its name"),
            ("user:a%0Ab", "a%0Ab", "control characters"),
            ("user:%FF", "%FF", "UTF-8"),
        ] {
            let error = Credentials::parse(text, 0).expect_err(text);
            assert_eq!(&text[error.span.clone()], at, "{text}: {error}");
            assert!(error.problem.contains(says), "{text}: {error}");
        }
    }
}
