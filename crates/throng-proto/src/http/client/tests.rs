use proptest::prelude::*;

use super::super::response_limits::{HEAD_BYTES_MAX, INTERIM_RESPONSES_MAX};
use super::*;
use crate::HeldBudget;

/// Reads a response that arrives in these pieces, with a FIN after it. Returns `status body
/// (bytes) keep-alive`, or the error, or nothing if it is incomplete.
fn read(method: &str, keeps_body: bool, pieces: &[&[u8]]) -> String {
    let (mut client, mut scratch) = (HttpClient::new(), Scratch::default());
    client.expect(method, keeps_body);
    let mut shown = Vec::new();
    let show = |answer: HttpResponse<'_>| {
        let HttpResponse { head, body, body_bytes, keep_alive, .. } = answer;
        let body = String::from_utf8_lossy(body);
        let keeps = if keep_alive { "keeps" } else { "closes" };
        format!("{} {body} ({body_bytes}) {keeps}", head.status)
    };
    for piece in pieces {
        let mut bytes = piece.to_vec();
        let mut input = Input::new(&mut bytes);
        while let Some(event) =
            client.next(Instant::ZERO, &mut input, &mut scratch, &mut Vec::new())
        {
            match event {
                HttpEvent::Response(answer) => shown.push(show(answer)),
                HttpEvent::Failed(error, _) => return format!("{error:?}"),
                HttpEvent::Unasked(_) => {}
            }
        }
        assert!(input.is_empty(), "the bytes of an incomplete response are kept");
    }
    if let Some(finished) = client.finish() {
        shown.push(show(finished.response().unwrap()));
    }
    shown.join(", ")
}

#[track_caller]
fn check_of(method: &str, bytes: &str, expected: &str) {
    let bytes = bytes.as_bytes();
    assert_eq!(read(method, true, &[bytes]), expected);
    // Miri runs a few of the cuts.
    for cut in (1..bytes.len()).step_by(if cfg!(miri) { 17 } else { 1 }) {
        let (begin, end) = bytes.split_at(cut);
        assert_eq!(read(method, true, &[begin, end]), expected, "cut at {cut}");
    }
    let single: Vec<&[u8]> = bytes.chunks(1).collect();
    assert_eq!(read(method, true, &single), expected);
}

#[track_caller]
fn check(bytes: &str, expected: &str) {
    check_of("GET", bytes, expected);
}

#[test]
fn a_response_that_is_over_the_budget_of_its_core_fails_and_holds_nothing() {
    let budget = HeldBudget::new(10_000);
    let mut scratch = Scratch::default().with_budget(budget.clone());
    let mut receive = |client: &mut HttpClient, bytes: &[u8]| {
        let mut bytes = bytes.to_vec();
        let mut input = Input::new(&mut bytes);
        match client.next(Instant::ZERO, &mut input, &mut scratch, &mut Vec::new()) {
            None => String::new(),
            Some(HttpEvent::Failed(error, _)) => format!("{error:?}"),
            Some(event) => format!("{event:?}"),
        }
    };
    let [mut large, mut small] = [(); 2].map(|()| HttpClient::new());
    large.expect("GET", true);
    small.expect("GET", true);
    let head = b"HTTP/1.1 200 OK\r\ncontent-length: 9000\r\n\r\n";
    assert_eq!(receive(&mut large, head), "");
    assert_eq!(receive(&mut small, &head[..12]), "");
    assert_eq!(receive(&mut large, &[b'x'; 2_000]), "");
    assert_eq!(receive(&mut large, &[b'x'; 6_000]), "HeldTooMuch");
    assert_eq!(receive(&mut small, b" OK\r\ncontent-length: 900\r\n\r\n"), "");
    assert!(receive(&mut small, &[b'x'; 900]).starts_with("Response"));
    assert_eq!((budget.used_bytes(), budget.refused()), (0, 1));
}

