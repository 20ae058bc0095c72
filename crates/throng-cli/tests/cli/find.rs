//! `throng find` against servers with a known limit.

use serde_json::Value;

use crate::process::{Running, TestDir};

/// A server that holds as many connections as its limit allows, and closes the others. It takes
/// note of all that have ended before it accepts the next one, so the connections of one run do not
/// count in the next, however slow the machine is. It refuses connects until the file AWAITED
/// exists.
const LIMITED: &str = r#"
import os, select, socket, time

LIMIT = 37
held = {}

def answer(connection):
    try:
        if connection.recv(100):
            connection.sendall(b"ok")
            return
    except OSError:
        pass
    poll.unregister(connection)
    del held[connection.fileno()]
    connection.close()

listener = socket.socket()
listener.bind(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
if AWAITED:
    while not os.path.exists(AWAITED):
        time.sleep(0.01)
listener.listen(512)
print("listening", flush=True)
poll = select.poll()
poll.register(listener, select.POLLIN)
while True:
    ready = [fd for fd, _ in poll.poll()]
    for fd in ready:
        if fd in held:
            answer(held[fd])
    if listener.fileno() in ready:
        connection, _ = listener.accept()
        if len(held) < LIMIT:
            held[connection.fileno()] = connection
            poll.register(connection, select.POLLIN)
        else:
            connection.close()
"#;

/// Starts the server, which listens once `awaited` exists.
fn server(dir: &TestDir, awaited: Option<&str>) -> Option<(Running, String)> {
    let awaited = awaited.map_or_else(String::new, |name| dir.path(name).display().to_string());
    dir.python(&format!("AWAITED = {awaited:?}\n{LIMITED}"))
}

fn listening(dir: &TestDir) -> Option<(Running, String)> {
    let (mut server, port) = server(dir, None)?;
    assert_eq!(server.line().trim(), "listening");
    Some((server, port))
}

/// Every user is answered once when it is connected, and has a second and a half for both. That
/// this machine is slow makes no errors, and a late generator decides what is an error all the
/// same.
fn scenario(port: &str) -> String {
    format!(
        "target: tcp://127.0.0.1:{port}\n\
         params: {{users: 10}}\n\
         load: [ramp: {{to: $(users), over: 100ms}}, hold: {{for: 1500ms}}]\n\
         user: [connect, send: a, expect: ok, stay]\n\
         on_error: stop\n"
    )
}

fn lines(dir: &TestDir, name: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(dir.path(name)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn the_largest_number_of_users_that_a_server_holds_is_found() {
    let dir = TestDir::new();
    let Some((_server, port)) = listening(&dir) else { return };
    dir.write("s.yaml", &scenario(&port));
    let search = ["find", "s.yaml", "--slo", "errors == 0", "--rest", "100ms"];
    let flags = ["-o", "knee.md", "--report", "knee.html", "--", "--no-calibrate"];
    let found = dir.throng(&[&search[..], &flags].concat()).exits_with(0);
    assert!(found.stdout.contains("users 37 met errors == 0; 38 did not"), "{}", found.stdout);
    let lines = lines(&dir, "find.jsonl");
    assert_eq!(lines[0]["knob"], "users");
    assert!(lines.len() <= 2 + 13, "{lines:?}");
    let knee = std::fs::read_to_string(dir.path("knee.md")).unwrap();
    assert!(knee.starts_with("**users 37 met errors == 0; 38 did not**\n"), "{knee}");
    assert!(knee.contains("| 37 | 0 | met |"), "{knee}");
    assert!(dir.path("knee.html").exists());
    let first = dir.throng(&["report", "find-01.jsonl", "--json"]).json();
    let held = lines[1]["reached"]["connected_most"].as_f64();
    assert_eq!(held, first["users"]["connected_most"].as_f64(), "{}", lines[1]);

    // The search has ended: nothing runs again.
    let again = dir.throng(&[&search[..], &flags[4..]].concat()).exits_with(0);
    assert!(again.stdout.contains("and it has ended; --restart begins anew"), "{}", again.stdout);
    let other = dir.throng(&["find", "s.yaml", "--slo", "errors < 2"]).exits_with(2);
    assert!(other.stderr.contains("it has another search"), "{}", other.stderr);
}

#[test]
fn a_search_that_was_killed_goes_on() {
    let dir = TestDir::new();
    let Some((_server, port)) = listening(&dir) else { return };
    dir.write("s.yaml", &scenario(&port));
    let search = ["find", "s.yaml", "--slo", "errors == 0", "--rest", "100ms", "--"];
    let search = [&search[..], &["--no-calibrate"]].concat();
    dir.throng(&search).exits_with(0);
    // What is left of a search that was killed while it wrote its fourth run.
    let text = std::fs::read_to_string(dir.path("find.jsonl")).unwrap();
    let kept: Vec<_> = text.lines().take(5).collect();
    let torn = &kept[4][..kept[4].len() / 2];
    dir.write("find.jsonl", &format!("{}\n{torn}", kept[..4].join("\n")));
    let resumed = dir.throng(&search).exits_with(0);
    assert!(resumed.stdout.contains("this search has 3 runs; --restart"), "{}", resumed.stdout);
    assert!(resumed.stdout.contains("users 37 met errors == 0"), "{}", resumed.stdout);
    // What came after the torn line is in the file, too.
    let again = dir.throng(&search).exits_with(0);
    let runs = resumed.stdout.lines().filter(|line| line.starts_with("run ")).count();
    let known = format!("this search has {} runs, and it has ended", 3 + runs);
    assert!(again.stdout.contains(&known), "{runs}: {}", again.stdout);
}

#[test]
fn a_search_without_a_server_has_no_result_and_goes_on_later() {
    let dir = TestDir::new();
    let Some((mut server, port)) = server(&dir, Some("go")) else { return };
    dir.write("s.yaml", &scenario(&port));
    let search = ["find", "s.yaml", "--slo", "errors == 0", "--rest", "100ms"];
    let search = [&search[..], &["--", "--no-calibrate"]].concat();
    let away = dir.throng(&search).exits_with(2);
    let why = format!("no server listens at tcp://127.0.0.1:{port}: all ");
    assert!(away.stdout.contains(&format!("run 1: users 10 is void: {why}")), "{}", away.stdout);
    assert!(away.stderr.contains(&why), "{}", away.stderr);
    assert!(away.stderr.contains("the same command goes on"), "{}", away.stderr);
    assert_eq!(lines(&dir, "find.jsonl").len(), 1, "no run of it says anything");
    dir.write("go", "");
    assert_eq!(server.line().trim(), "listening");
    let found = dir.throng(&search).exits_with(0);
    assert!(found.stdout.contains("this search has 0 runs; --restart"), "{}", found.stdout);
    assert!(found.stdout.contains("users 37 met errors == 0; 38 did not"), "{}", found.stdout);
    let reason = found.stdout.lines().find(|line| line.starts_with("  at 38: ")).unwrap();
    assert!(!reason.contains("no cause was found"), "{reason}");
}

#[test]
fn a_search_that_cannot_begin_says_why() {
    let dir = TestDir::new();
    dir.write("s.yaml", &scenario("1"));
    let refused = |flags: &[&str], why: &str| {
        let refused = dir.throng(&[&["find", "s.yaml"], flags].concat()).exits_with(2);
        assert!(refused.stderr.contains(why), "{flags:?}: {}", refused.stderr);
    };
    refused(&[], "there is nothing to search for");
    refused(&["--slo", "conect.p99 < 1s"], "did you mean `connect.p99`?");
    refused(&["--slo", "http.p99 < 5ms"], "no run measures `http.p99`");
    refused(&["--slo", "step.login.p99 < 5ms"], "unknown step `login`");
    refused(&["--slo", "class.user.connect.p99 < 5ms"], "add this one there");
    let slo = ["--slo", "errors == 0"];
    refused(&[&slo[..], &["--knob", "user"]].concat(), "did you mean users?");
    refused(&[&slo[..], &["--knob", "arrivals"]].concat(), "it has users");
    refused(&[&slo[..], &["--from", "10/s"]].concat(), "users is a number above 0");
    refused(&[&slo[..], &["--from", "20", "--to", "10"]].concat(), "--to is less than");
    refused(&[&slo[..], &["-o", "x.xml"]].concat(), "a search has no junit; it is written as html");
    dir.write("notes.jsonl", "mine\n");
    let notes = [&slo[..], &["--record", "notes.jsonl"]].concat();
    refused(&notes, "it is not the file of a search");
    refused(&[&notes[..], &["--restart"]].concat(), "it is not the file of a search");
    refused(&[&slo[..], &["-o", "s.yaml"]].concat(), "it is the scenario");
}

/// A search whose server holds 37 users, without its last line.
const CUT_OFF: &str = concat!(
    r#"{"throng_find":1,"scenario":{"path":"s.yaml","source":""},"knob":"users","unit":"","#,
    r#""slo":["errors == 0"],"rules":{"first":10.0,"most":null,"least":1.0,"precision":0.03,"#,
    r#""steps_max":12,"repeats":3,"hysteresis":0.1,"is_whole":true},"flags":[]}"#,
    "\n",
    r#"{"value":30.0,"outcome":"met","usage":null,"grade":"valid","judgements":[{"threshold":"#,
    r#""errors == 0","met":true,"value":0.0,"measured":"0"}],"verdict":"Nothing | stopped it.","#,
    r#""run_file":"find-01.jsonl"}"#,
    "\n",
    r#"{"value":40.0,"outcome":"missed","usage":null,"grade":"valid","judgements":[{"threshold":"#,
    r#""errors == 0","met":false,"value":3.0,"measured":"3"}],"verdict":"Missed: errors 3.","#,
    r#""run_file":"find-02.jsonl"}"#,
    "\n",
);

#[test]
fn report_shows_a_search_that_was_cut_off_in_each_format() {
    let dir = TestDir::new();
    dir.write("find.jsonl", &format!("{CUT_OFF}{{\"value\":35.0,\"outc"));
    let report = |flags: &[&str]| {
        dir.throng(&[&["report", "find.jsonl"], flags].concat()).exits_with(4).stdout
    };
    let sentence = "the search for users with errors == 0 has not ended; so far 30 met it and 40 \
                    did not";
    let text = report(&[]);
    assert!(text.starts_with(sentence), "{text}");
    assert!(text.contains("at 40: Missed: errors 3."), "{text}");
    assert!(text.contains("1 line of the file cannot be read"), "{text}");
    assert_eq!(report(&["--check"]), format!("{sentence}\n"));
    let json: Value = serde_json::from_str(&report(&["--json"])).unwrap();
    assert_eq!(json["runs"][1]["judgements"][0]["value"], 3.0);
    let csv = report(&["--format", "csv"]);
    assert!(
        csv.contains("\n2,users,40,missed,valid,,errors == 0,3,false,find-02.jsonl\n"),
        "{csv}"
    );
    let markdown = report(&["--format", "markdown"]);
    assert!(markdown.contains("| users | errors | outcome | grade | of the limit |\n|---:|---:|"));
    assert!(markdown.contains("| 40 | 3 | missed | valid |"), "{markdown}");
    report(&["-o", "x.html"]);
    assert!(std::fs::read_to_string(dir.path("x.html")).unwrap().contains("<script"));
}

#[test]
fn report_says_why_it_cannot_show_the_file_of_a_search() {
    let dir = TestDir::new();
    let refused = |text: &str, flags: &[&str], why: &str| {
        dir.write("find.jsonl", text);
        let flags = [&["report", "find.jsonl"], flags].concat();
        let refused = dir.throng(&flags).exits_with(2);
        assert!(refused.stderr.contains(why), "{text}: {}", refused.stderr);
        assert_eq!(std::fs::read_to_string(dir.path("find.jsonl")).unwrap(), text);
    };
    let later = "{\"throng_find\":2,\"anything\":[]}\n";
    refused(later, &[], "it is a search of version 2; this version of throng reads version 1");
    refused("{\"throng_find\":1,\"knob\":3}\n", &[], "line 1 is not that of a search");
    refused("", &[], "cannot read find.jsonl");
    refused(CUT_OFF, &["--format", "junit"], "a search has no junit");
    let over = ["--format", "json", "-o", "find.jsonl"];
    refused(CUT_OFF, &over, "it is the file of a search; name another file");
}

#[test]
fn a_value_that_this_machine_cannot_hold_is_the_generators_limit() {
    let dir = TestDir::new();
    let server = dir.serve(&["hold"]);
    let load = "[ramp: {to: 100, over: 100ms}, hold: {for: 300ms}]";
    dir.write("s.yaml", &server.scenario(load, "[connect, stay]"));
    // One core has 200 fds, of which some are no connections: 100 users fit, and 200 do not.
    let found = dir
        .shell(
            "prlimit --nofile=200:200 throng find s.yaml --slo 'errors == 0' --rest 0s \
             --precision 50% -- --no-calibrate --cores 1",
        )
        .exits_with(3);
    assert!(found.stdout.contains("beyond it the limit is the generator's"), "{}", found.stdout);
    let lines = lines(&dir, "find.jsonl");
    let refused = lines.iter().find(|line| line["outcome"] == "invalid").unwrap();
    assert_eq!((&refused["grade"], &refused["run_file"]), (&Value::Null, &"".into()), "{refused}");
    let why = refused["verdict"].as_str().unwrap();
    assert!(why.contains("200"), "{why}");
}
