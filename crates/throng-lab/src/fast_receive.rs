//! The lab `fast-receive`: many open connections with more and more requests: at which rate does
//! latency rise above its baseline?

use std::time::Duration;

use serde::Serialize;
use throng_base::units::show_duration;
use throng_load::scenario::Quantity;
use throng_measure::{Grade, Interval, LoadInterval, Operation};
use throng_report::Summary;
use throng_report::render::{count, micros, or_dash, rate};
use throng_run::rates::steps;
use throng_run::test_bed::{FinishedRun, LoadSpec, ServerSpec, TestBedServer};

use crate::erlang::{self, ErlangServer};
use crate::error::LabError;
use crate::experiment::Experiment;
use crate::knee::{Knee, KneeWatch, Point, knee};
use crate::lab::Lab;
use crate::measure::{failures, latency, validity_until};
use crate::progress::LabProgress;
use crate::report::{LabReport, LabTable};
use crate::sized_scenario::SizedScenario;

/// The result of one server.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
struct Row {
    server: String,
    /// The article's figure for this server, in messages per second.
    article: Option<f64>,
    /// Messages per second that were due before the knee; the most answered ones without a knee.
    rate_at_knee: Option<f64>,
    /// True when latency rose above its baseline.
    has_knee: bool,
    /// Messages per second in the best second, whatever the latency.
    rate_most: Option<f64>,
    /// The most messages that were due in a second.
    intended_most: f64,
    /// p50 up to the knee.
    p50_us: u64,
    /// p99 up to the knee.
    p99_us: u64,
    /// The baseline of the p99.
    ground_us: Option<u64>,
    connected_most: u64,
    failed: u64,
    grade: Grade,
    reasons: Vec<String>,
}

