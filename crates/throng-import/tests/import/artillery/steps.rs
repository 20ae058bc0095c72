//! The steps of Artillery's scenarios.

use throng_import::Fidelity;

use super::{GET, check, check_step, file, imported, web_socket};
use crate::import_text;

#[test]
fn each_step_has_its_place() {
    check_step("get: {url: /a}", &["- get: /a"]);
    check_step("get: /a", &["- get: /a"]);
    check_step("get: {url: 'http://127.0.0.1:8080/a'}", &["- get: /a"]);
    check_step("post: {url: /a, body: 'x=$${y}'}", &["- post: {path: /a, body: x=$$${y}}"]);
    check_step(
        "post: {url: /a, json: {n: 1, t: '1'}}",
        &["- post: {path: /a, json: {n: 1, t: \"1\"}}"],
    );
    check_step("put: {url: /a, form: {n: 1}}", &["- put: {path: /a, form: {n: \"1\"}}"]);
    check_step("patch: {url: /a, json: {n: 1}}", &["- patch: {path: /a, json: {\"n\": 1}}"]);
    check_step(
        "head: {url: /a, capture: {header: ETag, as: tag}}",
        &["- head: {path: /a, capture: {tag: {header: etag}}}"],
    );
    check_step("options: {url: /a}", &["- options: /a"]);
    check_step("delete: {url: /a, name: GET /a}", &["- delete: {path: /a, name: GET__a}"]);
    check_step("get: {url: /a, qs: {q: 'a b', n: 2}}", &["- get: /a?q=a%20b&n=2"]);
    check_step(
        "get: {url: /a, qs: {q: '${x}', '${y}': 1}}",
        &["- get: /a?q=%24%7Bx%7D&%24%7By%7D=1"],
    );
    check_step(
        "get: {url: /a, headers: {X-Id: 7}}",
        &["- get: {path: /a, headers: {x-id: \"7\"}}"],
    );
    check_step(
        "get: {url: /a, headers: {Host: shop, Connection: close}}",
        &["- get: {path: /a, headers: {host: shop, connection: close}}"],
    );
    check_step(
        "get: {url: /a, gzip: true}",
        &["- get: {path: /a, headers: {accept-encoding: gzip}}"],
    );
    check_step(
        "get: {url: /a, cookie: {a: 1, b: 2}}",
        &["- get: {path: /a, headers: {cookie: a=1; b=2}}"],
    );
    check_step(
        "get: {url: /a, auth: {user: ann, pass: x}}",
        &["- get: {path: /a, headers: {authorization: \"Basic ${base64('ann:x')}\"}}"],
    );
    check_step("get: {url: /a, followRedirect: false}", &["- get: {path: /a, expect: [2xx, 3xx]}"]);
    check_step(
        "get: {url: /a, capture: {regexp: 'a.b', flags: gi, as: x}}",
        &["- get: {path: /a, capture: {x: {regex: (?i)(a.b)}}}"],
    );
    check_step(
        "get: {url: /a, capture: {json: '$.items[0].id', as: x}}",
        &["- get: {path: /a, capture: {x: /items/0/id}}"],
    );
    check_step(
        "get: {url: /a, match: {json: $.a.b, value: 1}}",
        &["path: /a", "expect: {json: {a: {b: 1}}}"],
    );
    check_step("think: 2", &["- wait: 2s"]);
    check_step("think: 100 ms", &["- wait: 100ms"]);
    check_step("{loop: [think: 1], count: 200}", &["- repeat: {times: 200, do: [wait: 1s]}"]);
    check_step(
        "{loop: [get: {url: '/{{ $loopCount }}'}], count: 2}",
        &["- foreach: {name: loop_count, in: [1, 2], do: [get: \"/${loop_count}\"]}"],
    );
    check_step(
        "{loop: [get: {url: '/{{ x }}'}], over: [a, b], loopValue: x}",
        &["- foreach: {name: x, in: [a, b], do: [get: \"/${x}\"]}"],
    );
    check(
        &file(
            "",
            "      - get: {url: /a, capture: {json: $.id, as: user-id}}\n      \
             - get: {url: /a, capture: {json: $.name, as: user_id}}\n      \
             - get: {url: '/{{ user-id }}/{{ user_id }}'}\n",
        ),
        &["- get: /${user_id}/${user_id_2}"],
    );
    check_step("get: {url: '/{{ $uuid }}'}", &["- get: \"/${uuid()}\""]);
    check_step("get: {url: '/{{ $randomNumber(5, 9) }}'}", &["- get: \"/${random(5,9)}\""]);
    check_step(
        "get: {url: '/{{ $randomString(8) }}'}",
        &["- get: \"/${random(10000000,99999999)}\""],
    );
    check_step(
        "post: {url: /, body: '{{ $env.PATH }}'}",
        &["- post: {path: /, body: ${env.PATH}}"],
    );
}

