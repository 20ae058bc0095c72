//! What k6's scripts have and scenarios lack.

use throng_import::Fidelity;

use super::{GET, HTTPS, USERS, imported, script};

#[test]
fn what_a_scenario_lacks_has_a_remedy() {
    let step = |step: &str| script(USERS, &format!("const res = {GET}\n{step}"));
    let session = |body: &str| {
        script(USERS, &format!("ws.connect('ws://127.0.0.1:9000/', function (s) {{ {body} }});"))
    };
    let options = |options: &str| script(&format!("{USERS}, {options}"), GET);
    for text in [
        step("http.get('http://127.0.0.1/', {cookies: {a: 'b'}});"),
        script(&format!("{USERS}, tlsVersion: 'tls1.1'"), HTTPS),
        script(&format!("{USERS}, tlsAuth: [{{cert: 'a', key: 'b'}}]"), HTTPS),
        script(&format!("{USERS}, tlsCipherSuites: ['TLS_RSA_WITH_RC4_128_SHA']"), HTTPS),
        session("s.on('message', (m) => s.send(m));"),
        script(
            USERS,
            "ws.connect('ws://127.0.0.1:9000/', {headers: {Host: 'a'}}, function (s) {});",
        ),
        session("s.on('message', () => s.close()); s.setTimeout(() => s.send('a'), 9);"),
        session("s.setInterval(() => s.send('a'), 9); s.setTimeout(() => s.send('b'), 9);"),
        script(
            "scenarios: { a: { executor: 'constant-vus', duration: '1s', env: {A: 'b'} } }",
            GET,
        ),
        options("noConnectionReuse: true"),
        options("hosts: {a: 'b'}"),
        script(USERS, GET) + "export function setup() { return f(1); }\n",
        script(USERS, GET) + "export function setup() { if (a) { f(); } }\n",
        script(USERS, GET) + "export function teardown(d) { for (const x of d) { f(x); } }\n",
        session("s.on('message', (m) => { if (m === 'a') { s.send('b'); } });"),
        session("s.on('message', (m) => { const a = JSON.parse(m); f(a); });"),
        script(USERS, GET)
            + "export function teardown() { ws.connect('ws://127.0.0.1/', function (s) {}); }\n",
        script("scenarios: { a: { executor: 'constant-vus', duration: '1s' }, b: {} }", GET),
    ] {
        let import = imported(&text);
        let count = import.fidelity.of(Fidelity::NotSupported).count();
        assert_eq!(count, 1, "{text}\n{}", import.fidelity);
    }
}

#[test]
fn a_check_that_a_scenario_lacks_changes_no_traffic() {
    let step = |step: &str| script(USERS, &format!("const res = {GET}\n{step}"));
    for text in [
        step("http.setResponseCallback(http.expectedStatuses(200));"),
        step("check(res, {a: (r) => r.timings.duration < 100});"),
        step("check(res, {a: (r) => r.status === 200 && r.body.length > 1});"),
        step("check(res, {a: (r) => r.status < 500});"),
        step("check(res, {a: (r) => r.json().id === 5});"),
        script(&format!("{USERS}, thresholds: {{'http_req_duration{{a:b}}': ['max<1']}}"), GET),
    ] {
        let import = imported(&text);
        assert_eq!(import.fidelity.of(Fidelity::NotChecked).count(), 1, "{}", import.fidelity);
        assert!(!import.fidelity.is_partial(), "{}", import.fidelity);
    }
}

/// The scenario says what it lacks, also to a reader who has no report.
#[test]
fn the_head_of_the_scenario_names_what_it_lacks() {
    let body = format!("{GET}\n{}", "http.get('http://127.0.0.1/', {auth: 'a'});\n".repeat(22));
    let text = script(USERS, &body);
    let import = imported(&text);
    let first = 1 + text.lines().position(|line| line.contains("auth")).unwrap();
    let head: Vec<_> = import.scenario.lines().take_while(|line| line.starts_with('#')).collect();
    assert_eq!(head.len(), 23, "{}", import.scenario);
    assert_eq!(head[1], "# Not supported, and left out:");
    assert_eq!(head[2], format!("#   line {first}, auth"), "{}", import.fidelity);
    assert_eq!(head[22], "#   and 2 more: see the report of `throng import`");
    assert!(!imported(&script(USERS, GET)).scenario.contains("Not supported"));
}

