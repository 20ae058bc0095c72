//! The verdict on the three rows.

use throng_measure::Grade;
use throng_report::render::{count, micros, or_dash, rate};

use super::row::Row;

/// Returns sentences about `rows` in their order. The load was `users` users of about a second
/// each; the machine takes `capacity` connections per second, if that was measured.
pub(super) fn verdict(rows: &[Row], users: u64, capacity: Option<f64>) -> Vec<String> {
    let measured: Vec<_> = rows.iter().filter(|row| row.rate_most.is_some()).collect();
    if measured.is_empty() {
        return vec!["No row established a connection: there is nothing to compare.".to_owned()];
    }
    let mut sentences = Vec::new();
    sentences.extend(taken_or_not(&measured, users, capacity));
    for pair in measured.windows(2) {
        sentences.push(compare(pair[0], pair[1]));
    }
    sentences.extend(measured.iter().filter_map(|row| queues(row)));
    sentences.extend(shared_cpus(&measured));
    sentences
}

/// Returns a sentence that says whether the offered load was the limit.
fn taken_or_not(rows: &[&Row], users: u64, capacity: Option<f64>) -> Option<String> {
    let offered = users as f64;
    let took = |row: &&Row| row.rate_most.is_some_and(|rate| rate >= TAKEN * offered);
    if rows.iter().all(took) {
        return Some(match capacity {
            Some(capacity) => format!(
                "Every way to accept handled the whole offered load, {}: at {:.0} % of the {} that \
                 this machine can do with server and generator on it, the way to accept is no \
                 limit.",
                rate(offered),
                offered / capacity * 100.0,
                rate(capacity)
            ),
            None => format!(
                "Every way to accept handled the whole offered load, {}: this load finds no limit. \
                 Offer more with --users.",
                rate(offered)
            ),
        });
    }
    let short: Vec<_> =
        rows.iter().filter(|row| !took(row)).map(|row| row.accept.as_str()).collect();
    let best = rows.iter().filter_map(|row| row.rate_most).fold(0.0, f64::max);
    Some(format!(
        "{} users offer {}; the best row handled {} of it ({:.0} %). These did not handle all of \
         it: {}.",
        count(offered),
        rate(offered),
        rate(best),
        best / offered * 100.0,
        short.join(", ")
    ))
}

/// Returns a sentence about the differences of two rows.
fn compare(a: &Row, b: &Row) -> String {
    let (rate_a, rate_b) = (a.rate_most.unwrap_or(0.0), b.rate_most.unwrap_or(0.0));
    let mut differs = Vec::new();
    if !alike(rate_a, rate_b, RATE_NOISE) {
        let percent = (rate_b / rate_a.max(1.0) - 1.0) * 100.0;
        differs.push(format!("{} and {} ({percent:+.0} %)", rate(rate_a), rate(rate_b)));
    }
    if let (Some(p90_a), Some(p90_b)) = (a.connect_p90_us, b.connect_p90_us)
        && !alike(p90_a as f64, p90_b as f64, LATENCY_NOISE)
        && p90_a.max(p90_b) >= LATENCY_MATTERS_US
    {
        differs.push(format!("p90 of a connect {} and {}", micros(p90_a), micros(p90_b)));
    }
    if let (Some(cpu_a), Some(cpu_b)) = (a.server_cpu_us, b.server_cpu_us)
        && !alike(cpu_a, cpu_b, CPU_NOISE)
    {
        differs.push(format!("server CPU {cpu_a:.1} and {cpu_b:.1} µs a connection"));
    }
    if differs.is_empty() {
        return format!(
            "{} and {} do not differ on this machine: {} and {}, p90 {} and {}. A single run \
             cannot show a difference of less than {:.0} % in rate.",
            a.accept,
            b.accept,
            rate(rate_a),
            rate(rate_b),
            or_dash(a.connect_p90_us, micros),
            or_dash(b.connect_p90_us, micros),
            (RATE_NOISE - 1.0) * 100.0
        );
    }
    format!("{} against {}: {}.", a.accept, b.accept, differs.join(", "))
}

/// Returns a sentence about connections that had to wait; none if they did not.
fn queues(row: &Row) -> Option<String> {
    let accept = &row.accept;
    match (row.overflows.unwrap_or(0), row.registry_mailbox_most.unwrap_or(0)) {
        (overflows, _) if overflows > 0 => Some(format!(
            "{accept}: the accept queue overflowed {} times: the kernel dropped those handshakes, \
             and their clients tried again a second later. A longer queue only helps against \
             bursts.",
            count(overflows as f64)
        )),
        (_, waiting) if accept == "dispatch" && waiting >= MAILBOX_WAITS => Some(format!(
            "dispatch: up to {} accepts waited for the one registry, as in the article (20 to \
             200).",
            count(waiting as f64)
        )),
        _ => None,
    }
}