#[test]
fn a_body_ends_where_its_head_says() {
    for (bytes, expected) in [
        ("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello", "200 hello (5) keeps"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "200  (0) keeps"),
        ("HTTP/1.1 200\r\ncontent-length: 2, 2\r\n\r\nab", "200 ab (2) keeps"),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
            "200 abcde (5) keeps",
        ),
        (
            "HTTP/1.1 500 No\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\nx: y\r\n\r\n",
            "500 a (1) keeps",
        ),
        ("HTTP/1.1 200 OK\r\n\r\nuntil the end", "200 until the end (13) closes"),
        ("HTTP/1.1 204 No\r\n\r\n", "204  (0) keeps"),
        ("HTTP/1.1 304 No\r\ncontent-length: 9\r\n\r\n", "304  (0) keeps"),
        (
            "HTTP/1.1 200 OK\r\nconnection: x, Close\r\ncontent-length: 1\r\n\r\na",
            "200 a (1) closes",
        ),
        ("HTTP/1.0 200 OK\r\ncontent-length: 1\r\n\r\na", "200 a (1) closes"),
        ("\r\nHTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\na", "200 a (1) keeps"),
    ] {
        check(bytes, expected);
    }
    check_of("HEAD", "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n", "200  (0) keeps");
}

#[test]
fn an_incomplete_body_is_no_answer() {
    check("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhell", "");
    check("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n", "");
    check("HTTP/1.1 200 OK\r\n", "");
}

#[test]
fn interim_responses_are_skipped() {
    let interim = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nlink: a\r\n\r\n";
    let answer = "HTTP/1.1 201 Created\r\ncontent-length: 2\r\n\r\nok";
    check(&format!("{interim}{answer}"), "201 ok (2) keeps");
    check("HTTP/1.1 101 Switching\r\nupgrade: x\r\n\r\n", "SwitchedProtocols");
}

#[test]
fn bodies_of_unclear_length_are_refused() {
    let ok = |fields: &str| format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\nxyz");
    for (fields, error) in [
        ("content-length: 1\r\ncontent-length: 2", "ContentLength"),
        ("content-length: 1, 2", "ContentLength"),
        ("content-length: +1", "ContentLength"),
        ("content-length:", "ContentLength"),
        ("content-length: 99999999999999999999999", "ContentLength"),
        ("content-length: 3\r\ntransfer-encoding: chunked", "ContentLength"),
        ("transfer-encoding: gzip, chunked", "TransferEncoding"),
        ("transfer-encoding: chunked\r\ntransfer-encoding: chunked", "TransferEncoding"),
        ("transfer-encoding: identity", "TransferEncoding"),
        ("transfer-encoding: chunked", "Chunk"),
    ] {
        let fields = ok(fields);
        check(&fields, error);
    }
    check("HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n", "TransferEncoding");
}

#[test]
fn what_is_not_http_is_refused() {
    for bytes in [
        "ICY 200 OK\r\n\r\n",
        "HTTP/2.0 200 OK\r\n\r\n",
        "HTTP/1.1 2x0 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\na: b\r\n folded\r\n\r\n",
        "HTTP/1.1 200 OK\r\na : b\r\n\r\n",
        "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
    ] {
        check(bytes, "Malformed");
    }
}

#[test]
fn bytes_of_a_head_that_are_no_utf8_are_latin_1() {
    let bytes = b"HTTP/1.1 200 OK\r\nserver: Caf\xe9\r\ncontent-length: 2\r\n\r\nok";
    assert_eq!(read("GET", true, &[bytes]), "200 ok (2) keeps");
    for cut in 1..bytes.len() {
        let (begin, end) = bytes.split_at(cut);
        assert_eq!(read("GET", true, &[begin, end]), "200 ok (2) keeps", "cut at {cut}");
    }
    let (mut client, mut scratch) = (HttpClient::new(), Scratch::default());
    client.expect("GET", true);
    let mut bytes = bytes.to_vec();
    let event = client.next(Instant::ZERO, &mut Input::new(&mut bytes), &mut scratch, &mut vec![]);
    let Some(HttpEvent::Response(response)) = event else { panic!("{event:?}") };
    assert_eq!(response.head.headers.get("server"), Some("Caf\u{e9}"));
    assert!(!response.is_verbatim(0, "Caf\u{e9}") && response.is_verbatim(0, "Caf"));
}

#[test]
fn a_field_that_is_not_utf8_changes_no_other() {
    let bytes = "HTTP/1.1 200 OK\r\nx: Zo\u{eb}\r\nserver: Caf_\r\ncontent-length: 0\r\n\r\n";
    let mut bytes = bytes.as_bytes().to_vec();
    let at = bytes.iter().position(|byte| *byte == b'_').unwrap();
    bytes[at] = 0xe9;
    let (mut client, mut scratch) = (HttpClient::new(), Scratch::default());
    client.expect("GET", true);
    let event = client.next(Instant::ZERO, &mut Input::new(&mut bytes), &mut scratch, &mut vec![]);
    let Some(HttpEvent::Response(response)) = event else { panic!("{event:?}") };
    let headers = response.head.headers;
    assert_eq!((headers.get("x"), headers.get("server")), (Some("Zo\u{eb}"), Some("Caf\u{e9}")));
    assert!(response.is_verbatim(0, "Zo\u{eb}"), "this field is UTF-8");
    assert!(!response.is_verbatim(1, "Caf\u{e9}"));
}