/// The function of a scenario that is left out is not one that no user needs.
#[test]
fn the_functions_of_a_second_scenario_are_left_out() {
    let options = "scenarios: { a: { executor: 'constant-vus', duration: '1s' }, \
                   b: { exec: 'buy' } }";
    let import = imported(&(script(options, GET) + "export function buy() {}\n"));
    let entries = import.fidelity.of(Fidelity::NotSupported);
    let lacking: Vec<_> = entries.map(|entry| &*entry.construct).collect();
    assert_eq!(lacking, ["scenario b", "buy"], "{}", import.fidelity);
}

#[test]
fn what_differs_is_approximated() {
    let rate = "executor: 'constant-arrival-rate', rate: 1, duration: '1s'";
    for (text, construct) in [
        (script("vus: 2, iterations: 4", GET), "shared-iterations"),
        (script(&format!("scenarios: {{ a: {{ {rate}, maxVUs: 5 }} }}"), GET), "maxVUs"),
        (
            script(&format!("scenarios: {{ a: {{ {rate}, gracefulStop: '1s' }} }}"), GET),
            "gracefulStop",
        ),
        (script(USERS, GET), "gracefulStop"),
        (
            script(
                &format!("scenarios: {{ a: {{ {rate} }} }}"),
                &format!("{GET} ws.connect('ws://127.0.0.1:80/', (socket) => {{}});"),
            ),
            "errors",
        ),
        (script(USERS, &format!("{GET} sleep(randomIntBetween(1, 2));")), "sleep"),
        (script(USERS, "http.get(`http://127.0.0.1/${__ITER}`);"), "__ITER"),
        (
            script(
                USERS,
                &format!(
                    "const res = {GET} const id = res.json('id');\n\
                     http.post('http://127.0.0.1:80/', JSON.stringify({{id}}));"
                ),
            ),
            "values of answers in JSON",
        ),
        (script(USERS, GET), "requests"),
        (script(USERS, GET), "timeouts"),
        (script(USERS, GET), "cookies"),
    ] {
        let import = imported(&text);
        let mut approximated = import.fidelity.of(Fidelity::Approximated);
        assert!(approximated.any(|entry| entry.construct == construct), "{}", import.fidelity);
    }
}

/// Also inside a template, a function of an event and a constant.
#[test]
fn a_variable_that_differs_is_named_at_its_place() {
    let session = |send: &str| {
        format!(
            "ws.connect('ws://127.0.0.1:9000/', function (s) {{\n  s.on('open', () => {{\n    \
             {send}\n  }});\n}});"
        )
    };
    let posts = format!(
        "const res = {GET}\nconst id = res.json('id');\nhttp.post('http://127.0.0.1:80/',\n  \
         JSON.stringify({{\n  id: id\n}}));"
    );
    for (body, construct, part) in [
        (session("s.send(`turn ${__ITER}`);"), "__ITER", "__ITER"),
        (session("s.send(JSON.stringify({\n a: 1,\n b: __ITER,\n}));"), "__ITER", "__ITER"),
        (session("const a = 'n' + __ITER;\n s.send(a);"), "__ITER", "__ITER"),
        ("sleep(1);\nhttp.get(`http://127.0.0.1/${__ITER}`);".into(), "__ITER", "__ITER"),
        (posts, "values of answers in JSON", "  id: id"),
    ] {
        let text = script(USERS, &body);
        let import = imported(&text);
        let line = 1 + text.lines().position(|line| line.contains(part)).unwrap();
        let entry = import.fidelity.entries.iter().find(|entry| entry.construct == construct);
        assert_eq!(entry.unwrap().line, line, "{text}\n{}", import.fidelity);
    }
}

#[test]
fn what_does_not_concern_the_traffic_is_not_needed() {
    for (option, construct) in [
        ("tags: {a: 'b'}", "tags"),
        ("rps: 0", "rps"),
        ("summaryTrendStats: ['avg']", "summaryTrendStats"),
        ("noVUConnectionReuse: true", "noVUConnectionReuse"),
    ] {
        let text = script(&format!("{USERS}, {option}"), GET);
        let import = imported(&(text + "export function handleSummary() {}\n"));
        let not_needed: Vec<_> = import.fidelity.of(Fidelity::NotNeeded).collect();
        for construct in [construct, "handleSummary", "import k6/ws"] {
            let has_it = not_needed.iter().any(|entry| entry.construct == construct);
            assert!(has_it, "{construct}: {}", import.fidelity);
        }
        assert_eq!(import.scenario.contains("repeat"), !option.starts_with("noVU"));
    }
}

