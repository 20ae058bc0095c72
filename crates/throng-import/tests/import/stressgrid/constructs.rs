//! Each construct of the reference: what the scenario has for it, and what the report says.

use crate::import_text;

/// Shows the steps of these scripts, and the notes of the report.
fn steps(scripts: &[&str]) -> String {
    let show = |script: &&str| {
        let import = import_text(script, "script.exs").unwrap_or_else(|error| panic!("{error}"));
        let (_, steps) = import.scenario.split_once("user:\n").unwrap();
        let notes = import.fidelity.entries.iter().filter(|entry| entry.construct != "ramps");
        let notes = notes
            .map(|entry| format!("{}, {}: {}", entry.fidelity.name(), entry.construct, entry.note));
        let notes: Vec<_> = notes.collect();
        format!("== {script}\n{steps}{}", notes.join("\n"))
    };
    scripts.iter().map(show).collect::<Vec<_>>().join("\n\n")
}

#[test]
fn requests() {
    insta::assert_snapshot!(steps(&[
        "get(\"/a\")",
        "get(\"/a\", [{\"x-a\", \"1\"}])",
        "get \"/a\", %{\"x-a\" => \"1\", \"connection\" => \"close\"}",
        "head(\"/a\")\noptions(\"/a\")\npatch(\"/a\")\nget(\"/\")",
        "delete(\"/a\")",
        "post(\"/a\")",
        "post(\"/a\", [], \"text\")",
        "post(\"/a\", [], {:json, %{a: 1, \"b\" => [true, nil, \"x\"]}})",
        "post(\"/a\", [], {:json, %{a: Enum.random(1..5)}})",
        "post(\"/a\", [], {:bert, {:a}})",
        "put(\"/a\", [], Jason.encode!(%{a: 1}))",
        "{200, _, _} = get(\"/a\")",
        "{404, headers, body} = get(\"/a\")",
        "{status, headers, body} = get(\"/a\")\npost(\"/b\", [], body)",
        "{200, _, {:json, json}} = get(\"/a\")\nget(\"/b/#{json[\"x\"][\"y\"]}/#{json[\"list\"]}\")",
        "{_, _, {:json, %{\"id\" => id}}} = get(\"/a\")\nget(\"/b/#{id}\")",
        "{_, _, body} = get(\"/a\")\n{:json, json} = body\nget(\"/b/#{json[\"id\"]}\")",
        "{:error, _} = get(\"/a\")",
    ]), @r#"
== get("/a")
  - get: /a
  - close: reset
approximated, get: Stressgrid takes an answer of any status; here others than 2xx are errors, after which a user rests for 1s and begins again

== get("/a", [{"x-a", "1"}])
  - get: {path: /a, headers: {x-a: "1"}}
  - close: reset
approximated, get: Stressgrid takes an answer of any status; here others than 2xx are errors, after which a user rests for 1s and begins again

== get "/a", %{"x-a" => "1", "connection" => "close"}
  - get: {path: /a, headers: {x-a: "1"}}
  - close: reset
not needed, header connection: throng sets this field itself
approximated, get: Stressgrid takes an answer of any status; here others than 2xx are errors, after which a user rests for 1s and begins again

== head("/a")
options("/a")
patch("/a")
get("/")
  - get: /
  - close: reset
not supported, head: throng has `get`, `post`, `put` and `delete`
not supported, options: throng has `get`, `post`, `put` and `delete`
not supported, patch: throng has `get`, `post`, `put` and `delete`
approximated, get: Stressgrid takes an answer of any status; here others than 2xx are errors, after which a user rests for 1s and begins again

== delete("/a")
  - delete: /a
  - close: reset
approximated, delete: Stressgrid takes an answer of any status; here others than 2xx are errors, after which a user rests for 1s and begins again

== post("/a")
  - post: /a
  - close: reset
approximated, post: Stressgrid takes an answer of any status; here others than 2xx are errors, after which a user rests for 1s and begins again

== post("/a", [], "text")
  - post: {path: /a, body: text}
  - close: reset
approximated, post: Stressgrid takes an answer of any status; here others than 2xx are errors, after which a user rests for 1s and begins again

== post("/a", [], {:json, %{a: 1, "b" => [true, nil, "x"]}})
  - post: {path: /a, json: {a: 1, b: [true, null, x]}}
  - close: reset
approximated, post: Stressgrid takes an answer of any status; here others than 2xx are errors, after which a user rests for 1s and begins again; Stressgrid adds `; charset=utf-8` to the content type of JSON

== post("/a", [], {:json, %{a: Enum.random(1..5)}})
  - post: {path: /a, json: '{"a":${random(1,5)}}'}
  - close: reset
approximated, post: Stressgrid takes an answer of any status; here others than 2xx are errors, after which a user rests for 1s and begins again; Stressgrid adds `; charset=utf-8` to the content type of JSON

== post("/a", [], {:bert, {:a}})
  - post: /a
  - close: reset
not supported, body: throng has no BERT: write the bytes
approximated, post: Stressgrid takes an answer of any status; here others than 2xx are errors, after which a user rests for 1s and begins again

== put("/a", [], Jason.encode!(%{a: 1}))
  - put: {path: /a, body: '{"a":1}'}
  - close: reset
approximated, put: Stressgrid takes an answer of any status; here others than 2xx are errors, after which a user rests for 1s and begins again

== {200, _, _} = get("/a")
  - get: {path: /a, expect: 200}
  - close: reset
translated, get: 

== {404, headers, body} = get("/a")
  - get: {path: /a, expect: 404}
  - close: reset
translated, get: 

== {status, headers, body} = get("/a")
post("/b", [], body)
  - get: /a
  - post: /b
  - close: reset
approximated, get: Stressgrid takes an answer of any status; here others than 2xx are errors, after which a user rests for 1s and begins again
not supported, body: the whole answer is not kept: use a part of its JSON
translated, post: 

== {200, _, {:json, json}} = get("/a")
get("/b/#{json["x"]["y"]}/#{json["list"]}")
  - get: {path: /a, expect: 200, capture: {"y": /x/y, list: /list}}
  - get: /b/${y}/${list}
  - close: reset
translated, get: 
approximated, get: Stressgrid takes an answer of any status; here others than 2xx are errors, after which a user rests for 1s and begins again

== {_, _, {:json, %{"id" => id}}} = get("/a")
get("/b/#{id}")
  - get: {path: /a, capture: {id: /id}}
  - get: /b/${id}
  - close: reset
approximated, get: Stressgrid takes an answer of any status; here others than 2xx are errors, after which a user rests for 1s and begins again
translated, get: 

== {_, _, body} = get("/a")
{:json, json} = body
get("/b/#{json["id"]}")
  - get: {path: /a, capture: {id: /id}}
  - get: /b/${id}
  - close: reset
approximated, get: Stressgrid takes an answer of any status; here others than 2xx are errors, after which a user rests for 1s and begins again
translated, match: 
translated, get: 

== {:error, _} = get("/a")
  - get: /a
  - close: reset
approximated, get: Stressgrid takes an answer of any status; here others than 2xx are errors, after which a user rests for 1s and begins again
"#);
}

#[test]
fn web_sockets() {
    insta::assert_snapshot!(steps(&[
        "ws_upgrade(\"/a\")",
        "{:ok, _} = ws_upgrade(\"/a\", [{\"origin\", \"http://x\"}, {\"sec-websocket-key\", \"x\"}])",
        "ws_upgrade(\"/a\")\nws_upgrade(\"/b\")",
        "ws_upgrade(\"/a\")\nget(\"/b\")",
        "ws_upgrade(\"/a\")\nws_send({:text, \"a\"})\nws_send({:binary, <<1>>})",
        "ws_upgrade(\"/a\")\nws_send_text(\"a\")\nws_send_binary(\"ab\")\nws_send_json(%{a: 1})",
        "ws_upgrade(\"/a\")\nws_receive()",
        "ws_upgrade(\"/a\")\nws_send_text(\"a\")\nws_receive(100)",
        "ws_upgrade(\"/a\")\n{:ok, {:text, \"a\"}} = ws_receive()",
        "ws_upgrade(\"/a\")\n{:ok, text} = ws_receive_text()\nws_send_text(text)",
        "ws_upgrade(\"/a\")\n{:ok, \"a\"} = ws_receive_text(5000)",
        "ws_upgrade(\"/a\")\nws_receive_binary()",
        "ws_upgrade(\"/a\")\nws_receive_json()",
        "ws_upgrade(\"/a\")\n{:ok, %{\"a\" => 1, \"b\" => %{\"c\" => c}}} = ws_receive_json()\n\
         ws_send_text(c)",
        "ws_upgrade(\"/a\")\n{:ok, json} = ws_receive_json()\nws_send_json(%{id: json[\"id\"]})",
        "ws_upgrade(\"/a\")\nws_fetch()\nws_fetch_text()\nws_fetch_binary()\nws_fetch_json()",
        "ws_upgrade(\"/a\")\n{:ok, text} = ws_fetch_text()",
        "ws_upgrade(\"/a\")\ninit_second_connection()",
    ]), @r#"
== ws_upgrade("/a")
  - connect: {path: /a}
  - close
translated, ws_upgrade: 

== {:ok, _} = ws_upgrade("/a", [{"origin", "http://x"}, {"sec-websocket-key", "x"}])
  - connect: {path: /a, headers: {origin: http://x}}
  - close
not needed, header sec-websocket-key: throng sets this field itself
translated, ws_upgrade: 

== ws_upgrade("/a")
ws_upgrade("/b")
  - connect: {path: /a}
  - close
translated, ws_upgrade: 
not supported, ws_upgrade: a script opens its WebSocket once: write it outside of loops

== ws_upgrade("/a")
get("/b")
  - connect: {path: /a}
  - close
translated, ws_upgrade: 
not supported, get: Stressgrid sends no request after `ws_upgrade`: move it before

== ws_upgrade("/a")
ws_send({:text, "a"})
ws_send({:binary, <<1>>})
  - connect: {path: /a}
  - send: a
  - send: {binary: "01"}
  - close
translated, ws_upgrade: 
translated, ws_send: 
translated, ws_send: 

== ws_upgrade("/a")
ws_send_text("a")
ws_send_binary("ab")
ws_send_json(%{a: 1})
  - connect: {path: /a}
  - send: a
  - send: {binary: "61 62"}
  - send: {json: {a: 1}}
  - close
translated, ws_upgrade: 
translated, ws_send_text: 
translated, ws_send_binary: 
translated, ws_send_json: 

== ws_upgrade("/a")
ws_receive()
  - connect: {path: /a}
  - receive: {regex: ".*"}
  - close
translated, ws_upgrade: 
translated, ws_receive: 

== ws_upgrade("/a")
ws_send_text("a")
ws_receive(100)
  - connect: {path: /a}
  - send: a
  - expect: {regex: ".*", timeout: 100ms}
  - close
translated, ws_upgrade: 
translated, ws_send_text: 
translated, ws_receive: 

== ws_upgrade("/a")
{:ok, {:text, "a"}} = ws_receive()
  - connect: {path: /a}
  - receive: a
  - close
translated, ws_upgrade: 
translated, ws_receive: 

== ws_upgrade("/a")
{:ok, text} = ws_receive_text()
ws_send_text(text)
  - connect: {path: /a}
  - receive: {regex: ".*"}
  - close
translated, ws_upgrade: 
translated, ws_receive_text: 
not supported, ws_send_text: the message is not kept: `capture` a part of it by hand

== ws_upgrade("/a")
{:ok, "a"} = ws_receive_text(5000)
  - connect: {path: /a}
  - receive: a
  - close
translated, ws_upgrade: 
translated, ws_receive_text: 

== ws_upgrade("/a")
ws_receive_binary()
  - connect: {path: /a}
  - close
translated, ws_upgrade: 
not supported, ws_receive_binary: write what must come: `expect: {binary: de ad}`, or how much: `expect: {bytes: 4}`

== ws_upgrade("/a")
ws_receive_json()
  - connect: {path: /a}
  - receive: {json: {}}
  - close
translated, ws_upgrade: 
translated, ws_receive_json: 

== ws_upgrade("/a")
{:ok, %{"a" => 1, "b" => %{"c" => c}}} = ws_receive_json()
ws_send_text(c)
  - connect: {path: /a}
  - receive: {json: {a: 1}, capture: {c: /b/c}}
  - send: ${c}
  - close
translated, ws_upgrade: 
translated, ws_receive_json: 
translated, ws_send_text: 

== ws_upgrade("/a")
{:ok, json} = ws_receive_json()
ws_send_json(%{id: json["id"]})
  - connect: {path: /a}
  - receive: {json: {}, capture: {id: /id}}
  - send: {json: {id: "${id}"}}
  - close
translated, ws_upgrade: 
translated, ws_receive_json: 
translated, ws_send_json: 

== ws_upgrade("/a")
ws_fetch()
ws_fetch_text()
ws_fetch_binary()
ws_fetch_json()
  - connect: {path: /a}
  - close
translated, ws_upgrade: 
not needed, ws_fetch: what no step waits for is set aside
not needed, ws_fetch_text: what no step waits for is set aside
not needed, ws_fetch_binary: what no step waits for is set aside
not needed, ws_fetch_json: what no step waits for is set aside

== ws_upgrade("/a")
{:ok, text} = ws_fetch_text()
  - connect: {path: /a}
  - close
translated, ws_upgrade: 
not supported, ws_fetch_text: a scenario does not look whether a message is there: write `receive` where one must come

== ws_upgrade("/a")
init_second_connection()
  - connect: {path: /a}
  - close
translated, ws_upgrade: 
not supported, init_second_connection: a user has one connection: make a class of users for the other
"#);
}

#[test]
fn tcp() {
    let script = |body: &str| format!("# sgcli run a b --target-protocol tcp\n{body}");
    let scripts = [
        script("send(\"a\\n\")"),
        script("send(<<1, 2, 255>>)"),
        script("send([\"a\", \"b\"])"),
        script("send(random_bytes(1024))"),
        script("send(payload(5))"),
        script("send(\"a\")\nrecv()"),
        script("send(\"a\")\n{:ok, \"b\"} = recv(100)"),
        script("{:ok, data} = recv()\nsend(data)"),
    ];
    let scripts: Vec<&str> = scripts.iter().map(String::as_str).collect();
    insta::assert_snapshot!(steps(&scripts), @r#"
== # sgcli run a b --target-protocol tcp
send("a\n")
  - connect
  - send: "a\n"
  - close
translated, --target-protocol: 
translated, send: 

== # sgcli run a b --target-protocol tcp
send(<<1, 2, 255>>)
  - connect
  - send: {hex: "01 02 ff"}
  - close
translated, --target-protocol: 
translated, send: 

== # sgcli run a b --target-protocol tcp
send(["a", "b"])
  - connect
  - send: ab
  - close
translated, --target-protocol: 
translated, send: 

== # sgcli run a b --target-protocol tcp
send(random_bytes(1024))
  - connect
  - send: {random: 1KiB}
  - close
translated, --target-protocol: 
translated, random_bytes: 
translated, send: 

== # sgcli run a b --target-protocol tcp
send(payload(5))
  - connect
  - send: {random: 5}
  - close
translated, --target-protocol: 
translated, payload: 
translated, send: 

== # sgcli run a b --target-protocol tcp
send("a")
recv()
  - connect
  - send: a
  - expect: {bytes: 1}
  - close
translated, --target-protocol: 
translated, send: 
approximated, recv: recv takes any data, and so does the scenario: it waits for one byte and ignores the rest; if you know the answer, write `expect: ok`

== # sgcli run a b --target-protocol tcp
send("a")
{:ok, "b"} = recv(100)
  - connect
  - send: a
  - expect: {text: b, timeout: 100ms}
  - close
translated, --target-protocol: 
translated, send: 
translated, recv: 

== # sgcli run a b --target-protocol tcp
{:ok, data} = recv()
send(data)
  - connect
  - receive: {bytes: 1}
  - close
translated, --target-protocol: 
approximated, recv: recv takes any data, and so does the scenario: it waits for one byte and ignores the rest; if you know the answer, write `expect: ok`
not supported, send: the answer is not kept: `capture` a part of it by hand
"#);
}

#[test]
fn common_functions() {
    insta::assert_snapshot!(steps(&[
        "delay(1500)",
        "delay(1000, 0.125)",
        "delay(1000, 1)",
        "delay(Enum.random(10..20))",
        "delay(:rand.uniform(20))",
        "ms = 20\ndelay(ms * 2 + 1)",
        "start_timing(:a)\ndelay(1)\nstop_timing(:a)",
        "start_timing(:a)\nstart_timing(:b)\ndelay(1)\nstop_timing(:b)\nstop_timing(:a)",
        "start_timing(:a)\nstart_timing(:b)\ndelay(1)\nstop_timing(:a)\nstop_timing(:b)",
        "start_timing(:a)\ndelay(1)\nstop_start_timing(:a, :b)\ndelay(2)\nstop_timing(:b)",
        "start_timing(:a)\ndelay(1)\nstop_start_timing(:a)\ndelay(2)\nstop_timing(:a)",
        "start_timing(:a)\ndelay(1)",
        "inc_counter(:a)\ninc_counter(:a, 2)\ndelay(1)",
        "get(\"/#{random_bits(8)}\")",
        "get(\"/#{Enum.random([\"a\", \"b\"])}/#{UUID.uuid4()}\")",
        "get(\"/#{System.system_time(:second)}/#{Base.encode64(\"a\")}\")",
        "id = Enum.random(1..9)\nget(\"/#{id}/#{id}\")",
        "name = \"a\" <> \"${b}\"\nput(\"/\", [], name)",
        "Process.sleep(5)\n:timer.sleep(5)",
        "IO.puts(\"a\")\nto_string(1)\ndelay(1)",
        "String.upcase(\"a\")\ndelay(1)",
        "delay 10; delay 20",
    ]), @r#"
== delay(1500)
  - connect
  - wait: 1.5s
  - close
suspicious, protocol http: the script sends no request, and an HTTP device connects with its first: it would open no connection; the scenario opens plain TCP connections, as `--target-protocol tcp` does
translated, delay: 

== delay(1000, 0.125)
  - connect
  - wait: 1s ±12.5%
  - close
suspicious, protocol http: the script sends no request, and an HTTP device connects with its first: it would open no connection; the scenario opens plain TCP connections, as `--target-protocol tcp` does
translated, delay: 

== delay(1000, 1)
  - connect
  - wait: 1s ±100%
  - close
suspicious, protocol http: the script sends no request, and an HTTP device connects with its first: it would open no connection; the scenario opens plain TCP connections, as `--target-protocol tcp` does
translated, delay: 

== delay(Enum.random(10..20))
  - connect
  - wait: uniform(10ms, 20ms)
  - close
suspicious, protocol http: the script sends no request, and an HTTP device connects with its first: it would open no connection; the scenario opens plain TCP connections, as `--target-protocol tcp` does
translated, delay: 

== delay(:rand.uniform(20))
  - connect
  - wait: uniform(1ms, 20ms)
  - close
suspicious, protocol http: the script sends no request, and an HTTP device connects with its first: it would open no connection; the scenario opens plain TCP connections, as `--target-protocol tcp` does
translated, delay: 

== ms = 20
delay(ms * 2 + 1)
  - connect
  - wait: 41ms
  - close
suspicious, protocol http: the script sends no request, and an HTTP device connects with its first: it would open no connection; the scenario opens plain TCP connections, as `--target-protocol tcp` does
translated, match: 
translated, delay: 

== start_timing(:a)
delay(1)
stop_timing(:a)
  - connect
  - transaction: {name: a, do: [wait: 1ms]}
  - close
suspicious, protocol http: the script sends no request, and an HTTP device connects with its first: it would open no connection; the scenario opens plain TCP connections, as `--target-protocol tcp` does
translated, start_timing: 
translated, delay: 

== start_timing(:a)
start_timing(:b)
delay(1)
stop_timing(:b)
stop_timing(:a)
  - connect
  - transaction:
      name: a
      do:
        - transaction: {name: b, do: [wait: 1ms]}
  - close
suspicious, protocol http: the script sends no request, and an HTTP device connects with its first: it would open no connection; the scenario opens plain TCP connections, as `--target-protocol tcp` does
translated, start_timing: 
translated, start_timing: 
translated, delay: 

== start_timing(:a)
start_timing(:b)
delay(1)
stop_timing(:a)
stop_timing(:b)
  - connect
  - wait: 1ms
  - close
suspicious, protocol http: the script sends no request, and an HTTP device connects with its first: it would open no connection; the scenario opens plain TCP connections, as `--target-protocol tcp` does
approximated, start_timing: its other end is in another list of statements, or the times overlap: left out; write a `transaction`
approximated, start_timing: its other end is in another list of statements, or the times overlap: left out; write a `transaction`
translated, delay: 
approximated, stop_timing: its other end is in another list of statements, or the times overlap: left out; write a `transaction`
approximated, stop_timing: its other end is in another list of statements, or the times overlap: left out; write a `transaction`

== start_timing(:a)
delay(1)
stop_start_timing(:a, :b)
delay(2)
stop_timing(:b)
  - connect
  - transaction: {name: a, do: [wait: 1ms]}
  - transaction: {name: b, do: [wait: 2ms]}
  - close
suspicious, protocol http: the script sends no request, and an HTTP device connects with its first: it would open no connection; the scenario opens plain TCP connections, as `--target-protocol tcp` does
translated, start_timing: 
translated, delay: 
translated, start_timing: 
translated, delay: 

== start_timing(:a)
delay(1)
stop_start_timing(:a)
delay(2)
stop_timing(:a)
  - connect
  - transaction: {name: a, do: [wait: 1ms]}
  - transaction: {name: a, do: [wait: 2ms]}
  - close
suspicious, protocol http: the script sends no request, and an HTTP device connects with its first: it would open no connection; the scenario opens plain TCP connections, as `--target-protocol tcp` does
translated, start_timing: 
translated, delay: 
translated, start_timing: 
translated, delay: 

== start_timing(:a)
delay(1)
  - connect
  - wait: 1ms
  - close
suspicious, protocol http: the script sends no request, and an HTTP device connects with its first: it would open no connection; the scenario opens plain TCP connections, as `--target-protocol tcp` does
approximated, start_timing: its other end is in another list of statements, or the times overlap: left out; write a `transaction`
translated, delay: 

== inc_counter(:a)
inc_counter(:a, 2)
delay(1)
  - connect
  - wait: 1ms
  - close
suspicious, protocol http: the script sends no request, and an HTTP device connects with its first: it would open no connection; the scenario opens plain TCP connections, as `--target-protocol tcp` does
not needed, inc_counter: throng counts what each kind of step does; a step with a `name` has a row of its own
not needed, inc_counter: throng counts what each kind of step does; a step with a `name` has a row of its own
translated, delay: 

== get("/#{random_bits(8)}")
  - get: /${random(0,255)}
  - close: reset
approximated, get: Stressgrid takes an answer of any status; here others than 2xx are errors, after which a user rests for 1s and begins again

== get("/#{Enum.random(["a", "b"])}/#{UUID.uuid4()}")
  - get: "/${choice('a', 'b')}/${uuid()}"
  - close: reset
approximated, get: Stressgrid takes an answer of any status; here others than 2xx are errors, after which a user rests for 1s and begins again

== get("/#{System.system_time(:second)}/#{Base.encode64("a")}")
  - get: "/${time('s')}/${base64('a')}"
  - close: reset
approximated, get: Stressgrid takes an answer of any status; here others than 2xx are errors, after which a user rests for 1s and begins again

== id = Enum.random(1..9)
get("/#{id}/#{id}")
  - set: {id: "${random(1,9)}"}
  - get: /${id}/${id}
  - close: reset
translated, match: 
approximated, get: Stressgrid takes an answer of any status; here others than 2xx are errors, after which a user rests for 1s and begins again

== name = "a" <> "${b}"
put("/", [], name)
  - put: {path: /, body: "a$${b}"}
  - close: reset
translated, match: 
approximated, put: Stressgrid takes an answer of any status; here others than 2xx are errors, after which a user rests for 1s and begins again

== Process.sleep(5)
:timer.sleep(5)
  - connect
  - wait: 5ms
  - wait: 5ms
  - close
suspicious, protocol http: the script sends no request, and an HTTP device connects with its first: it would open no connection; the scenario opens plain TCP connections, as `--target-protocol tcp` does
translated, delay: 
translated, delay: 

== IO.puts("a")
to_string(1)
delay(1)
  - connect
  - wait: 1ms
  - close
suspicious, protocol http: the script sends no request, and an HTTP device connects with its first: it would open no connection; the scenario opens plain TCP connections, as `--target-protocol tcp` does
not needed, IO.puts: `throng try` shows what a user does
not needed, to_string: its value is not used
translated, delay: 

== String.upcase("a")
delay(1)
  - connect
  - wait: 1ms
  - close
suspicious, protocol http: the script sends no request, and an HTTP device connects with its first: it would open no connection; the scenario opens plain TCP connections, as `--target-protocol tcp` does
not supported, String.upcase: the scenario has no such function: write what it does as steps
translated, delay: 

== delay 10; delay 20
  - connect
  - wait: 10ms
  - wait: 20ms
  - close
suspicious, protocol http: the script sends no request, and an HTTP device connects with its first: it would open no connection; the scenario opens plain TCP connections, as `--target-protocol tcp` does
translated, delay: 
translated, delay:
"#);
}

#[test]
fn control() {
    insta::assert_snapshot!(steps(&[
        "for _ <- 1..3 do\n  delay(1)\nend",
        "for i <- 1..3 do\n  get(\"/#{i}\")\nend",
        "for i <- [\"a\", \"b\"] do\n  get(\"/#{i}\")\nend",
        "for i <- 1..1000 do\n  get(\"/#{i}\")\nend",
        "Enum.each(1..3, fn _ -> delay(1) end)",
        "Enum.each([1, 2], fn n ->\n  delay(n)\n  get(\"/#{n}\")\nend)",
        "Enum.map(1..3, fn _ -> delay(1) end)\ndelay(1)",
        "n = Enum.random(1..3)\nif n == 1 do\n  delay(1)\nend",
        "n = Enum.random(1..3)\nif n >= 2 do\n  delay(1)\nelse\n  delay(2)\nend",
        "n = Enum.random(1..3)\nunless n == 2 do\n  delay(1)\nend",
        "if :rand.uniform() < 0.5 do\n  delay(1)\nend",
        "if true do\n  delay(1)\nend\ndelay(2)",
        "if :rand.uniform() < 0.5 do\n  ws_upgrade(\"/\")\nend\ndelay(1)",
        "case get(\"/\") do\n  {200, _, _} -> delay(1)\n  _ -> delay(2)\nend\ndelay(3)",
        "[a, b] = [1, 2]\ndelay(1)",
        "x = params[\"missing\"]\nget(\"/#{x}\")",
    ]), @r#"
== for _ <- 1..3 do
  delay(1)
end
  - connect
  - repeat: {times: 3, do: [wait: 1ms]}
  - close
suspicious, protocol http: the script sends no request, and an HTTP device connects with its first: it would open no connection; the scenario opens plain TCP connections, as `--target-protocol tcp` does
translated, for: 
translated, delay: 

== for i <- 1..3 do
  get("/#{i}")
end
  - foreach: {name: i, in: [1, 2, 3], do: [get: "/${i}"]}
  - close: reset
translated, for: 
approximated, get: Stressgrid takes an answer of any status; here others than 2xx are errors, after which a user rests for 1s and begins again

== for i <- ["a", "b"] do
  get("/#{i}")
end
  - foreach: {name: i, in: [a, b], do: [get: "/${i}"]}
  - close: reset
translated, for: 
approximated, get: Stressgrid takes an answer of any status; here others than 2xx are errors, after which a user rests for 1s and begins again

== for i <- 1..1000 do
  get("/#{i}")
end
  - close: reset
not supported, for: `foreach` takes at most 100 values: write a `repeat`, with `${random(a,b)}` in place of the value

== Enum.each(1..3, fn _ -> delay(1) end)
  - connect
  - repeat: {times: 3, do: [wait: 1ms]}
  - close
suspicious, protocol http: the script sends no request, and an HTTP device connects with its first: it would open no connection; the scenario opens plain TCP connections, as `--target-protocol tcp` does
translated, delay: 
translated, Enum.each: 

== Enum.each([1, 2], fn n ->
  delay(n)
  get("/#{n}")
end)
  - foreach: {name: "n", in: [1, 2], do: [get: "/${n}"]}
  - close: reset
translated, Enum.each: 
not supported, delay: a think time is known before the run: write it, or `uniform(1s, 2s)`
approximated, get: Stressgrid takes an answer of any status; here others than 2xx are errors, after which a user rests for 1s and begins again

== Enum.map(1..3, fn _ -> delay(1) end)
delay(1)
  - connect
  - wait: 1ms
  - close
suspicious, protocol http: the script sends no request, and an HTTP device connects with its first: it would open no connection; the scenario opens plain TCP connections, as `--target-protocol tcp` does
not supported, Enum.map: the scenario has no such function: write what it does as steps
translated, delay: 

== n = Enum.random(1..3)
if n == 1 do
  delay(1)
end
  - connect
  - set: {"n": "${random(1,3)}"}
  - if: {condition: "${n} == 1", do: [wait: 1ms]}
  - close
suspicious, protocol http: the script sends no request, and an HTTP device connects with its first: it would open no connection; the scenario opens plain TCP connections, as `--target-protocol tcp` does
translated, match: 
translated, if: 
translated, delay: 

== n = Enum.random(1..3)
if n >= 2 do
  delay(1)
else
  delay(2)
end
  - connect
  - set: {"n": "${random(1,3)}"}
  - if: {condition: "${n} >= 2", do: [wait: 1ms], else: [wait: 2ms]}
  - close
suspicious, protocol http: the script sends no request, and an HTTP device connects with its first: it would open no connection; the scenario opens plain TCP connections, as `--target-protocol tcp` does
translated, match: 
translated, if: 
translated, delay: 
translated, delay: 

== n = Enum.random(1..3)
unless n == 2 do
  delay(1)
end
  - connect
  - set: {"n": "${random(1,3)}"}
  - if: {condition: "${n} != 2", do: [wait: 1ms]}
  - close
suspicious, protocol http: the script sends no request, and an HTTP device connects with its first: it would open no connection; the scenario opens plain TCP connections, as `--target-protocol tcp` does
translated, match: 
translated, unless: 
translated, delay: 

== if :rand.uniform() < 0.5 do
  delay(1)
end
  - connect
  - if: {condition: "${random(1,1000000)} <= 500000", do: [wait: 1ms]}
  - close
suspicious, protocol http: the script sends no request, and an HTTP device connects with its first: it would open no connection; the scenario opens plain TCP connections, as `--target-protocol tcp` does
translated, if: 
translated, delay: 

== if true do
  delay(1)
end
delay(2)
  - connect
  - wait: 2ms
  - close
suspicious, protocol http: the script sends no request, and an HTTP device connects with its first: it would open no connection; the scenario opens plain TCP connections, as `--target-protocol tcp` does
not supported, if: write the condition by hand: `if: {condition, do, else}` compares texts and numbers
translated, delay: 

== if :rand.uniform() < 0.5 do
  ws_upgrade("/")
end
delay(1)
  - wait: 1ms
not supported, if: write `ws_upgrade` before the branch
translated, delay: 

== case get("/") do
  {200, _, _} -> delay(1)
  _ -> delay(2)
end
delay(3)
  - connect
  - wait: 3ms
  - close
suspicious, protocol http: the script sends no request, and an HTTP device connects with its first: it would open no connection; the scenario opens plain TCP connections, as `--target-protocol tcp` does
not supported, case: write its steps by hand: `if` and `choose` are steps
translated, delay: 

== [a, b] = [1, 2]
delay(1)
  - connect
  - wait: 1ms
  - close
suspicious, protocol http: the script sends no request, and an HTTP device connects with its first: it would open no connection; the scenario opens plain TCP connections, as `--target-protocol tcp` does
not supported, pattern: write it as a name alone, or the value in its place
translated, delay: 

== x = params["missing"]
get("/#{x}")
  - get: /
  - close: reset
not supported, `x`: the parameter `missing` has no value: add a comment to the script, `# sgcli run NAME SCRIPT --script-params '{"missing": ...}'`
not supported, path: this value is not kept: `capture` a part of it by hand
approximated, get: Stressgrid takes an answer of any status; here others than 2xx are errors, after which a user rests for 1s and begins again
"#);
}

#[test]
fn protocols() {
    let command = |options: &str| format!("# sgcli run a b {options}\nget(\"/\")");
    let scripts = [
        command("--target-protocol http10"),
        command("--target-protocol https"),
        command("--target-protocol http2"),
        command("-t a.test,b.test -c c"),
        command("--size 1005 --target-port=81"),
    ];
    let scripts: Vec<&str> = scripts.iter().map(String::as_str).collect();
    insta::assert_snapshot!(steps(&scripts), @r#"
== # sgcli run a b --target-protocol http10
get("/")
  - get: /
  - close: reset
translated, --target-protocol: 
approximated, protocol http10: throng speaks HTTP/1.1, and keeps connections open
approximated, get: Stressgrid takes an answer of any status; here others than 2xx are errors, after which a user rests for 1s and begins again

== # sgcli run a b --target-protocol https
get("/")
  - get: /
  - close: reset
translated, --target-protocol: 
not supported, protocol https: throng speaks HTTP/1.1 without TLS: load a port behind the TLS terminator
approximated, get: Stressgrid takes an answer of any status; here others than 2xx are errors, after which a user rests for 1s and begins again

== # sgcli run a b --target-protocol http2
get("/")
  - get: /
  - close: reset
translated, --target-protocol: 
not supported, protocol http2: throng speaks HTTP/1.1 without TLS: load a port behind the TLS terminator
approximated, get: Stressgrid takes an answer of any status; here others than 2xx are errors, after which a user rests for 1s and begins again

== # sgcli run a b -t a.test,b.test -c c
get("/")
  - get: /
  - close: reset
not supported, --target-hosts: a scenario has one target: give a name that stands for all addresses; users take them in turn
not needed, --coordinator-host: throng needs no coordinator; start it on each machine
approximated, get: Stressgrid takes an answer of any status; here others than 2xx are errors, after which a user rests for 1s and begins again

== # sgcli run a b --size 1005 --target-port=81
get("/")
  - get: /
  - close: reset
translated, --size: 
translated, --target-port: 
approximated, size: Stressgrid starts the same number of devices in each step: 1000 of 1005; so does the scenario
approximated, get: Stressgrid takes an answer of any status; here others than 2xx are errors, after which a user rests for 1s and begins again
"#);
}
