//! The answer to an upgrade that is not a consent, as far as it says why.

use throng_proto::http::Response;

use crate::excerpt::Excerpt;

/// Describes an answer: its status, the fields that say why, and what its page is. Formats it as
/// the answer's own lines, with their ends escaped.
pub(super) fn describe_answer(answer: &Response<'_>, body: &[u8], excerpt: Excerpt<'_>) -> String {
    let mut text = format!("HTTP/1.1 {}", answer.status);
    let body = String::from_utf8_lossy(&body[..body.len().min(BODY_BYTES_MAX)]);
    let body = excerpt.masked(&body);
    let page = body.to_ascii_lowercase();
    if TLS_PAGES.iter().any(|words| page.contains(words)) {
        text += "\r\nport: tls";
    }
    for name in FIELDS {
        if let Some(value) = answer.headers.get(name) {
            // A secret is masked before a cut leaves a part of it.
            let value = excerpt.masked(value);
            let value: String = value.chars().take(FIELD_CHARS_MAX).collect();
            text += &format!("\r\n{name}: {value}");
        }
    }
    if let Some(title) = title(&body, &page) {
        text += &format!("\r\ntitle: {title}");
    }
    if page.contains("type=\"password\"") || page.contains("type=password") {
        text += "\r\nform: password";
    }
    excerpt.head(text.as_bytes())
}

/// Returns the title of a page. `page` is `body` in lower case.
fn title<'a>(body: &'a str, page: &str) -> Option<&'a str> {
    let begin = page.find("<title")?;
    let begin = begin + page[begin..].find('>')? + 1;
    let end = begin + page[begin..].find("</title")?;
    let title = body.get(begin..end)?.trim();
    let cut = title.char_indices().nth(FIELD_CHARS_MAX).map_or(title.len(), |(at, _)| at);
    Some(&title[..cut]).filter(|title| !title.is_empty())
}

/// Fields that say why an upgrade was refused, the most telling first: the text is cut.
const FIELDS: [&str; 5] = ["location", "retry-after", "www-authenticate", "content-type", "server"];

/// What servers say, in lower case, to clients that speak HTTP plainly to a port that speaks TLS:
/// nginx, Apache, Go and throng.
const TLS_PAGES: [&str; 4] = [
    "plain http request was sent to https port",
    "speaking plain http to an ssl-enabled server port",
    "client sent an http request to an https server",
    "this port speaks tls",
];

/// Characters of a field that are kept.
const FIELD_CHARS_MAX: usize = 100;

/// Bytes of the body that are looked at.
const BODY_BYTES_MAX: usize = 16 << 10;

#[cfg(test)]
mod tests {
    use throng_proto::http::{Headers, Response};

    use super::*;

    #[track_caller]
    fn check(status: u16, headers: &str, body: &str, expected: &str) {
        let answer = Response { status, headers: Headers::new(headers) };
        assert_eq!(describe_answer(&answer, body.as_bytes(), Excerpt::short(&[])), expected);
    }

    #[test]
    fn fields_that_say_why_are_shown_and_others_are_not() {
        check(
            302,
            "Date: today\r\nLocation: /login\r\nServer: nginx\r\n\r\n",
            "",
            "`HTTP/1.1 302\\r\\nlocation: /login\\r\\nserver: nginx`",
        );
        check(429, "retry-after: 30\r\n\r\n", "", "`HTTP/1.1 429\\r\\nretry-after: 30`");
        check(503, "\r\n", "", "`HTTP/1.1 503`");
    }

    #[test]
    fn a_page_is_known_by_its_title_and_a_login_page_by_its_password() {
        let page = "<html><TITLE lang=en> Sign in </TITLE><input Type=\"Password\">";
        check(
            200,
            "content-type: text/html\r\n\r\n",
            page,
            "`HTTP/1.1 200\\r\\ncontent-type: text/html\\r\\ntitle: Sign in\\r\\nform: password`",
        );
        let page_of_tls = "<center>The plain HTTP request was sent to HTTPS port</center>";
        check(
            400,
            "server: nginx\r\n\r\n",
            page_of_tls,
            "`HTTP/1.1 400\\r\\nport: tls\\r\\nserver: nginx`",
        );
        for cut in 0..page.len() {
            let answer = Response { status: 200, headers: Headers::new("") };
            describe_answer(&answer, &page.as_bytes()[..cut], Excerpt::short(&[]));
        }
        check(200, "\r\n", "<title>\u{130}\u{130}</title>", "`HTTP/1.1 200\\r\\ntitle: İİ`");
    }
}
