//! The statuses of HTTP answers, told by every report, against a server in Python.

use serde_json::Value;
use throng_measure::ErrorKind;

use crate::process::TestDir;

/// An HTTP server. The query decides the status: of ten requests two are limited, and one fails,
/// which is the first of all.
const SERVER: &str = "from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
class Handler(BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def do_GET(self):
        number = int(self.path.split('=')[1]) % 10
        status = {0: 500, 3: 429, 7: 429}.get(number, 200)
        self.send_response(status)
        if status == 429:
            self.send_header('retry-after', '1')
        self.send_header('content-length', '2')
        self.end_headers()
        self.wfile.write(b'ok')
    def log_message(self, *_):
        pass
class Server(ThreadingHTTPServer):
    request_queue_size = 512
    daemon_threads = True
server = Server(('127.0.0.1', 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
";

/// Ten users send ten requests each, once.
fn scenario(port: &str, expect: &str, thresholds: &str) -> String {
    format!(
        "target: http://127.0.0.1:{port}
load: [arrivals: {{rate: 100/s, for: 100ms, spacing: even}}]
on_error: continue
user:
  - repeat:
      times: 10
      do:
        - get: {{path: \"/a?n=${{counter}}\", timeout: 60s, expect: {expect}}}
thresholds: [{thresholds}]
"
    )
}

/// Returns the text of the finding on statuses. A busy machine may have others before it.
fn finding(diagnosis: &Value) -> &str {
    let findings = diagnosis["findings"].as_array().unwrap();
    let found = findings.iter().find(|finding| finding["id"] == "http_statuses");
    found.and_then(|finding| finding["text"].as_str()).unwrap_or_default()
}

#[test]
fn each_status_is_told_and_the_most_frequent_one_is_the_cause() {
    let place = TestDir::new();
    let Some((_server, port)) = place.python(SERVER) else { return };
    let thresholds = "\"errors.http_status.429 < 20%\", errors.http_status.500 == 10, \
                      \"http.429 <= 20%\", http.5xx <= 10, http.200 == 70, http.retried == 0, \
                      \"errors <= 30%\", errors.http_status == 30";
    place.write("statuses.yaml", &scenario(&port, "2xx", thresholds));
    let finished = place.throng(&["run", "statuses.yaml", "--json", "out.json"]);
    // A threshold is missed. A busy machine can make the generator late, which makes the run
    // invalid and has no other effect.
    assert!(matches!(finished.code, Some(1 | 3)), "{finished:#?}");
    let summary = place.json("out.json");
    let met = |at: usize| summary["thresholds"][at]["met"] == true;
    let all: Vec<bool> = (0..8).map(met).collect();
    assert_eq!(all, [false, true, true, true, true, true, true, true], "{summary}");
    assert_eq!(summary["http"]["statuses"].to_string(), r#"{"200":70,"429":20,"500":10}"#);
    let kinds = [429, 500].map(|status| ErrorKind::HttpStatus.with(status));
    let errors = kinds.each_ref().map(|kind| &summary["errors"][kind]);
    assert_eq!(errors, [20, 10], "{summary}");

    let exchanges = summary["exchanges"].as_array().unwrap();
    let shown: Vec<_> =
        exchanges.iter().map(|exchange| exchange["kind"].as_str().unwrap()).collect();
    assert_eq!(shown, kinds, "the most frequent first");
    let got = exchanges[0]["got"].as_str().unwrap();
    assert!(got.starts_with("`HTTP/1.1 429\\r\\nretry-after: 1"), "{got}");
    let diagnosis = &summary["diagnosis"];
    let cause = "The server answered 30 of 100 HTTP requests with unexpected statuses (30.0 %), \
                 most with 429 Too Many Requests (Retry-After: 1): 429 ×20, 500 ×10";
    assert!(finding(diagnosis).contains(cause), "{diagnosis:#}");

    let listed = "HTTP answers: 200 ×70, 429 ×20, 500 ×10";
    assert!(finished.stdout.contains(listed), "{}", finished.stdout);
    for format in ["text", "markdown"] {
        let report = place.throng(&["report", "run.jsonl", "--format", format]);
        assert!(report.stdout.contains(listed), "{}", report.stdout);
    }
}

#[test]
fn a_missed_threshold_on_expected_statuses_is_explained_by_them() {
    let place = TestDir::new();
    let Some((_server, port)) = place.python(SERVER) else { return };
    place.write("expected.yaml", &scenario(&port, "[200, 429, 500]", "http.5xx == 0"));
    let finished = place.throng(&["run", "expected.yaml", "--json", "out.json"]);
    assert!(matches!(finished.code, Some(1 | 3)), "{finished:#?}");
    let summary = place.json("out.json");
    assert_eq!(summary["errors"].to_string(), "{}");
    let diagnosis = &summary["diagnosis"];
    let verdict = diagnosis["verdict"].as_str().unwrap();
    assert!(verdict.contains("http.5xx 10, required == 0"), "{verdict}");
    let cause = "The server answered 10 of 100 HTTP requests with 500 Internal Server Error \
                 (10.0 %).";
    assert!(finding(diagnosis).contains(cause), "{diagnosis:#}");
}

#[test]
fn a_trial_ends_with_the_statuses_that_came() {
    let place = TestDir::new();
    let Some((_server, port)) = place.python(SERVER) else { return };
    place.write("trial.yaml", &scenario(&port, "[200, 429, 500]", "errors == 0"));
    let finished = place.throng(&["try", "trial.yaml", "--turns", "10"]);
    assert_eq!(finished.code, Some(0), "{finished:#?}");
    let listed = "HTTP answers: 200 ×7, 429 ×2, 500 ×1\n";
    assert!(finished.stdout.contains(listed), "{}", finished.stdout);
}
