//! The constructs of answers and of variables.

use throng_import::{FidelityEntry, ImportOptions, import};

use super::constructs::{check, rows};
use super::file::File;
use crate::import_text;

#[test]
fn variables_and_answers() {
    let rows = rows! {
        "%%_tsung_userid%%" Approximated:
            r#"<http url="/a" contents="%%_tsung_userid%%" method="POST"/>"# =>
            "body: ${user.id + 1}";
        "%%ts_user_server:get_unique_id%%" Approximated:
            r#"<http url="/%%ts_user_server:get_unique_id%%"/>"# => "path: /${user.id + 1}";
        "%%ts_user_server:get_really_unique_id%%" Approximated:
            r#"<http url="/%%ts_user_server:get_really_unique_id%%"/>"# =>
            "path: /${time('s')}-${user.id + 1}";
        "%%my:fun%%" NotSupported: r#"<http url="/a%%my:fun%%"/>"# => "path: /a,";
        "%%_x%%" Suspicious: r#"<http url="/a%%_x%%"/>"# => "path: /aundefined";
        "dyn_variable re" Approximated:
            r#"<dyn_variable name="user" re="id=([0-9]+)"/><http url="/a"/>"# =>
            "capture: {value_user: {regex: id=([0-9]+)}}";
        "dyn_variable regexp" Suspicious:
            r#"<dyn_variable name="ab" regexp="id=([0-9]+)"/><http url="/a"/>"# =>
            "capture: {ab: {regex: name=[\\\"']ab";
        "dyn_variable re" NotSupported:
            r#"<dyn_variable name="a" re="(?&lt;!x)y"/><http url="/a"/>"# => "";
        "dyn_variable jsonpath" Approximated:
            r#"<dyn_variable name="a" jsonpath="$.b[0].c"/><http url="/a"/>"# =>
            "capture: {a: /b/0/c}";
        "dyn_variable jsonpath" NotSupported:
            r#"<dyn_variable name="a" jsonpath="$.b[?x=1].c"/><http url="/a"/>"# => "";
        "dyn_variable header" Approximated:
            r#"<dyn_variable name="a" header="Content-Type/charset"/><http url="/a"/>"# =>
            "capture: {a: {header: content-type, regex: '(?i);\\s*charset\\s*=\\s*\"?([^\";]*)'}}";
        "dyn_variable xpath" Approximated:
            r#"<dyn_variable name="a" xpath="//input[@name='t']/@value"/><http url="/a"/>"# =>
            "<input\\\\b[^>]*\\\\sname=[\\\"']t[\\\"'][^>]*\\\\svalue=[\\\"']([^\\\"']*)";
        "dyn_variable xpath" NotSupported:
            r#"<dyn_variable name="a" xpath="//a[1]/b"/><http url="/a"/>"# => "";
        "dyn_variable pgsql_expr" NotSupported:
            r#"<dyn_variable name="a" pgsql_expr="b"/><http url="/a"/>"# => "";
        "dyn_variable form" Approximated:
            r#"<dyn_variable name="a" decode="html_entities"/><http url="/a"/>"# =>
            "capture: {a: {regex: ";
        "match continue" Approximated:
            r#"<match do="continue" when="match">ok</match><http url="/a"/>"# =>
            "expect: {status: [2xx, 3xx, 4xx, 5xx], regex: ok}";
        "match continue" Approximated:
            r#"<match do="continue" when="match">200 OK</match><http url="/a"/>"# => "expect: 200";
        "match continue" Approximated:
            r#"<match do="continue" when="match">^HTTP/1.1 302</match><http url="/a"/>"# =>
            "expect: 302";
        "match abort" Approximated:
            r#"<match do="abort" when="nomatch">ok</match><http url="/a"/>"# => "on_error: stop";
        "match restart" Approximated:
            r#"<match do="restart" when="nomatch" max_restart="2">ok</match><http url="/a"/>"# =>
            "on_error: restart";
        "match log" NotNeeded: r#"<match do="log">ok</match><http url="/a"/>"# => "";
        "match dump" NotNeeded: r#"<match do="dump">ok</match><http url="/a"/>"# => "";
        "match name" NotNeeded:
            r#"<match do="log" name="greeted">ok</match><http url="/a"/>"# => "";
        "match name" NotNeeded: r#"<match name="greeted">ok</match><http url="/a"/>"# =>
            "expect: {status: [2xx, 3xx, 4xx, 5xx], regex: ok}";
        "match abort" NotSupported:
            r#"<match do="abort" when="match">bad</match><http url="/a"/>"# => "";
        "match restart" NotSupported:
            r#"<match do="restart" when="match">bad</match><http url="/a"/>"# => "";
        "match loop" NotSupported:
            r#"<match do="loop" sleep_loop="5" max_loop="2">x</match><http url="/a"/>"# => "";
        "match loop" NotSupported:
            r#"<match do="loop" loop_back="1">x</match><http url="/a"/>"# => "";
        "match abort_test" NotSupported:
            r#"<match do="abort_test">x</match><http url="/a"/>"# => "";
        "match continue" NotSupported:
            r#"<match subst="true">%%_x%%</match><http url="/a"/>"# => "";
        "match continue" NotSupported:
            r#"<match apply_to_content="my:fun">x</match><http url="/a"/>"# => "";
    };
    check(rows, |xml| {
        File::with_session("ts_http", &format!("<request subst=\"true\">{xml}</request>"))
    });
}