#[test]
fn the_limit_of_a_head_is_one_of_its_bytes() {
    let head = |count: usize| {
        let mut bytes = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nx: ".to_vec();
        bytes.extend(std::iter::repeat_n(0xe9, count));
        bytes.extend_from_slice(b"\r\n\r\nok");
        bytes
    };
    assert_eq!(read("GET", true, &[&head(15_000)]), "200 ok (2) keeps");
    let (begin, end) = (&head(15_000)[..9_000], &head(15_000)[9_000..]);
    assert_eq!(read("GET", true, &[begin, end]), "200 ok (2) keeps");
    assert_ne!(read("GET", true, &[&head(17_000)]), "200 ok (2) keeps");
}

#[test]
fn interim_responses_have_a_limit() {
    let most = "HTTP/1.1 100 Continue\r\n\r\n".repeat(INTERIM_RESPONSES_MAX as usize);
    let last = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
    let bytes = format!("{most}{last}");
    let pieces: Vec<&[u8]> = bytes.as_bytes().chunks(7).collect();
    let beyond = format!("HTTP/1.1 103 Early\r\n\r\n{bytes}");
    let pieces_beyond: Vec<&[u8]> = beyond.as_bytes().chunks(7).collect();
    for (pieces, expected) in [
        (&[bytes.as_bytes()][..], "200 ok (2) keeps"),
        (&pieces, "200 ok (2) keeps"),
        (&[beyond.as_bytes()], "TooManyInterim"),
        (&pieces_beyond, "TooManyInterim"),
    ] {
        assert_eq!(read("GET", true, pieces), expected);
    }
}

#[test]
fn a_part_of_a_response_says_how_much_is_missing() {
    for (bytes, expected) in [
        ("", None),
        ("HTTP/1.1 2", Some((None, "HTTP/1.1 2", 0, None, 0))),
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhel",
            Some((Some(200), "hel", 3, Some(9), 0)),
        ),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhel",
            Some((Some(200), "hel", 3, None, 0)),
        ),
        ("HTTP/1.1 100 C\r\n\r\nHTTP", Some((None, "HTTP", 0, None, 1))),
    ] {
        let (mut client, mut scratch) = (HttpClient::new(), Scratch::default());
        client.expect("GET", false);
        let mut bytes = bytes.as_bytes().to_vec();
        let mut input = Input::new(&mut bytes);
        assert!(client.next(Instant::ZERO, &mut input, &mut scratch, &mut Vec::new()).is_none());
        let part = client.part().map(|part| {
            let PartialResponse { head, bytes, body_bytes, declared_bytes, interim } = part;
            let bytes = str::from_utf8(bytes).unwrap();
            (head.map(|head| head.status), bytes, body_bytes, declared_bytes, interim)
        });
        assert_eq!(part, expected);
    }
}

#[test]
fn heads_and_bodies_have_limits() {
    let long = "x".repeat(HEAD_BYTES_MAX);
    let fields = "a:\r\n".repeat(65);
    for head in
        [format!("HTTP/1.1 200 OK\r\na: {long}"), format!("HTTP/1.1 200 OK\r\n{fields}\r\n")]
    {
        assert_eq!(read("GET", true, &[head.as_bytes()]), "HeadTooLarge");
    }
    let body = "x".repeat(BODY_BYTES_MAX + 1);
    let declared = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
    let size = format!("{:x}", body.len());
    let chunked = format!(
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{size}\r\n{body}\r\n0\r\n\r\n"
    );
    let until_close = format!("HTTP/1.1 200 OK\r\n\r\n{body}");
    let whole = format!("{declared}{body}");
    for (bytes, keeps) in [(&whole, "keeps"), (&chunked, "keeps"), (&until_close, "closes")] {
        assert_eq!(read("GET", true, &[bytes.as_bytes()]), "BodyTooLarge");
        // A caller that does not need it gets its beginning and its length.
        let excerpt = &body[..BODY_EXCERPT_BYTES_MAX];
        let pieces: Vec<&[u8]> = bytes.as_bytes().chunks(10_000).collect();
        let expected = format!("200 {excerpt} ({}) {keeps}", body.len());
        for pieces in [&pieces[..], &[bytes.as_bytes()]] {
            assert_eq!(read("GET", false, pieces), expected);
        }
    }
    let most = &body[1..];
    let bytes = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{most}", most.len());
    assert!(read("GET", true, &[bytes.as_bytes()]).starts_with("200 xxx"));
    assert!(
        read("GET", true, &[&bytes.as_bytes()[..9], &bytes.as_bytes()[9..]]).contains("200 xx")
    );
}

