//! Each construct of the reference: what the scenario has for it, and what the report says.

use throng_import::Fidelity;

use crate::import_text;

/// Shows the steps of these scripts, and the notes of the report.
fn steps(scripts: &[&str]) -> String {
    let show = |script: &&str| {
        let import = import_text(script, "script.exs").unwrap_or_else(|error| panic!("{error}"));
        let (_, steps) = import.scenario.split_once("user:\n").unwrap();
        // What is the same for all scripts without a command.
        let is_own = |construct: &str| !["ramps", "sgcli run"].contains(&construct);
        let notes = import.fidelity.entries.iter().filter(|entry| is_own(&entry.construct));
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
        "post(\"/a\", [], {:json, %{a: \"[not a list\"}})",
        "post(\"/a\", [], {:bert, {:a}})",
        "{200, _, _} = get(\"/a\")",
        "{404, headers, body} = get(\"/a\")",
        "{status, headers, body} = get(\"/a\")\npost(\"/b\", [], body)",
        "{status, headers, _} = get(\"/a\")\n{_, id} = List.keyfind(headers, \"X-Id\", 0)\n\
         get(\"/b/#{id}\")\nget(\"/b/#{status}\")",
        "{200, _, {:json, json}} = get(\"/a\")\nget(\"/b/#{json[\"x\"][\"y\"]}/#{json[\"list\"]}\")",
        "{_, _, {:json, %{\"id\" => id}}} = get(\"/a\")\nget(\"/b/#{id}\")",
        "{_, _, body} = get(\"/a\")\n{:json, json} = body\nget(\"/b/#{json[\"id\"]}\")",
        "{:error, _} = get(\"/a\")",
    ]));
}

#[test]
fn web_sockets() {
    insta::assert_snapshot!(steps(&[
        "ws_upgrade(\"/a\")",
        "{:ok, _} = ws_upgrade(\"/a\", [{\"origin\", \"http://x\"}, \
         {\"sec-websocket-key\", \"x\"}])",
        "ws_upgrade(\"/a\")\nws_upgrade(\"/b\")",
        "ws_upgrade(\"/a\")\nget(\"/b\")",
        "ws_upgrade(\"/a\")\nws_send({:text, \"a\"})",
        "ws_upgrade(\"/a\")\nws_send_text(\"a\")\nws_send_binary(\"ab\")\nws_send_json(%{a: 1})",
        "ws_upgrade(\"/a\")\nws_receive()",
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
    ]));
}

#[test]
fn tcp() {
    let script = |body: &str| format!("# sgcli run a b --target-protocol tcp\n{body}");
    let scripts = [
        script("send(\"a\\n\")"),
        script("send(<<1, 2, 255>>)"),
        script("send(random_bytes(1024))"),
        script("send(\"a\")\nrecv()"),
        script("send(\"a\")\n{:ok, \"b\"} = recv(100)"),
        script("{:ok, data} = recv()\nsend(data)"),
        script("ws_upgrade(\"/a\")\nget(\"/\")"),
    ];
    let scripts: Vec<&str> = scripts.iter().map(String::as_str).collect();
    insta::assert_snapshot!(steps(&scripts));
}

#[test]
fn common_functions() {
    insta::assert_snapshot!(steps(&[
        "delay(1500)",
        "delay(1000, 0.125)",
        "delay(1000, 1)",
        "delay(Enum.random(10..20))",
        "start_timing(:a)\ndelay(1)\nstop_timing(:a)",
        "start_timing(:a)\nstart_timing(:b)\ndelay(1)\nstop_timing(:b)\nstop_timing(:a)",
        "start_timing(:a)\nstart_timing(:b)\ndelay(1)\nstop_timing(:a)\nstop_timing(:b)",
        "start_timing(:a)\ndelay(1)\nstop_start_timing(:a, :b)\ndelay(2)\nstop_timing(:b)",
        "start_timing(:a)\ndelay(1)\nstop_start_timing(:a)\ndelay(2)\nstop_timing(:a)",
        "start_timing(:a)\ndelay(1)",
        "inc_counter(:a)\ninc_counter(:a, 2)\ndelay(1)",
        "get(\"/#{random_bits(8)}\")",
        "get(\"/#{UUID.uuid4()}\")",
        "id = Base.encode16(random_bytes(4))\nget(\"/#{id}/#{id}\")",
        "name = \"a\" <> \"${b}\"\nput(\"/\", [], name)",
        "Process.sleep(5)\n:timer.sleep(5)",
        "IO.puts(\"a\")\nto_string(1)\ndelay(1)",
        "String.upcase(\"a\")\ndelay(1)",
        "delay 10; delay 20",
    ]));
}

