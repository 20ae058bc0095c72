//! Comparisons of made-up runs.

use throng_base::Prng;
use throng_measure::runfile::{RunEndReason, RunHeader, ScenarioSource};
use throng_measure::{ErrorKind, Interval, LoadInterval, Operation};

use super::*;
use crate::SummaryFold;
use crate::compare::RunSample;
use crate::render::{compare_markdown, compare_text};

/// A made-up run: how it differs from a run of 60 s with 100 connects and 1,000 messages a second.
#[derive(Clone, Debug)]
struct MadeUp {
    seed: u64,
    seconds: u64,
    /// The mean delay of the server, in microseconds.
    delay_us: f64,
    /// How much the delay of a second remembers of the second before, 0 to 1.
    memory: f64,
    errors_a_second: u64,
}

impl MadeUp {
    fn new(seed: u64) -> Self {
        Self { seed, seconds: 60, delay_us: 2_000.0, memory: 0.5, errors_a_second: 0 }
    }

    fn header() -> RunHeader {
        RunHeader {
            started: "2026-03-01T10:00:00Z".to_owned(),
            throng_version: "0.1.0".to_owned(),
            target: "tcp://127.0.0.1:5555".to_owned(),
            users_planned: 6_000,
            scenario: ScenarioSource {
                path: "ping.yaml".to_owned(),
                source: "target: tcp://127.0.0.1:5555\nload: []\n".to_owned(),
            },
            machine: [("cpus".to_owned(), "4".to_owned())].into(),
            ..RunHeader::default()
        }
    }

    fn intervals(&self) -> Vec<Interval> {
        let mut random = Prng::new(self.seed);
        let mut load = LoadInterval { phase: "ramp".to_owned(), ..LoadInterval::default() };
        let mut mood = 0.0;
        let mut intervals = vec![Interval { load: Some(load.clone()), ..Interval::default() }];
        for second in 1..=self.seconds {
            load = load.without_measured();
            // A sum of twelve is close to a normal distribution.
            let normal = (0..12).map(|_| random.unit()).sum::<f64>() - 6.0;
            mood = self.memory * mood + (1.0 - self.memory.powi(2)).sqrt() * normal;
            let delay_us = self.delay_us * (0.1 * mood).exp();
            load.grown_us = 1_000_000;
            load.cores = 1;
            let connects = random.between(95, 105);
            load.counters.users_intended += connects;
            load.counters.users_started += connects;
            load.counters.connects_started += connects;
            load.counters.connects_ok += connects;
            load.counters.connected += connects;
            load.counters.messages_sent += 1_000;
            load.counters.messages_expected += 1_000;
            load.counters.messages_answered += 1_000 - self.errors_a_second;
            load.counters.messages_failed += self.errors_a_second;
            load.errors.add(ErrorKind::ExpectTimeout, self.errors_a_second);
            load.process.pid = 1;
            load.process.cpu_user_us += 20_000 + random.below(2_000);
            load.lag.record_n(20, 100);
            (0..100).for_each(|_| {
                load.times[Operation::Connect].record_us(latency(&mut random, delay_us / 4.0))
            });
            (0..500).for_each(|_| {
                load.times[Operation::Message].record_us(latency(&mut random, delay_us))
            });
            let load = Some(load.clone());
            let (at_ms, span_ms) = (second * 1_000, 1_000);
            intervals.push(Interval { at_ms, span_ms, load, ..Interval::default() });
        }
        intervals
    }

    fn run(&self, file: &str) -> CompareRun {
        let header = Self::header();
        let (mut fold, mut sample) = (SummaryFold::new(&header), RunSample::new());
        for interval in self.intervals() {
            fold.add(&interval);
            sample.add(&interval);
        }
        CompareRun {
            file: file.to_owned(),
            header,
            summary: fold.finish(Some(RunEndReason::Finished), 0),
            sample,
            steered: Vec::new(),
            warnings: Vec::new(),
        }
    }
}

fn latency(random: &mut Prng, mean_us: f64) -> u64 {
    (mean_us * (0.5 + 0.5 * random.exponential())) as u64
}

#[track_caller]
fn change<'a>(comparison: &'a Comparison, name: &str) -> &'a FigureChange {
    let row = comparison.figures.iter().find(|row| row.name == name);
    &row.unwrap_or_else(|| panic!("{name} is not compared")).changes[0]
}

fn regressions(texts: &[&str]) -> Vec<Regression> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

