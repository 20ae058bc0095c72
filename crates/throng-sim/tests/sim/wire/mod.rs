//! Imported files and scenarios that were written by hand for the same load: what a server gets of
//! both is compared byte by byte, on virtual time.

mod server;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use throng_engine::{Core, CoreLimits};
use throng_import::{ImportOptions, import};
use throng_load::cues::Cues;
use throng_load::generator::{Generator, GeneratorConfig};
use throng_load::program::Program;
use throng_load::scenario::{Protocol, Scenario};
use throng_load::source::SourcePlan;
use throng_sim::{Sim, SimCoresOptions};

use server::{Journal, TcpServer, WebSocketRecorder, server_addr};

/// Plays the first `span` of an imported file and of a scenario, and compares what the server got.
/// Returns the journal.
#[track_caller]
fn compare(file: &str, target: &str, span: Duration, by_hand: &str) -> Journal {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../throng-import/tests/import/files");
    let path = folder.join(file);
    let text = std::fs::read_to_string(&path).unwrap();
    let target = format!("{target}://{}", server_addr());
    let options = ImportOptions { target: Some(target.parse().unwrap()) };
    let name = path.to_string_lossy();
    let imported = import(&text, &name, &options).unwrap_or_else(|wrong| panic!("{wrong}"));
    let [imported, by_hand] = [&imported.scenario, &by_hand.replace("TARGET", &target)]
        .map(|text| play(text, &name, span));
    assert_eq!(imported.connections.len(), by_hand.connections.len(), "connections");
    for (index, (one, other)) in imported.connections.iter().zip(&by_hand.connections).enumerate() {
        assert_eq!(one, other, "connection {index}");
    }
    imported
}

/// Plays the first `span` of a scenario on one core, and returns what the server got.
fn play(text: &str, name: &str, span: Duration) -> Journal {
    let mut sim = Sim::new(SEED);
    let scenario = Scenario::parse(text, name).unwrap_or_else(|wrong| panic!("{wrong}\n{text}"));
    let journal = Journal::default();
    let [driver] = sim.cores(&SimCoresOptions::default()).drivers().try_into().ok().unwrap();
    let limits = CoreLimits::default();
    if scenario.protocol == Protocol::Tcp {
        sim.spawn(Core::new(driver, TcpServer::new(&journal), limits));
    } else {
        sim.spawn(Core::new(driver, WebSocketRecorder::new(&journal), limits));
    }
    let program = Program::compile(&scenario);
    let config = Arc::new(GeneratorConfig {
        cues: Cues::new(program.cues()).into(),
        program,
        load: scenario.load.clone(),
        targets: vec![server_addr()],
        sources: SourcePlan::Any,
        self_connect_possible: false,
        options: Default::default(),
        seed: SEED,
        start_at: sim.now() + Duration::from_millis(100),
        run: 1,
        first_user: 0,
        share: None,
        peers: None,
        trace: None,
    });
    let [driver] = sim.cores(&SimCoresOptions::default()).drivers().try_into().ok().unwrap();
    sim.spawn(Core::new(driver, Generator::new(config, 0, 1), limits));
    sim.run_until(span, |_| false);
    journal.taken()
}

const SEED: u64 = 7;

#[test]
fn tcpkali_pings() {
    let journal = compare(
        "tcpkali/ping.sh",
        "tcp",
        Duration::from_secs(5),
        r#"
target: TARGET
load: [ramp: {to: 1k, over: 2s}, hold: {for: 30s}]
user:
  - connect: {timeout: 1s}
  - send: {text: "hello ${user.id + 1}\n", reply: false}
  - every:
      rate: 10/s
      do: [send: "ping ${choice('red', 'green')}\n", expect: {until: pong}]
"#,
    );
    assert_eq!(journal.connections.len(), 1000);
    assert!(journal.connections[7].bytes.starts_with(b"hello 8\nping "));
}

