//! A load from code: 500 users that say hello twice a second, against a server of this process,
//! with a threshold: `cargo run --release --example load`.

use throng::{Load, RunExit, Server};

fn main() -> throng::Result {
    let server = Server::bind("127.0.0.1:0").on_bytes(|conn, bytes| conn.send(bytes)).start()?;
    let outcome = Load::new(SCENARIO)
        .target(format!("tcp://{}", server.addr()))
        .on_interval(|interval| {
            let load = interval.load.as_ref().expect("a load was asked for");
            println!("{:>5} ms: {} connected", interval.at_ms, load.counters.connected);
        })
        .run()?;

    let summary = &outcome.result.summary;
    println!("{} connects, {} failed", summary.connect.ok, summary.connect.failed.total());
    println!("p99 of an answer: {} us", summary.message.latency_us.p99);
    println!("grade: {}", summary.validity.grade);
    println!("{}", outcome.result.diagnosis.verdict);
    if outcome.result.exit() == RunExit::Missed {
        println!("a threshold was missed");
    }
    Ok(())
}

const SCENARIO: &str = "
target: tcp://127.0.0.1:5555
load:
  - ramp: {to: 500, over: 1s}
  - hold: {for: 1s}
user:
  - connect
  - every:
      period: 500ms
      do: [send: hello, expect: hello]
thresholds:
  - message.p99 < 1s
";
