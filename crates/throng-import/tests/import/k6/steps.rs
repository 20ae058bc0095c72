//! The statements of k6's scripts, as steps.

use throng_import::Fidelity;

use super::{USERS, check_session, check_step, imported, script};

#[test]
fn each_statement_has_its_step() {
    check_each! { check_step:
        "http.get('http://127.0.0.1/a?b=1');" => "- get: /a?b=1";
        "http.del('http://127.0.0.1/a');" => "- delete: /a";
        "http.head('http://127.0.0.1/a', {tags: {name: 'n'}});" => "- head: {path: /a, name: n}";
        "http.patch('http://127.0.0.1/a', 'x');" => "- patch: {path: /a, body: x}";
        "http.options('http://127.0.0.1/a', null, {timeout: '1s'});" =>
            "- options: {path: /a, timeout: 1s}";
        "http.put('http://127.0.0.1/a', 'x');" => "- put: {path: /a, body: x}";
        "http.post('http://127.0.0.1/a', {b: 'c'});" => "- post: {path: /a, form: {b: c}}";
        "http.post('http://127.0.0.1/a', JSON.stringify({b: [1, true, null, 'c']}));" =>
            "- post: {path: /a, body: {b:[1,true,null,c]}}";
        "http.post('http://127.0.0.1/a', JSON.stringify({b: 1.50}), {headers: {'Content-Type': \
         'application/json'}});" =>
            "- post: {path: /a, headers: {content-type: application/json}, json: {b: 1.5}}";
        "http.request('GET', 'http://127.0.0.1/a', null, {timeout: '1s'});" =>
            "- get: {path: /a, timeout: 1s}";
        "http.request('DELETE', 'http://127.0.0.1/a', 'b');" => "- delete: {path: /a, body: b}";
        "http.get(http.url`http://127.0.0.1/a/${__VU}`);" => "- get: /a/${user.id + 1}";
        "http.get('http://user:p%40ss@127.0.0.1/a');" =>
            "- get: {path: /a, headers: {authorization: Basic ${base64(user:p@ss)}}}";
        "http.get('http://127.0.0.1/a', {headers: {X: 'y'}, timeout: '2s', tags: {name: 'n'}});" =>
            "- get: {path: /a, name: n, headers: {x: y}, timeout: 2s}";
        "http.get('http://127.0.0.1/a', {headers: {Host: 'shop', X: 'y', x: 'z'}});" =>
            "- get: {path: /a, headers: {host: shop, x: z}}";
        "http.post('http://127.0.0.1/a', 'b', {headers: {'Content-Length': '1'}});" =>
            "- post: {path: /a, body: b}";
        "http.get('http://127.0.0.1/a', {redirects: 0});" =>
            "- get: {path: /a, expect: [2xx, 3xx]}";
        "const r = http.get('http://127.0.0.1/a'); check(r, {a: (r) => r.status == 404});" =>
            "- get: {path: /a, expect: 404}";
        "check(http.get('http://127.0.0.1/a'), {a: r => r.body === 'ok'});" =>
            "- get: {path: /a, expect: {text: ok}}";
        "let r = http.get('http://127.0.0.1/a'); const id = r.json().items[0].id; \
         http.get(`http://127.0.0.1/${id}`);" =>
            "- get: {path: /a, capture: {id: /items/0/id}}", "- get: /${raw(id)}";
        "const r = http.get('http://127.0.0.1/a'); const s = r.status; const id = \
         r.headers['X-Id']; http.get(`http://127.0.0.1/${id}/${s}`);" =>
            "- get: {path: /a, capture: {s: status, id: {header: x-id}}}",
            "- get: /${raw(id)}/${s}";
        "const r = http.get('http://127.0.0.1/a'); const user_id = r.json('a'); const user$id = \
         r.json('b'); http.get(`http://127.0.0.1/${user_id}/${user$id}`);" =>
            "- get: /${raw(user_id)}/${raw(user_id_2)}";
        "http.get(`http://127.0.0.1/${__VU}`); sleep(1);" => "- get: /${user.id + 1}", "- wait: 1s";
        "http.get(`http://127.0.0.1/${__ITER}`);" => "- get: /${counter}";
        "http.get('http://127.0.0.1/' + uuidv4());" => "- get: /${uuid()}";
        "http.get('http://127.0.0.1/'); sleep(Math.random() * 3);" => "- wait: uniform(0s, 3s)";
    }
    for (time, wait) in [
        ("0.5 + Math.random()", "uniform(500ms, 1.5s)"),
        ("Math.random() * 2 + 1", "uniform(1s, 3s)"),
        ("Math.random()", "uniform(0s, 1s)"),
        ("1 - 0.5", "500ms"),
    ] {
        let statement = format!("http.get('http://127.0.0.1/'); sleep({time});");
        check_step(&statement, &[&format!("- wait: {wait}")]);
    }
    check_step(
        "group('my group', function () { http.get('http://127.0.0.1/'); });",
        &["- transaction: {name: my_group, do: [get: /]}"],
    );
    check_step("http.get('http://127.0.0.1/${x}');", &["- get: /$${x}"]);
}

