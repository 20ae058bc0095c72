//! A dashboard over real sockets, asked as a browser asks, and as one should not.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use throng_control::{ControlRequest, ControlTarget, Verb};
use throng_measure::runfile::{RunEndReason, RunHeader};
use throng_measure::{Interval, LoadInterval, Operation};
use throng_run::RunContent;

use super::Dashboard;
use super::store::READERS_MAX;

fn started() -> Dashboard {
    Dashboard::start("127.0.0.1:0".parse().unwrap(), "It waits.").unwrap()
}

/// Returns a dashboard with a run of `seconds`.
fn running(seconds: u64) -> Dashboard {
    let dashboard = started();
    dashboard.feed().begin("1/2 first", content());
    (0..seconds).for_each(|second| dashboard.feed().interval(&interval(second)));
    ask_until(&dashboard, |run| rows(run) == seconds as usize);
    dashboard
}

fn content() -> RunContent {
    RunContent::new(RunHeader::default(), Vec::new())
}

fn interval(second: u64) -> Interval {
    let mut load = LoadInterval { phase: "ramp".to_owned(), ..LoadInterval::default() };
    load.counters.connected = 10 * second;
    load.counters.connects_ok = 10 * second;
    load.times[Operation::Connect].record_n(90, 10);
    Interval { at_ms: second * 1000, span_ms: 1000, load: Some(load), ..Interval::default() }
}

fn token(dashboard: &Dashboard) -> &str {
    dashboard.url().split_once("token=").unwrap().1
}