/// What stands where a function is left out is named there.
#[test]
fn a_function_that_is_left_out_is_named_at_its_place() {
    let setup = "export function setup() {\n  http.get('http://127.0.0.1:80/');\n  if (a) {}\n}\n";
    let text = script(USERS, GET) + setup;
    let import = imported(&text);
    let entry = import.fidelity.of(Fidelity::NotSupported).next().unwrap();
    let line = 1 + text.lines().position(|line| line == "  if (a) {}").unwrap();
    assert_eq!((entry.line, &*entry.construct), (line, "setup()"), "{}", import.fidelity);
    assert!(!import.scenario.contains("setup:"), "{}", import.scenario);
}

#[test]
fn a_function_that_no_user_calls_may_be_a_program() {
    let report = "export function handleSummary(data) { for (const a of data) { if (a) {} } }\n";
    let import = imported(&(script(USERS, GET) + report));
    assert!(!import.fidelity.is_partial(), "{}", import.fidelity);
}

#[test]
fn goals_of_what_the_script_does_not_do_are_named() {
    let goal = |goal: &str| format!("{USERS}, thresholds: {{ {goal} }}");
    let session = "ws.connect('ws://127.0.0.1:9000/', function (s) {});";
    for (text, note) in [
        (script(&goal("http_req_duration: ['p(95)<500']"), session), "sends no requests"),
        (script(&goal("http_req_failed: ['rate<0.1']"), session), "sends no requests"),
        (script(&goal("ws_connecting: ['p(95)<500']"), GET), "opens no sessions"),
        (script(&goal("checks: ['rate>0.9']"), session), "`errors < 1%`"),
    ] {
        let import = imported(&text);
        let entry = import.fidelity.of(Fidelity::NotChecked).next().unwrap();
        assert!(entry.note.contains(note), "{}", import.fidelity);
        assert!(!import.scenario.contains("thresholds"), "{}", import.scenario);
    }
    let both = script(&goal("http_req_duration: ['p(95)<500']"), &format!("{GET}\n{session}"));
    let target = "http://127.0.0.1:80/";
    let both = both.replace(target, "http://127.0.0.1:9000/");
    assert!(imported(&both).scenario.contains("http.p95 < 500ms"), "{}", imported(&both).scenario);
}

#[test]
fn values_that_scripts_often_have() {
    let import = imported(&script(
        USERS,
        "const base = __ENV.BASE || 'http://127.0.0.1:80';\nconst t = new Trend('a');\n\
         const res = http.get(`${base}/a/`);\nt.add(res.timings.duration);\n\
         http.get(`${base}/b?c=${randomString(4)}`);",
    ));
    assert!(import.scenario.contains("get: /a/"), "{}", import.scenario);
    assert!(import.scenario.contains("/b?c=${random(1000,9999)}"), "{}", import.scenario);
    let notes: Vec<_> = import.fidelity.of(Fidelity::Approximated).collect();
    for construct in ["__ENV.BASE", "randomString"] {
        assert!(notes.iter().any(|entry| entry.construct == construct), "{}", import.fidelity);
    }
    assert!(!import.fidelity.is_partial(), "{}", import.fidelity);
}

/// `message.rate_mean` counts answers where a step expects one.
#[test]
fn a_rate_of_messages_is_compared_where_nothing_is_answered() {
    let file = |handler: &str| {
        let options = format!("{USERS}, thresholds: {{ ws_msgs_sent: ['rate>5'] }}");
        let body = format!(
            "ws.connect('ws://127.0.0.1:9000/', function (s) {{ s.on('open', () => s.send('a')); \
             {handler} }});"
        );
        imported(&script(&options, &body))
    };
    assert!(file("").scenario.contains("message.rate_mean > 5/s"), "{}", file("").scenario);
    let answered = file("s.on('message', () => s.close());");
    assert!(!answered.scenario.contains("thresholds"), "{}", answered.scenario);
    assert_eq!(answered.fidelity.of(Fidelity::NotChecked).count(), 1, "{}", answered.fidelity);
}

/// Returns the fidelity of the handler in a session.
fn fate_of(handler: &str) -> Fidelity {
    let body = format!("ws.connect('ws://127.0.0.1:9000/', function (s) {{ {handler} }});");
    let import = imported(&script(USERS, &body));
    let found = import.fidelity.entries.iter().find(|entry| entry.construct.starts_with("on "));
    found.unwrap_or_else(|| panic!("no handler\n{}", import.fidelity)).fidelity
}

