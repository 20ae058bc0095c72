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
        phases: scenario.load.clone(),
        targets: vec![server_addr()],
        sources: SourcePlan::Any,
        self_connect_possible: false,
        options: Default::default(),
        seed: SEED,
        start_at: sim.now() + Duration::from_millis(100),
        first_user: 0,
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
  - send: {text: "hello ${user.id}\n", reply: false}
  - every:
      rate: 10/s
      do: [send: "ping ${choice('red', 'green')}\n", expect: {until: pong}]
"#,
    );
    assert_eq!(journal.connections.len(), 1000);
    assert!(journal.connections[7].bytes.starts_with(b"hello 7\nping "));
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
