//! One hot loop of server and generator on virtual time, repeated: `hot_loops message 1000`.
//!
//! `make count` runs it under callgrind. What a repetition costs is the difference of two counts,
//! so the start of the world does not matter. It depends on no clock, no neighbour and no CPU.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use throng_engine::{Core, CoreLimits};
use throng_load::cues::Cues;
use throng_load::generator::{Generator, GeneratorConfig};
use throng_load::program::Program;
use throng_load::scenario::Scenario;
use throng_load::schedule::MachineShare;
use throng_load::source::SourcePlan;
use throng_server::kinds::{Chat, Echo};
use throng_server::{
    CoreMessage, Handler, ListenReport, ServerApp, ServerConfig, WebSocketOptions,
};
use throng_sim::{Faults, Sim, SimCoresOptions};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().unwrap_or_default();
    let count: u32 = arguments.next().and_then(|count| count.parse().ok()).unwrap_or(1);
    let chat = || Chat::handler(WebSocketOptions::default());
    match name.as_str() {
        "message" => run(Echo, "tcp", &one_user("{send: hi}, {expect: hi}", count)),
        "connection" => run(
            Echo,
            "tcp",
            &format!(
                "load: [{{arrivals: {{rate: 1000/s, for: {count}ms, spacing: even}}}}]\n\
                 user: [connect, {{send: hi}}, {{expect: hi}}, close]\n"
            ),
        ),
        "websocket" => {
            run(chat(), "ws", &one_user("{send: {text: hi}}, {expect: {text: hi}}", count))
        }
        "broadcast" => run(chat(), "ws", &broadcast(count)),
        "step" => run(Echo, "tcp", &one_user("{wait: 1ms}", count)),
        _ => {
            eprintln!("hot_loops message|connection|websocket|broadcast|step COUNT");
            std::process::exit(2);
        }
    }
}

/// Returns a scenario with one user that repeats some steps.
fn one_user(steps: &str, count: u32) -> String {
    format!(
        "load: [{{arrivals: {{rate: 10/s, for: 100ms, spacing: even}}}}]\n\
         user: [connect, {{repeat: {{times: {count}, do: [{steps}]}}}}, close]\n"
    )
}

/// Returns a scenario in which the first of 1,000 users speaks, and all of them hear it.
fn broadcast(count: u32) -> String {
    format!(
        "load: [{{arrivals: {{rate: 1000/s, for: 1s, spacing: even}}}}]
user:
  - connect
  - barrier: {{name: all, users: 1000}}
  - if:
      condition: \"${{user.id}} == 0\"
      do: [{{repeat: {{times: {count}, do: [{{send: {{text: hi}}}}, {{expect: {{text: hi}}}}]}}}}]
      else: [{{wait: 1m}}]
  - close
"
    )
}

/// Runs a scenario against a server, one core each, to its end.
fn run<H: Handler>(handler: H, scheme: &str, scenario: &str)
where
    H::State: 'static,
{
    let mut sim = Sim::new(1);
    sim.set_faults(Faults::default());
    let server = sim.cores(&SimCoresOptions::default());
    let config = Arc::new(ServerConfig { backlog: 10_000, ..ServerConfig::default() });
    let driver = server.drivers().remove(0);
    sim.spawn(Core::new(driver, ServerApp::new(config, handler), CoreLimits::default()));
    let address = "127.0.0.1:5555".parse().expect("an address");
    let (reply, answers) = channel::<ListenReport>();
    server.send_message(0, CoreMessage::listen(address, reply));
    assert!(sim.run_until(Duration::from_secs(1), |_| answers.try_recv().is_ok()), "it listens");

    let text = format!("target: {scheme}://{address}/\n{scenario}");
    let text = if scheme == "tcp" { text.replacen("5555/", "5555", 1) } else { text };
    let scenario = Scenario::parse(&text, "hot loop").unwrap_or_else(|error| panic!("{error}"));
    let program = Program::compile(&scenario);
    let share = MachineShare::deal(&[1]).remove(0);
    let config = GeneratorConfig {
        cues: Cues::new(program.cues()).into(),
        program,
        load: scenario.load.clone(),
        targets: vec![address],
        sources: SourcePlan::Any,
        self_connect_possible: false,
        options: Default::default(),
        seed: 1,
        start_at: sim.now() + Duration::from_millis(10),
        run: 1,
        first_user: 0,
        share: Some(share),
        peers: None,
        trace: None,
    };
    let driver = sim.cores(&SimCoresOptions::default()).drivers().remove(0);
    let generator = Generator::new(Arc::new(config), 0, 1);
    let generator = sim.spawn(Core::new(driver, generator, CoreLimits::default()));
    let is_over =
        sim.run_until(Duration::from_secs(3_600), |_| generator.borrow().app().is_finished());
    let counters = generator.borrow().app().stats().counters.clone();
    assert!(is_over && counters.users_finished > 0 && counters.users_failed == 0, "{counters:?}");
}
