//! Each construct of tsung, and what becomes of it.

use throng_import::Fidelity::{
    self, Approximated, NotNeeded, NotSupported, Suspicious, Translated,
};

use super::file::{File, load};
use crate::import_text;

/// Construct in the report, its XML, what the scenario has for it, and how exactly.
pub(super) type Row = (&'static str, &'static str, &'static str, Fidelity);

/// Checks what becomes of the construct of each row in a file that `file` makes.
pub(super) fn check(rows: &[Row], file: impl Fn(&str) -> File) {
    for (construct, xml, says, fidelity) in rows {
        check_one(construct, &file(xml), says, *fidelity);
    }
}

/// Checks that a construct of the file is translated so, and what the scenario has for it.
pub(super) fn check_one(construct: &str, file: &File, says: &str, fidelity: Fidelity) {
    let import = match import_text(&file.text(), "tsung/rows.xml") {
        Ok(import) => import,
        Err(mistakes) => panic!("{mistakes}"),
    };
    let (scenario, report) = (&import.scenario, &import.fidelity);
    let found = report.of(fidelity).any(|entry| entry.construct == construct);
    assert!(found, "`{construct}` is not {}:\n{report}\n{scenario}", fidelity.name());
    // Spaces, line breaks, quotes and braces are those of the writer.
    let plain = |text: &str| {
        let words = text.replace(['"', '{', '}', '[', ']', ','], " ");
        let words = words.split_whitespace().filter(|word| *word != "-");
        words.collect::<Vec<_>>().join(" ")
    };
    assert!(plain(scenario).contains(&plain(says)), "no `{says}` in\n{scenario}");
    let with_notes = report.entries.iter().filter(|entry| entry.fidelity != Translated);
    with_notes.for_each(|entry| assert!(!entry.note.is_empty(), "{entry:?}"));
}

#[test]
fn actions() {
    let request = "<request><raw ack=\"local\" data=\"a\"/></request>";
    let rows: &[Row] = &[
        ("thinktime", "<thinktime value=\"1.5\"/>", "wait: 1.5s", Translated),
        ("thinktime", "<thinktime value=\"2\" random=\"true\"/>", "exponential(2s)", Translated),
        (
            "thinktime",
            "<thinktime min=\"1\" max=\"3\" random=\"true\"/>",
            "wait: uniform(1s, 3s)",
            Translated,
        ),
        ("thinktime", "<thinktime/>", "wait: 5s", Translated),
        ("thinktime", "<thinktime value=\"%%_x%%\"/>", "", NotSupported),
        (
            "thinktime wait_global",
            "<thinktime value=\"wait_global\"/>",
            "barrier: {name: global, users: 100}",
            Translated,
        ),
        (
            "thinktime wait_bidi",
            "<thinktime value=\"wait_bidi\"/>",
            "receive: {bytes: 1, timeout: 24h}",
            Approximated,
        ),
        (
            "transaction",
            "<transaction name=\"a b\"><thinktime value=\"1\"/></transaction>",
            "transaction: {name: a_b, do: [wait: 1s]}",
            Translated,
        ),
        (
            "for",
            "<for var=\"i\" from=\"1\" to=\"10\" incr=\"3\"><thinktime value=\"1\"/></for>",
            "repeat: {times: 4, do: [wait: 1s]}",
            Translated,
        ),
        (
            "for",
            "<for var=\"i\" from=\"2\" to=\"1\"><thinktime value=\"1\"/></for>",
            "- wait: 1s on_error",
            Suspicious,
        ),
        (
            "for",
            "<for var=\"i\" from=\"1\" to=\"%%_n%%\"><thinktime value=\"1\"/></for>",
            "- wait: 1s",
            NotSupported,
        ),
        (
            "for",
            "<for var=\"i\" from=\"1\" to=\"3\" incr=\"2\"><request subst=\"true\">\
             <raw ack=\"no_ack\" data=\"%%_i%%\"/></request></for>",
            "foreach: {name: i, in: [1, 3], do: [send: {text: \"${i}\", reply: false}]}",
            Translated,
        ),
        (
            "for var",
            "<for var=\"i\" from=\"1\" to=\"101\"><request subst=\"true\">\
             <raw ack=\"no_ack\" data=\"%%_i%%\"/></request></for>",
            "set: {i: \"1\"} - repeat: {times: 101, do: [send: {text: \"${i}\", reply: false}]}",
            NotSupported,
        ),
        (
            "foreach",
            "<foreach name=\"x\" in=\"list\"><thinktime value=\"1\"/></foreach>",
            "",
            NotSupported,
        ),
        (
            "repeat",
            "<setdynvars sourcetype=\"value\" value=\"1\"><var name=\"x\"/></setdynvars>\
             <repeat name=\"r\" max_repeat=\"2\"><thinktime value=\"1\"/>\
             <until var=\"x\" eq=\"2\"/></repeat>",
            "set: {r_goes_on: \"1\"} - repeat: times: 3 do: - if: condition: ${r_goes_on} == 1 \
             do: - wait: 1s - if: condition: ${x} == 2 do: [set: {r_goes_on: \"0\"}]",
            Translated,
        ),
        (
            "while",
            "<setdynvars sourcetype=\"value\" value=\"1\"><var name=\"x\"/></setdynvars>\
             <repeat name=\"r\"><thinktime value=\"1\"/><while var=\"x\" gt=\"2\"/></repeat>",
            "times: 21 do: - if: condition: ${r_goes_on} == 1 do: - wait: 1s \
             - if: condition: ${x} <= 2",
            Translated,
        ),
        (
            "while",
            "<repeat name=\"r\"><thinktime value=\"1\"/><while var=\"x\" gt=\"2\"/></repeat>",
            "",
            Suspicious,
        ),
        (
            "if",
            "<if var=\"tsung_userid\" lt=\"10\"><thinktime value=\"1\"/></if>",
            "if: {condition: \"${user.id + 1} < 10\", do: [wait: 1s]}",
            Translated,
        ),
        ("if", "<if var=\"x\" eq=\"1\"><thinktime value=\"1\"/></if>", "- wait: 1s", Suspicious),
        (
            "if var",
            "<if var=\"x[1]\" eq=\"1\"><thinktime value=\"1\"/></if>",
            "wait: 1s",
            NotSupported,
        ),
        (
            "if",
            "<if var=\"tsung_userid\" eq=\"\"><thinktime value=\"1\"/></if>",
            "wait: 1s",
            NotSupported,
        ),
        (
            "abort",
            "<if var=\"tsung_userid\" gte=\"10\"><thinktime value=\"1\"/><abort/></if>\
             <thinktime value=\"2\"/>",
            "condition: \"${user.id + 1} >= 10\" do: - wait: 1s - close \
             else: - wait: 2s - close",
            Translated,
        ),
        ("thinktime", "<abort/><thinktime value=\"2\"/>", "", NotNeeded),
        ("abort all", "<abort type=\"all\"/>", "", NotSupported),
        ("abort", "<abort type=\"session\"/>", "", Translated),
        ("interaction", "<interaction action=\"send\" id=\"a\"/>", "", NotNeeded),
        (
            "set_option connect_timeout",
            "<set_option name=\"connect_timeout\" value=\"10\"/>",
            "",
            Translated,
        ),
        (
            "set_option rate_limit",
            "<set_option name=\"rate_limit\" value=\"10\"/>",
            "",
            NotSupported,
        ),
        (
            "set_option certificate",
            "<set_option name=\"certificate\"><certificate cacertfile=\"a\"/></set_option>",
            "",
            NotSupported,
        ),
        (
            "change_type",
            "<change_type new_type=\"ts_http\" host=\"127.0.0.1\" port=\"5555\" \
             server_type=\"tcp\"/>",
            "",
            NotSupported,
        ),
        (
            "request tag",
            "<request tag=\"a\"><raw ack=\"local\" data=\"a\"/></request>",
            "",
            NotNeeded,
        ),
    ];
    check(rows, |xml| {
        let mut file = File::with_session("ts_raw", &format!("{request}{xml}"));
        file.load = load("<users arrivalrate=\"100\" unit=\"second\"/>");
        file
    });
}

#[test]
fn raw_requests() {
    let rows: &[Row] = &[
        (
            "raw",
            "ack=\"no_ack\" data=\"a${b\"",
            "- connect: {timeout: 2m} - send: a$${b",
            Translated,
        ),
        ("raw ack no_ack", "ack=\"no_ack\" data=\"a\"", "- send: a", Translated),
        (
            "raw ack local",
            "ack=\"local\" data=\"a&#10;\"",
            "- send: \"a\\n\" - expect: {bytes: 1, timeout: 10m}",
            Approximated,
        ),
        (
            "raw ack global",
            "ack=\"global\" data=\"a\"",
            "- send: a - barrier: {name: global, users: 100}",
            Translated,
        ),
        ("raw datasize", "ack=\"no_ack\" datasize=\"2\"", "send: {hex: 00 00}", Translated),
        ("raw datasize", "ack=\"no_ack\" datasize=\"64\"", "send: {random: 64}", Approximated),
    ];
    check(rows, |xml| {
        let mut file = File::with_session("ts_raw", &format!("<request><raw {xml}/></request>"));
        file.load = load("<users arrivalrate=\"100\" unit=\"second\"/>");
        file
    });
    // What looks into an answer takes a line for it.
    let matched =
        "<request><match do=\"continue\">ok</match><raw ack=\"local\" data=\"a\"/></request>";
    let line = "expect: {until: \"\\n\", capture: {matched: {regex: (ok)}}, timeout: 10m}";
    check_one("match continue", &File::with_session("ts_raw", matched), line, Approximated);
}

#[test]
fn requests_over_websockets() {
    let connect = "<request><websocket type=\"connect\" path=\"/a\"/></request>";
    let rows: &[Row] = &[
        (
            "websocket connect",
            "<websocket type=\"connect\" path=\"/a?b=%%_tsung_userid%%\" origin=\"http://o\" \
             subprotocols=\"x, y\"><http_header name=\"A\" value=\"b\"/></websocket>",
            "connect: path: /a?b=${user.id + 1} headers: {origin: http://o, A: b} \
             subprotocols: [x, y]",
            Translated,
        ),
        (
            "websocket origin",
            "<websocket type=\"connect\" path=\"/\"/>",
            "connect: {timeout: 10m}",
            Approximated,
        ),
        (
            "http_header",
            "<websocket type=\"connect\" path=\"/\"><http_header name=\"Host\" \
             value=\"b\"/></websocket>",
            "connect: {timeout: 10m}",
            Suspicious,
        ),
        (
            "websocket message",
            "<websocket type=\"message\" frame=\"text\">{\"a\":1}</websocket>",
            "- send: '{\"a\":1}' - expect: {regex: \".*\", timeout: 10m}",
            Translated,
        ),
        (
            "websocket message",
            "<websocket type=\"message\">hi</websocket>",
            "- send: hi",
            Approximated,
        ),
        (
            "websocket message",
            "<websocket type=\"message\" frame=\"binary\">hi</websocket>",
            "- send: {binary: 68 69}",
            Translated,
        ),
        (
            "websocket frame",
            "<websocket type=\"message\" frame=\"binary\">%%_tsung_userid%%</websocket>",
            "- send: ${user.id + 1}",
            Approximated,
        ),
        (
            "websocket message",
            "<websocket type=\"message\" frame=\"text\">\nhi</websocket>",
            "- send: \"\\nhi\"",
            Suspicious,
        ),
        ("empty message", "<websocket type=\"message\"></websocket>", "", NotSupported),
        (
            "websocket ack parse",
            "<websocket type=\"message\" ack=\"parse\">hi</websocket>",
            "- expect: {regex: \".*\", timeout: 10m}",
            Approximated,
        ),
        (
            "websocket ack no_ack",
            "<websocket type=\"message\" ack=\"no_ack\">hi</websocket>",
            "- send: hi",
            Translated,
        ),
        ("websocket close", "<websocket type=\"close\"/>", "- close", Approximated),
    ];
    check(rows, |xml| {
        let before = if xml.contains("\"connect\"") { "" } else { connect };
        let steps = format!("{before}<request subst=\"true\">{xml}</request>");
        File::with_session("ts_websocket", &steps)
    });
}

#[test]
fn handshakes_that_are_wrong() {
    let connect = "<request><websocket type=\"connect\"/></request>";
    let hi = "<request><websocket type=\"message\">hi</websocket></request>";
    let again = format!("{connect}{connect}{hi}");
    let without = hi.to_owned();
    let in_loop = format!("<for var=\"i\" from=\"1\" to=\"3\">{connect}{hi}</for>");
    let rows = [
        ("websocket connect", again, "user: - connect: {timeout: 10m} - send: hi"),
        (
            "websocket",
            without,
            "5555/chat load: - arrivals: {rate: 10/s, for: 10s} user: \
             - connect: {timeout: 10m} - send: hi",
        ),
        (
            "for",
            in_loop,
            "do: - connect: {timeout: 10m} - send: hi - expect: {regex: \".*\", \
                          timeout: 10m} - close",
        ),
    ];
    for (construct, steps, says) in rows {
        check_one(construct, &File::with_session("ts_websocket", &steps), says, Suspicious);
    }
}

#[test]
fn requests_of_http() {
    let rows: &[Row] = &[
        (
            "http",
            "<http url=\"/a\"/>",
            "get: {path: /a, expect: [2xx, 3xx, 4xx, 5xx], timeout: 10m}",
            Translated,
        ),
        ("http", "<http url=\"http://127.0.0.1:5555\"/>", "get: {path: /,", Translated),
        ("http url", "<http url=\"http://other/a\"/>", "", NotSupported),
        ("http", "<http url=\"/a?b=%%_tsung_userid%%\"/>", "path: /a?b=${user.id + 1}", Translated),
        (
            "http",
            "<http url=\"/a\" method=\"POST\" contents=\"a=1\"/>",
            "post: path: /a headers: {content-type: application/x-www-form-urlencoded} body: a=1",
            Translated,
        ),
        (
            "http",
            "<http url=\"/a\" method=\"PUT\" contents=\"{}\" content_type=\"application/json\"/>",
            "headers: {content-type: application/json} body: {}",
            Translated,
        ),
        ("http", "<http url=\"/a\" method=\"DELETE\"/>", "delete: {path: /a", Translated),
        ("http", "<http url=\"/a\" method=\"HEAD\"/>", "head: {path: /a", Translated),
        ("http", "<http url=\"/a\" method=\"OPTIONS\"/>", "options: {path: /a", Translated),
        (
            "http",
            "<http url=\"/a\" method=\"PATCH\" contents=\"a\"/>",
            "patch: path: /a headers: {content-type: application/x-www-form-urlencoded} body: a",
            Translated,
        ),
        (
            "http method HEAD",
            "<match do=\"continue\" when=\"match\">ok</match><http url=\"/a\" method=\"HEAD\"/>",
            "",
            NotSupported,
        ),
        ("http method PURGE", "<http url=\"/a\" method=\"PURGE\"/>", "", NotSupported),
        (
            "http version",
            "<http url=\"/a\" version=\"1.0\"/>",
            "headers: {connection: close}",
            Approximated,
        ),
        (
            "http",
            "<http url=\"/a\" if_modified_since=\"today\"/>",
            "headers: {if-modified-since: today}",
            Translated,
        ),
        (
            "http contents_from_file",
            "<http url=\"/a\" method=\"POST\" contents_from_file=\"f\"/>",
            "",
            NotSupported,
        ),
        (
            "http_header",
            "<http url=\"/a\"><http_header name=\"A\" value=\"b\"/></http>",
            "headers: {A: b}",
            Translated,
        ),
        (
            "http_header",
            "<http url=\"/a\"><http_header name=\"Host\" value=\"b\"/></http>",
            "headers: {Host: b}",
            Translated,
        ),
        (
            "http_header",
            "<http url=\"/a\"><http_header name=\"Content-Length\" value=\"0\"/></http>",
            "",
            NotNeeded,
        ),
        (
            "http_header",
            "<http url=\"/a\"><http_header name=\"A\" value=\"b\" encoding=\"base64\"/></http>",
            "headers: {A: \"${base64('b')}\"}",
            Translated,
        ),
        (
            "www_authenticate",
            "<http url=\"/a\"><www_authenticate userid=\"u\" passwd=\"p\"/></http>",
            "headers: {authorization: \"Basic ${base64('u:p')}\"}",
            Translated,
        ),
        (
            "www_authenticate",
            "<http url=\"/a\"><www_authenticate userid=\"u\" passwd=\"p\" type=\"digest\"/></http>",
            "",
            NotSupported,
        ),
        (
            "soap",
            "<http url=\"/a\"><soap action=\"urn:a\"/></http>",
            "headers: {soapaction: '\"urn:a\"'}",
            Translated,
        ),
        (
            "add_cookie",
            "<http url=\"/a\"><add_cookie key=\"k\" value=\"v\"/></http>",
            "headers: {cookie: k=v}",
            Approximated,
        ),
        (
            "oauth",
            "<http url=\"/a\"><oauth consumer_key=\"k\" consumer_secret=\"s\"/></http>",
            "",
            NotSupported,
        ),
    ];
    check(rows, |xml| {
        let steps = format!(
            "<request subst=\"true\">{xml}</request><request><http url=\"/end\"/></request>"
        );
        File::with_session("ts_http", &steps)
    });
}
