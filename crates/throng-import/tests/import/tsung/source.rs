//! What tsung's source does, and not what one expects.

use throng_import::Fidelity::{Approximated, NotSupported, Suspicious, Translated};

use super::constructs::{check, check_one, rows};
use super::file::File;
use crate::{import_text, show_mistakes};

const SET: &str = "<setdynvars sourcetype=\"value\" value=\"v\"><var name=\"v\"/></setdynvars>";

/// Only `subst="true"` fills in variables, and only in some places.
#[test]
fn variables_that_nothing_fills_in() {
    let http = rows! {
        "%%_v%%" Suspicious: r#"<http url="/a/%%_v%%"/>"# => "path: /a/%%_v%%";
        "%%_v%%" Suspicious:
            r#"<http url="/" method="POST" contents="%%_v%%"/>"# => r#"body: "%%_v%%""#;
        "%%my:fun%%" Suspicious:
            r#"<http url="/"><http_header name="a" value="%%my:fun%%"/></http>"# =>
            r#"a: "%%my:fun%%""#;
        "%%_v%%" Suspicious:
            r#"<http url="/"><www_authenticate userid="%%_v%%" passwd="p"/></http>"# =>
            r#"set: {login_of_a_request: "%%_v%%:p"}"#;
        "http" Translated: r#"<http url="/50%%/a:b"/>"# => "path: /50%%/a:b";
    };
    check(http, |xml| File::with_session("ts_http", &format!("{SET}<request>{xml}</request>")));
    let websocket = rows! {
        "%%_v%%" Suspicious: r#"<websocket type="connect" path="/%%_v%%"/>"# => "5555/%%_v%%";
        "%%_v%%" Suspicious:
            r#"<websocket type="message" frame="text">a %%_v%%</websocket>"# => "send: a %%_v%%";
        "%%ts_user_server:get_unique_id%%" Suspicious:
            r#"<websocket type="message">%%ts_user_server:get_unique_id%%</websocket>"# =>
            r#"send: "%%ts_user_server:get_unique_id%%""#;
    };
    for subst in ["false", "all_except_body"] {
        check(websocket, |xml| {
            let request = format!("{SET}<request subst=\"{subst}\">{xml}</request>");
            File::with_session("ts_websocket", &request)
        });
    }
    let raw = format!("{SET}<request><raw ack=\"no_ack\" data=\"%%_v%%\"/></request>");
    let file = File::with_session("ts_raw", &raw);
    check_one("%%_v%%", &file, "send: \"%%_v%%\"", Suspicious);
}

/// Some attributes have no variables, whatever `subst` says.
#[test]
fn attributes_without_variables() {
    let http = rows! {
        "%%_v%%" Suspicious: r#"<http url="/"><soap action="%%_v%%"/></http>"# => "%%_v%%";
        "%%_v%%" Suspicious: r#"<http url="/" if_modified_since="%%_v%%"/>"# => "%%_v%%";
        "%%_v%%" Suspicious: r#"<http url="/"><add_cookie key="%%_v%%" value="%%_v%%"/></http>"# =>
            r#"cookie: "%%_v%%=${v}""#;
        "%%_v%%" Suspicious:
            r#"<http url="/"><http_header name="%%_v%%" value="a"/></http>"# => "%%_v%% : a";
    };
    let subst = |xml: &str| format!("{SET}<request subst=\"true\">{xml}</request>");
    check(http, |xml| File::with_session("ts_http", &subst(xml)));
    let websocket = rows! {
        "%%_v%%" Suspicious: r#"<websocket type="connect" path="/" origin="http://%%_v%%"/>"# =>
            "origin: http://%%_v%%";
        "%%_v%%" Suspicious: r#"<websocket type="connect" path="/" subprotocols="%%_v%%"/>"# =>
            r#"subprotocols: ["%%_v%%"]"#;
        "http_header" Suspicious:
            "<websocket type=\"connect\" path=\"/\"><http_header name=\"Origin\" value=\"a\"/>\
             </websocket>" =>
            "- connect: {timeout: 10m}";
    };
    check(websocket, |xml| File::with_session("ts_websocket", &subst(xml)));
    let twice = "<setdynvars sourcetype=\"value\" value=\"%%_v%%\"><var name=\"w\"/></setdynvars>";
    let file = File::with_session("ts_http", &subst("<http url=\"/\"/>").replace(SET, twice));
    check_one("%%_v%%", &file, "set: {w: \"%%_v%%\"}", Suspicious);
    let until = "<repeat name=\"r\"><request><http url=\"/\"/></request>\
                 <until var=\"v\" eq=\"%%_v%%\"/></repeat>";
    let file = File::with_session("ts_http", &format!("{SET}{until}"));
    check_one("%%_v%%", &file, "condition: \"${v} == %%_v%%\"", Suspicious);
}