#[test]
fn a_handler_that_sends_nothing_changes_no_traffic() {
    for handler in [
        "s.on('message', (m) => { check(m, {ok: (x) => x === 'a'}); });",
        "s.on('message', function seen(m) { const j = JSON.parse(m); check(j, {}); });",
        "s.on('pong', () => { pongs.add(1); });",
        "s.on('message', (m) => { if (m.list?.includes('a')) { seen.push(m.list?.length); } });",
        "s.on('message', (m) => { for (const x of m) { total += x.length; } });",
        "s.on('message', (m) => { seen.push(\n  m.id,\n); console.log(seen.join(', ')); });",
        "s.on('message', (m) => { m.list.forEach(x => total += x); Object.assign(all, m); });",
        "s.on('message', (m) => { a = m.map(Number).filter((x) => x > 1).find((x) => x); });",
        "s.on('message', (m) => { a = m.some(function (x) { return x; }) || m.every(Boolean); });",
        "s.on('message', (m) => { a = m.reduce((sum, [x]) => { return sum + f[x]; }, 0); });",
        "const seen = new Set(); s.on('message', (m) => { if (seen.has(m)) { seen.clear(); } });",
        "const a = new Map([]); s.on('message', (m) => { a.set(m, a?.get(m)); a.delete(m); });",
        "s.on('message', (m) => { const a = new Set(m.list); if (a.has(1)) { total += 1; } });",
    ] {
        assert_eq!(fate_of(handler), Fidelity::NotChecked, "{handler}");
    }
    for handler in [
        "s.on('error', (e) => { if (e.error() != 'a') { console.log(e.error()); } });",
        "s.on('close', () => { clearTimeout(a); clearInterval(b); });",
        "s.on('close', () => { check(1, {ok: (x) => x === 1}); });",
        "s.on('message', (m) => console.log(`${m}`));",
    ] {
        assert_eq!(fate_of(handler), Fidelity::NotNeeded, "{handler}");
    }
    for handler in [
        "s.on('message', (m) => { if (m) { s.send(m); } });",
        "s.on('message', (m) => { if (m) { reply(m); } });",
        "s.on('message', (m) => { if (m) { http.get(m); } });",
        "s.on('message', (m) => { if (m) { client.publish(m); } });",
        "s.on('message', (m) => { if (m) { chat.reply(m); } });",
        "s.on('message', (m) => { if (m) { chat.users?.reply(m); } });",
        "s.on('message', (m) => { if (m) { reply?.(m); } });",
        "s.on('message', (m) => { if (m) { reply(s); } });",
        "s.on('message', (m) => { console.log(`${s.close()}`); if (m) {} });",
        "s.on('message', (m) => { clearInterval(a); });",
        "s.on('message', (m) => { if (m) { handlers[m](m); } });",
        "s.on('close', () => { if (a) { new WebSocket('ws://127.0.0.1:9000/'); } });",
        "s.on('error', (e) => { if (e) { throw e; } });",
        "s.on('message', (m) => { channel.push('new_msg', m); });",
        "s.on('message', (m) => { channel.push(); });",
        "s.on('message', (m) => { channel.join(); });",
        "s.on('message', (m) => { channel.join('room:1'); });",
        "s.on('message', (m) => { m.list.forEach(reply); });",
        "s.on('message', (m) => { m.list.forEach((reply)); });",
        "s.on('message', (m) => { m.list.forEach(chat.reply); });",
        "s.on('message', (m) => { m.list.forEach(x => s.send(x)); });",
        "s.on('message', (m) => { m.list.map((x) => { chat.reply(x); }); });",
        "s.on('message', (m) => { m.list.forEach((reply) => reply(m)); });",
        "s.on('message', (m) => { users.find({ id: m }); });",
        "s.on('message', (m) => { chat.assign(m); });",
        "s.on('message', (m) => { if (seen.has(m)) { total += 1; } });",
        "const a = new redis.Client('redis://a'); s.on('message', (m) => { a.set('b', m); });",
        "const a = new Map().get('b'); s.on('message', (m) => { a.get(m); });",
        "const a = new Set(); s.on('message', (m) => { b.a.delete(m); });",
        "const a = new Map(); s.on('message', (m) => { a = client; a.get(m); });",
        "s.on('message', (m) => { b.a = new Map(); a.get(m); });",
    ] {
        assert_eq!(fate_of(handler), Fidelity::NotSupported, "{handler}");
    }
}