pub(crate) fn run(
    lab: &Lab<'_>,
    experiment: &'static Experiment,
    progress: &mut dyn FnMut(LabProgress<'_>),
) -> Result<LabReport, LabError> {
    let mut notes = Vec::new();
    let peers = article_servers(lab).unwrap_or_else(|reason| {
        progress(LabProgress::Note(&reason));
        notes.push(reason);
        Vec::new()
    });
    // All rows have the same load. An Erlang server has one fd table, which also holds other fds.
    let places = if peers.is_empty() {
        lab.machine.pairs_most()
    } else {
        lab.machine.fds_per_table.saturating_sub(PEER_FDS)
    };
    let places = ("places".to_owned(), Quantity::number(places as f64));
    let sized = experiment.size(lab.known().into_iter().chain([places]).collect())?;
    let users = sized.param("users") as u64;
    lab.check_fits(users)?;
    let seconds = sized.seconds();
    let of = 1 + peers.len();

    progress(LabProgress::Row { name: THRONG, number: 1, of, seconds });
    let cores = lab.machine.cores_for(users);
    let server = lab.test_bed.serve(ServerSpec::new(THRONG, "ok", cores))?;
    let (throng, mut interrupted) =
        run_row(lab, (THRONG, "throng serve ok", None), server, &sized, progress)?;
    let mut rows = vec![throng];

    for (i, peer) in peers.iter().enumerate() {
        if interrupted || lab.test_bed.is_stopped() {
            interrupted = true;
            break;
        }
        progress(LabProgress::Row { name: peer.row, number: i + 2, of, seconds });
        let names = (peer.row, peer.title, peer.messages_per_second);
        let run = peer.start(lab.test_bed, lab.machine.cpus).map_err(LabError::from);
        match run.and_then(|server| run_row(lab, names, server, &sized, progress)) {
            Ok((row, was_interrupted)) => {
                interrupted |= was_interrupted;
                rows.push(row);
            }
            // The others run even if one server cannot.
            Err(error) => notes.push(format!("{} is missing: {error}", peer.row)),
        }
    }
    for row in rows.iter().filter(|row| row.grade != Grade::Valid) {
        notes.push(format!("{} is {}: {}", row.server, row.grade, row.reasons.join("; ")));
    }
    notes.push(format!(
        "the knee is {}; each row ends soon after it, and its grade is that of the seconds before",
        crate::knee::describe()
    ));
    Ok(LabReport {
        setup: format!(
            "{} connections, 1 to 10 messages a second on each, growing for {} ({} to {} in all), \
             on {} CPUs",
            count(users as f64),
            show_duration(Duration::from_secs_f64(sized.param("grows"))),
            rate(users as f64),
            rate(10.0 * users as f64),
            lab.machine.cpus
        ),
        tables: vec![table(&rows)],
        verdict: verdict(&rows),
        notes,
        grade: rows.iter().map(|row| row.grade).max().unwrap_or_default(),
        interrupted,
        rows: serde_json::to_value(&rows).expect("rows are plain data"),
        ..LabReport::of(&experiment.info)
    })
}

/// Returns the article's servers that can run here.
///
/// # Errors
/// A sentence that says why the lab leaves them out.
fn article_servers(lab: &Lab<'_>) -> Result<Vec<ErlangServer>, String> {
    if lab.options.only_throng {
        return Err("the article's servers are left out, as requested".to_owned());
    }
    if lab.test_bed.is_isolated() {
        return Err(
            "the article's servers are left out: they listen on loopback only, not with --isolate"
                .to_owned(),
        );
    }
    let most = lab.machine.fds_per_table.saturating_sub(PEER_FDS);
    if lab.options.users.is_some_and(|users| users > most) {
        return Err(format!(
            "the article's servers are left out: their single fd table holds {most} connections \
             here (raise ulimit -n)"
        ));
    }
    erlang::prepare(lab.test_bed)
}

/// Runs the load against `server`, whose row, title and article's figure are `names`.
fn run_row(
    lab: &Lab<'_>,
    (name, title, article): (&str, &str, Option<f64>),
    server: TestBedServer,
    sized: &SizedScenario,
    progress: &mut dyn FnMut(LabProgress<'_>),
) -> Result<(Row, bool), LabError> {
    let target = sized.target();
    let spec = LoadSpec::new(name, &target, &sized.text, sized.seconds());
    let mut watch = KneeWatch::new(point);
    let run = lab.test_bed.load(
        &spec,
        &server.endpoint,
        &mut |event| progress(LabProgress::Run(event)),
        |interval| watch.add(interval),
    )?;
    server.stop();
    Ok((row(title, article, &run), run.interrupted))
}

fn row(server: &str, article: Option<f64>, run: &FinishedRun) -> Row {
    let summary = Summary::of(&run.file);
    let points = points(&run.file.intervals);
    let found = knee(&points);
    let until_ms = found.map_or(u64::MAX, |Knee { at_ms, .. }| at_ms.saturating_sub(1));
    let good = run.file.intervals.iter().filter(|interval| interval.at_ms <= until_ms);
    let ground = latency(good, |load| load.latency(Operation::Message));
    let last = run.file.intervals.iter().rev().find_map(|interval| interval.load.as_ref());
    let validity = validity_until(&run.file, until_ms);
    let most = points.iter().map(|point| point.rate).fold(0.0, f64::max);
    Row {
        server: server.to_owned(),
        article,
        rate_at_knee: found.map_or((most > 0.0).then_some(most), |knee| Some(knee.rate)),
        has_knee: found.is_some(),
        rate_most: summary.message.rate_most,
        intended_most: points.iter().map(|point| point.intended_rate).fold(0.0, f64::max),
        p50_us: ground.p50,
        p99_us: ground.p99,
        ground_us: crate::knee::baseline(&points),
        connected_most: summary.users.connected_most,
        failed: last.map_or(0, failures),
        grade: validity.grade,
        reasons: validity.reasons,
    }
}

/// Returns the seconds in which messages were due.
fn points(intervals: &[Interval]) -> Vec<Point> {
    steps(intervals).filter_map(|(interval, before, now, _)| point(interval, before, now)).collect()
}

fn point(interval: &Interval, before: &LoadInterval, now: &LoadInterval) -> Option<Point> {
    let grown = now.counters.since(&before.counters);
    let seconds = interval.span_ms as f64 / 1000.0;
    // After the first turn, a second without one is a second in which all users wait.
    let has_begun = grown.turns_intended + before.counters.turns_intended > 0;
    let counts = has_begun && interval.span_ms >= WHOLE_SECOND_MS;
    (counts && !now.is_leaving()).then(|| Point {
        at_ms: interval.at_ms,
        intended_rate: grown.turns_intended as f64 / seconds,
        rate: grown.messages_answered as f64 / seconds,
        p99_us: (!now.latency(Operation::Message).is_empty())
            .then(|| now.latency(Operation::Message).percentile(99.0)),
    })
}

fn table(rows: &[Row]) -> LabTable {
    let mut table = LabTable::new(
        "Messages a second, p50 and p99 until the knee of the latency; the article on 8 cores",
        ["server", "knee", "p50", "p99", "most", "", "article"],
    );
    for row in rows {
        table.row([
            row.server.clone(),
            if row.has_knee { or_dash(row.rate_at_knee, rate) } else { "none".to_owned() },
            micros(row.p50_us),
            micros(row.p99_us),
            or_dash(row.rate_most, rate),
            row.grade.to_string(),
            or_dash(row.article, rate),
        ]);
    }
    table
}

/// Returns the sentences of the verdict. The first row is throng's.
fn verdict(rows: &[Row]) -> Vec<String> {
    let Some(first) = rows.first().filter(|row| row.rate_at_knee.is_some()) else {
        return vec!["No message was answered: there is nothing to compare.".to_owned()];
    };
    let mut sentences: Vec<_> = rows.iter().map(about).collect();
    let mine = first.rate_at_knee.unwrap_or(0.0);
    for row in &rows[1..] {
        let Some(theirs) = row.rate_at_knee.filter(|rate| *rate > 0.0) else { continue };
        let factor = mine / theirs;
        let at_least = if first.has_knee || !row.has_knee { "" } else { "at least " };
        sentences.push(match factor {
            _ if !first.has_knee && !row.has_knee => format!(
                "{} and {} both handled the whole load: they differ in latency alone.",
                first.server, row.server
            ),
            factor if (1.0 / NOISE..=NOISE).contains(&factor) => format!(
                "{} and {} do not differ on this machine ({} and {}).",
                first.server,
                row.server,
                rate(mine),
                rate(theirs)
            ),
            factor => format!(
                "{} handled {at_least}{factor:.1} times as many messages as {}.",
                first.server, row.server
            ),
        });
    }
    sentences
}

fn about(row: &Row) -> String {
    let failed = match row.failed {
        0 => String::new(),
        n => format!(" {} failed.", count(n as f64)),
    };
    let sentences = match (row.rate_at_knee, row.has_knee) {
        (None, _) => format!("{}: no message was answered.", row.server),
        (Some(most), false) => format!(
            "{}: latency stayed at its baseline up to {} (p99 {}); offer more with --users.",
            row.server,
            rate(most),
            micros(row.p99_us)
        ),
        (Some(most), true) => format!(
            "{}: latency rose above its baseline beyond {} (p50 {}, p99 {} until then).",
            row.server,
            rate(most),
            micros(row.p50_us),
            micros(row.p99_us)
        ),
    };
    sentences + &failed
}

const THRONG: &str = "throng";
/// The fds of an Erlang server that are not connections.
const PEER_FDS: u64 = 128;
/// The shortest interval with a meaningful rate.
const WHOLE_SECOND_MS: u64 = 500;
/// The factor within which the rates of single runs are alike.
const NOISE: f64 = 1.10;

#[cfg(test)]
mod tests {

    use super::*;
    use throng_run::test_bed::NextStep;

    #[test]
    fn a_row_ends_when_its_knee_is_certain_and_not_before() {
        let mut watch = KneeWatch::new(point);
        let mut load = LoadInterval::default();
        let mut see = |second: u64, p99_ms: u64| {
            load.counters.turns_intended += 1000 * second;
            load.counters.messages_answered += 1000 * second;
            load.times[Operation::Message] = throng_measure::Histogram::new();
            load.times[Operation::Message].record_us(1000 * p99_ms);
            let load = Some(load.clone());
            let at_ms = 1000 * second;
            watch.add(&Interval { at_ms, span_ms: 1000, load, ..Interval::default() })
        };
        assert!((0..=14).all(|second| see(second, 1) == NextStep::Continue));
        assert!((15..=17).all(|second| see(second, 80) == NextStep::Continue));
        assert_eq!(see(18, 80), NextStep::Stop);
    }

    fn row(server: &str, rate: f64, has_knee: bool) -> Row {
        Row {
            server: server.into(),
            rate_at_knee: Some(rate),
            has_knee,
            p50_us: 300,
            p99_us: 2000,
            ..Row::default()
        }
    }

    #[track_caller]
    fn check(rows: &[Row], says: &[&str]) {
        let sentences = verdict(rows);
        assert_eq!(sentences.len(), says.len(), "{sentences:#?}");
        for (sentence, text) in sentences.iter().zip(says) {
            assert!(sentence.contains(text), "no {text:?} in {sentence:?}");
        }
    }

    #[test]
    fn each_server_gets_a_sentence_and_a_comparison() {
        check(
            &[
                row("throng", 100_000.0, true),
                row("ranch", 25_000.0, true),
                row("gen_tcp", 95_000.0, true),
            ],
            &[
                "throng: latency rose above its baseline beyond 100k/s (p50 300 µs, p99 2.00 ms",
                "ranch: latency rose above its baseline beyond 25",
                "gen_tcp: latency",
                "throng handled 4.0 times as many messages as ranch",
                "throng and gen_tcp do not differ",
            ],
        );
    }

    #[test]
    fn a_server_without_a_knee_took_at_least_that() {
        check(
            &[row("throng", 100_000.0, false), row("ranch", 25_000.0, true)],
            &["at its baseline up to 100k/s", "rose above", "handled at least 4.0 times"],
        );
        check(
            &[row("throng", 100.0, false), row("ranch", 100.0, false)],
            &["stayed at its baseline", "stayed at its baseline", "both handled the whole load"],
        );
    }

    #[test]
    fn no_answers_are_nothing_to_compare() {
        check(&[], &["nothing to compare"]);
        check(&[Row::default()], &["nothing to compare"]);
        let silent = Row { server: "ranch".into(), ..Row::default() };
        check(&[row("throng", 1.0, true), silent], &["throng", "ranch: no message was answered"]);
    }
}
