//! The lab `fast-receive`: many open connections with more and more requests: at which rate does
//! latency rise above its baseline?

use std::time::Duration;

use serde::Serialize;
use throng_base::units::show_duration;
use throng_report::render::{count, micros, or_dash, rate};
use throng_report::{Grade, Interval, LoadInterval, Summary};

use crate::erlang::{self, ErlangServer};
use crate::error::LabError;
use crate::knee::{CEILING_US, FLOOR_US, Knee, POINTS_UP, Point, TIMES_BASELINE, knee};
use crate::lab::Lab;
use crate::measure::{failures, latency, steps, validity_until};
use crate::options::LabInfo;
use crate::progress::LabProgress;
use crate::report::{LabReport, LabTable, SCHEMA};
use crate::test_bed::{FinishedRun, LoadSpec, NextStep, ServerSpec};

pub(crate) const INFO: LabInfo = LabInfo {
    name: "fast-receive",
    article: "Fast TCP sockets (Erlang Central): receiving messages",
    summary: "25,000 connections, 1 to 10 messages a second on each: the rate at which latency \
              rises",
    takes_rate: false,
};

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
    progress: &mut dyn FnMut(LabProgress<'_>),
) -> Result<LabReport, LabError> {
    let mut notes = Vec::new();
    let peers = article_servers(lab).unwrap_or_else(|reason| {
        progress(LabProgress::Note(&reason));
        notes.push(reason);
        Vec::new()
    });
    // All rows have the same load. An Erlang server has one fd table, which also holds other fds.
    let users = if peers.is_empty() {
        lab.users_or(25_000)
    } else {
        lab.users_or(lab.machine.fds_per_table.saturating_sub(PEER_FDS).clamp(1, 25_000))
    };
    lab.check_fits(users)?;
    let grows = Duration::from_secs(lab.options.seconds.unwrap_or(20));
    let shape = LoadShape { users, per_second: CONNECTS.min(users), grows };
    let text = scenario(&shape);
    let seconds = (shape.connects() + grows).as_secs();
    let of = 1 + peers.len();

    progress(LabProgress::Row { name: THRONG, number: 1, of, seconds });
    let cores = lab.machine.cores_for(users);
    let server = lab.test_bed.serve(ServerSpec::new(THRONG, "ok", cores))?;
    let spec = LoadSpec::tcp(THRONG, &text, seconds);
    let mut watch = KneeWatch::default();
    let run =
        lab.test_bed.load(&spec, &server.endpoint, progress, |interval| watch.add(interval))?;
    server.stop();
    let mut interrupted = run.interrupted;
    let mut rows = vec![row("throng serve ok", None, &run)];

    for (i, peer) in peers.iter().enumerate() {
        if interrupted || lab.test_bed.is_stopped() {
            interrupted = true;
            break;
        }
        progress(LabProgress::Row { name: peer.row, number: i + 2, of, seconds });
        match run_article_server(lab, peer, &text, seconds, progress) {
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
        "the knee is the first second of at least {POINTS_UP} whose p99 is above {TIMES_BASELINE} \
         times the baseline (the median p99 of the first quarter) and above {}, or above {}; each \
         row ends soon after it, and its grade is that of the seconds before",
        micros(FLOOR_US),
        micros(CEILING_US)
    ));
    Ok(LabReport {
        schema: SCHEMA,
        diagnoses: Vec::new(),
        lab: INFO.name,
        article: INFO.article,
        setup: format!(
            "{} connections, 1 to 10 messages a second on each, growing for {} ({} to {} in all), \
             on {} CPUs",
            count(users as f64),
            show_duration(grows),
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
        kept: None,
        next: Vec::new(),
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

fn run_article_server(
    lab: &Lab<'_>,
    peer: &ErlangServer,
    text: &str,
    seconds: u64,
    progress: &mut dyn FnMut(LabProgress<'_>),
) -> Result<(Row, bool), LabError> {
    let server = peer.start(lab.test_bed, lab.machine.cpus)?;
    let spec = LoadSpec::tcp(peer.row, text, seconds);
    let mut watch = KneeWatch::default();
    let run =
        lab.test_bed.load(&spec, &server.endpoint, progress, |interval| watch.add(interval))?;
    server.stop();
    Ok((row(peer.title, peer.messages_per_second, &run), run.interrupted))
}

/// The growth of the load.
struct LoadShape {
    users: u64,
    /// Connects per second before the growth.
    per_second: u64,
    grows: Duration,
}

impl LoadShape {
    fn connects(&self) -> Duration {
        Duration::from_millis((1000 * self.users).div_ceil(self.per_second.max(1)))
    }
}

fn scenario(shape: &LoadShape) -> String {
    let LoadShape { users, per_second, grows } = shape;
    let (connects, grows) = (show_duration(shape.connects()), show_duration(*grows));
    format!(
        "target: tcp://127.0.0.1:4444
load:
  - arrivals: {{rate: {per_second}/s, for: {connects}, most: {users}, spacing: even}}
  - hold: {{for: {grows}}}
user:
  - connect
  - every:
      rate: {{from: 1/s, to: 10/s, over: {grows}}}
      for: {grows}
      do:
        - send: \"I'm requesting the service\"
        - expect: {{text: ok, timeout: 5s}}
  - close
on_error: stop
"
    )
}

fn row(server: &str, article: Option<f64>, run: &FinishedRun) -> Row {
    let summary = Summary::of(&run.file);
    let points = points(&run.file.intervals);
    let found = knee(&points);
    let until_ms = found.map_or(u64::MAX, |Knee { at_ms, .. }| at_ms.saturating_sub(1));
    let good = run.file.intervals.iter().filter(|interval| interval.at_ms <= until_ms);
    let ground = latency(good, |load| load.latencies().message);
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
        p99_us: (!now.latencies().message.is_empty())
            .then(|| now.latencies().message.percentile(99.0)),
    })
}

/// Ends a row soon after its knee: messages that are due later only queue up.
#[derive(Default)]
struct KneeWatch {
    before: Option<LoadInterval>,
    points: Vec<Point>,
}

impl KneeWatch {
    fn add(&mut self, interval: &Interval) -> NextStep {
        let Some(now) = &interval.load else { return NextStep::Continue };
        if let Some(before) = self.before.replace(now.clone()) {
            self.points.extend(point(interval, &before, now));
        }
        let last_ms = self.points.last().map_or(0, |point| point.at_ms);
        // The next seconds can still disprove a knee.
        let is_known = |knee: Knee| last_ms >= knee.at_ms + 1000 * POINTS_UP as u64;
        let enough = self.points.len() >= POINTS_LEAST;
        if enough && knee(&self.points).is_some_and(is_known) {
            NextStep::Stop
        } else {
            NextStep::Continue
        }
    }
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
/// New connections per second: enough for a short start, few enough for the shortest accept queue.
const CONNECTS: u64 = 2_500;
/// The fewest seconds that give a baseline.
const POINTS_LEAST: usize = 12;
/// The fds of an Erlang server that are not connections.
const PEER_FDS: u64 = 128;
/// The shortest interval with a meaningful rate.
const WHOLE_SECOND_MS: u64 = 500;
/// The factor within which the rates of single runs are alike.
const NOISE: f64 = 1.10;

#[cfg(test)]
mod tests {

    use super::*;
    use crate::lab::assert_same_scenario;

    #[test]
    fn the_article_s_sizes_give_the_bundled_scenario() {
        let bundled = include_str!("../../../labs/fast-receive.yaml");
        let shape = LoadShape { users: 25_000, per_second: 500, grows: Duration::from_secs(1200) };
        assert_same_scenario(&scenario(&shape), bundled);
    }

    #[test]
    fn a_row_ends_when_its_knee_is_certain_and_not_before() {
        let mut watch = KneeWatch::default();
        let mut load = LoadInterval::default();
        let mut see = |second: u64, p99_ms: u64| {
            load.counters.turns_intended += 1000 * second;
            load.counters.messages_answered += 1000 * second;
            load.message = throng_report::Histogram::new();
            load.message.record_us(1000 * p99_ms);
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