/// A value stands in a URL as it is.
#[test]
fn values_in_urls() {
    let rows = rows! {
        "http url" Approximated:
            r#"<http url="/a/%%_v%%?b=%%_v%%"/>"# => "/a/${raw(v)}?b=${raw(v)}";
        "http url" Approximated: r#"<http url="%%_v%%"/>"# => "path: ${raw(v)}";
        "http" Translated: r#"<http url="/a/%%_n%%"/>"# => "path: /a/${n}";
        "%%" Suspicious: r#"<http url="/a%%_v%%/50%%"/>"# => "path: /a${raw(v)}/50,";
    };
    let number = "<setdynvars sourcetype=\"random_number\" start=\"1\" end=\"5\"><var name=\"n\"/>\
                  </setdynvars>";
    check(rows, |xml| {
        let request = format!("{SET}{number}<request subst=\"true\">{xml}</request>");
        File::with_session("ts_http", &request)
    });
    let connect = "<request subst=\"true\"><websocket type=\"connect\" path=\"/a?%%_v%%\"/>\
                   </request>";
    let file = File::with_session("ts_websocket", &format!("{SET}{connect}"));
    check_one("websocket path", &file, "connect: {path: \"/a?${raw(v)}\"", Approximated);
}

/// `ts_http_common` has two forms of a request: one has a body, even if it is empty.
#[test]
fn bodies_and_their_headers() {
    let form = "headers: {content-type: application/x-www-form-urlencoded}, body: \"\"";
    let rows = rows! {
        "http" Translated: r#"<http url="/" method="POST"/>"# => form;
        "http" Translated: r#"<http url="/" method="DELETE"/>"# => form;
        "http contents" Suspicious: r#"<http url="/" contents="a"/>"# => "get: {path: /, expect:";
        "http contents" Suspicious:
            r#"<http url="/" method="OPTIONS" contents="a"/>"# => "options: {path: /, expect:";
        "http content_type" Suspicious:
            r#"<http url="/" content_type="a/b"/>"# => "get: {path: /, expect:";
        "http if_modified_since" Suspicious:
            r#"<http url="/" method="PUT" if_modified_since="a"/>"# => form;
        "http_header" Translated:
            "<http url=\"/\" method=\"PUT\" content_type=\"a/b\"><http_header \
             name=\"Content-Type\" value=\"c/d\"/></http>" =>
            "headers: {Content-Type: c/d}";
        "http_header" Suspicious:
            "<http url=\"/\" method=\"PUT\" contents=\"ab\"><http_header name=\"Content-Length\" \
             value=\"3\"/></http>" =>
            "body: ab";
        "http contents" Suspicious:
            "<http url=\"/\" method=\"PUT\" contents=\"\u{e9}\"/>" => "body: \u{e9}";
        "www_authenticate" Translated:
            r#"<http url="/"><www_authenticate userid="%%_v%%" passwd="p'w"/></http>"# =>
            "set: {login_of_a_request: \"${v}:p'w\"} - get: {path: /, headers: {authorization: \
             \"Basic ${base64(login_of_a_request)}\"}";
    };
    check(rows, |xml| {
        File::with_session("ts_http", &format!("{SET}<request subst=\"true\">{xml}</request>"))
    });
    let letters = rows! {
        "raw data" Suspicious: "\u{e9}" => "send: \u{e9}";
        "raw data" Suspicious: "\u{20ac}" => "send: \u{20ac}";
    };
    check(letters, |data| {
        let request = format!("<request><raw ack=\"no_ack\" data=\"{data}\"/></request>");
        File::with_session("ts_raw", &request)
    });
}