/// An error does one thing to a user, whichever request it is of.
#[test]
fn a_match_that_aborts_ends_a_user_after_all_errors() {
    let file = File::with_session(
        "ts_http",
        "<request><match>ok</match><dyn_variable name=\"id\" jsonpath=\"$.id\"/>\
         <http url=\"/a\"/></request>\
         <request><match do=\"abort\" when=\"nomatch\">ok</match><http url=\"/b\"/></request>",
    );
    let import = import(&file.text(), "test.xml", &ImportOptions::default()).unwrap();
    assert!(import.scenario.contains("on_error: stop"), "{}", import.scenario);
    let fidelity = import.fidelity.to_string();
    let has = |note: &str| fidelity.replace("\n    ", " ").contains(note);
    assert!(!has("the user goes on"), "{fidelity}");
    assert!(has("the user stops or begins again; tsung goes on with an empty text"), "{fidelity}");
    assert!(has("stops or begins again, because of another match"), "{fidelity}");
}

#[test]
fn values_that_a_step_sets() {
    let rows = rows! {
        "setdynvars file" Approximated: r#"sourcetype="file" fileid="u""# =>
            r#"data: {u: {file: users.csv, columns: [a, b], delimiter: ";"}}"#;
        "setdynvars file" Approximated: r#"sourcetype="file" fileid="u" order="random""# =>
            r#"data: {u: {file: users.csv, columns: [a, b], delimiter: ";", order: random}}"#;
        "setdynvars local_file" Approximated: r#"sourcetype="local_file" fileid="u""# => "random";
        "setdynvars random_number" Translated: r#"sourcetype="random_number" start="3" end="8""# =>
            r#"set: {a: "${random(3,8)}", b: "${random(3,8)}"}"#;
        "setdynvars random_string" Approximated: r#"sourcetype="random_string" length="12""# =>
            "${random(1000000000,9999999999)}${random(10,99)}";
        "setdynvars urandom_string" Approximated:
            r#"sourcetype="urandom_string" length="1""# => "${random(0,9)}";
        "setdynvars value" Translated:
            r#"sourcetype="value" value="${x""# => r#"set: {a: $${x} - set: {b: ""}"#;
        "setdynvars server" Translated:
            r#"sourcetype="server""# => r#"set: {a: "127.0.0.1"} - set: {b: "5555"}"#;
        "setdynvars jsonpath" NotSupported: r#"sourcetype="jsonpath" from="x" jsonpath="y""# => "";
        "setdynvars erlang" NotSupported: r#"sourcetype="erlang" callback="m:f""# => "";
        "setdynvars eval" NotSupported: r#"sourcetype="eval" code="fun""# => "";
    };
    check(rows, |xml| {
        let steps = format!(
            "<setdynvars {xml}><var name=\"a\"/><var name=\"b\"/></setdynvars><request \
             subst=\"true\"><raw ack=\"no_ack\" data=\"%%_a%%\"/></request>"
        );
        let options = "<option name=\"file_server\" id=\"u\" value=\"users.csv\"/>".to_owned();
        File { options, ..File::with_session("ts_raw", &steps) }
    });
}

/// tsung looks for the expression in the body alone, and so does the scenario.
#[test]
fn a_match_without_headers_is_one_of_the_body() {
    let file = |attributes: &str| {
        let request = format!("<match do=\"continue\" when=\"match\"{attributes}>200 OK</match>");
        let steps = format!("<request>{request}<http url=\"/a\"/></request>");
        import_text(&File::with_session("ts_http", &steps).text(), "tsung/rows.xml").unwrap()
    };
    let body = file(" skip_headers=\"http\"");
    assert!(body.scenario.contains("regex: \"200 OK\""), "{}", body.scenario);
    let is_of_headers = |entry: &FidelityEntry| entry.construct == "match in headers";
    assert!(!body.fidelity.entries.iter().any(is_of_headers), "{}", body.fidelity);
    assert!(!file("").scenario.contains("regex"));
}

#[test]
fn a_request_may_name_its_own_browser() {
    let options = "<option type=\"ts_http\" name=\"user_agent\"><user_agent probability=\"100\">\
                   Default/1</user_agent></option>";
    let own = "<http_header name=\"User-Agent\" value=\"Own/2\"/>";
    let steps = format!(
        "<request><http url=\"/a\">{own}</http></request><request><http url=\"/b\"/></request>"
    );
    let file = File { options: options.to_owned(), ..File::with_session("ts_http", &steps) };
    let import = import_text(&file.text(), "tsung/rows.xml").unwrap();
    let (a, b) = import.scenario.split_once("/b").unwrap();
    assert!(a.contains("Own/2") && !a.contains("Default/1"), "{}", import.scenario);
    assert!(b.contains("user-agent: Default/1"), "{}", import.scenario);
    assert!(!import.fidelity.is_partial(), "{}", import.fidelity);
}

#[test]
fn a_function_of_tsung_means_the_same_in_setdynvars() {
    let rows = rows! {
        "setdynvars erlang" Approximated:
            "ts_user_server:get_unique_id" => "set: {id: ${user.id + 1}}";
        "setdynvars erlang" Approximated:
            "ts_user_server:get_really_unique_id" => "set: {id: ${time('s')}-${user.id + 1}}";
        "setdynvars erlang" NotSupported: "my:function" => "set: {id: }";
    };
    check(rows, |callback| {
        let set = format!(
            "<setdynvars sourcetype=\"erlang\" callback=\"{callback}\"><var name=\"id\"/>\
             </setdynvars>"
        );
        let request = "<request subst=\"true\"><raw ack=\"no_ack\" data=\"%%_id%%\"/></request>";
        File::with_session("ts_raw", &format!("{set}{request}"))
    });
}
