//! Each `worker_start` starts its users by MZBench's formula, to within 1 %: tested on the compiled
//! schedule.

use std::time::Duration;

use throng_load::schedule::Arrivals;

use super::parse;
use crate::import_text;

/// Returns the moments at which users arrive, in seconds.
fn arrivals(pools: &[(u64, &str)]) -> Vec<f64> {
    let pool = |(size, start): &(u64, &str)| {
        let start =
            if start.is_empty() { String::new() } else { format!(", worker_start = {start}") };
        format!(
            "pool(size = {size}, worker_type = tcp_worker{start}):\n    connect_sync(\"h\", 1)\n"
        )
    };
    let pools: Vec<_> = pools.iter().map(pool).collect();
    let import = import_text(&format!("#!benchDL\n{}", pools.join("")), "starts.bdl").unwrap();
    let scenario = parse(&import.scenario);
    Arrivals::new(scenario.load.shared(), 0, 1, 7).map(|at: Duration| at.as_secs_f64()).collect()
}

/// Compares how many have started with the moments of the formula.
fn check(pools: &[(u64, &str)], mut expected: Vec<f64>) {
    let started = arrivals(pools);
    assert_eq!(started.len(), expected.len(), "{pools:?}");
    expected.sort_by(f64::total_cmp);
    let size = expected.len() as f64;
    for (index, moment) in expected.iter().enumerate() {
        // A burst takes a millisecond.
        let by_now = started.partition_point(|at| *at <= moment + 0.0015) as f64;
        let should = index as f64 + 1.0;
        let is_later = expected.get(index + 1).is_none_or(|next| *next > moment + 0.003);
        let difference =
            if is_later { (by_now - should).abs() } else { (should - by_now).max(0.0) };
        assert!(
            difference <= (0.01 * size).max(1.0),
            "{pools:?}: {by_now} and not {should} at {moment}"
        );
    }
}

fn by(size: u64, moment: impl Fn(f64) -> f64) -> Vec<f64> {
    (0..size).map(|worker| moment(worker as f64)).collect()
}

#[test]
fn absent_all_at_once() {
    check(&[(500, "")], by(500, |_| 0.0));
    check(&[(1, "")], by(1, |_| 0.0));
}

#[test]
fn linear() {
    check(&[(500, "linear(7 rps)")], by(500, |i| i / 7.0));
    check(&[(90, "linear(90 rpm)")], by(90, |i| i / 1.5));
    check(&[(90, "[linear, 3600 rph]")], by(90, |i| i));
}

#[test]
fn power() {
    for (size, exponent, scale, span) in [
        (20_000u64, 2.0f64, 200.0, 3.0),
        (1000, 1.0, 30.0, 1.0),
        (1000, 0.5, 100.0, 2.0),
        (1000, 0.1, 500.0, 1.0),
        (5000, 1.5, 20.0, 3.0),
        (10_000, 3.0, 7.0, 0.5),
        (10_000, 10.0, 1.0, 1.0),
        (1, 3.0, 7.0, 0.5),
    ] {
        let start = format!("pow({exponent}, {scale}, {span} sec)");
        let moment = |i: f64| span * (i / scale).powf(1.0 / exponent);
        check(&[(size, &start)], by(size, moment));
    }
}

#[test]
fn exponential() {
    for (size, scale, span) in [
        (60u64, 2.0f64, 1.0),
        (10_000, 2.0, 3.0),
        (10_000, 1000.0, 0.5),
        (100, 0.5, 1.0),
        (5, 90.0, 1.0),
    ] {
        let start = format!("exp({scale}, {span} sec)");
        let moment = |i: f64| match i {
            0.0 => 0.0,
            i => (span * (((i + 1.0) / scale).ln() + 1.0)).max(0.0),
        };
        check(&[(size, &start)], by(size, moment));
    }
}

#[test]
fn poisson() {
    let started = arrivals(&[(100_000, "poisson(1000 rps)")]);
    assert_eq!(started.len(), 100_000);
    let last = started[99_999];
    assert!((last - 100.0).abs() < 1.6, "the last one at {last}");
    // The number in a second has the variance of the law.
    let mut seconds = [0.0f64; 95];
    started.iter().filter(|at| **at < 95.0).for_each(|at| seconds[*at as usize] += 1.0);
    let mean = seconds.iter().sum::<f64>() / 95.0;
    let variance = seconds.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / 94.0;
    assert!((mean - 1000.0).abs() < 10.0, "{mean}");
    assert!((500.0..1700.0).contains(&variance), "{variance}");
}

#[test]
fn several_pools() {
    // In one proportion: exact.
    check(&[(100, "linear(5 rps)"), (300, "linear(15 rps)")], by(400, |i| i / 20.0));
    let together = |a: Vec<f64>, b: Vec<f64>| [a, b].concat();
    check(
        &[(1000, "linear(100 rps)"), (1000, "pow(2, 10, 1 sec)")],
        together(by(1000, |i| i / 100.0), by(1000, |i| (i / 10.0).sqrt())),
    );
    check(
        &[(500, ""), (1000, "linear(100 rps)")],
        together(by(500, |_| 0.0), by(1000, |i| i / 100.0)),
    );
    check(
        &[(1000, "exp(10, 2 sec)"), (1000, "pow(0.5, 100, 1 sec)")],
        together(
            by(
                1000,
                |i| if i == 0.0 { 0.0 } else { (2.0 * (((i + 1.0) / 10.0).ln() + 1.0)).max(0.0) },
            ),
            by(1000, |i| (i / 100.0).powi(2)),
        ),
    );
}

#[test]
fn classes_have_the_sizes_of_their_pools() {
    let text = "#!benchDL\npool(size = 7, worker_type = tcp_worker):\n    connect_sync(\"h\", 1)\n\
                pool(size = 21, worker_type = tcp_worker):\n    connect_sync(\"h\", 1)\n";
    let scenario = parse(&import_text(text, "sizes.bdl").unwrap().scenario);
    let program = throng_load::program::Program::compile(&scenario);
    let first = (0..28).filter(|user| program.class_of(*user) == 0).count();
    assert_eq!(first, 7);
}
