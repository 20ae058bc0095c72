//! What Artillery's files have and scenarios lack.

use throng_import::Fidelity;

use super::{GET, PHASES, file, imported, web_socket};
use crate::import_text;

#[test]
fn what_a_scenario_lacks_has_a_remedy() {
    let step = |step: &str| file("", &format!("{GET}      - {step}\n"));
    let config = |config: &str| file(config, GET);
    for text in [
        step("parallel: [get: {url: /}]"),
        step("function: f"),
        step("think: '{{ t }}'"),
        step("{loop: [think: 1], whileTrue: f}"),
        step("{loop: [think: 1], count: '{{ n }}'}"),
        step("{loop: [think: 1], over: items}"),
        step("get: {url: 'http://other/'}"),
        step("post: {url: /, formData: {a: b}}"),
        step("post: {url: /, body: a, headers: {Transfer-Encoding: chunked}}"),
        step("get: {url: /, beforeRequest: f}"),
        step("get: {url: /, afterResponse: f}"),
        step("get: {url: /, followRedirect: true}"),
        step("get: {url: /, ifTrue: a && b}"),
        file(
            "  payload: {path: users.csv, fields: [u], cast: false}\n",
            "      - get: {url: /, auth: {user: '{{ u }}', pass: x}}\n",
        ),
        step("get: {url: /, capture: {json: '$..id', as: x}}"),
        step("get: {url: /, capture: {xpath: //a, as: x}}"),
        step("get: {url: /, capture: {selector: a, as: x}}"),
        step("get: {url: /, capture: {selector: a, attr: href, as: x}}"),
        step("get: {url: /, capture: {regexp: a, group: 2, as: x}}"),
        file("  processor: ./a.js\n", "      - get: {url: '/{{ unknown }}'}\n"),
        step("get: {url: '/{{ $testId }}'}"),
        config("  http: {pool: 10}\n"),
        config("  http: {defaults: {headers: {a: b}}}\n  defaults: {headers: {c: d}}\n"),
        config("  http2: true\n"),
        config("  variables: {a: [{b: 1}]}\n"),
        config("  payload: {path: users.csv, fields: [name, token], delimiter: '::'}\n"),
        config("  payload: {path: users.csv, fields: [a b], skipHeader: true}\n"),
        config("  payload: {path: users.csv, loadAll: true, name: x}\n"),
        config("  payload: {path: users.jsonl, fields: [a]}\n"),
        config("  payload: {path: '{{ file }}.csv', fields: [a]}\n"),
        file("  phases: [{duration: 1, arrivalRate: 1, maxVusers: 5}]\n", GET),
        file("  target: https://127.0.0.1\n  tls: {maxVersion: TLSv1.1}\n", GET),
        file("  target: https://127.0.0.1\n  tls: {ciphers: AES128-SHA}\n", GET),
        file("  target: https://127.0.0.1\n  tls: {ca: a}\n", GET),
        file("  target: https://127.0.0.1\n  tls: {passphrase: a}\n", GET),
        file("  target: https://127.0.0.1\n  tls: {checkServerIdentity: a}\n", GET),
        config("").replace("- flow", "- beforeScenario: f\n    flow"),
        config("") + "  - engine: socketio\n    flow: [emit: {channel: a}]\n",
        config("") + "  - engine: ws\n    flow: [send: a]\n",
        config("  ws: {proxy: {url: 'http://a'}}\n"),
        config("").replace("- flow", "- afterScenario: f\n    flow"),
        config("") + "before: {engine: ws, flow: [send: a]}\n",
        web_socket("      - connect: myFunction\n"),
        web_socket("      - connect: {headers: {Host: shop}}\n"),
        web_socket("      - connect: {headers: {Sec-WebSocket-Protocol: chat}}\n"),
        web_socket("      - connect: {proxy: {url: 'http://a'}}\n"),
        web_socket("      - connect: 'ws://other:1'\n"),
    ] {
        let import = imported(&text);
        assert_eq!(
            import.fidelity.of(Fidelity::NotSupported).count(),
            1,
            "{text}\n{}",
            import.fidelity
        );
    }
}

#[test]
fn a_check_that_a_scenario_lacks_changes_no_traffic() {
    let config = |config: &str| file(config, GET);
    for text in [
        config("  ensure: {thresholds: [{browser.page: 1}]}\n"),
        config("  ensure: {conditions: [{expression: f(x)}]}\n"),
        config("  plugins: {expect: {}}\n")
            .replace("{url: /}", "{url: /, expect: {contentType: json}}"),
    ] {
        let import = imported(&text);
        assert_eq!(import.fidelity.of(Fidelity::NotChecked).count(), 1, "{}", import.fidelity);
        assert!(!import.fidelity.is_partial(), "{}", import.fidelity);
    }
}

