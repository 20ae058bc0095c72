//! The steps of Artillery's scenarios.

use throng_import::Fidelity;

use super::{GET, check, check_step, file, imported, web_socket};
use crate::import_text;

#[test]
fn each_step_has_its_place() {
    check_each! { check_step:
        "get: {url: /a}" => "- get: /a";
        "get: /a" => "- get: /a";
        "get: {url: 'http://127.0.0.1:8080/a'}" => "- get: /a";
        "post: {url: /a, body: 'x=$${y}'}" => "- post: {path: /a, body: x=$$${y}}";
        "post: {url: /a, json: {n: 1, t: '1'}}" => r#"- post: {path: /a, json: {n: 1, t: "1"}}"#;
        "put: {url: /a, form: {n: 1}}" => r#"- put: {path: /a, form: {n: "1"}}"#;
        "patch: {url: /a, json: {n: 1}}" => r#"- patch: {path: /a, json: {"n": 1}}"#;
        "head: {url: /a, capture: {header: ETag, as: tag}}" =>
            "- head: {path: /a, capture: {tag: {header: etag}}}";
        "options: {url: /a}" => "- options: /a";
        "delete: {url: /a, name: GET /a}" => "- delete: {path: /a, name: GET__a}";
        "get: {url: /a, qs: {q: 'a b', n: 2}}" => "- get: /a?q=a+b&n=2";
        "get: {url: '/a?x=1', qs: {q: [1, 2], e: ~}}" => "- get: /a?q=1&q=2&e=";
        "get: {url: /a, qs: {q: '${x}', '${y}': 1}}" => "- get: /a?q=%24%7Bx%7D&%24%7By%7D=1";
        "get: {url: /a, headers: {X-Id: 7}}" => r#"- get: {path: /a, headers: {x-id: "7"}}"#;
        "get: {url: /a, headers: {Host: shop, Connection: close}}" =>
            "- get: {path: /a, headers: {host: shop, connection: close}}";
        "get: {url: /a, gzip: true}" => "- get: {path: /a, headers: {accept-encoding: gzip}}";
        "get: {url: /a, cookie: {a: 1, b: 2}}" => "- get: {path: /a, headers: {cookie: a=1; b=2}}";
        "get: {url: /a, auth: {user: ann, pass: x}}" =>
            r#"- get: {path: /a, headers: {authorization: "Basic ${base64('ann:x')}"}}"#;
        "get: {url: /a, followRedirect: false}" => "- get: {path: /a, expect: [2xx, 3xx]}";
        "get: {url: /a, capture: {regexp: 'a.b', flags: gi, as: x}}" =>
            "- get: {path: /a, capture: {x: {regex: (?i)(a.b)}}}";
        "get: {url: /a, capture: {json: '$.items[0].id', as: x}}" =>
            "- get: {path: /a, capture: {x: /items/0/id}}";
        "get: {url: /a, match: {json: $.a.b, value: 1}}" =>
            "path: /a", "expect: {json: {a: {b: 1}}}";
        "think: 2" => "- wait: 2s";
        "think: 100 ms" => "- wait: 100ms";
        "{loop: [think: 1], count: 200}" => "- repeat: {times: 200, do: [wait: 1s]}";
        "{loop: [get: {url: '/{{ $loopCount }}'}], count: 2}" =>
            r#"- foreach: {name: loop_count, in: [0, 1], do: [get: "/${loop_count}"]}"#;
        "{loop: [get: {url: '/{{ x }}'}], over: [a, b], loopElement: x}" =>
            r#"- foreach: {name: x, in: [a, b], do: [get: "/${x}"]}"#;
        "{loop: [get: {url: '/{{ i }}/{{ $loopElement }}'}], over: [a, /b], loopValue: i}" =>
            r#"- set: {loop_count: "0"}"#, "in: [a, /b]",
            "do: [get: /${loop_count}/${raw(element)}, set: {loop_count: ${loop_count + 1}}]";
        "{loop: [get: {url: '/{{ $loopCount }}'}], count: 9-12}" =>
            r#"- foreach: {name: loop_count, in: [9, 10, 11], do: [get: "/${loop_count}"]}"#;
        "{loop: [think: 1]}" => "- repeat: {while: ${user.id} >= 0, do: [wait: 1s]}";
    }
    check(
        &file(
            "",
            "      - get: {url: /a, capture: {json: $.id, as: user-id}}\n      \
             - get: {url: /a, capture: {json: $.name, as: user_id}}\n      \
             - get: {url: '/{{ user-id }}/{{ user_id }}'}\n",
        ),
        &["- get: /${raw(user_id)}/${raw(user_id_2)}"],
    );
    check_each! { check_step:
        "get: {url: '/{{ $uuid }}'}" =>
            "- set: {user_uuid: ${uuid()}}", r#"- get: "/${user_uuid}""#;
        "get: {url: /a, probability: 20}" =>
            "- {weight: 20, do: [get: /a]}", "- {weight: 81, do: [wait: 0s]}";
        "get: {url: '/{{ $randomNumber(5, 9) }}'}" => r#"- get: "/${random(5,9)}""#;
        "get: {url: '/{{ $randomString(8) }}'}" => r#"- get: "/${random(10000000,99999999)}""#;
        "post: {url: /, body: '{{ $env.PATH }}'}" => "- post: {path: /, body: ${env.PATH}}";
    }
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
    // `template` puts the number into the text, and the text stays one.
    check_json("{a: '{{ $randomNumber(1, 9) }}'}", "{a: ${random(1,9)}}");
    check_json("{'{{ text }}': 1, b: 0x1F}", "{b: 31, 7: 1}");
    check_json("{a: '{{ names }}'}", "{a: ${names}}");
    check_json("{a: '{{ many }}'}", "{a:${many}}");
}