#[test]
fn a_run_is_no_different_from_itself() {
    let run = MadeUp::new(1).run("a.jsonl");
    let limits = regressions(&["connect.p99 > +10%", "errors > +0", "message.rate < -5%"]);
    let comparison = Comparison::of(&[vec![run.clone()], vec![run]], &limits);
    assert_eq!(comparison.mismatches, []);
    for row in &comparison.figures {
        let change = &row.changes[0];
        assert_eq!((change.difference, change.ratio), (Some(0.0), Some(1.0)), "{row:?}");
        assert_ne!(change.excludes_zero, Some(true), "{row:?}");
    }
    assert_eq!(comparison.conclusions[0].sentences, ["no difference that these runs can show"]);
    // Both intervals of a change are of one error, in the unit of the figure and as a share of it.
    for row in &comparison.figures {
        let FigureChange { difference_interval, ratio_interval, .. } = &row.changes[0];
        let Some((of_value, of_one)) = difference_interval.zip(*ratio_interval) else { continue };
        let [of_value, of_one] = [of_value, of_one].map(|(low, high)| high - low);
        let share = of_value / row.values[0].unwrap();
        assert!((share - of_one).abs() <= 0.1 * of_one, "{row:?}");
        // Messages come at a rate that never changes, and connects do not.
        assert!(row.name != "connect.rate_mean" || of_one > 0.001, "{row:?}");
    }
    assert!(!comparison.has_regressed() && !comparison.is_invalid(), "{comparison:#?}");
}

#[test]
fn a_server_with_twice_the_delay_is_found() {
    let slow = MadeUp { delay_us: 4_000.0, ..MadeUp::new(2) };
    let sides = [vec![MadeUp::new(1).run("a.jsonl")], vec![slow.run("b.jsonl")]];
    let limits = regressions(&["message.p99 > +10%", "connect.p50 > +1ms", "message.p50 > +500%"]);
    let comparison = Comparison::of(&sides, &limits);
    for name in ["connect.p50", "connect.p99", "message.p50", "message.p90", "message.p99"] {
        let change = change(&comparison, name);
        assert_eq!(change.direction, Some("worse"), "{name}: {change:?}");
        let (low, high) = change.ratio_interval.unwrap();
        assert!(low > 1.2 && low < 2.1 && high > 1.9 && high < 3.5, "{name}: {change:?}");
    }
    assert_eq!(change(&comparison, "message.max").excludes_zero, None);
    assert_ne!(change(&comparison, "message.rate_mean").direction, Some("worse"));
    let beyond: Vec<_> =
        comparison.regressions.iter().map(|result| (result.beyond, result.certain)).collect();
    assert_eq!(beyond[0], (true, Some(true)));
    assert_eq!((beyond[1].0, beyond[2]), (false, (false, Some(true))));
    let note = &comparison.method.note;
    assert!(note.contains("says nothing about the difference between runs"), "{note}");
}

#[test]
fn a_server_that_is_hundreds_of_times_slower_is_not_described_in_per_cent() {
    let slow = MadeUp { delay_us: 500_000.0, ..MadeUp::new(2) };
    let sides = [vec![MadeUp::new(1).run("a")], vec![slow.run("b")]];
    let comparison = Comparison::of(&sides, &regressions(&["message.p50 > +10%"]));
    let sentence = comparison.conclusions[0].sentences.iter().find(|it| it.contains("p50 of m"));
    let sentence = sentence.expect("a sentence");
    assert!(sentence.contains(" times as large (95 % interval ×2"), "{sentence}");
    assert!(!sentence.contains(" %,") && !sentence.contains("grew"), "{sentence}");
    let shown = &change(&comparison, "message.p50").shown;
    assert!(shown.starts_with("×2"), "{shown}");
    let result = &comparison.regressions[0];
    assert!(result.text.contains("); the whole 95 % interval is beyond"), "{result:?}");
}