#[test]
fn what_does_not_concern_the_traffic_is_not_needed() {
    for config in [
        "  processor: ./a.js\n",
        "  environments: {staging: {target: 'http://a'}}\n",
        "  tls: {rejectUnauthorized: false}\n",
        "  http: {extendedMetrics: true}\n",
        "  http: {maxSockets: 5}\n",
        "  plugins: {metrics-by-endpoint: {}}\n",
        "  ws: {rejectUnauthorized: false}\n",
        "  statsInterval: 5\n",
        "  defaults: {headers: {Content-Length: 0}}\n",
        "  plugins: {publish-metrics: [{type: statsd}]}\n",
    ] {
        let import = imported(&file(config, GET));
        assert_eq!(import.fidelity.of(Fidelity::NotNeeded).count(), 1, "{}", import.fidelity);
    }
}

#[test]
fn a_scenario_without_weight_is_left_out() {
    let text = file("", GET) + "  - weight: 0\n    flow: [get: {url: /never}]\n";
    let import = imported(&text);
    assert!(!import.scenario.contains("never"), "{}", import.scenario);
    assert_eq!(import.fidelity.of(Fidelity::NotNeeded).count(), 1, "{}", import.fidelity);
}

#[test]
fn what_differs_is_approximated() {
    for (text, construct) in [
        (file("  defaults: {strictCapture: false}\n", GET), "strictCapture"),
        (file("  ensure: {maxErrorRate: 1}\n", GET), "ensure maxErrorRate"),
        (file("  phases: [{duration: 1, rampTo: 5}]\n", GET), "phase"),
        (file("", "      - get: {url: /, gzip: true}\n"), "gzip"),
        (file("", "      - get: {url: /, cookie: {a: b}}\n"), "cookie"),
        (file("", "      - get: {url: '/{{ $randomString(8) }}'}\n"), "{{ $randomString(8) }}"),
        (file("", GET).replace(PHASES, ""), "phases"),
        (file("  ensure: {thresholds: [{http.responses: 100}]}\n", GET), "ensure http.responses"),
        (file("  payload: {path: users.csv, fields: [a]}\n", GET), "payload cast"),
        (
            file(
                "",
                "      - get: {url: /, capture: {json: $.id, as: id}}\n      \
                 - post: {url: /, json: {id: '{{ id }}'}}\n",
            ),
            "{{ id }}",
        ),
        (file("", "      - loop: [think: 1]\n"), "loop"),
        (web_socket("      - wait: {match: {regexp: a, value: a}}\n"), "wait"),
        (
            file("  payload: {path: users.csv, fields: [a], skipEmptyLines: false}\n", GET),
            "payload skipEmptyLines",
        ),
    ] {
        let import = imported(&text);
        let mut approximated = import.fidelity.of(Fidelity::Approximated);
        assert!(approximated.any(|entry| entry.construct == construct), "{}", import.fidelity);
    }
}

/// `message.rate_mean` counts answers where a step expects one.
#[test]
fn a_rate_of_messages_is_compared_where_nothing_is_answered() {
    let config = "  target: ws://127.0.0.1:9000\n  \
                  ensure: {thresholds: [{websocket.send_rate: 100}]}\n";
    let file = |steps: &str| file(config, steps).replace("- flow", "- engine: ws\n    flow");
    let alone = imported(&file("      - send: a\n"));
    assert!(alone.scenario.contains("message.rate_mean < 100/s"), "{}", alone.scenario);
    let answered = "      - send: {payload: a, capture: {json: '$[1]', as: ref}}\n";
    let answered = imported(&file(answered));
    assert!(!answered.scenario.contains("thresholds"), "{}", answered.scenario);
    let not_checked: Vec<_> = answered.fidelity.of(Fidelity::NotChecked).collect();
    assert_eq!(not_checked.len(), 1, "{}", answered.fidelity);
    assert!(not_checked[0].note.contains("message.sent > N"), "{}", answered.fidelity);
    // The answer may be an array.
    assert!(answered.scenario.contains("json: {$exists: true}"), "{}", answered.scenario);
}

#[test]
fn a_file_of_another_engine_alone_is_a_mistake_at_its_engine() {
    let text = file("", GET).replace("- flow", "- engine: socketio\n    flow");
    let mistakes = import_text(&text, "load.yml").unwrap_err().to_string();
    let line = 1 + text.lines().position(|line| line.contains("socketio")).unwrap();
    assert!(mistakes.contains(&format!("load.yml:{line}:13")), "{mistakes}");
}