#[test]
fn messages_of_web_sockets_have_their_places() {
    let check = |flow: &str, expected: &[&str]| {
        check(&web_socket(&format!("      - {flow}\n")), expected);
    };
    check_each! { check:
        "send: hello" => "- connect: {deflate: true}", "- send: {text: hello, reply: false}";
        "send: {a: 1}" => "- send: {json: {a: 1}, reply: false}";
        "connect: 'ws://127.0.0.1:9000/x?a=1'" => "- connect: {path: /x?a=1, deflate: true}";
        "connect: {subprotocols: [a, b]}" => "- connect: {subprotocols: [a, b], deflate: true}";
        "connect: {headers: {X-A: b}}" => "- connect: {headers: {x-a: b}, deflate: true}";
        "send: {payload: hi, capture: {json: $.id, as: id}}" =>
            "- send: hi", "- expect: {json: {$exists: true}, capture: {id: /id}, timeout: 10s}";
        "send: {payload: hi, match: {regexp: ok, value: ok}}" =>
            "- send: hi", "- expect: {contains: ok, timeout: 10s}";
        "wait: {match: {regexp: ok, value: ok}}" => "- receive: {contains: ok, timeout: 10s}";
        "{loop: [send: hi], count: 3}" => "times: 3", "do: [send: {text: hi, reply: false}]";
    }
}

#[test]
fn a_message_is_the_whole_unless_an_answer_is_looked_at() {
    for (send, expected) in [
        ("{payload: hi}", "- send: {json: {payload: hi}, reply: false}"),
        ("{json: {a: 1}}", "- send: {json: {json: {a: 1}}, reply: false}"),
        ("{type: a, payload: hi}", "- send: {json: {type: a, payload: hi}, reply: false}"),
    ] {
        let text = web_socket(&format!("      - send: {send}\n"));
        check(&text, &[expected]);
        let is_alone = !send.contains("type");
        let suspicious = imported(&text).fidelity.of(Fidelity::Suspicious).count();
        assert_eq!(suspicious, usize::from(is_alone), "{send}");
    }
}

#[test]
fn the_time_of_an_answer_is_that_of_the_file() {
    let send = "      - send: {payload: a, match: {json: $.a, value: 1}}\n";
    for (config, expected) in [
        ("", "timeout: 10s"),
        ("  ws: {timeout: 20}\n", "timeout: 20s"),
        ("  timeout: 30\n  ws: {timeout: 20}\n", "timeout: 30s"),
    ] {
        let target = format!("  target: ws://127.0.0.1:9000\n{config}");
        let text = file(&target, send).replace("- flow", "- engine: ws\n    flow");
        let scenario = imported(&text).scenario;
        assert!(scenario.contains(&format!("{expected}}}")), "{scenario}");
    }
}