#[test]
fn repeats_show_a_difference_from_run_to_run() {
    let side = |seeds: std::ops::Range<u64>, delay_us| -> Vec<CompareRun> {
        seeds
            .map(|seed| {
                let delay_us = delay_us * (1.0 + 0.01 * (seed % 3) as f64);
                MadeUp { delay_us, seconds: 20, ..MadeUp::new(seed) }.run("r.jsonl")
            })
            .collect()
    };
    let comparison = Comparison::of(&[side(0..3, 2_000.0), side(3..6, 4_000.0)], &[]);
    assert_eq!(comparison.method.name, "repeats");
    assert_eq!(change(&comparison, "message.p99").direction, Some("worse"));
    let row = comparison.figures.iter().find(|row| row.name == "message.p99").unwrap();
    let mut merged = throng_measure::Histogram::new();
    side(0..3, 2_000.0)
        .iter()
        .for_each(|run| merged.merge(&run.summary.latencies["message"].answered));
    assert_eq!(row.values[0], Some(merged.percentile(99.0) as f64), "it is no mean");
    let same = Comparison::of(&[side(0..3, 2_000.0), side(0..3, 2_000.0)], &[]);
    assert_eq!(change(&same, "message.p99").excludes_zero, Some(false));
}

#[test]
fn a_single_run_of_many_has_intervals_of_the_bootstrap() {
    let run = |seed| MadeUp { errors_a_second: 2, ..MadeUp::new(seed) }.run("r.jsonl");
    let comparison = Comparison::of(&[vec![run(1), run(2)], vec![run(3)]], &[]);
    assert_eq!(comparison.method.name, "intervals");
    assert!(change(&comparison, "message.p99").excludes_zero.is_some());
}

#[test]
fn a_repeat_makes_the_interval_of_a_count_no_wider() {
    let run = || {
        let mut run = MadeUp::new(1).run("r.jsonl");
        let mut load = LoadInterval::default();
        run.sample = RunSample::new();
        for second in 1..=60_u64 {
            load.errors.add(ErrorKind::ExpectTimeout, second % 7);
            let (at_ms, load) = (second * 1_000, Some(load.clone()));
            run.sample.add(&Interval { at_ms, span_ms: 1_000, load, ..Interval::default() });
        }
        run
    };
    let width = |sides: &[Vec<CompareRun>]| {
        let comparison = Comparison::of(sides, &[]);
        let (low, high) = change(&comparison, "errors").difference_interval.unwrap();
        high - low
    };
    let one = width(&[vec![run()], vec![run()]]);
    let two = width(&[vec![run(), run()], vec![run()]]);
    assert!(two < one && two > 0.7 * one, "{one} {two}");
}

/// Compares two runs of the same server many times, and counts the intervals that say so.
#[test]
fn intervals_cover_the_truth_about_as_often_as_they_say() {
    let (mut covered, mut of, mut differences) = ([0; 3], 0, [const { Vec::new() }; 3]);
    let mut widths = [0.0; 3];
    for round in 0..60 {
        // Short runs: what is hard for a bootstrap.
        let run = |seed| MadeUp { seconds: 40, ..MadeUp::new(seed) }.run("r.jsonl");
        let sides = [vec![run(1_000 + 2 * round)], vec![run(1_001 + 2 * round)]];
        let comparison = Comparison::of(&sides, &[]);
        of += 1;
        for (at, name) in ["message.p50", "message.p99", "connect.p90"].into_iter().enumerate() {
            let change = change(&comparison, name);
            covered[at] += u32::from(change.excludes_zero == Some(false));
            differences[at].push(change.difference.unwrap());
            let (low, high) = change.difference_interval.unwrap();
            widths[at] += (high - low) / 60.0;
        }
    }
    for (at, covered) in covered.into_iter().enumerate() {
        // 95 % of 60 is 57. With the seeds above it is always the same number.
        assert!((52..=60).contains(&covered), "{covered} of {of}");
        // The true interval reaches 1.96 standard deviations to either side.
        let squares: f64 = differences[at].iter().map(|difference: &f64| difference.powi(2)).sum();
        let truth = 2.0 * 1.96 * (squares / 60.0).sqrt();
        let width = widths[at] / truth;
        assert!((0.75..1.6).contains(&width), "{width} times the true width");
    }
}

#[test]
fn no_difference_says_so_where_most_figures_cannot_be_told_from_chance() {
    assert_eq!(no_difference(9, 18), "no difference that these runs can show");
    let few = no_difference(2, 18);
    assert!(few.contains("only 2 of 18 figures"), "{few}");
    assert!(no_difference(0, 18).contains("too short"));
}