#[test]
fn the_plugin_expect_checks_answers() {
    let config = "  plugins: {expect: {}}\n";
    for (expect, expected) in [
        ("{statusCode: 201}", "expect: 201"),
        ("{statusCode: [200, 404]}", "expect: [200, 404]"),
        (
            "[{statusCode: 200}, {hasProperty: a.b}]",
            "expect: status: 200 json: {a: {b: {$exists: true}}}",
        ),
        ("{matchesRegexp: 'a+'}", "expect: {regex: a+}"),
    ] {
        let text = file(config, &format!("      - get: {{url: /, expect: {expect}}}\n"));
        let scenario = imported(&text).scenario;
        let flat: String = scenario.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(expected), "{scenario}");
    }
    let without = imported(&file("", "      - get: {url: /, expect: {statusCode: 200}}\n"));
    assert_eq!(without.fidelity.of(Fidelity::Suspicious).count(), 1);
}

#[test]
fn a_text_of_one_variable_is_what_the_variable_is() {
    let config = "  variables: {n: 7, text: '7', many: [1, 2], names: [a, b]}\n";
    let check_json = |json: &str, expected: &str| {
        let step = format!("      - post: {{url: /a, json: {json}}}\n");
        let expected = format!("- post: {{path: /a, json: {expected}}}");
        check(&file(config, &step), &[&expected]);
    };
    check_json("{a: '{{ n }}', b: 'x{{ n }}'}", "{a:7,b:x7}");
    check_json("{a: '{{ text }}'}", "{a: 7}");
    check_json("{a: '{{ $randomNumber(1, 9) }}'}", "{a:${random(1,9)}}");
    check_json("{a: '{{ names }}'}", "{a: ${names}}");
    check_json("{a: '{{ many }}'}", "{a: ${many}}");
}

#[test]
fn messages_of_web_sockets_have_their_places() {
    let check = |flow: &str, expected: &[&str]| {
        check(&web_socket(&format!("      - {flow}\n")), expected);
    };
    check("send: hello", &["- connect", "- send: {text: hello, reply: false}"]);
    check("send: {a: 1}", &["- send: {json: {a: 1}, reply: false}"]);
    check("connect: 'ws://127.0.0.1:9000/x?a=1'", &["- connect: {path: /x?a=1}"]);
    check("connect: {subprotocols: [a, b]}", &["- connect: {subprotocols: [a, b]}"]);
    check("connect: {headers: {X-A: b}}", &["- connect: {headers: {x-a: b}}"]);
    check(
        "send: {payload: hi, capture: {json: $.id, as: id}}",
        &["- send: hi", "- expect: {json: {$exists: true}, capture: {id: /id}}"],
    );
    check("send: {payload: hi, match: {regexp: ^ok}}", &["- send: hi", "- expect: {regex: ^ok}"]);
    check("{loop: [send: hi], count: 3}", &["times: 3", "do: [send: {text: hi, reply: false}]"]);
}

#[test]
fn the_target_of_a_connect_may_be_that_of_the_file() {
    let text = web_socket("      - connect: '{{ target }}?token=abc'\n");
    let text = text.replace("ws://127.0.0.1:9000", "ws://127.0.0.1:9000/chat");
    check(&text, &["- connect: {path: /chat?token=abc}"]);
}

#[test]
fn a_file_in_flow_style_is_recognised() {
    let config = "config: { target: 'http://127.0.0.1:1', \
                  phases: [ { duration: 1, arrivalRate: 2 } ] }\n";
    for scenarios in [
        "scenarios: [ { flow: [ { get: { url: /a } } ] } ]\n",
        "scenarios:\n  - { flow: [ { get: { url: /a } } ] }\n",
    ] {
        check(&(config.to_owned() + scenarios), &["- get: /a"]);
    }
}

#[test]
fn binary_messages_and_random_think_times() {
    let ws = "config: {target: 'ws://127.0.0.1:9000'}\nscenarios:\n  - engine: ws\n    flow:\n";
    check(&format!("{ws}      - sendBytes: AB\n"), &["- send: {binary: 41 42, reply: false}"]);
    check_step("think: '{{ $randomNumber(1, 3) }}'", &["- wait: uniform(1s, 3s)"]);
    let import = imported(&format!("{ws}      - sendBytes: '{{{{ data }}}}'\n"));
    assert_eq!(import.fidelity.of(Fidelity::NotSupported).count(), 1, "{}", import.fidelity);
}

#[test]
fn settings_of_a_plugin_may_stand_beside_the_plugins() {
    let plugins = "  plugins: {apdex: {}}\n  apdex: {threshold: 100}\n";
    let import = imported(&file(plugins, GET));
    assert_eq!(import.fidelity.of(Fidelity::NotNeeded).count(), 2, "{}", import.fidelity);
}

#[test]
fn a_target_that_only_an_environment_has_is_named() {
    let text = "config: {target: '{{ $env.T }}', environments: {a: {target: 'http://h:1'}}}\n\
                scenarios:\n  - flow: [get: {url: /}]\n";
    let mistakes = import_text(text, "artillery/load.yml").unwrap_err().to_string();
    assert!(mistakes.contains("pass `--target http://h:1`"), "{mistakes}");
}