/// A constant of the function is drawn once, however often it is used.
#[test]
fn what_a_script_draws_is_drawn_once() {
    check_each! { check_step:
        "const n = randomIntBetween(1, 9); http.get(`http://127.0.0.1/${n}/${n}`);" =>
            "- set: {n: ${random(1,9)}}", "- get: /${n}/${n}";
        "const list = ['a', 'b']; const one = list[Math.floor(Math.random() * list.length)]; \
         http.get(`http://127.0.0.1/${one}`);" =>
            "- set: {one: ${choice(a, b)}}", "- get: /${raw(one)}";
        "http.get('http://127.0.0.1/' + randomItem(['a', 'b']));" => "- get: /${choice(a, b)}";
        "const t = randomIntBetween(1, 3); http.get('http://127.0.0.1/'); sleep(t);" =>
            "- wait: uniform(1s, 3s)";
        "const n = randomIntBetween(1, 9); http.post('http://127.0.0.1/', JSON.stringify({n}), \
         {headers: {'Content-Type': 'application/json'}});" =>
            "- post: {path: /, headers: {content-type: application/json}, json: {n:${n}}}";
    }
}

#[test]
fn a_captured_path_stands_behind_the_server() {
    check_step(
        "const base = 'http://127.0.0.1'; const r = http.get(`${base}/a`); \
         const next = r.json('next'); http.get(`${base}${next}`); http.get(`${base}/b${next}`);",
        &["- get: ${raw(next)}", "- get: /b${raw(next)}"],
    );
}

#[test]
fn each_part_of_a_session_has_its_steps() {
    check_each! { check_session:
        "socket.on('open', () => socket.send('a'));" =>
            "- connect", "- send: {text: a, reply: false}", "- stay";
        "socket.on('open', function open() { socket.send('a'); socket.close(); });" => "- close";
        "socket.setTimeout(() => { socket.send('a'); }, 500);" =>
            "- wait: 500ms", "- send: {text: a, reply: false}", "- stay";
        "socket.setInterval(() => { socket.send('a'); }, 500);" =>
            "- wait: 500ms", "period: 500ms", "do: [send: {text: a, reply: false}]";
        "socket.setInterval(() => socket.send('a'), 500); socket.setTimeout(() => socket.close(), \
         2000);" =>
            "period: 500ms", "for: 1.5s", "- wait: 500ms", "- close";
        "socket.setInterval(() => socket.send('a'), 1000); socket.setTimeout(() => socket.close(), \
         1900);" =>
            "- wait: 1s", "for: 900ms", "- wait: 900ms", "- close";
        "socket.on('open', () => socket.send('a')); socket.on('message', () => socket.close());" =>
            "- send: a", "- expect: {regex: .*}", "- close";
        "socket.setInterval(() => socket.send('a'), 500); socket.setTimeout(() => { \
         socket.send('bye'); socket.close(); }, 2000);" =>
            "for: 1.5s", "- send: {text: bye, reply: false}", "- close";
        "socket.send(JSON.stringify({user: __VU, at: [Date.now()], who: `u${__VU}`}));" =>
            "json: {user:${user.id + 1},at:[${time()}],who:u${user.id + 1}}";
        "socket.on('message', () => socket.close());" => "- receive: {regex: .*}";
        "socket.send(JSON.stringify({a: 1}));" => "- send: {json: {a: 1}, reply: false}";
    }
}