#[test]
fn what_differs_besides_is_said_first() {
    let (one, mut other) = (MadeUp::new(1).run("a.jsonl"), MadeUp::new(1).run("b.jsonl"));
    other.header.scenario.source = "target: tcp://127.0.0.1:5555\nload: [x]\n".to_owned();
    other.header.target = "tcp://10.0.0.1:5555".to_owned();
    other.header.throng_version = "0.2.0".to_owned();
    other.header.command = vec!["throng".to_owned(), "--seed".to_owned(), "7".to_owned()];
    other.header.users_planned = 7_000;
    other.header.machine.insert("cpus".to_owned(), "8".to_owned());
    other.summary.paused_s = 3.0;
    other.steered =
        ["start 10", "pause", "start 10", "stop 5", "start 9"].map(str::to_owned).into();
    other.summary.duration_s = 80.0;
    other.summary.validity.grade = Grade::Invalid;
    other.summary.validity.reasons.push("the generator was late".to_owned());
    let comparison = Comparison::of(&[vec![one], vec![other]], &[]);
    let texts: Vec<_> = comparison.mismatches.iter().map(|found| found.text.as_str()).collect();
    assert_eq!(
        texts,
        [
            "B is invalid: the generator was late",
            "B was paused for 3 s",
            "B was steered while it ran: start 10, start 10, stop 5, …",
            "the scenario of B is another text, first in line 2: `load: []` against `load: [x]`",
            "the targets differ: A tcp://127.0.0.1:5555; B tcp://10.0.0.1:5555",
            "the machine of B differs: cpus 4 against 8",
            "the versions of throng differ: A 0.1.0; B 0.2.0",
            "the seeds differ: A 1; B 7",
            "the users differ: A 6k; B 7k",
            "the lengths differ by more than a tenth: A 60 s; B 80 s",
        ]
    );
    assert!(comparison.is_invalid());
}

#[test]
fn intervals_of_another_length_are_said() {
    let of = |span_ms: u64| {
        let mut run = MadeUp::new(1).run(&format!("{span_ms}.jsonl"));
        run.sample = RunSample::new();
        for interval in MadeUp::new(1).intervals() {
            let span_ms = if interval.span_ms > 0 { span_ms } else { 0 };
            run.sample.add(&Interval { span_ms, ..interval });
        }
        vec![run]
    };
    let comparison = Comparison::of(&[of(1_000), of(1_004)], &[]);
    assert_eq!(comparison.mismatches, [], "no interval is as long as the next one");
    let comparison = Comparison::of(&[of(1_000), of(100)], &[]);
    let [found] = &comparison.mismatches[..] else { panic!("{:?}", comparison.mismatches) };
    assert_eq!(found.text, "the lengths of the intervals differ: A 1.00 s; B 100 ms");
}

#[test]
fn a_comparison_is_written_as_text_markdown_and_json() {
    let worse = MadeUp { delay_us: 2_600.0, errors_a_second: 2, ..MadeUp::new(2) };
    let mut other = worse.run("b|<b>\x1b[31m.jsonl");
    other.header.target = "tcp://127.0.0.1:6666".to_owned();
    other.summary.run.target = other.header.target.clone();
    let sides = [vec![MadeUp::new(1).run("a.jsonl")], vec![other]];
    let limits = regressions(&["message.p99 > +10%", "errors > +0", "connect.rate < -5%"]);
    let comparison = Comparison::of(&sides, &limits);
    let text = compare_text(&comparison);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(!text.contains('\x1b'));
    insta::assert_snapshot!("text", text);
    insta::assert_snapshot!("markdown", compare_markdown(&comparison));
    let mut few = comparison.clone();
    few.figures.retain(|row| ["message.p99", "errors", "message.max"].contains(&&*row.name));
    insta::assert_snapshot!("json", serde_json::to_string_pretty(&few).unwrap());
}

#[test]
fn three_sides_are_each_compared_with_the_first() {
    let runs = [1, 2, 3].map(|seed| vec![MadeUp::new(seed).run("r.jsonl")]);
    let comparison = Comparison::of(&runs, &regressions(&["errors > +0"]));
    let sides: Vec<_> = comparison.conclusions.iter().map(|one| one.side.as_str()).collect();
    assert_eq!(sides, ["B", "C"]);
    assert_eq!(comparison.regressions.len(), 2);
    assert!(comparison.figures.iter().all(|row| row.values.len() == 3 && row.changes.len() == 2));
}

#[test]
fn runs_without_anything_are_compared_without_a_panic() {
    let mut empty = MadeUp { seconds: 0, ..MadeUp::new(1) }.run("empty.jsonl");
    empty.header = RunHeader::default();
    let comparison = Comparison::of(&[vec![empty.clone()], vec![empty]], &[]);
    assert!(comparison.method.note.contains("too short"), "{comparison:#?}");
    assert!(!compare_text(&comparison).is_empty());
}
