//! The fd table: one for all cores, one for each core, and one where a container permits no other.

use crate::bench::{Bench, confined};

/// The fds of a table that are not connections: 64, three for each core, and the listener of a
/// server.
const fn beside(cores: u64) -> u64 {
    64 + 3 * cores + 1
}

#[test]
fn one_table_holds_exactly_what_the_preflight_says() {
    let mut bench = Bench::behind(&["prlimit", "--nofile=200:200"]).with(&["--cores", "1"]);
    bench.serve("127.0.0.1:0", &["--cores", "1"]);
    assert_eq!(bench.is_exact("fd_tables"), 200 - beside(1));
    bench.fails_when_forced(300, "EMFILE");
}

#[test]
fn a_table_for_each_core_makes_many() {
    let limit: u64 = 120;
    let most = (1..=40).map(|cores| cores * limit.saturating_sub(beside(cores))).max().unwrap();
    let mut bench = Bench::behind(&["prlimit", "--nofile=120:120"]);
    bench.serve("127.0.0.1:0", &["--connections-max", &most.to_string()]);
    let said = bench.preflight(1);
    if said["checks"][0]["because"].as_str().unwrap().contains("cannot have their own") {
        return println!("skipped: cores cannot have fd tables of their own here");
    }
    assert_eq!(bench.is_exact("fd_tables"), most);
}

#[test]
fn where_cores_cannot_part_they_share_one_table() {
    let Some(confined) = confined(&[]) else { return };
    let prefix: Vec<&str> = ["prlimit", "--nofile=400:400"]
        .into_iter()
        .chain(confined.iter().map(String::as_str))
        .collect();
    let mut bench = Bench::behind(&prefix);
    bench.serve("127.0.0.1:0", &[]);
    let cores = std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u64);
    assert_eq!(bench.is_exact("fd_tables"), 400 - (64 + 128 + 5 * cores));
    let because = bench.preflight(1)["checks"][0]["because"].to_string();
    assert!(because.contains("cores cannot have their own"), "{because}");
}