#[test]
fn only_the_first_step_connects() {
    let text = web_socket("      - send: a\n      - connect: 'ws://127.0.0.1:9000/b'\n");
    let import = imported(&text);
    assert_eq!(import.scenario.matches("connect").count(), 1, "{}", import.scenario);
    assert_eq!(import.fidelity.of(Fidelity::Suspicious).count(), 1, "{}", import.fidelity);
}

/// The values are sent as they are, and the query of `qs` takes the place of the URL's.
#[test]
fn values_stand_in_urls_as_they_are() {
    let config = "  payload: {path: p.csv, fields: [p], cast: false}\n  variables: {k: a/b c}\n";
    let check_url = |url: &str, path: &str| {
        let text = file(config, &format!("      - get: {{url: '{url}'}}\n"));
        check(&text, &[&format!("- get: {path}")]);
    };
    check_url("/api{{ p }}", "/api${raw(row.p)}");
    check_url("{{ p }}", "${raw(row.p)}");
    check_url("/{{ k }}?{{ k }}", "/a/b%20c?a/b%20c");
    let config = config.to_owned() + "  target: http://127.0.0.1:8080/base/\n";
    let target = config.lines().rev().collect::<Vec<_>>().join("\n") + "\n";
    check(&file(&target, GET), &["- get: /base//"]);
}

#[test]
fn a_step_that_artillery_refuses_ends_the_user() {
    for step in ["get: {url: noslash}", "get: {url: /a, json: {b: 1}}", "get: {url: ''}"] {
        let flow = format!("{GET}      - {step}\n      - get: {{url: /never}}\n");
        let import = imported(&file("", &flow));
        assert!(!import.scenario.contains("never"), "{step}\n{}", import.scenario);
        assert_eq!(import.fidelity.of(Fidelity::Suspicious).count(), 1, "{}", import.fidelity);
    }
    let turn = "      - loop: [get: {url: /a}, get: {url: noslash}]\n        count: 5\n";
    let import = imported(&file("", turn));
    assert!(import.scenario.contains("times: 1"), "{}", import.scenario);
}

#[test]
fn what_artillery_reads_otherwise_is_suspicious() {
    let step = |step: &str| file("", &format!("      - {step}\n"));
    for text in [
        step("think: 0.5"),
        step("get: {url: '/{{ unknown }}'}"),
        step("get: {url: /, match: {regexp: a}}"),
        step("get: {url: /, capture: {header: ETag, as: a}}"),
        step("get: /"),
        file("  defaults: {headers: {a: 'Bearer {{ token }}'}}\n", GET),
        file("  defaults: {think: {jitter: 2s}}\n", GET),
        file("  defaults: {timeout: 3}\n", GET),
        file(
            "  variables: {c: [a, b]}\n",
            &format!("{GET}      - {{loop: [think: 1], over: c}}\n"),
        ),
        web_socket("      - connect: {url: 'ws://127.0.0.1:9000/a'}\n"),
        web_socket("      - connect: {headers: {a: '{{ b }}'}}\n"),
        web_socket("      - wait: hello\n"),
    ] {
        let import = imported(&text);
        let suspicious = import.fidelity.of(Fidelity::Suspicious).count();
        assert_eq!(suspicious, 1, "{text}\n{}", import.fidelity);
    }
}

#[test]
fn merge_keys_and_keys_at_the_top_are_those_of_yaml() {
    let text = "base: &base {url: /a, headers: {x: y}}\nsteps: &steps [get: {url: /b}]\n"
        .to_owned()
        + &file("", "      - get: {<<: *base, url: /c}\n      - *steps\n");
    check(&text, &["- get: {path: /c, headers: {x: y}}", "- get: /b"]);
    assert_eq!(imported(&text).fidelity.of(Fidelity::NotNeeded).count(), 2);
}

#[test]
fn the_target_of_a_connect_may_be_that_of_the_file() {
    let text = web_socket("      - connect: '{{ target }}?token=abc'\n");
    let text = text.replace("ws://127.0.0.1:9000", "ws://127.0.0.1:9000/chat");
    check(&text, &["- connect: {path: /chat?token=abc, deflate: true}"]);
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
fn think_times_may_be_random_or_known() {
    check_step("think: '{{ $randomNumber(1, 3) }}'", &["- wait: uniform(1s, 3s)"]);
    check(&file("  variables: {t: 4}\n", "      - think: '{{ t }}'\n"), &["- wait: 4s"]);
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
