//! Broken files: each mistake shows its place, and what was expected.

use super::file::File;
use crate::{import_text, show_mistakes};

/// Returns the smallest file with a part replaced.
fn with(part: &str, replacement: &str) -> String {
    let text = File::default().text();
    assert!(text.contains(part), "no `{part}` in\n{text}");
    text.replacen(part, replacement, 1)
}

#[test]
fn mistakes() {
    let raw = "<raw ack=\"no_ack\" data=\"hi\"/>";
    let request = format!("<request>{raw}</request>");
    let in_session = |steps: &str| with(&request, steps);
    let users = "<users arrivalrate=\"10\" unit=\"second\"/>";
    let http = |request: &str| {
        let steps = format!("<request>{request}</request>");
        File::with_session("ts_http", &steps).text()
    };
    let files = [
        // The XML itself.
        with("</tsung>", ""),
        with("</clients>", "</client>"),
        with("<raw ", "<raw ack=\"no_ack\" "),
        with("data=\"hi\"", "data=\"<hi\""),
        with("data=\"hi\"", "data=\"a & b\""),
        with("data=\"hi\"", "data=\"&greeting;\""),
        with("tsung-1.0.dtd\">", "x\" [<!ENTITY s SYSTEM \"s.xml\">]>").replace(&request, "&s;"),
        with("<clients>", "<clients><!-- a -- b -->"),
        with("<tsung>", "<tsung></tsung><tsung>"),
        "<load><tsung></tsung></load>".to_owned(),
        "<!DOCTYPE tsung SYSTEM \"tsung-1.0.dtd\">".to_owned(),
        // Names.
        with("<servers>", "<severs>").replace("</servers>", "</severs>"),
        with("host=\"127.0.0.1\"", "hots=\"127.0.0.1\""),
        in_session("<thinktme value=\"1\"/>"),
        with("type=\"ts_raw\"", "type=\"ts_rew\""),
        with("type=\"tcp\"", "type=\"tpc\""),
        with("unit=\"second\">", "unit=\"seconds\">"),
        with("<options>", "<options><option name=\"thinktimes\" value=\"3\"/>"),
        with("ack=\"no_ack\"", "ack=\"noack\""),
        // Values.
        with("port=\"5555\"", "port=\"75555\""),
        with("duration=\"10\"", "duration=\"ten\""),
        with("duration=\"10\"", "duration=\"0\""),
        with("arrivalrate=\"10\"", "arrivalrate=\"-1\""),
        with("arrivalrate=\"10\"", "arrivalrate=\"10\" interarrival=\"1\""),
        with("arrivalrate=\"10\"", ""),
        with("arrivalrate=\"10\"", "arrivalrate=\"10\" maxnumber=\"0\""),
        with(users, ""),
        with("probability=\"100\"", "probability=\"90\""),
        with("probability=\"100\"", ""),
        with("probability=\"100\"", "weight=\"0\""),
        with("probability=\"100\"", "probability=\"50\" weight=\"50\""),
        with("type=\"ts_raw\"", "type=\"ts_jabber\""),
        with("host=\"127.0.0.1\"", "host=\"a host\""),
        in_session("<request/>"),
        in_session(&format!("<request>{raw}{raw}</request>")),
        in_session("<request><http url=\"/\"/></request>"),
        in_session("<request><raw ack=\"local\"/></request>"),
        in_session("<request><raw ack=\"local\" data=\"a\" datasize=\"1\"/></request>"),
        in_session("<thinktime value=\"soon\"/>"),
        in_session("<for from=\"1\" to=\"x\" var=\"i\"><thinktime value=\"1\"/></for>"),
        in_session("<for from=\"1\" to=\"9\" incr=\"0\" var=\"i\"><thinktime value=\"1\"/></for>"),
        in_session("<repeat name=\"r\"><thinktime value=\"1\"/></repeat>"),
        in_session("<if var=\"tsung_userid\"><thinktime value=\"1\"/></if>"),
        in_session("<setdynvars sourcetype=\"file\"><var name=\"a\"/></setdynvars>"),
        in_session("<setdynvars sourcetype=\"value\" value=\"1\"></setdynvars>"),
        in_session(
            "<setdynvars sourcetype=\"random_number\" start=\"9\" end=\"1\"><var name=\"a\"/>\
             </setdynvars>",
        ),
        in_session(""),
        http("<http url=\"items\"/>"),
        http("<http url=\"/a b\"/>"),
        http("<http url=\"/\" method=\"FETCH\"/>"),
        http("<http url=\"/\"><http_header name=\"a b\" value=\"c\"/></http>"),
        http("<dyn_variable name=\"a\" re=\"b\" jsonpath=\"c\"/><http url=\"/\"/>"),
    ];
    assert!(files.len() >= 40);
    let files: Vec<_> = files.iter().map(String::as_str).collect();
    insta::assert_snapshot!(show_mistakes("tsung/broken.xml", &files));
}

/// Entities that refer to one another, and elements in elements, end soon.
#[test]
fn bombs() {
    let mut entities = "<!ENTITY a0 \"ha\">".to_owned();
    for level in 1..20 {
        let references = format!("&a{};", level - 1).repeat(10);
        entities += &format!("<!ENTITY a{level} \"{references}\">");
    }
    let dtd = format!("tsung-1.0.dtd\" [{entities}]>");
    let laughs = with("tsung-1.0.dtd\">", &dtd).replace("data=\"hi\"", "data=\"&a19;\"");
    let request = "<request><raw ack=\"no_ack\" data=\"hi\"/></request>";
    let transactions = "<transaction name=\"a\">".repeat(50_000);
    let deep = with(request, &(transactions + request + &"</transaction>".repeat(50_000)));
    let loops = "<for var=\"i\" from=\"1\" to=\"100\">".repeat(30);
    let loops = with(request, &(loops + request + &"</for>".repeat(30)));
    let counted = loops.replace("<raw ", "<raw data=\"%%_i%%\" ").replace(" data=\"hi\"", "");
    let counted = counted.replace("<request>", "<request subst=\"true\">");
    assert!(import_text(&laughs, "tsung/laughs.xml").is_err());
    assert!(import_text(&deep, "tsung/deep.xml").is_err());
    for text in [&loops, &counted] {
        let import = import_text(text, "tsung/loops.xml").unwrap();
        assert!(import.scenario.len() < 20_000 && import.fidelity.is_partial());
    }
}