/// Sends a request, and returns the status and everything after it.
fn request(addr: SocketAddr, text: &str) -> (u16, String) {
    let mut stream = connect(addr);
    stream.write_all(text.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    (answer.split(' ').nth(1).unwrap().parse().unwrap(), answer)
}

fn connect(addr: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(addr).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream
}

/// Asks as the page does, with further header lines.
fn get(dashboard: &Dashboard, path: &str, headers: &str) -> (u16, String) {
    let (addr, token) = (dashboard.addr(), token(dashboard));
    let separator = if path.contains('?') { '&' } else { '?' };
    let host = if headers.contains("Host:") { String::new() } else { format!("Host: {addr}\r\n") };
    let head = format!("GET {path}{separator}token={token} HTTP/1.1\r\n{host}{headers}");
    request(addr, &format!("{head}Connection: close\r\n\r\n"))
}

fn post(dashboard: &Dashboard, body: &str, headers: &str) -> (u16, Value) {
    let (addr, token) = (dashboard.addr(), token(dashboard));
    let length = body.len();
    let (status, answer) = request(
        addr,
        &format!(
            "POST /ctl HTTP/1.1\r\nHost: {addr}\r\nAuthorization: Bearer {token}\r\n\
             Content-Length: {length}\r\n{headers}Connection: close\r\n\r\n{body}"
        ),
    );
    let body = answer.split_once("\r\n\r\n").unwrap().1;
    (status, serde_json::from_str(body).unwrap_or(Value::Null))
}

fn run(dashboard: &Dashboard) -> Value {
    let (status, answer) = get(dashboard, "/run", "");
    assert_eq!(status, 200, "{answer}");
    serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
}

/// Asks until the data are as expected: they pass through a thread.
fn ask_until(dashboard: &Dashboard, is_there: impl Fn(&Value) -> bool) -> Value {
    let began = Instant::now();
    loop {
        let run = run(dashboard);
        if is_there(&run) {
            return run;
        }
        assert!(began.elapsed() < PATIENCE, "{run}");
    }
}

/// How long a test waits for what comes as soon as a thread runs.
const PATIENCE: Duration = Duration::from_secs(300);

/// Returns the number of rows. Of each packed number, the last character is below `]`.
fn rows(run: &Value) -> usize {
    let packed = run["page"]["columns"]["at_ms"].as_str().unwrap_or_default();
    packed.bytes().filter(|byte| *byte < b']').count()
}

/// A stream of events.
struct Events(BufReader<TcpStream>);

impl Events {
    fn open(dashboard: &Dashboard, run: u64, from: &str) -> Self {
        let (addr, token) = (dashboard.addr(), token(dashboard));
        let mut stream = connect(addr);
        let head = format!("GET /rows?run={run}&from={from}&token={token} HTTP/1.1\r\n");
        stream.write_all(format!("{head}Host: {addr}\r\n\r\n").as_bytes()).unwrap();
        Self(BufReader::new(stream))
    }

    /// Returns the next event and its data.
    fn next(&mut self) -> (String, Value) {
        let (mut name, mut data) = (String::new(), Value::Null);
        loop {
            let mut line = String::new();
            assert_ne!(self.0.read_line(&mut line).unwrap(), 0, "the stream ended");
            if let Some(text) = line.strip_prefix("event: ") {
                name = text.trim_end().to_owned();
            } else if let Some(text) = line.strip_prefix("data: ") {
                data = serde_json::from_str(text).unwrap();
            } else if line == "\n" && !name.is_empty() {
                return (name, data);
            }
        }
    }

    /// Returns the data of the next event that is not a summary.
    fn expect(&mut self, wanted: &str) -> Value {
        loop {
            match self.next() {
                (name, data) if name == wanted => return data,
                (name, data) => assert_eq!(name, "summary", "{data} instead of {wanted}"),
            }
        }
    }
}

#[test]
fn without_its_token_nothing_is_told() {
    let dashboard = running(2);
    let (addr, token) = (dashboard.addr(), token(&dashboard));
    assert_eq!(token.len(), 32);
    let almost = format!("{}{}", &token[..31], if token.ends_with('0') { '1' } else { '0' });
    let wrong = ["".to_owned(), almost, token[..31].to_owned(), format!("{token}0")];
    for path in ["/", "/run", "/rows?run=1", "/ctl", "/nothing"] {
        for token in &wrong {
            let separator = if path.contains('?') { '&' } else { '?' };
            let head = format!("GET {path}{separator}token={token} HTTP/1.1\r\nHost: {addr}\r\n");
            let bearer = format!("Authorization: Bearer {token}\r\nConnection: close\r\n\r\n");
            let (status, answer) = request(addr, &format!("{head}{bearer}"));
            assert_eq!(status, 403, "{path} {token}");
            assert!(answer.contains("the link that throng printed"), "{answer}");
            assert!(!answer.contains("load.connected"), "{answer}");
        }
    }
    assert_eq!(get(&dashboard, "/", "").0, 200);
    assert_eq!(get(&dashboard, "/nothing", "").0, 404);
}

#[test]
fn a_foreign_host_or_origin_is_refused() {
    let dashboard = running(2);
    let port = dashboard.addr().port();
    for (headers, expected) in [
        (format!("Host: localhost:{port}\r\n"), 200),
        (format!("Host: rebound.example:{port}\r\n"), 403),
        ("Host: localhost\r\n".to_owned(), 403),
        (format!("Host: localhost:{port}\r\nHost: localhost:{port}\r\n"), 400),
        (format!("Origin: http://127.0.0.1:{port}\r\n"), 200),
        (format!("Origin: http://localhost:{port}\r\n"), 403),
        (format!("Origin: https://127.0.0.1:{port}\r\n"), 403),
        ("Origin: http://elsewhere.example\r\n".to_owned(), 403),
        ("Origin: null\r\n".to_owned(), 403),
    ] {
        let (status, answer) = get(&dashboard, "/run", &headers);
        let refused = if expected == 400 { status == 400 || status == 403 } else { false };
        assert!(refused || status == expected, "{headers} {answer}");
    }
}

#[test]
fn answers_cannot_be_framed_stored_or_referred_to() {
    let (_, answer) = get(&running(1), "/", "");
    let head = answer.split_once("\r\n\r\n").unwrap().0.to_ascii_lowercase();
    for header in ["frame-ancestors 'none'", "nosniff", "no-referrer", "no-store"] {
        assert!(head.contains(header), "{head}");
    }
}

/// A target that remembers what it was asked for.
#[derive(Default)]
struct TestTarget(Mutex<Vec<ControlRequest>>);

impl ControlTarget for TestTarget {
    fn verbs(&self) -> &[Verb] {
        &[Verb::Snapshot, Verb::Start, Verb::Pause, Verb::Drain]
    }

    fn answer(&self, request: &ControlRequest) -> Result<Value, String> {
        self.0.lock().unwrap().push(*request);
        Ok(json!({"users": 7}))
    }
}

#[test]
fn only_the_page_itself_steers_and_only_with_verbs_of_the_run() {
    let dashboard = running(1);
    let origin = format!("Origin: http://{}\r\n", dashboard.addr());
    assert_eq!(post(&dashboard, r#"{"verb":"pause"}"#, &origin).0, 409, "no target yet");
    let steered = Arc::new(TestTarget::default());
    let target: Arc<dyn ControlTarget> = steered.clone();
    dashboard.feed().steer(&target);
    ask_until(&dashboard, |run| run["verbs"] == json!(["pause", "start"]));
    for headers in ["", "Origin: http://elsewhere.example\r\n", "Origin: null\r\n"] {
        assert_eq!(post(&dashboard, r#"{"verb":"pause"}"#, headers).0, 403, "{headers}");
    }
    let drain = r#"{"verb":"drain"}"#;
    for body in ["", "pause", drain, r#"{"verb":"stop","n":1}"#, r#"{"verb":"start"}"#] {
        let (status, answer) = post(&dashboard, body, &origin);
        assert_eq!((status, &answer["ok"]), (400, &json!(false)), "{body}");
    }
    assert_eq!(post(&dashboard, &"x".repeat(5_000), &origin).0, 413);
    assert!(steered.0.lock().unwrap().is_empty());
    let (status, answer) = post(&dashboard, r#"{"verb":"start","n":5}"#, &origin);
    assert_eq!((status, answer), (200, json!({"ok": true, "data": {"users": 7}})));
    assert_eq!(*steered.0.lock().unwrap(), [ControlRequest::with_n(Verb::Start, 5)]);
    drop((target, steered));
    assert_eq!(post(&dashboard, r#"{"verb":"pause"}"#, &origin).0, 409, "the target is gone");
}

#[test]
fn a_reader_has_each_row_once_and_in_the_end_the_result() {
    let dashboard = running(3);
    let so_far = run(&dashboard);
    assert_eq!(so_far["title"], "1/2 first");
    let mut events = Events::open(&dashboard, 1, so_far["cursor"].as_str().unwrap());
    dashboard.feed().interval(&interval(3));
    let part = events.expect("rows");
    assert_eq!((&part["from"], &part["at_ms"]), (&json!(3), &json!([3000])));
    assert_eq!(part["columns"]["load.connected"], json!([30]));
    // A connection is lost. Meanwhile the run goes on.
    drop(events);
    (4..7).for_each(|second| dashboard.feed().interval(&interval(second)));
    ask_until(&dashboard, |run| rows(run) == 7);
    let mut events = Events::open(&dashboard, 1, part["cursor"].as_str().unwrap());
    let part = events.expect("rows");
    assert_eq!((&part["from"], &part["at_ms"]), (&json!(4), &json!([4000, 5000, 6000])));

    let mut content = content();
    (0..7).for_each(|second| content.add(&interval(second)));
    let result = content.finish(RunEndReason::Finished, 0);
    dashboard.feed().end(&result);
    let mut summary = Value::Null;
    loop {
        match events.next() {
            (name, data) if name == "summary" => summary = data,
            (name, _) => break assert_eq!(name, "end"),
        }
    }
    assert_eq!(summary["summary"], result.json());
    assert_eq!(summary["curves"]["connect"][0], json!([0.0, 90]));
    assert_eq!(run(&dashboard)["page"]["summary"], result.json());
}

#[test]
fn a_reader_elsewhere_in_the_page_or_in_another_run_fetches_it_anew() {
    let dashboard = started();
    assert_eq!(run(&dashboard), json!({"run": 0, "waiting": "It waits."}));
    let mut early = Events::open(&dashboard, 0, "");
    dashboard.feed().begin("1/2 first", content());
    assert_eq!(early.next(), ("run".to_owned(), json!(1)));
    for from in ["", "9.9000.1.1.0", "0.0.2.1.0", "what"] {
        let mut events = Events::open(&dashboard, 1, from);
        assert_eq!(events.next(), ("run".to_owned(), json!(1)), "{from}");
    }
    let mut events = Events::open(&dashboard, 1, "0.0.1.1.0");
    dashboard.feed().begin("2/2 second", content());
    assert_eq!(events.next(), ("run".to_owned(), json!(2)));
    assert_eq!(run(&dashboard)["title"], "2/2 second");
}

#[test]
fn idle_connections_take_nothing_from_the_page() {
    let dashboard = running(3);
    let cursor = run(&dashboard)["cursor"].as_str().unwrap().to_owned();
    let mut events = Events::open(&dashboard, 1, &cursor);
    // More than there are places. Half of them begin a request without the token.
    let idle: Vec<_> = (0..300)
        .map(|number| {
            let mut stream = connect(dashboard.addr());
            let head: &[u8] = if number % 2 == 0 { b"" } else { b"GET / HTTP/1.1\r\n" };
            stream.write_all(head).unwrap();
            stream
        })
        .collect();
    assert_eq!(rows(&run(&dashboard)), 3);
    dashboard.feed().interval(&interval(3));
    assert_eq!(events.expect("rows")["at_ms"], json!([3000]));
    drop(idle);
}

#[test]
fn there_are_only_so_many_readers() {
    let dashboard = running(1);
    let open = || Events::open(&dashboard, 0, "");
    // They are in no run, so each gets an event and is done.
    (0..2 * READERS_MAX).for_each(|_| assert_eq!(open().next().0, "run"));
    let place = run(&dashboard)["cursor"].as_str().unwrap().to_owned();
    let path = format!("/rows?run=1&from={place}");
    let mut readers = Vec::new();
    while dashboard.shared.lock().readers() < READERS_MAX {
        readers.push(Events::open(&dashboard, 1, &place));
        // The answer's head says that the reader was counted.
        let mut head = String::new();
        readers.last_mut().unwrap().0.read_line(&mut head).unwrap();
    }
    assert_eq!(get(&dashboard, &path, "").0, 503);
    readers.pop();
    while dashboard.shared.lock().readers() == READERS_MAX {
        std::thread::sleep(Duration::from_millis(1));
    }
    Events::open(&dashboard, 1, &place);
}

#[test]
fn the_end_waits_until_readers_have_it() {
    let dashboard = running(1);
    let place = run(&dashboard)["cursor"].as_str().unwrap().to_owned();
    let mut events = Events::open(&dashboard, 1, &place);
    let mut head = String::new();
    events.0.read_line(&mut head).unwrap();
    let reader = std::thread::spawn(move || events.expect("over"));
    dashboard.close();
    assert_eq!(reader.join().unwrap(), json!({}));
}