/// Returns a sentence about rows in which the generator was late; none if it was on time.
fn shared_cpus(rows: &[&Row]) -> Option<String> {
    let late = rows.iter().filter(|row| row.grade == Grade::Invalid);
    let late: Vec<_> = late.map(|row| row.accept.as_str()).collect();
    (!late.is_empty()).then(|| {
        format!(
            "The generator itself was late with {}: it shares the CPUs with the server, so these \
             rates are those of server and generator together. Offer less with --users to measure \
             the server alone.",
            late.join(", ")
        )
    })
}

fn alike(a: f64, b: f64, factor: f64) -> bool {
    a.max(b) <= factor * a.min(b)
}

/// The share of the offered load with which a row handled all of it: connecting also takes time.
const TAKEN: f64 = 0.95;
/// The factor within which the rates of single runs are alike, on a machine with other programs.
const RATE_NOISE: f64 = 1.10;
/// The factor within which percentiles of latency are alike.
const LATENCY_NOISE: f64 = 2.0;
/// The factor within which CPU times per connection are alike; other programs disturb them least.
const CPU_NOISE: f64 = 1.10;
/// The least p90 whose differences matter.
const LATENCY_MATTERS_US: u64 = 2_000;
/// The least queue of the article's supervisor when it was the limit.
const MAILBOX_WAITS: u64 = 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn row(accept: &str, rate: f64, p90_us: u64, server_cpu_us: f64) -> Row {
        Row {
            accept: accept.into(),
            rate_most: Some(rate),
            connect_p90_us: Some(p90_us),
            server_cpu_us: Some(server_cpu_us),
            overflows: Some(0),
            ..Row::default()
        }
    }

    #[track_caller]
    fn check(rows: &[Row], users: u64, says: &[&str], never: &[&str]) {
        let sentences = verdict(rows, users, None).join("\n");
        for text in says {
            assert!(sentences.contains(text), "no {text:?} in:\n{sentences}");
        }
        for text in never {
            assert!(!sentences.contains(text), "{text:?} in:\n{sentences}");
        }
    }

    #[test]
    fn rows_that_do_not_differ_are_said_not_to_differ() {
        let rows = [
            row("dispatch", 30_000.0, 1500, 18.0),
            row("shared", 31_000.0, 1400, 18.5),
            row("reuseport", 32_500.0, 900, 17.9),
        ];
        let says =
            ["dispatch and shared do not differ", "shared and reuseport do not differ", "81 %"];
        check(&rows, 40_000, &says, &["overflowed", "waited", "the whole offered load"]);
    }

    #[test]
    fn the_article_s_own_numbers_give_the_article_s_story() {
        let mut dispatch = row("dispatch", 82_000.0, 1_000_000, 40.0);
        dispatch.registry_mailbox_most = Some(200);
        let mut shared = row("shared", 70_000.0, 1_000_000, 30.0);
        shared.overflows = Some(1234);
        let rows = [dispatch, shared, row("reuseport", 99_000.0, 1500, 25.0)];
        let says = [
            "dispatch: up to 200 accepts waited for the one registry",
            "shared: the accept queue overflowed 1.23k times",
            "shared against reuseport: 70k/s and 99k/s (+41 %)",
            "p90 of a connect 1.00 s and 1.50 ms",
            "server CPU 30.0 and 25.0 µs a connection",
        ];
        check(&rows, 100_000, &says, &["do not differ", "no limit"]);
    }

    #[test]
    fn a_load_that_every_row_takes_finds_no_limit() {
        let rows = ["dispatch", "shared", "reuseport"].map(|accept| row(accept, 990.0, 300, 20.0));
        check(
            &rows,
            1000,
            &["handled the whole offered load, 1k/s", "no limit. Offer", "--users"],
            &["best row"],
        );
    }

    #[test]
    fn a_calibrated_load_that_every_row_takes_names_its_share_of_the_capacity() {
        let rows = super::super::VARIANTS.map(|accept| row(accept, 9_900.0, 300, 20.0));
        let sentences = verdict(&rows, 10_000, Some(12_500.0)).join("\n");
        assert!(sentences.contains("at 80 % of the 12.5k/s"), "{sentences}");
    }

    #[test]
    fn a_late_generator_is_said_to_share_the_cpus() {
        let late = Row { grade: Grade::Invalid, ..row("shared", 500.0, 100, 20.0) };
        check(
            &[row("dispatch", 400.0, 100, 20.0), late],
            1000,
            &["late with shared: it shares"],
            &[],
        );
    }

    #[test]
    fn a_difference_too_small_to_notice_is_none() {
        let rows = [row("dispatch", 990.0, 100, 20.0), row("shared", 990.0, 1900, 20.0)];
        check(&rows, 1000, &["do not differ"], &["against"]);
    }

    #[test]
    fn no_rows_are_nothing_to_compare() {
        check(&[], 10, &["nothing to compare"], &[]);
        check(&[Row::default()], 10, &["nothing to compare"], &[]);
    }
}
