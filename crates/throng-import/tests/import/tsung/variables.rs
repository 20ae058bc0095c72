//! The constructs of answers and of variables.

use throng_import::Fidelity::{Approximated, NotNeeded, NotSupported, Suspicious, Translated};
use throng_import::{FidelityEntry, ImportOptions, import};

use super::constructs::{Row, check};
use super::file::File;
use crate::import_text;

#[test]
fn variables_and_answers() {
    let rows: &[Row] = &[
        (
            "%%_tsung_userid%%",
            "<http url=\"/a\" contents=\"%%_tsung_userid%%\" method=\"POST\"/>",
            "body: ${user.id + 1}",
            Approximated,
        ),
        (
            "%%ts_user_server:get_unique_id%%",
            "<http url=\"/%%ts_user_server:get_unique_id%%\"/>",
            "path: /${user.id + 1}",
            Approximated,
        ),
        (
            "%%ts_user_server:get_really_unique_id%%",
            "<http url=\"/%%ts_user_server:get_really_unique_id%%\"/>",
            "path: /${time('s')}-${user.id + 1}",
            Approximated,
        ),
        ("%%my:fun%%", "<http url=\"/a%%my:fun%%\"/>", "path: /a,", NotSupported),
        ("%%_x%%", "<http url=\"/a%%_x%%\"/>", "path: /aundefined", Suspicious),
        (
            "dyn_variable re",
            "<dyn_variable name=\"user\" re=\"id=([0-9]+)\"/><http url=\"/a\"/>",
            "capture: {value_user: {regex: id=([0-9]+)}}",
            Approximated,
        ),
        (
            "dyn_variable regexp",
            "<dyn_variable name=\"ab\" regexp=\"id=([0-9]+)\"/><http url=\"/a\"/>",
            "capture: {ab: {regex: name=[\\\"']ab",
            Suspicious,
        ),
        (
            "dyn_variable re",
            "<dyn_variable name=\"a\" re=\"(?&lt;!x)y\"/><http url=\"/a\"/>",
            "",
            NotSupported,
        ),
        (
            "dyn_variable jsonpath",
            "<dyn_variable name=\"a\" jsonpath=\"$.b[0].c\"/><http url=\"/a\"/>",
            "capture: {a: /b/0/c}",
            Approximated,
        ),
        (
            "dyn_variable jsonpath",
            "<dyn_variable name=\"a\" jsonpath=\"$.b[?x=1].c\"/><http url=\"/a\"/>",
            "",
            NotSupported,
        ),
        (
            "dyn_variable header",
            "<dyn_variable name=\"a\" header=\"Content-Type/charset\"/><http url=\"/a\"/>",
            "capture: {a: {header: content-type, regex: '(?i);\\s*charset\\s*=\\s*\"?([^\";]*)'}}",
            Approximated,
        ),
        (
            "dyn_variable xpath",
            "<dyn_variable name=\"a\" xpath=\"//input[@name='t']/@value\"/><http url=\"/a\"/>",
            "<input\\\\b[^>]*\\\\sname=[\\\"']t[\\\"'][^>]*\\\\svalue=[\\\"']([^\\\"']*)",
            Approximated,
        ),
        (
            "dyn_variable xpath",
            "<dyn_variable name=\"a\" xpath=\"//a[1]/b\"/><http url=\"/a\"/>",
            "",
            NotSupported,
        ),
        (
            "dyn_variable pgsql_expr",
            "<dyn_variable name=\"a\" pgsql_expr=\"b\"/><http url=\"/a\"/>",
            "",
            NotSupported,
        ),
        (
            "dyn_variable form",
            "<dyn_variable name=\"a\" decode=\"html_entities\"/><http url=\"/a\"/>",
            "capture: {a: {regex: ",
            Approximated,
        ),
        (
            "match continue",
            "<match do=\"continue\" when=\"match\">ok</match><http url=\"/a\"/>",
            "expect: {status: [2xx, 3xx, 4xx, 5xx], regex: ok}",
            Approximated,
        ),
        (
            "match continue",
            "<match do=\"continue\" when=\"match\">200 OK</match><http url=\"/a\"/>",
            "expect: 200",
            Approximated,
        ),
        (
            "match continue",
            "<match do=\"continue\" when=\"match\">^HTTP/1.1 302</match><http url=\"/a\"/>",
            "expect: 302",
            Approximated,
        ),
        (
            "match abort",
            "<match do=\"abort\" when=\"nomatch\">ok</match><http url=\"/a\"/>",
            "on_error: stop",
            Approximated,
        ),
        (
            "match restart",
            "<match do=\"restart\" when=\"nomatch\" max_restart=\"2\">ok</match><http url=\"/a\"/>",
            "on_error: restart",
            Approximated,
        ),
        ("match log", "<match do=\"log\">ok</match><http url=\"/a\"/>", "", NotNeeded),
        ("match dump", "<match do=\"dump\">ok</match><http url=\"/a\"/>", "", NotNeeded),
        (
            "match name",
            "<match do=\"log\" name=\"greeted\">ok</match><http url=\"/a\"/>",
            "",
            NotNeeded,
        ),
        (
            "match name",
            "<match name=\"greeted\">ok</match><http url=\"/a\"/>",
            "expect: {status: [2xx, 3xx, 4xx, 5xx], regex: ok}",
            NotNeeded,
        ),
        (
            "match abort",
            "<match do=\"abort\" when=\"match\">bad</match><http url=\"/a\"/>",
            "",
            NotSupported,
        ),
        (
            "match restart",
            "<match do=\"restart\" when=\"match\">bad</match><http url=\"/a\"/>",
            "",
            NotSupported,
        ),
        (
            "match loop",
            "<match do=\"loop\" sleep_loop=\"5\" max_loop=\"2\">x</match><http url=\"/a\"/>",
            "",
            NotSupported,
        ),
        (
            "match loop",
            "<match do=\"loop\" loop_back=\"1\">x</match><http url=\"/a\"/>",
            "",
            NotSupported,
        ),
        (
            "match abort_test",
            "<match do=\"abort_test\">x</match><http url=\"/a\"/>",
            "",
            NotSupported,
        ),
        (
            "match continue",
            "<match subst=\"true\">%%_x%%</match><http url=\"/a\"/>",
            "",
            NotSupported,
        ),
        (
            "match continue",
            "<match apply_to_content=\"my:fun\">x</match><http url=\"/a\"/>",
            "",
            NotSupported,
        ),
    ];
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
    let rows: &[Row] = &[
        (
            "setdynvars file",
            "sourcetype=\"file\" fileid=\"u\"",
            "data: {u: {file: users.csv, columns: [a, b], delimiter: \";\"}}",
            Approximated,
        ),
        (
            "setdynvars file",
            "sourcetype=\"file\" fileid=\"u\" order=\"random\"",
            "data: {u: {file: users.csv, columns: [a, b], delimiter: \";\", order: random}}",
            Approximated,
        ),
        ("setdynvars local_file", "sourcetype=\"local_file\" fileid=\"u\"", "random", Approximated),
        (
            "setdynvars random_number",
            "sourcetype=\"random_number\" start=\"3\" end=\"8\"",
            "set: {a: \"${random(3,8)}\", b: \"${random(3,8)}\"}",
            Translated,
        ),
        (
            "setdynvars random_string",
            "sourcetype=\"random_string\" length=\"12\"",
            "${random(1000000000,9999999999)}${random(10,99)}",
            Approximated,
        ),
        (
            "setdynvars urandom_string",
            "sourcetype=\"urandom_string\" length=\"1\"",
            "${random(0,9)}",
            Approximated,
        ),
        (
            "setdynvars value",
            "sourcetype=\"value\" value=\"${x\"",
            "set: {a: $${x} - set: {b: \"\"}",
            Translated,
        ),
        (
            "setdynvars server",
            "sourcetype=\"server\"",
            "set: {a: \"127.0.0.1\"} - set: {b: \"5555\"}",
            Translated,
        ),
        (
            "setdynvars jsonpath",
            "sourcetype=\"jsonpath\" from=\"x\" jsonpath=\"y\"",
            "",
            NotSupported,
        ),
        ("setdynvars erlang", "sourcetype=\"erlang\" callback=\"m:f\"", "", NotSupported),
        ("setdynvars eval", "sourcetype=\"eval\" code=\"fun\"", "", NotSupported),
    ];
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
    let rows: &[Row] = &[
        (
            "setdynvars erlang",
            "ts_user_server:get_unique_id",
            "set: {id: ${user.id + 1}}",
            Approximated,
        ),
        (
            "setdynvars erlang",
            "ts_user_server:get_really_unique_id",
            "set: {id: ${time('s')}-${user.id + 1}}",
            Approximated,
        ),
        ("setdynvars erlang", "my:function", "set: {id: }", NotSupported),
    ];
    check(rows, |callback| {
        let set = format!(
            "<setdynvars sourcetype=\"erlang\" callback=\"{callback}\"><var name=\"id\"/>\
             </setdynvars>"
        );
        let request = "<request subst=\"true\"><raw ack=\"no_ack\" data=\"%%_id%%\"/></request>";
        File::with_session("ts_raw", &format!("{set}{request}"))
    });
}
