//! Each construct of tsung, and what becomes of it.

use throng_import::Fidelity::{self, Approximated, Suspicious, Translated};

use super::file::{File, load};
use crate::import_text;

/// Construct in the report, its XML, what the scenario has for it, and how exactly.
pub(super) type Row = (&'static str, &'static str, &'static str, Fidelity);

/// Returns rows: construct in the report, how exactly, XML, and what the scenario has for it.
macro_rules! rows {
    ($( $construct:literal $fidelity:ident: $xml:expr => $says:expr; )+) => {
        &[$( ($construct, $xml, $says, throng_import::Fidelity::$fidelity) ),+]
    };
}
pub(super) use rows;

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
    let rows = rows! {
        "thinktime" Translated: r#"<thinktime value="1.5"/>"# => "wait: 1.5s";
        "thinktime" Translated: r#"<thinktime value="2" random="true"/>"# => "exponential(2s)";
        "thinktime" Translated:
            r#"<thinktime min="1" max="3" random="true"/>"# => "wait: uniform(1s, 3s)";
        "thinktime" Translated: "<thinktime/>" => "wait: 5s";
        "thinktime" NotSupported: r#"<thinktime value="%%_x%%"/>"# => "";
        "thinktime wait_global" Translated:
            r#"<thinktime value="wait_global"/>"# => "barrier: {name: global, users: 100}";
        "thinktime wait_bidi" Approximated:
            r#"<thinktime value="wait_bidi"/>"# => "receive: {bytes: 1, timeout: 24h}";
        "transaction" Translated:
            r#"<transaction name="a b"><thinktime value="1"/></transaction>"# =>
            "transaction: {name: a_b, do: [wait: 1s]}";
        "for" Translated:
            r#"<for var="i" from="1" to="10" incr="3"><thinktime value="1"/></for>"# =>
            "repeat: {times: 4, do: [wait: 1s]}";
        "for" Suspicious:
            r#"<for var="i" from="2" to="1"><thinktime value="1"/></for>"# => "- wait: 1s on_error";
        "for" NotSupported:
            r#"<for var="i" from="1" to="%%_n%%"><thinktime value="1"/></for>"# => "- wait: 1s";
        "for" Translated:
            "<for var=\"i\" from=\"1\" to=\"3\" incr=\"2\"><request subst=\"true\">\
             <raw ack=\"no_ack\" data=\"%%_i%%\"/></request></for>" =>
            r#"foreach: {name: i, in: [1, 3], do: [send: {text: "${i}", reply: false}]}"#;
        "for var" NotSupported:
            "<for var=\"i\" from=\"1\" to=\"101\"><request subst=\"true\">\
             <raw ack=\"no_ack\" data=\"%%_i%%\"/></request></for>" =>
            r#"set: {i: "1"} - repeat: {times: 101, do: [send: {text: "${i}", reply: false}]}"#;
        "foreach" NotSupported:
            r#"<foreach name="x" in="list"><thinktime value="1"/></foreach>"# => "";
        "repeat" Translated:
            "<setdynvars sourcetype=\"value\" value=\"1\"><var name=\"x\"/></setdynvars>\
             <repeat name=\"r\" max_repeat=\"2\"><thinktime value=\"1\"/>\
             <until var=\"x\" eq=\"2\"/></repeat>" =>
            "set: {r_goes_on: \"1\"} - repeat: times: 3 do: - if: condition: ${r_goes_on} == 1 do: \
             - wait: 1s - if: condition: ${x} == 2 do: [set: {r_goes_on: \"0\"}]";
        "while" Translated:
            "<setdynvars sourcetype=\"value\" value=\"1\"><var name=\"x\"/></setdynvars>\
             <repeat name=\"r\"><thinktime value=\"1\"/><while var=\"x\" gt=\"2\"/></repeat>" =>
            "times: 21 do: - if: condition: ${r_goes_on} == 1 do: - wait: 1s - if: condition: ${x} \
             <= 2";
        "while" Suspicious:
            r#"<repeat name="r"><thinktime value="1"/><while var="x" gt="2"/></repeat>"# => "";
        "if" Translated: r#"<if var="tsung_userid" lt="10"><thinktime value="1"/></if>"# =>
            r#"if: {condition: "${user.id + 1} < 10", do: [wait: 1s]}"#;
        "if" Suspicious: r#"<if var="x" eq="1"><thinktime value="1"/></if>"# => "- wait: 1s";
        "if var" NotSupported: r#"<if var="x[1]" eq="1"><thinktime value="1"/></if>"# => "wait: 1s";
        "if" NotSupported:
            r#"<if var="tsung_userid" eq=""><thinktime value="1"/></if>"# => "wait: 1s";
        "abort" Translated:
            "<if var=\"tsung_userid\" gte=\"10\"><thinktime value=\"1\"/><abort/></if>\
             <thinktime value=\"2\"/>" =>
            r#"condition: "${user.id + 1} >= 10" do: - wait: 1s - close else: - wait: 2s - close"#;
        "thinktime" NotNeeded: r#"<abort/><thinktime value="2"/>"# => "";
        "abort all" NotSupported: r#"<abort type="all"/>"# => "";
        "abort" Translated: r#"<abort type="session"/>"# => "";
        "interaction" NotNeeded: r#"<interaction action="send" id="a"/>"# => "";
        "set_option connect_timeout" Translated:
            r#"<set_option name="connect_timeout" value="10"/>"# => "";
        "set_option rate_limit" NotSupported: r#"<set_option name="rate_limit" value="10"/>"# => "";
        "set_option certificate" NotNeeded:
            r#"<set_option name="certificate"><certificate cacertfile="a"/></set_option>"# => "";
        "change_type" NotSupported:
            r#"<change_type new_type="ts_http" host="127.0.0.1" port="5555" server_type="tcp"/>"# =>
            "";
        "request tag" NotNeeded: r#"<request tag="a"><raw ack="local" data="a"/></request>"# => "";
    };
    check(rows, |xml| {
        let mut file = File::with_session("ts_raw", &format!("{request}{xml}"));
        file.load = load("<users arrivalrate=\"100\" unit=\"second\"/>");
        file
    });
}