#[test]
fn connscale_pings() {
    let journal = compare(
        "connscale/example.config",
        "tcp",
        Duration::from_secs(6),
        r#"
target: TARGET
load: [ramp: {to: 200k, over: 200s}, hold: {for: 5m}]
user:
  - connect
  - wait: uniform(1ms, 20s)
  - every: {period: 20s, do: [send: Ping, expect: {text: Pong, timeout: 20s}]}
on_error: stop
"#,
    );
    let pings = journal.connections.iter().filter(|one| one.bytes == b"Ping");
    assert!(journal.connections.len() > 5000 && pings.count() > 500);
}

#[test]
fn the_phoenix_article_joins_the_lobby() {
    let join = concat!(
        r#"{"topic":"rooms:lobby", "event":"phx_join", "#,
        r#""payload": {"user":"${user.id + 1}"}, "ref":"1"}"#
    );
    let by_hand = format!(
        "
target: TARGET/socket/websocket
load: [arrivals: {{rate: 1000/s, for: 100s, most: 100k}}, hold: {{for: 1h}}]
user:
  - connect
  - send: '{join}'
  - expect: {{regex: '.*', timeout: 1m}}
  - stay
on_error: stop
"
    );
    let journal = compare("tsung/phoenix.xml", "ws", Duration::from_secs(5), &by_hand);
    // Arrivals are at random.
    assert!((4400..5400).contains(&journal.connections.len()), "{}", journal.connections.len());
    let first = String::from_utf8_lossy(&journal.connections[0].bytes);
    assert!(first.contains("/socket/websocket"), "{first}");
    assert!(first.ends_with(r#""payload": {"user":"1"}, "ref":"1"}"#), "{first}");
}

#[test]
fn the_line_of_the_stressgrid_article_connects_and_waits() {
    let journal = compare(
        "stressgrid/article.exs",
        "tcp",
        Duration::from_secs(20),
        "
target: TARGET
load:
  - ramp: {to: 100k, over: 15m}
  - hold: {for: 1m}
  - ramp: {to: 0, over: 15m}
user: [connect, wait: 1s ±10%, close]
",
    );
    // 111 devices more each second, and each of them connects about once a second.
    assert!((15_000..25_000).contains(&journal.connections.len()));
    assert!(journal.connections.iter().all(|connection| connection.bytes.is_empty()));
}

#[test]
fn the_fast_connect_of_the_erlang_article_makes_ever_more_connections() {
    for file in ["mzbench/fast_connect.bdl", "mzbench/fast_connect.erl"] {
        let journal = compare(
            file,
            "tcp",
            Duration::from_secs(15),
            r#"
target: TARGET
load: [arrivals: {rate: {from: 0/s, to: 42177.8/s}, for: 949s, most: 20M, spacing: even}]
user:
  - connect
  - send: "I'm requesting the service"
  - expect: {bytes: 1, timeout: 5s}
  - close
on_error: stop
"#,
        );
        // The worker's formula: 200 (t/3)^2 workers after t seconds, of which 14.9 are played.
        let started = 200.0 * (14.9f64 / 3.0).powi(2);
        assert!((journal.connections.len() as f64 / started - 1.0).abs() < 0.01);
        assert!(
            journal
                .connections
                .iter()
                .rev()
                .skip(10)
                .all(|connection| { connection.bytes == b"I'm requesting the service" })
        );
    }
}

#[test]
fn the_fast_receive_of_the_erlang_article_sends_ever_more_messages() {
    for file in ["mzbench/fast_receive.bdl", "mzbench/fast_receive.erl"] {
        let journal = compare(
            file,
            "tcp",
            Duration::from_secs(10),
            r#"
target: TARGET
load: [arrivals: {rate: 500/s, for: 50s, most: 25k, spacing: even}, hold: {for: 20m}]
user:
  - connect
  - every:
      rate: {from: 1/s, to: 10/s, over: 20m}
      for: 20m
      do: [send: "I'm requesting the service", expect: {bytes: 1, timeout: 5s}]
  - close
on_error: continue
"#,
        );
        assert!((journal.connections.len() as f64 / (500.0 * 9.9) - 1.0).abs() < 0.01);
    }
}