#[test]
fn what_is_kept_of_an_answer() {
    let rows = rows! {
        "dyn_variable re" Suspicious: r#"<dyn_variable name="a" re="id=[0-9]+"/><http url="/"/>"# =>
            r#"timeout: 10m} - set: {a: ""}"#;
        "dyn_variable re" Approximated:
            "<dyn_variable name=\"a\" re=\"Location: ([^\\r]*)\\r\\n\"/><http url=\"/\"/>" =>
            "capture: {a: {header: location, regex: '^([^\\r]*)$'}}";
        "dyn_variable re" Approximated:
            r#"<dyn_variable name="a" re="Set-Cookie: sid=([^;]*)"/><http url="/"/>"# =>
            "capture: {a: {header: set-cookie, regex: ^sid=([^;]*)}}";
        "dyn_variable re" Suspicious:
            r#"<dyn_variable name="a" re="Location: (.*)"/><http url="/"/>"# =>
            "capture: {a: {header: location, regex: ^(.*)}}";
        "dyn_variable in headers" Approximated:
            r#"<dyn_variable name="a" re="id: ([0-9]+)"/><http url="/"/>"# =>
            r#"capture: {a: {regex: "id: ([0-9]+)"}}"#;
        "dyn_variable header" Approximated:
            r#"<dyn_variable name="a" header="www-authenticate/nonce"/><http url="/"/>"# =>
            "capture: {a: {header: www-authenticate, regex: '(?i)[ ,]nonce\\s*=\\s*\"?([^\",]*)'}}";
        "dyn_variable jsonpath" NotSupported:
            r#"<dyn_variable name="a" jsonpath="$.%%_v%%"/><http url="/"/>"# =>
            "get: {path: /, expect:";
    };
    check(rows, |xml| File::with_session("ts_http", &format!("<request>{xml}</request>")));
}

/// tsung counts the turns of all loops of a name together, and never begins anew.
#[test]
fn a_repeat_that_runs_again_goes_on_counting() {
    let request = "<request><raw ack=\"no_ack\" data=\"a\"/></request>";
    let repeat = |name: &str| {
        format!(
            "<repeat name=\"{name}\" max_repeat=\"3\">{request}<while var=\"v\" eq=\"v\"/></repeat>"
        )
    };
    let counted = "if: condition: ${r_turns} > 3 do: [set: {r_goes_on: \"0\"}] else: \
                   - set: {r_turns: \"${r_turns + 1}\"} - if: condition: ${v} != v";
    let rows = rows! {
        "repeat" Translated: r#"<for var="i" from="1" to="2">REPEAT</for>"# => counted;
        "repeat" Translated: "REPEATREPEAT" => counted;
        "repeat" Translated: r#"REPEAT<if var="v" eq="w">REPEAT</if>"# => counted;
    };
    let file = |xml: &str| {
        File::with_session("ts_raw", &format!("{SET}{}", xml.replace("REPEAT", &repeat("r"))))
    };
    check(rows, file);
    let one =
        import_text(&file(&format!("REPEAT{}", repeat("s"))).text(), "tsung/rows.xml").unwrap();
    assert!(!one.scenario.contains("turns"), "{}", one.scenario);
    let used = "REPEAT<request subst=\"true\"><raw ack=\"no_ack\" data=\"%%_r%%\"/></request>";
    check_one("repeat name", &file(used), "send: undefined", NotSupported);
}

#[test]
fn comparisons_and_counted_loops() {
    let think = "<thinktime value=\"1\"/>";
    let rows = rows! {
        "if" Approximated: r#"<if var="v" gte="2">THINK</if>"# => "${v} >= 2";
        "if" Approximated: r#"<if var="v" eq="%%_v%%">THINK</if>"# => "${v} == ${v}";
        "if" Approximated: r#"<if var="v" eq="02">THINK</if>"# => "${v} == 02";
        "if" Translated: r#"<if var="v" eq="2">THINK</if>"# => "${v} == 2";
        "for" Translated:
            r#"<for var="i" from="1" to="4" incr="2">THINK</for><if var="i" eq="5">THINK</if>"# =>
            r#"repeat: {times: 3, do: [wait: 1s]} - set: {i: "5"} - if: {condition: ${i} == 5"#;
    };
    check(rows, |xml| {
        let xml = xml.replace("THINK", think);
        File::with_session(
            "ts_raw",
            &format!("{SET}<request><raw ack=\"no_ack\" data=\"a\"/></request>{xml}"),
        )
    });
}