#[test]
fn a_timer_may_have_a_name_and_stop_another_one() {
    check_session(
        "socket.on('open', () => { const id = socket.setInterval(() => socket.send('a'), 500); \
         socket.setTimeout(() => { clearInterval(id); socket.send('bye'); }, 2000); \
         const end = setTimeout(() => socket.close(), 3000); });",
        &[
            "- wait: 500ms",
            "period: 500ms",
            "for: 1.5s",
            "- wait: 500ms",
            "- send: {text: bye, reply: false}",
            "- wait: 1s",
            "- close",
        ],
    );
}

#[test]
fn a_session_offers_the_compression_that_k6_offers() {
    let session = |params: &str| {
        let session =
            format!("ws.connect('ws://127.0.0.1:9000/', {params}, function (socket) {{}});");
        imported(&script(USERS, &session)).scenario
    };
    let offer = "- connect:\n      deflate:\n        server_no_context_takeover: true\n        \
                 client_no_context_takeover: true\n        client_max_window_bits: false\n";
    let scenario = session("{compression: 'deflate'}");
    assert!(scenario.contains(offer), "{scenario}");
    assert!(!session("{compression: ''}").contains("deflate"));
}

/// The examples of k6's documentation have such timers.
#[test]
fn a_timer_that_sends_nothing_is_no_loop() {
    let timers = "socket.setInterval(() => { console.log('a'); }, 500); \
                  socket.setInterval(function tick() { console.log('b'); }, 500); \
                  socket.setTimeout(() => { console.log('c'); socket.close(); }, 60000);";
    let session =
        format!("ws.connect('ws://127.0.0.1:9000/', null, function (socket) {{ {timers} }});");
    let import = imported(&script(USERS, &session));
    assert!(
        import.scenario.ends_with("user:\n  - connect\n  - wait: 1m\n  - close\n"),
        "{}",
        import.scenario
    );
    let is = |fidelity| {
        let entries = import.fidelity.of(fidelity).map(|entry| entry.construct.as_str());
        entries.filter(|construct| !construct.starts_with("import")).collect::<Vec<_>>()
    };
    let not_needed = ["setInterval", "setInterval"];
    assert_eq!(is(Fidelity::NotNeeded), not_needed, "{}", import.fidelity);
}

#[test]
fn a_ping_is_a_step() {
    let text = |body: &str| {
        let session = "ws.connect('ws://127.0.0.1:9000/', null, function (socket)";
        script(USERS, &format!("{session} {{ {body} }});"))
    };
    for (body, steps) in [
        (
            "socket.on('open', () => { socket.ping(); socket.send('a'); socket.close(); });",
            "  - connect\n  - ping\n  - send: {text: a, reply: false}\n  - close\n",
        ),
        (
            "socket.setInterval(() => socket.ping(), 1000); \
             socket.setTimeout(() => socket.close(), 5500);",
            "  - connect\n  - wait: 1s\n  - every: {period: 1s, for: 4.5s, do: [ping]}\n",
        ),
        // The answer follows the last message.
        (
            "socket.on('open', () => { socket.send('a'); socket.ping(); }); \
             socket.on('message', () => socket.close());",
            "  - connect\n  - ping\n  - send: a\n  - expect: {regex: .*}\n  - close\n",
        ),
    ] {
        let import = imported(&text(body));
        let bare = import.scenario.replace(['"', '\''], "");
        assert!(bare.contains(steps), "{}", import.scenario);
        let approximated = import.fidelity.of(Fidelity::Approximated);
        assert!(approximated.map(|entry| &*entry.construct).any(|it| it == "ping"));
    }
}
