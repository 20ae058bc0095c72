//! An experiment of your own, with both ends in this process: what one message costs the server as
//! the messages get longer: `cargo run --release --example lab`.

use throng::report::render::Table;
use throng::{Load, Server};

fn main() -> throng::Result {
    let mut table = Table::with_head(["bytes", "messages", "p50 us", "p99 us", "grade"]);
    for bytes in [16, 1_024, 16_384] {
        let server =
            Server::bind("127.0.0.1:0").on_bytes(|conn, bytes| conn.send(bytes)).start()?;
        let outcome =
            Load::new(scenario(bytes)).target(format!("tcp://{}", server.addr())).run()?;
        let (summary, latency) =
            (&outcome.result.summary, outcome.result.summary.message.latency_us);
        table.row([
            bytes.to_string(),
            summary.message.answered.to_string(),
            latency.p50.to_string(),
            latency.p99.to_string(),
            summary.validity.grade.to_string(),
        ]);
    }
    println!("{table}");
    Ok(())
}

/// Returns the experiment's load: fifty users, twenty messages a second each.
fn scenario(bytes: usize) -> String {
    format!(
        "
target: tcp://127.0.0.1:5555
load:
  - ramp: {{to: 50, over: 500ms}}
  - hold: {{for: 1s}}
user:
  - connect
  - every:
      rate: 20/s
      do: [send: {{random: {bytes}B}}, expect: {{bytes: {bytes}}}]
"
    )
}