#[test]
fn think_times_of_a_session_and_of_the_option() {
    let range = "name=\"thinktime\" min=\"1\" max=\"3\"";
    let random = "name=\"thinktime\" value=\"4\" random=\"true\"";
    let rows = [
        (range, "<thinktime value=\"9\"/>", "wait: uniform(1s, 3s)", "thinktime value", Suspicious),
        (range, "<thinktime value=\"9\" random=\"false\"/>", "wait: 9s", "thinktime", Translated),
        (random, "<thinktime/>", "wait: exponential(4s)", "thinktime", Translated),
        (random, "<thinktime random=\"false\"/>", "wait: 4s", "thinktime", Translated),
        (
            "name=\"seed\" value=\"1\"",
            "<thinktime random=\"true\"/>",
            "wait: exponential(5s)",
            "thinktime",
            Translated,
        ),
    ];
    for (option, think, says, construct, fidelity) in rows {
        let request = "<request><raw ack=\"no_ack\" data=\"a\"/></request>";
        let file = File::with_session("ts_raw", &format!("{request}{think}"));
        let file = File { options: format!("<option {option}/>"), ..file };
        check_one(construct, &file, says, fidelity);
    }
}

/// tsung runs the phases by their numbers.
#[test]
fn phases_run_in_the_order_of_their_numbers() {
    let phase = |number: u64, rate: u64| {
        format!(
            "<arrivalphase phase=\"{number}\" duration=\"{number}\" unit=\"second\"><users \
             arrivalrate=\"{rate}\" unit=\"second\"/></arrivalphase>"
        )
    };
    let load = format!("<load loop=\"1\">{}{}{}</load>", phase(10, 5), phase(2, 20), phase(1, 3));
    let file = File { load, ..File::default() };
    let says = "do: - arrivals: {rate: 3/s, for: 1s} - arrivals: {rate: 20/s, for: 2s} \
                - arrivals: {rate: 5/s, for: 10s}";
    check_one("arrivalphase", &file, says, Translated);
}

/// A session that the only phase does not name keeps its own weight.
#[test]
fn a_session_without_a_setup_keeps_its_weight() {
    let session = |name: &str, weight: u64| {
        let steps = "<request><raw ack=\"no_ack\" data=\"a\"/></request>";
        format!("<session name=\"{name}\" weight=\"{weight}\" type=\"ts_raw\">{steps}</session>")
    };
    let setup = "<session_setup name=\"two\" weight=\"6\"/>";
    let users = "<users arrivalrate=\"1\" unit=\"second\"/>";
    let file = File {
        load: super::file::load(&format!("{setup}{users}")),
        sessions: session("one", 3) + &session("two", 1),
        ..File::default()
    };
    check_one("session_setup", &file, "one: weight: 1", Translated);
    check_one("session_setup", &file, "two: weight: 2", Translated);
}

/// A file that tsung refuses is a mistake.
#[test]
fn files_that_tsung_refuses() {
    let session = |kind: &str, steps: &str| File::with_session(kind, steps).text();
    let http = |request: &str| session("ts_http", &format!("<request>{request}</request>"));
    let think = |think: &str| session("ts_raw", think);
    let phase = "<arrivalphase phase=\"1\" duration=\"1\" unit=\"second\"><users \
                 arrivalrate=\"1\" unit=\"second\"/></arrivalphase>";
    let load = |phases: String| File { load: format!("<load>{phases}</load>"), ..File::default() };
    let raw = |ack: &str| {
        session("ts_raw", &format!("<request><raw ack=\"{ack}\" data=\"a\"/></request>"))
    };
    let files = [
        load(format!("{phase}{phase}")).text(),
        load(phase.replace("phase=\"1\"", "phase=\"one\"")).text(),
        load(phase.replace("duration=\"1\"", "duration=\"0.5\"")).text(),
        http("<http url=\"/\"/><dyn_variable name=\"a\" re=\"(b)\"/>"),
        http("<dyn_variable name=\"a\" re=\"(b)\"/><match>c</match><http url=\"/\"/>"),
        raw("parse"),
        raw("bidi_ack"),
        think("<thinktime value=\"0\"/>"),
        think("<thinktime value=\"1\" min=\"1\" max=\"2\"/>"),
        think("<thinktime min=\"1\"/>"),
        think("<thinktime min=\"3\" max=\"2\"/>"),
        think("<for from=\"1\" to=\"-1\" var=\"i\"><thinktime value=\"1\"/></for>"),
    ];
    let files: Vec<_> = files.iter().map(String::as_str).collect();
    insta::assert_snapshot!(show_mistakes("tsung/refused.xml", &files));
}
