//! Broken files: each mistake has its place and a way out.

use crate::show_mistakes;

#[test]
fn of_scripts() {
    let nested = format!("x = {}1{}", "(".repeat(60), ")".repeat(60));
    let files = [
        "delay(1000",
        "delay(\"a\")",
        "delay(-5)",
        "delay(1000, 2)",
        "delay()",
        "delay(99999999999999999)",
        "get(\"/a)",
        "get()",
        "get(\"a\")",
        "get(\"/a b\")",
        "get(\"/a\", 5)",
        "get(\"/a\", [{\"a b\", \"c\"}])",
        "get(\"/a\", [{\"a\", \"b\\nc\"}])",
        "get(\"/a\") get(\"/b\")",
        "get(\"/a\") |> 5",
        "get(\"/#{\")",
        "get(\"/#{1 2}\")",
        "gett(\"/a\")",
        "ws_upgrade()",
        "ws_upgrad(\"/a\")",
        "ws_send_text(\"a\")",
        "ws_upgrade(\"/a\")\nws_send_text(\"\")",
        "ws_upgrade(\"/a\")\nws_send_text()",
        "ws_upgrade(\"/a\")\nws_receive_text(0)",
        "ws_upgrade(\"/a\")\nsend(\"a\")",
        "get(\"/\")\nrecv()",
        "for _ <- 1..3 do\n  delay(1)",
        "if true do\n  delay(1)\nelse\n",
        "Enum.each(1..3, fn _ -> delay(1)",
        "case 1 do\n  1 -> delay(1)\n",
        "%{a: 1",
        "%{1 + }",
        "x = [1, 2",
        "x = 'a'",
        "defmodule A do\nend",
        "def a do\nend",
        "x = \"\"\"\nabc",
        &nested,
        "# sgcli run a\ndelay(1)",
        "# sgcli run a b --siz 5\ndelay(1)",
        "# sgcli run a b --size five\ndelay(1)",
        "# sgcli run a b --size 5\ndelay(1)",
        "# sgcli run a b --size\ndelay(1)",
        "# sgcli run a b --target-protocol udp\ndelay(1)",
        "# sgcli run a b --target-protocol smtp\ndelay(1)",
        "# sgcli run a b --script-params 5\ndelay(1)",
        "# sgcli run a b -t 'two words'\nget(\"/\")",
        "# sgcli run a $SCRIPT\ndelay(1)",
    ];
    insta::assert_snapshot!(show_mistakes("broken.exs", &files));
}

#[test]
fn of_plans() {
    let run = |fields: &str| format!("[{{\"start_run\": {{{fields}}}}}]");
    let address = r#""addresses": [{"host": "h"}]"#;
    let block = r#""blocks": [{"script": "delay(1)", "size": 1000}]"#;
    let files = [
        "[{\"start_run\": {]".to_owned(),
        "[{\"start_run\": \u{7a5}}]".to_owned(),
        "[{\"start_run\": 5}]".to_owned(),
        "[{\"stop_run\": {\"x\": \"start_run\"}}, 5]".to_owned(),
        run(block),
        run(address),
        run(&format!("{address}, \"blocks\": []")),
        run(&format!("{address}, \"blocks\": [{{\"size\": 5}}]")),
        run(&format!("{address}, \"blocks\": [{{\"script\": \"delay(1)\"}}]")),
        run(&format!("{address}, \"blocks\": [{{\"script\": \"delay(\", \"size\": 5000}}]")),
        run(&format!("{address}, \"blocks\": [{{\"script\": \"\\ndelay()\", \"size\": 5000}}]")),
        run(&format!("{address}, \"blocks\": [{{\"script\": \"delay(1)\", \"size\": 50}}]")),
        run(&format!("{address}, {block}, \"opts\": {{\"ramp_step\": 5}}")),
        run(&format!("{address}, {block}, \"opts\": {{\"ramp_steps\": 0}}")),
        run(&format!("{address}, {block}, \"opts\": {{\"sustain_ms\": -1}}")),
        run(&format!("{address}, {block}, \"optz\": {{}}")),
        run(&format!("\"addresses\": [{{\"host\": \"h\", \"port\": 70000}}], {block}")),
        run(&format!("\"addresses\": [{{\"host\": \"h\", \"protocol\": \"udp\"}}], {block}")),
    ];
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    insta::assert_snapshot!(show_mistakes("broken.json", &files));
}

/// The steps are in another file, so the command alone would be a load without them.
#[test]
fn a_call_behind_other_commands_is_told() {
    let files = [
        "#!/bin/sh\nset -eu\nexec sgcli run a b.exs --size $1\n",
        "sudo -u me sgcli run a b.exs\n",
        "# sgcli\necho hello\n",
    ];
    insta::assert_snapshot!(show_mistakes("load.sh", &files));
}

#[test]
fn of_commands() {
    let files = [
        "sgcli",
        "sgcli run a",
        "sgcli walk a b",
        "sgcli run a b --target-port 99999",
        "sgcli run a b --rampup 1.5",
        "sgcli run a b --foo",
        "sgcli run a b | tee log",
        "sgcli run a 'b",
    ];
    insta::assert_snapshot!(show_mistakes("broken.sh", &files));
}
