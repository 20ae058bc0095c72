//! The endpoint over real sockets, and what it says of runs that are made up here.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::exposition::Exposition;
use serde_json::Value;
use throng_measure::{
    ClassCounters, CoreCounters, ErrorKind, Interval, KernelCounters, LoadCounters, LoadInterval,
    MachineInterval, MachineUse, Metric, Operation, ProbeCounters, ProcessMetric, ProcessUse,
    ServerCounters, ServerSnapshot, StepInterval,
};
use throng_view::metrics::{MetricsEndpoint, RunMetrics, ServerMetrics};

#[test]
fn a_run_shows_its_counters_with_their_values() {
    let metrics = RunMetrics::default();
    metrics.begin("tcp://127.0.0.1:5555", "s.yaml");
    metrics.add(&interval(3));
    let scraped = Exposition::parse(&scrape_run(metrics));
    scraped.check("throng_load_connects_ok_total", &[], 3.0);
    scraped.check("throng_load_connected", &[], 3.0);
    scraped.check("throng_load_users_waiting_max_seconds", &[], 0.000_003);
    scraped.check("throng_load_core_received_bytes_total", &[], 3.0);
    scraped.check("throng_load_probe_delivered_total", &[], 3.0);
    scraped.check("throng_load_class_connects_ok_total", &[("class", "guests")], 3.0);
    scraped.check("throng_load_connect_errors_total", &[("errno", "ECONNREFUSED")], 3.0);
    scraped.check("throng_load_errors_total", &[("kind", ErrorKind::ExpectTimeout.name())], 3.0);
    scraped.check("throng_load_http_answers_total", &[("status", "429")], 3.0);
    scraped.check("throng_load_latency_seconds_count", &[("operation", "connect")], 3.0);
    scraped.check("throng_load_phase_info", &[("phase", "hold")], 1.0);
    scraped.check("throng_kernel_tcp_ext_listen_overflows_total", &[("machine", "server")], 3.0);
    scraped.check("throng_program_cpu_seconds_total", &[("program", "generator")], 0.000_003);
    let busy = [("machine", "generator"), ("mode", "busy")];
    scraped.check("throng_machine_cpu_seconds_total", &busy, 0.000_003);
    scraped.check("throng_build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1.0);
}

#[test]
fn steps_with_a_name_have_a_label() {
    let metrics = RunMetrics::default();
    let mut greeting = StepInterval {
        name: "greeting".to_owned(),
        ok: 5,
        errors: 2,
        waiting: 1,
        ..StepInterval::default()
    };
    greeting.latency.record_n(20_000, 5);
    greeting.unanswered.record_n(5_000_000, 2);
    let checkout = StepInterval { name: "checkout".to_owned(), ..StepInterval::default() };
    let mut run = interval(3);
    if let Some(load) = &mut run.load {
        load.steps = vec![greeting, checkout];
    }
    metrics.add(&run);
    metrics.add(&run);
    let scraped = Exposition::parse(&scrape_run(metrics));
    let (greeting, checkout) = ([("step", "greeting")], [("step", "checkout")]);
    scraped.check("throng_load_step_ok_total", &greeting, 5.0);
    scraped.check("throng_load_step_errors_total", &greeting, 2.0);
    scraped.check("throng_load_step_waiting_total", &greeting, 1.0);
    scraped.check("throng_load_step_errors_total", &checkout, 0.0);
    scraped.check("throng_load_step_latency_seconds_count", &greeting, 10.0);
    scraped.check("throng_load_step_unanswered_seconds_count", &greeting, 4.0);
    scraped.check("throng_load_step_latency_seconds_count", &checkout, 0.0);
}

#[test]
fn each_machine_of_a_fleet_has_its_label() {
    let metrics = RunMetrics::default();
    let machine = |name: &str, lag_us_p99| MachineInterval {
        name: name.to_owned(),
        connected: 7,
        lag_us_p99,
        busiest_core_permille: Some(250),
        ..MachineInterval::default()
    };
    let mut run = interval(3);
    if let Some(load) = &mut run.load {
        load.machines = vec![machine("a", Some(2_000)), machine("b", None)];
    }
    metrics.add(&run);
    let scraped = Exposition::parse(&scrape_run(metrics));
    scraped.check("throng_load_agent_connected", &[("agent", "b")], 7.0);
    scraped.check("throng_load_agent_lost", &[("agent", "a")], 0.0);
    scraped.check("throng_load_agent_lag_p99_seconds", &[("agent", "a")], 0.002);
    scraped.check("throng_load_agent_busiest_core_ratio", &[("agent", "a")], 0.25);
}

#[test]
fn every_counter_of_a_table_has_a_family_of_its_own() {
    let metrics = RunMetrics::default();
    metrics.add(&interval(3));
    let scraped = Exposition::parse(&scrape_run(metrics));
    let count = |prefix: &str| scraped.families().filter(|name| name.starts_with(prefix)).count();
    let fields = CoreCounters::default().fields().count();
    assert_eq!(count("throng_load_core_"), fields);
    assert_eq!(count("throng_load_probe_"), ProbeCounters::default().fields().count());
    assert_eq!(count("throng_load_class_"), ClassCounters::default().fields().count());
    let fields = [
        LoadCounters::default().fields().count(),
        CoreCounters::default().fields().count(),
        ProbeCounters::default().fields().count(),
        ClassCounters::default().fields().count(),
    ];
    // Phase, pause, cores, silent cores; three tallies; three histograms. `throng_load_cores`
    // begins with no prefix from above.
    assert_eq!(count("throng_load_"), fields.iter().sum::<usize>() + 10);
}

#[test]
fn every_metric_of_a_machine_has_a_family_of_its_own() {
    let mut all = interval(1);
    let programs = ProcessMetric::all().flat_map(|metric| [metric.server, metric.client]);
    all.kernel = Metric::all().chain(programs).map(|metric| (metric, 1)).collect();
    all.server_kernel = KernelCounters::default();
    let bare = Interval { kernel: KernelCounters::default(), ..all.clone() };
    let count = |interval: &Interval| {
        let metrics = RunMetrics::default();
        metrics.add(interval);
        Exposition::parse(&scrape_run(metrics)).families().count()
    };
    assert_eq!(count(&all) - count(&bare), Metric::all().count() + ProcessMetric::all().count());
}

#[test]
fn counters_never_shrink_from_one_scrape_to_the_next() {
    let metrics = Arc::new(RunMetrics::default());
    let endpoint = MetricsEndpoint::start(any_port(), Arc::clone(&metrics)).unwrap();
    let mut before = Exposition::default();
    for n in 0..5 {
        metrics.add(&interval(n));
        let now = Exposition::parse(&get(endpoint.addr(), "/metrics").body);
        now.has_grown_since(&before);
        before = now;
    }
    // Histograms add up over the intervals: 0 + 1 + 2 + 3 + 4.
    before.check("throng_load_latency_seconds_count", &[("operation", "connect")], 10.0);
}

#[test]
fn a_second_run_begins_at_zero() {
    let metrics = RunMetrics::default();
    metrics.begin("a", "b");
    metrics.add(&interval(4));
    metrics.begin("a", "c");
    metrics.add(&interval(1));
    let scraped = Exposition::parse(&scrape_run(metrics));
    scraped.check("throng_load_latency_seconds_count", &[("operation", "connect")], 1.0);
    scraped.check("throng_run_info", &[("target", "a"), ("scenario", "c")], 1.0);
}

#[test]
fn a_server_shows_its_counters_but_no_maximum() {
    let snapshot = || ServerSnapshot {
        listen: "127.0.0.1:5555".into(),
        handler: "echo".into(),
        counters: ServerCounters { accepted: 9, open: 4, ..Default::default() },
        core: CoreCounters { turn_us_most: 77, bytes_sent: 5, ..Default::default() },
        open_per_core: vec![1, 3],
        process: ProcessUse { pid: 1, cpu_user_us: 1_500_000, ..Default::default() },
        ..Default::default()
    };
    let endpoint = MetricsEndpoint::start(any_port(), ServerMetrics::new(snapshot)).unwrap();
    let text = get(endpoint.addr(), "/metrics").body;
    let scraped = Exposition::parse(&text);
    scraped.check("throng_server_accepted_total", &[], 9.0);
    scraped.check("throng_server_open", &[], 4.0);
    scraped.check("throng_server_core_connections", &[("core", "1")], 3.0);
    scraped.check("throng_server_core_sent_bytes_total", &[], 5.0);
    scraped.check("process_cpu_seconds_total", &[], 1.5);
    assert!(!text.contains("turn_max") && !text.contains("mailbox_max"), "{text}");
}

#[test]
fn before_the_first_interval_there_is_the_version() {
    let text = scrape_run(RunMetrics::default());
    assert_eq!(Exposition::parse(&text).families().collect::<Vec<_>>(), ["throng_build_info"]);
}

#[test]
fn idle_connections_do_not_keep_a_scrape_out() {
    let endpoint = MetricsEndpoint::start(any_port(), Arc::new(RunMetrics::default())).unwrap();
    let idle: Vec<_> = (0..300)
        .map(|number| {
            let mut stream = TcpStream::connect(endpoint.addr()).unwrap();
            let head: &[u8] = if number % 2 == 0 { b"" } else { b"GET /metrics HTTP/1.1\r\n" };
            stream.write_all(head).unwrap();
            stream
        })
        .collect();
    for _ in 0..5 {
        assert_eq!(get(endpoint.addr(), "/metrics").status(), 200);
    }
    drop(idle);
}

#[test]
fn hostile_labels_are_escaped_and_long_ones_cut() {
    let metrics = RunMetrics::default();
    let hostile = "a\"b\\c\nd} 1\n# TYPE evil counter\u{1b}[2J\u{202e}";
    metrics.begin(hostile, &"ü".repeat(5_000));
    let mut interval = interval(1);
    let load = interval.load.as_mut().unwrap();
    load.phase = hostile.into();
    load.classes.insert(hostile.into(), ClassCounters::default());
    load.errors.add(hostile, 4);
    metrics.add(&interval);
    let scraped = Exposition::parse(&scrape_run(metrics));
    let shown = &hostile.replace('\u{1b}', r"\u{1b}").replace('\u{202e}', r"\u{202e}");
    scraped.check("throng_load_phase_info", &[("phase", shown)], 1.0);
    scraped.check("throng_load_errors_total", &[("kind", shown)], 4.0);
    let long = "ü".repeat(200) + "…";
    scraped.check("throng_run_info", &[("target", shown), ("scenario", &long)], 1.0);
    assert!(!scraped.families().any(|name| name.contains("evil")));
}

#[test]
fn names_that_differ_after_the_cut_stay_one_sample() {
    let metrics = RunMetrics::default();
    let mut interval = interval(1);
    let load = interval.load.as_mut().unwrap();
    for end in ["one", "two"] {
        let name = "x".repeat(300) + end;
        load.classes.insert(name.clone(), ClassCounters { connects_ok: 2, ..Default::default() });
        load.errors.add(&name, 2);
    }
    metrics.add(&interval);
    let scraped = Exposition::parse(&scrape_run(metrics));
    let cut = "x".repeat(200) + "…";
    scraped.check("throng_load_class_connects_ok_total", &[("class", &cut)], 4.0);
    scraped.check("throng_load_errors_total", &[("kind", &cut)], 4.0);
}

#[test]
fn prometheus_gets_open_metrics_and_others_the_older_text() {
    let endpoint = MetricsEndpoint::start(any_port(), Arc::new(RunMetrics::default())).unwrap();
    let accept = "Accept: application/openmetrics-text;version=1.0.0;q=0.5,*/*;q=0.1\r\n";
    let open = request(endpoint.addr(), "GET", "/metrics", accept);
    assert!(open.head.contains("content-type: application/openmetrics-text"), "{}", open.head);
    assert!(open.body.contains("# TYPE throng_build info\n"), "{}", open.body);
    assert!(open.body.ends_with("# EOF\n"), "{}", open.body);
    let plain = get(endpoint.addr(), "/metrics");
    assert!(plain.head.contains("content-type: text/plain; version=0.0.4"), "{}", plain.head);
    assert!(plain.body.contains("# TYPE throng_build_info gauge\n"), "{}", plain.body);
    assert!(!plain.body.contains("# EOF"), "{}", plain.body);
}

#[test]
fn other_paths_and_methods_are_refused() {
    let endpoint = MetricsEndpoint::start(any_port(), Arc::new(RunMetrics::default())).unwrap();
    let addr = endpoint.addr();
    assert_eq!(get(addr, "/").status(), 404);
    assert_eq!(get(addr, "/metrics/x").status(), 404);
    let post = request(addr, "POST", "/metrics", "Content-Length: 0\r\n");
    assert_eq!(post.status(), 405);
    assert!(post.head.contains("allow: GET"), "{}", post.head);
    let head = request(addr, "HEAD", "/metrics", "");
    assert_eq!((head.status(), head.body.as_str()), (200, ""));
    assert!(head.head.contains("content-length:"), "{}", head.head);
    // The metrics are no secret: a proxy, or another name, may stand before them.
    let foreign = "Origin: http://other.example\r\nX-Forwarded-Host: other.example\r\n";
    assert_eq!(request(addr, "GET", "/metrics", foreign).status(), 200);
}

#[test]
fn scrapes_at_once_are_all_answered_and_read_the_server_one_at_a_time() {
    let reading = AtomicUsize::new(0);
    let snapshot = move || {
        assert_eq!(reading.fetch_add(1, Ordering::SeqCst), 0);
        thread::yield_now();
        reading.fetch_sub(1, Ordering::SeqCst);
        ServerSnapshot::default()
    };
    let endpoint = MetricsEndpoint::start(any_port(), ServerMetrics::new(snapshot)).unwrap();
    let addr = endpoint.addr();
    let scrapes: Vec<_> = (0..8).map(|_| thread::spawn(move || get(addr, "/metrics"))).collect();
    for scrape in scrapes {
        let answer = scrape.join().unwrap();
        assert!(answer.body.contains("throng_server_accepted_total 0"), "{}", answer.head);
    }
}

#[test]
fn a_scrape_that_waits_does_not_hold_up_another_request() {
    let (release, held) = std::sync::mpsc::channel::<()>();
    let (enter, entered) = std::sync::mpsc::channel();
    let held = std::sync::Mutex::new(held);
    let snapshot = move || {
        enter.send(()).unwrap();
        let _ = held.lock().unwrap().recv();
        ServerSnapshot::default()
    };
    let endpoint = MetricsEndpoint::start(any_port(), ServerMetrics::new(snapshot)).unwrap();
    let addr = endpoint.addr();
    let waiting = thread::spawn(move || get(addr, "/metrics").status());
    entered.recv().unwrap();
    assert_eq!(get(addr, "/other").status(), 404);
    drop(release);
    assert_eq!(waiting.join().unwrap(), 200);
}

#[test]
fn an_address_in_use_is_an_error() {
    let endpoint = MetricsEndpoint::start(any_port(), Arc::new(RunMetrics::default())).unwrap();
    let error = MetricsEndpoint::start(endpoint.addr(), Arc::new(RunMetrics::default()));
    assert_eq!(error.unwrap_err().kind(), std::io::ErrorKind::AddrInUse);
}

#[test]
fn the_dashboard_asks_for_metrics_that_exist() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/grafana/throng.json");
    let dashboard: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().filter_map(|panel| panel["targets"].as_array()).flatten();
    let asked: BTreeSet<String> =
        targets.flat_map(|target| metrics_of(target["expr"].as_str().unwrap())).collect();
    assert!(asked.len() > 40, "{asked:?}");

    let mut all = interval(1);
    let programs = ProcessMetric::all().flat_map(|metric| [metric.server, metric.client]);
    all.kernel = Metric::all().chain(programs).map(|metric| (metric, 1)).collect();
    let metrics = RunMetrics::default();
    metrics.add(&all);
    let server = ServerMetrics::new(ServerSnapshot::default);
    let server = MetricsEndpoint::start(any_port(), server).unwrap();
    let texts = [scrape_run(metrics), get(server.addr(), "/metrics").body];
    let scraped = texts.map(|text| Exposition::parse(&text));
    for name in asked {
        let family = name.strip_suffix("_bucket").unwrap_or(&name);
        let is_there = scraped.iter().any(|of| of.families().any(|known| known == family));
        assert!(is_there, "the dashboard asks for {name}");
    }
}