#[test]
fn bytes_after_a_response_close_the_connection() {
    let two = "HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\naHTTP/1.1 200 OK\r\n";
    assert_eq!(read("GET", true, &[two.as_bytes()]), "200 a (1) closes");
    for cut in [two.len(), 9] {
        let (mut client, mut scratch) = (HttpClient::new(), Scratch::default());
        client.expect("GET", true);
        let (begin, end) = two.split_at(cut);
        let mut surplus = Vec::new();
        for piece in [begin, end] {
            let mut bytes = piece.as_bytes().to_vec();
            let mut input = Input::new(&mut bytes);
            let event = client.next(Instant::ZERO, &mut input, &mut scratch, &mut Vec::new());
            if let Some(HttpEvent::Response(response)) = event {
                surplus.extend_from_slice(response.surplus);
            }
        }
        assert_eq!(surplus, b"HTTP/1.1 200 OK\r\n", "cut at {cut}");
    }
    let mut client = HttpClient::new();
    let (mut bytes, mut scratch) = (b"HTTP/1.1 408 Too late\r\n\r\n".to_vec(), Scratch::default());
    let mut input = Input::new(&mut bytes);
    let event = client.next(Instant::ZERO, &mut input, &mut scratch, &mut Vec::new());
    assert!(matches!(event, Some(HttpEvent::Unasked(_))), "{event:?}");
}

#[test]
fn a_client_owns_memory_only_while_a_response_is_incomplete() {
    let (mut client, mut scratch) = (HttpClient::new(), Scratch::default());
    client.expect("GET", true);
    assert!(!client.has_begun());
    for (piece, has_begun) in
        [("HTTP/1.1 200 OK\r\ncontent-", true), ("length: 2\r\n\r\nab", false)]
    {
        let mut bytes = piece.as_bytes().to_vec();
        let mut input = Input::new(&mut bytes);
        _ = client.next(Instant::ZERO, &mut input, &mut scratch, &mut Vec::new());
        assert_eq!(client.has_begun(), has_begun);
    }
}

#[test]
fn a_request_has_its_host_and_the_length_of_its_body() {
    let mut out = Vec::new();
    let (method, path_and_query, host) = ("POST", "/a b\r\nc?d", "h:1");
    HttpRequestHead { method, path_and_query, host, content_length: Some(3) }.write(&mut out);
    write_field("cookie", "a=b\r\nc", &mut out);
    assert_eq!(
        String::from_utf8(out).unwrap(),
        "POST /abc?d HTTP/1.1\r\nhost: h:1\r\ncontent-length: 3\r\ncookie: a=b  c\r\n"
    );
}

/// Responses whose reading may not depend on how they arrive.
const RESPONSES: [&str; 6] = [
    "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 11\r\n\r\nhello world",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n6\r\n world\r\n0\r\n\
     t: u\r\n\r\n",
    "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nhello world",
    "HTTP/1.0 404 Not Found\r\nset-cookie: a=b\r\ncontent-length: 3\r\n\r\nno\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello!\r\n0\r\n\r\n",
    "HTTP/1.1 204 No Content\r\n\r\n",
];

proptest! {
    #[test]
    fn the_result_does_not_depend_on_the_pieces(
        index in 0..RESPONSES.len(),
        lengths in prop::collection::vec(1..9_usize, 1..100),
        keeps_body: bool,
    ) {
        let bytes = RESPONSES[index].as_bytes();
        let (mut rest, mut pieces) = (bytes, Vec::new());
        for length in lengths.iter().cycle() {
            let (piece, after) = rest.split_at((*length).min(rest.len()));
            pieces.push(piece);
            rest = after;
            if rest.is_empty() {
                break;
            }
        }
        prop_assert_eq!(read("GET", keeps_body, &pieces), read("GET", keeps_body, &[bytes]));
    }
}
