//! HTTP responses to a client, and the cookies in them.

use throng_proto::http::{
    BODY_BYTES_MAX, BODY_EXCERPT_BYTES_MAX, CookieJar, HttpClient, HttpEvent, HttpResponse,
    JAR_BYTES_MAX,
};
use throng_proto::websocket::Scratch;
use throng_proto::{Input, Session};

use super::transcript::{self, NOW, Then};

/// Checks that the result does not depend on how the bytes arrive, and that limits hold.
pub fn check(bytes: &[u8]) {
    // A reader parses a head when a line ends; otherwise it might miss an error in the last line.
    let bytes = [bytes, b"\n\n"].concat();
    for (method, keeps_body) in [("GET", true), ("GET", false), ("HEAD", true)] {
        let begin = |_: &mut Scratch, _: &mut Vec<u8>| {
            let mut client = HttpClient::new();
            client.expect(method, keeps_body);
            client
        };
        let on_event = |_: &HttpClient, event: HttpEvent<'_>| match event {
            HttpEvent::Response(answer) => {
                let most = if keeps_body { BODY_BYTES_MAX } else { BODY_EXCERPT_BYTES_MAX };
                assert!(answer.body.len() <= most && answer.body.len() as u64 <= answer.body_bytes);
                assert!(!keeps_body || answer.body.len() as u64 == answer.body_bytes);
                assert!(method != "HEAD" || answer.body.is_empty());
                keep_cookies(&answer);
                // What follows the answer decides whether the connection is kept.
                let HttpResponse {
                    head,
                    body,
                    body_bytes,
                    keep_alive: _,
                    surplus: _,
                    latin1_fields: _,
                } = answer;
                (format!("{head:?} {body:?} {body_bytes}"), Then::Stop)
            }
            HttpEvent::Failed(..) => ("failed".to_owned(), Then::Fault),
            HttpEvent::Unasked(_) => panic!("a request waits for its answer"),
        };
        transcript::check(&bytes, begin, on_event, |_, _| Then::Go);
        check_end(&bytes, method, keeps_body);
    }
}

/// Checks the end of the connection after these bytes: it may be the end of a body.
fn check_end(bytes: &[u8], method: &'static str, keeps_body: bool) {
    let mut client = HttpClient::new();
    client.expect(method, keeps_body);
    let mut bytes = bytes.to_vec();
    let mut input = Input::new(&mut bytes);
    let (mut scratch, mut out) = (Scratch::default(), Vec::new());
    if client.next(NOW, &mut input, &mut scratch, &mut out).is_some() {
        return;
    }
    let finished = client.finish();
    if let Some(answer) = finished.as_ref().and_then(|finished| finished.response()) {
        assert!(!answer.keep_alive, "the connection has ended");
        assert!(!keeps_body || answer.body.len() as u64 == answer.body_bytes);
    }
}

/// Keeps the cookies of an answer, and checks that the field of the next request is one line.
fn keep_cookies(answer: &HttpResponse<'_>) {
    let (mut jar, mut field) = (CookieJar::new(), Vec::new());
    let headers = answer.head.headers;
    for (_, value) in headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("set-cookie")) {
        jar.store(value, "/a/b?c", headers.get("date"), NOW);
        field.clear();
        jar.write("/a/b", NOW, &mut field);
        assert!(field.len() <= 2 * JAR_BYTES_MAX && !field.contains(&b'\n'));
    }
}
