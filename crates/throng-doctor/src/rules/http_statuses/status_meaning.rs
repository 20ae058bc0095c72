//! The meaning of a status that answers an HTTP request: its name, and what to do.

use crate::first_error::{FirstError, cut};

/// The meaning of a status.
pub(super) struct StatusMeaning {
    /// Name of the status and what the first answer adds to it, with a space before it.
    pub(super) name: String,
    pub(super) remedy: String,
}

impl StatusMeaning {
    /// Returns the meaning of a status, given the first answer with it.
    pub(super) fn of(status: &str, answer: Option<FirstError<'_>>) -> Self {
        let row = MEANINGS.iter().find(|row| row.statuses.contains(&status));
        let row = row.unwrap_or_else(|| class_of(status));
        let field = |name: &'static str| answer.and_then(|answer| answer.field(name));
        let told = FIELDS.iter().find_map(|(name, word)| Some((word, field(name)?)));
        let told = told.map(|(word, value)| format!(" ({word}: {})", cut(value)));
        let name = format!("{}{}", row.name, told.unwrap_or_default());
        Self { name, remedy: row.remedy.to_owned() }
    }
}

/// Returns the meaning of all statuses of a class.
fn class_of(status: &str) -> &'static StatusRow {
    match status.as_bytes().first() {
        Some(b'2') => &SUCCESS,
        Some(b'3') => &REDIRECT,
        Some(b'4') => &REJECTION,
        Some(b'5'..=b'9') => &FAILURE,
        _ => &UNKNOWN,
    }
}

/// Fields of an answer that say why it has its status.
const FIELDS: &[(&str, &str)] = &[
    ("location", "location"),
    ("retry-after", "Retry-After"),
    ("www-authenticate", "it asks for"),
];

/// A row of the table of statuses.
struct StatusRow {
    statuses: &'static [&'static str],
    name: &'static str,
    remedy: &'static str,
}

/// Returns the meaning of one status or several.
const fn row(
    statuses: &'static [&'static str],
    name: &'static str,
    remedy: &'static str,
) -> StatusRow {
    StatusRow { statuses, name, remedy }
}

/// All statuses with a meaning of their own.
const MEANINGS: &[StatusRow] = &[
    row(
        &["400"],
        " Bad Request",
        "compare the path, the headers and the body with those of a request that succeeds",
    ),
    row(
        &["401"],
        " Unauthorized",
        "log in before this request, or add the token or the cookie to its headers",
    ),
    row(
        &["407"],
        " Proxy Authentication Required",
        "let the proxy pass these requests, add `proxy-authorization` to their headers, or go \
         around the proxy",
    ),
    row(
        &["403"],
        " Forbidden",
        "check the token, and what its user may do; some servers check the origin, too",
    ),
    row(
        &["404"],
        " Not Found",
        "correct the path of the request, or create before what it asks for",
    ),
    row(
        &["410"],
        " Gone",
        "ask for what is still there: the server has removed what the request asks for",
    ),
    row(&["405"], " Method Not Allowed", "correct the method or the path of the request"),
    row(&["408", "504"], " (a time-out)", "find the slow service behind the server"),
    row(
        &["409"],
        " Conflict",
        "give each user data of its own (data, ${user.id}), or add 409 to `expect`",
    ),
    row(
        &["411"],
        " Length Required",
        "give the request a body: its content-length is sent with it",
    ),
    row(
        &["413", "414", "431"],
        " (too large)",
        "raise the server's limit of bodies and headers, or send less",
    ),
    row(
        &["415", "422"],
        " (content refused)",
        "correct the body of the request and its content-type",
    ),
    row(
        &["429"],
        " Too Many Requests",
        "raise the server's rate limit, or send fewer requests (`limits` in the scenario, a \
         smaller load), or from more addresses (--source), if it counts by address",
    ),
    row(&["500"], " Internal Server Error", "look for the error in the server's log"),
    row(&["501", "505"], " (not supported)", "correct the method or the path of the request"),
    row(
        &["502"],
        " Bad Gateway",
        "check in the proxy's log whether the server behind it runs and accepts",
    ),
    row(
        &["503"],
        " Service Unavailable",
        "look in the server's log for its limit of connections or requests, and raise it, or add \
         instances",
    ),
];

const SUCCESS: StatusRow =
    row(&[], " (a success)", "find why the server answers this, or add it to `expect`");

const REDIRECT: StatusRow = row(
    &[],
    " (a redirect)",
    "request the address that it names in `location`, or add 3xx to `expect`: redirects are not \
     followed",
);

const REJECTION: StatusRow = row(
    &[],
    " (the request is refused)",
    "look for this status in the server's documentation, or add it to `expect`",
);

const FAILURE: StatusRow =
    row(&[], " (the server failed)", "look for this status in the server's log");

const UNKNOWN: StatusRow =
    row(&[], "", "find why the server answers this, or correct `expect` of the request");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_remedy_fits_the_status() {
        for (status, name, remedy) in [
            ("429", " Too Many Requests", "rate limit"),
            ("401", " Unauthorized", "token"),
            ("407", " Proxy Authentication Required", "proxy"),
            ("410", " Gone", "still there"),
            ("411", " Length Required", "content-length"),
            ("413", " (too large)", "limit"),
            ("403", " Forbidden", "token"),
            ("404", " Not Found", "path"),
            ("500", " Internal Server Error", "server's log"),
            ("507", " (the server failed)", "server's log"),
            ("302", " (a redirect)", "location"),
            ("418", " (the request is refused)", "documentation"),
            ("204", " (a success)", "expect"),
            ("another status", "", "expect"),
        ] {
            let meaning = StatusMeaning::of(status, None);
            assert_eq!(meaning.name, name, "{status}");
            assert!(meaning.remedy.contains(remedy), "{status}: {}", meaning.remedy);
        }
    }

    #[test]
    fn the_first_answer_says_more_than_its_status() {
        let name = |status: &str, got: &str| {
            StatusMeaning::of(status, Some(FirstError { got, ..FirstError::default() })).name
        };
        let got = "`HTTP/1.1 302\\r\\nlocation: /login\\r\\nserver: a`";
        assert_eq!(name("302", got), " (a redirect) (location: /login)");
        let got = "`HTTP/1.1 503\\r\\nretry-after: 20`";
        assert_eq!(name("503", got), " Service Unavailable (Retry-After: 20)");
        assert_eq!(name("500", "`HTTP/1.1 500`"), " Internal Server Error");
    }
}