#[test]
fn raw_requests() {
    let rows = rows! {
        "raw" Translated: r#"ack="no_ack" data="a${b""# => "- connect: {timeout: 2m} - send: a$${b";
        "raw ack no_ack" Translated: r#"ack="no_ack" data="a""# => "- send: a";
        "raw ack local" Approximated:
            r#"ack="local" data="a&#10;""# => "- send: \"a\\n\" - expect: {bytes: 1, timeout: 10m}";
        "raw ack global" Translated:
            r#"ack="global" data="a""# => "- send: a - barrier: {name: global, users: 100}";
        "raw datasize" Translated: r#"ack="no_ack" datasize="2""# => "send: {hex: 00 00}";
        "raw datasize" Approximated: r#"ack="no_ack" datasize="64""# => "send: {random: 64}";
    };
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
    let rows = rows! {
        "websocket connect" Translated:
            "<websocket type=\"connect\" path=\"/a?b=%%_tsung_userid%%\" origin=\"http://o\" \
             subprotocols=\"x, y\"><http_header name=\"A\" value=\"b\"/></websocket>" =>
            "connect: path: /a?b=${user.id + 1} headers: {origin: http://o, A: b} subprotocols: \
             [x, y]";
        "websocket origin" Approximated:
            r#"<websocket type="connect" path="/"/>"# => "connect: {timeout: 10m}";
        "http_header" Suspicious:
            "<websocket type=\"connect\" path=\"/\"><http_header name=\"Host\" \
             value=\"b\"/></websocket>" =>
            "connect: {timeout: 10m}";
        "websocket message" Translated:
            r#"<websocket type="message" frame="text">{"a":1}</websocket>"# =>
            r#"- send: '{"a":1}' - expect: {regex: ".*", timeout: 10m}"#;
        "websocket message" Approximated:
            r#"<websocket type="message">hi</websocket>"# => "- send: hi";
        "websocket message" Translated:
            r#"<websocket type="message" frame="binary">hi</websocket>"# =>
            "- send: {binary: 68 69}";
        "websocket frame" Approximated:
            r#"<websocket type="message" frame="binary">%%_tsung_userid%%</websocket>"# =>
            "- send: ${user.id + 1}";
        "websocket message" Suspicious:
            "<websocket type=\"message\" frame=\"text\">\nhi</websocket>" => "- send: \"\\nhi\"";
        "empty message" NotSupported: r#"<websocket type="message"></websocket>"# => "";
        "websocket ack parse" Approximated:
            r#"<websocket type="message" ack="parse">hi</websocket>"# =>
            r#"- expect: {regex: ".*", timeout: 10m}"#;
        "websocket ack no_ack" Translated:
            r#"<websocket type="message" ack="no_ack">hi</websocket>"# => "- send: hi";
        "websocket close" Approximated: r#"<websocket type="close"/>"# => "- close";
    };
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
    let rows = rows! {
        "http" Translated:
            r#"<http url="/a"/>"# => "get: {path: /a, expect: [2xx, 3xx, 4xx, 5xx], timeout: 10m}";
        "http" Translated: r#"<http url="http://127.0.0.1:5555"/>"# => "get: {path: /,";
        "http url" NotSupported: r#"<http url="http://other/a"/>"# => "";
        "http" Translated: r#"<http url="/a?b=%%_tsung_userid%%"/>"# => "path: /a?b=${user.id + 1}";
        "http" Translated: r#"<http url="/a" method="POST" contents="a=1"/>"# =>
            "post: path: /a headers: {content-type: application/x-www-form-urlencoded} body: a=1";
        "http" Translated:
            r#"<http url="/a" method="PUT" contents="{}" content_type="application/json"/>"# =>
            "headers: {content-type: application/json} body: {}";
        "http" Translated: r#"<http url="/a" method="DELETE"/>"# => "delete: {path: /a";
        "http" Translated: r#"<http url="/a" method="HEAD"/>"# => "head: {path: /a";
        "http" Translated: r#"<http url="/a" method="OPTIONS"/>"# => "options: {path: /a";
        "http" Translated: r#"<http url="/a" method="PATCH" contents="a"/>"# =>
            "patch: path: /a headers: {content-type: application/x-www-form-urlencoded} body: a";
        "http method HEAD" NotSupported:
            r#"<match do="continue" when="match">ok</match><http url="/a" method="HEAD"/>"# => "";
        "http method PURGE" NotSupported: r#"<http url="/a" method="PURGE"/>"# => "";
        "http version" Approximated:
            r#"<http url="/a" version="1.0"/>"# => "headers: {connection: close}";
        "http" Translated: r#"<http url="/a" if_modified_since="today"/>"# =>
            "headers: {if-modified-since: today}";
        "http contents_from_file" NotSupported:
            r#"<http url="/a" method="POST" contents_from_file="f"/>"# => "";
        "http_header" Translated:
            r#"<http url="/a"><http_header name="A" value="b"/></http>"# => "headers: {A: b}";
        "http_header" Translated:
            r#"<http url="/a"><http_header name="Host" value="b"/></http>"# => "headers: {Host: b}";
        "http_header" NotNeeded:
            r#"<http url="/a"><http_header name="Content-Length" value="0"/></http>"# => "";
        "http_header" Translated:
            r#"<http url="/a"><http_header name="A" value="b" encoding="base64"/></http>"# =>
            r#"headers: {A: "${base64('b')}"}"#;
        "www_authenticate" Translated:
            r#"<http url="/a"><www_authenticate userid="u" passwd="p"/></http>"# =>
            r#"headers: {authorization: "Basic ${base64('u:p')}"}"#;
        "www_authenticate" NotSupported:
            r#"<http url="/a"><www_authenticate userid="u" passwd="p" type="digest"/></http>"# =>
            "";
        "soap" Translated: r#"<http url="/a"><soap action="urn:a"/></http>"# =>
            r#"headers: {soapaction: '"urn:a"'}"#;
        "add_cookie" Approximated:
            r#"<http url="/a"><add_cookie key="k" value="v"/></http>"# => "headers: {cookie: k=v}";
        "oauth" NotSupported:
            r#"<http url="/a"><oauth consumer_key="k" consumer_secret="s"/></http>"# => "";
    };
    check(rows, |xml| {
        let steps = format!(
            "<request subst=\"true\">{xml}</request><request><http url=\"/end\"/></request>"
        );
        File::with_session("ts_http", &steps)
    });
}
