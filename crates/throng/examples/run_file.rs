//! Reads a run file and prints its measurements, second by second:
//! `cargo run --example run_file -- run.jsonl`.

use std::fs::File;
use std::io::BufReader;

use throng::report::Operation;
use throng::report::runfile::RunFileReader;
use throng::report::summary::SummaryFold;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("which run file? run_file run.jsonl")?;
    // A line at a time: a run of hours does not fit into memory.
    let mut run = RunFileReader::open(BufReader::new(File::open(&path)?))?;
    let mut fold = SummaryFold::new(run.header());
    println!("{} against {}", run.header().scenario.path, run.header().target);
    while let Some(interval) = run.next_interval()? {
        fold.add(&interval);
        if let Some(load) = &interval.load {
            let p99 = load.times[Operation::Message].percentile(99.0);
            println!(
                "{:>7} ms  {:>7} connected  p99 {p99} us",
                interval.at_ms, load.counters.connected
            );
        }
    }
    let summary = fold.finish_read(run.end(), run.lines_torn());
    println!("{} messages, {} errors", summary.message.answered, summary.errors.total());
    println!("grade: {}", summary.validity.grade);
    Ok(())
}