#[test]
fn control() {
    insta::assert_snapshot!(steps(&[
        "for _ <- 1..3 do\n  delay(1)\nend\ndelay(2)",
        "Enum.each(1..3, fn _ -> delay(1) end)",
        "Enum.each([1, 2], fn _ ->\n  delay(1)\nend)\ndelay(2)",
        "Enum.map(1..3, fn _ -> delay(1) end)\ndelay(1)",
        "if true do\n  delay(1)\nelse\n  if false do\n    delay(2)\n  end\nend\ndelay(3)",
        "case get(\"/\") do\n  {200, _, _} -> delay(1)\n  _ -> delay(2)\nend\ndelay(3)",
        "[a, b] = [1, 2]\ndelay(1)",
        "x = params[\"missing\"]\nget(\"/#{x}\")",
    ]));
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
    insta::assert_snapshot!(steps(&scripts));
}

#[test]
fn pipes_and_patterns() {
    insta::assert_snapshot!(steps(&[
        "0..2 |> Enum.each(fn _ ->\n  get(\"/a\")\n  delay(10)\nend)",
        "1..3\n|> Enum.each(fn i -> get(\"/a/#{i}\")\nend)",
        "{status, _, _} = get(\"/a\")\ntrue = status in [200, 201]",
        "{200, _, {:json, json}} = get(\"/a\")\nroom = \"a\"\n^room = Map.get(json, \"room\")",
        "{200, _, {:json, json}} = get(\"/a\")\n%{\"id\" => id} = json\nget(\"/b/#{id}\")",
        "room = \"a\"\nws_upgrade(\"/\")\n{:ok, %{\"room\" => ^room}} = ws_receive_json()",
        "get(\"/a?k=#{Base.url_encode64(random_bits(24), padding: false)}\")",
        "get(\"/\")\nStream.repeatedly(&f/0) |> Enum.each(fn\n  {:ok, _} -> :ok\n  nil ->\n    \
         :ok\nend)",
    ]));
}

#[test]
fn arrays_in_answers() {
    insta::assert_snapshot!(steps(&[
        "ws_upgrade(\"/\")\nws_send_json([\"1\", \"r\"])\n{:ok, [_, \"1\", _, \"phx_reply\", \
         %{\"status\" => \"ok\"}]} = ws_receive_json()",
        "ws_upgrade(\"/\")\n{:ok, [_, ref, %{\"token\" => t}]} = ws_receive_json()\n\
         ws_send_json([ref, t])",
        "ws_upgrade(\"/\")\n{:ok, [1, nil, [], %{}]} = ws_receive_json()",
        "ws_upgrade(\"/\")\n{:ok, \"pong\"} = ws_receive_json()",
        "ws_upgrade(\"/\")\n{:ok, [\"a\" <> rest, \"b\" <> _]} = ws_receive_json()",
        "{200, _, {:json, %{\"ok\" => true, \"id\" => id}}} = get(\"/a\")\nget(\"/#{id}\")",
    ]));
}

/// In Elixir, both parts must be equal.
#[test]
fn a_name_that_stands_twice_in_a_pattern_is_told() {
    let places = |script: &str| {
        let import = import_text(script, "script.exs").unwrap_or_else(|error| panic!("{error}"));
        let told = import.fidelity.of(Fidelity::NotSupported);
        told.map(|entry| (entry.line, entry.note.clone())).collect::<Vec<_>>()
    };
    let twice = [
        "{:ok, [a, a]} = ws_receive_json()",
        "{:ok, %{\"x\" => a,\n\"y\" => [1, a]}} = ws_receive_json()",
        "{:ok, [_a, _a]} = ws_receive_json()",
    ];
    for (script, line) in twice.iter().zip([2, 3, 2]) {
        let places = places(&format!("ws_upgrade(\"/\")\n{script}"));
        let [(told, note)] = &places[..] else { panic!("{script}: {places:?}") };
        assert_eq!(*told, line, "{script}");
        assert!(note.contains("stands twice"), "{script}: {note}");
    }
    let answer = "{status, _, {:json, %{\"code\" => status}}} = get(\"/a\")";
    assert_eq!(places(answer).len(), 1);
    for once in [
        "{:ok, [_, _]} = ws_receive_json()",
        "a = 1\n{:ok, [a, ^a]} = ws_receive_json()",
        "{:ok, [a]} = ws_receive_json()\n{:ok, [a]} = ws_receive_json()",
    ] {
        assert_eq!(places(&format!("ws_upgrade(\"/\")\n{once}")), [], "{once}");
    }
}