/// Returns the names of the metrics in an expression: each stands before its labels.
fn metrics_of(expression: &str) -> Vec<String> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let before_labels = expression.split('{').rev().skip(1);
    before_labels.map(|text| text.rsplit(|c| !is_name(c)).next().unwrap().to_owned()).collect()
}

/// Returns an interval in which everything was counted `n` times.
fn interval(n: u64) -> Interval {
    let counters = LoadCounters {
        connects_ok: n,
        connected: n,
        users_waiting_us_most: n,
        ..Default::default()
    };
    let mut load = LoadInterval {
        phase: "hold".into(),
        cores: 2,
        counters,
        core: CoreCounters { bytes_received: n, ..Default::default() },
        probe: ProbeCounters { delivered: n, ..Default::default() },
        process: ProcessUse { pid: 7, cpu_user_us: n, rss_bytes: 5_000, ..Default::default() },
        ..Default::default()
    };
    load.times[Operation::Connect].record_n(700, n as u32);
    load.connect_failed.add("ECONNREFUSED", n);
    load.errors.add(ErrorKind::ExpectTimeout, n);
    load.http_statuses.add("429", n);
    let guests = ClassCounters { connects_ok: n, ..Default::default() };
    load.classes.insert("guests".into(), guests);
    let value = n as i64;
    Interval {
        at_ms: n * 1_000,
        span_ms: 1_000,
        load: Some(load),
        machine: Some(MachineUse { cpus: 2, cpu_busy_us: n, ..Default::default() }),
        kernel: [(ProcessMetric::CPU_US.client, value)].into(),
        server_kernel: [(Metric::TCPEXT_LISTEN_OVERFLOWS, value)].into(),
        ..Default::default()
    }
}

fn scrape_run(metrics: RunMetrics) -> String {
    let endpoint = MetricsEndpoint::start(any_port(), metrics).unwrap();
    get(endpoint.addr(), "/metrics").body
}

fn any_port() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

/// An answer of the endpoint.
struct Answer {
    head: String,
    body: String,
}

impl Answer {
    fn status(&self) -> u16 {
        self.head.split(' ').nth(1).unwrap().parse().unwrap()
    }
}

fn get(addr: SocketAddr, path: &str) -> Answer {
    request(addr, "GET", path, "")
}

/// Sends a request to the endpoint under a name that it does not know.
fn request(addr: SocketAddr, method: &str, path: &str, headers: &str) -> Answer {
    let mut stream = TcpStream::connect(addr).unwrap();
    let head = format!("{method} {path} HTTP/1.1\r\nHost: other.example\r\nConnection: close\r\n");
    write!(stream, "{head}{headers}\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    Answer { head: head.to_owned(), body: body.to_owned() }
}
