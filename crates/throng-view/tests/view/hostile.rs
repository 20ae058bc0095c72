//! Broken and hostile run files: whatever they hold, everything that shows a run shows what can be
//! read, and nothing panics. The tests' build checks for overflow.

use std::io::{BufReader, Read};

use proptest::prelude::*;
use serde_json::{Value, json};
use throng_measure::{
    ErrorKind, Interval, LoadInterval, MachineUse, Metric, Operation, ServerSnapshot,
};
use throng_report::export::CsvExport;
use throng_run::{RunContent, RunResult};

/// Shows a run file in every way that there is, and returns the content and the texts.
fn show(bytes: impl Read) -> Option<(RunContent, RunResult, Vec<String>)> {
    let mut csv = CsvExport::new(Vec::new()).unwrap();
    let each = |interval: &Interval| csv.add(interval).unwrap();
    let (content, result) = RunContent::read_each(BufReader::new(bytes), true, each).ok()?;
    let mut page = Vec::new();
    throng_view::write_page(&content, &result, &mut page).unwrap();
    let export = content.export(&result);
    let mut texts = vec![result.text(), export.json().to_string(), export.markdown()];
    texts.extend([export.junit(), export.github()]);
    texts.extend([csv.into_inner(), page].map(|bytes| String::from_utf8(bytes).unwrap()));
    let _ = result.exit();
    Some((content, result, texts))
}

/// Returns the lines of a sound run file, its server seen and its kernel read.
fn sound() -> Vec<Value> {
    let mut lines = vec![json!({
        "schema": "throng.run/1",
        "target": "tcp://127.0.0.1:5555",
        "scenario": {"path": "a.yaml", "source": SCENARIO},
        "planned_ms": 5_000,
        "users_planned": 100,
        "ceiling": {"connects_per_s": 1_000.0, "messages_per_s": 20_000.0},
    })];
    for second in 0..6_u64 {
        let mut load = LoadInterval { phase: "ramp".into(), cores: 2, ..Default::default() };
        load.grown_us = 1_000_000 * second.min(1);
        let n = second * 10;
        let counters = &mut load.counters;
        (counters.users_intended, counters.users_started) = (n, n);
        (counters.connects_started, counters.connects_ok, counters.connected) = (n, n, n);
        (counters.messages_sent, counters.messages_answered) = (n * 5, n * 5);
        (counters.turns_intended, counters.joins_started, counters.pushes_sent) = (n, n, n);
        (counters.heartbeats_sent, load.probe.intended, load.probe.sent) = (n, second, second);
        (load.process.pid, load.process.cpu_user_us) = (7, second * 500_000);
        load.errors.add("ECONNRESET", second);
        load.connect_failed.add(ErrorKind::ConnectTimeout, second);
        load.times[Operation::Connect].record_n(300, 10);
        load.times[Operation::Message].record_n(90_000, 50);
        load.lag.record_n(40, 60);
        load.times.unanswered[Operation::Message].record_n(3_000_000, 2);
        let mut server =
            ServerSnapshot { cores: 2, open_per_core: vec![n; 2], ..Default::default() };
        (server.counters.accepted, server.counters.open, server.process.pid) = (n, n, 8);
        let busy = second * 900_000;
        let machine =
            MachineUse { cpus: 2, cpu_busy_us: busy, cpu_idle_us: busy, cpu_stolen_us: second };
        let kernel = [
            (Metric::TCPEXT_LISTEN_OVERFLOWS, second as i64 * 3),
            (Metric::TCP_RETRANS_SEGS, second as i64),
            (Metric::LISTENER_ACCEPT_QUEUE, 5),
            (Metric::LISTENER_BACKLOG, 5),
            (Metric::MEMORY_USED_BYTES, 1 << 30),
            (Metric::FILES_MAX, i64::MAX),
        ];
        lines.push(json!(Interval {
            at_ms: second * 1000,
            span_ms: 1000 * second.min(1),
            load: Some(load),
            server: Some(server),
            machine: Some(machine.clone()),
            server_machine: Some(machine),
            kernel: kernel.into(),
            server_kernel: kernel.into(),
            ..Interval::default()
        }));
    }
    lines.push(json!({"end": {"reason": "finished", "lines_lost": 0}}));
    lines
}

const SCENARIO: &str = "target: tcp://127.0.0.1:5555\nload: [{ramp: {to: 100, over: 5s}}]\n\
    user: [connect, {send: Ping}, {expect: Ping}]\n\
    thresholds: [connect.p99 < 100ms, errors < 1%, connected_most >= 100]\n";

fn text_of(lines: &[Value]) -> Vec<u8> {
    lines.iter().flat_map(|line| format!("{line}\n").into_bytes()).collect()
}

#[test]
fn a_sound_file_is_shown_without_a_warning() {
    let (content, result, texts) = show(&text_of(&sound())[..]).unwrap();
    assert_eq!(content.warnings(), [""; 0]);
    assert_eq!(result.summary.connect.ok, 50);
    assert_eq!(result.judgements.len(), 3, "{SCENARIO}");
    assert!(texts[3].contains("connect.p99 &lt; 100ms") && texts[5].contains("message.p99"));
}

#[test]
fn a_file_that_is_cut_off_anywhere_is_shown_up_to_there() {
    let bytes = text_of(&sound());
    let first = bytes.iter().position(|byte| *byte == b'\n').unwrap();
    for cut in (first..bytes.len()).step_by(97) {
        let (content, result, _) = show(&bytes[..cut]).unwrap();
        let lines = bytes[first + 1..cut.max(first + 1)].iter().filter(|b| **b == b'\n').count();
        let seconds = lines.saturating_sub(1).min(5) as f64;
        assert!(result.summary.duration_s >= seconds, "cut at {cut}");
        assert!(!content.warnings().is_empty() && result.summary.run.incomplete.is_some());
    }
}

#[test]
fn what_is_no_run_file_has_a_clear_word() {
    let refusal = |bytes: &[u8]| RunContent::read(bytes, true).map(drop).unwrap_err().to_string();
    assert_eq!(refusal(b""), "the run file is empty");
    for garbage in [&b"\x00\xff\xfe garbage"[..], b"hello\n", b"\n", "\u{feff}{}".as_bytes()] {
        let said = refusal(garbage);
        assert!(said.contains("not a run file") || said.contains("is empty"), "{said}");
    }
    let utf16: Vec<u8> =
        "{\"schema\":\"throng.run/1\"}".encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert!(refusal(&utf16).contains("not a run file"));
    let newer = b"{\"schema\":\"throng.run/2\",\"throng_version\":\"4.0.0\"}\n";
    assert!(refusal(newer).contains("4.0.0"));
    let (content, ..) = show(&b"{\"schema\":\"throng.run/1\"}"[..]).expect("a header is enough");
    assert_eq!(content.warnings().len(), 1);
    let (content, ..) = show(&b"{\"schema\":\"throng.run/1.3\"}\n"[..]).expect("a newer minor");
    assert!(content.warnings()[0].contains("newer"), "{:?}", content.warnings());
}

#[test]
fn a_line_that_is_not_utf_8_is_passed_over() {
    let mut lines: Vec<_> = sound().iter().map(|line| format!("{line}\n").into_bytes()).collect();
    lines[3] = b"{\"at_ms\":2000,\"span_ms\":1000,\"load\":{\"phase\":\"\xff\xfe\"}}\n".to_vec();
    let (content, result, _) = show(&lines.concat()[..]).unwrap();
    assert!(content.warnings()[0].starts_with("line 4 is torn"), "{:?}", content.warnings());
    assert_eq!(result.summary.connect.ok, 50);
}

#[test]
fn time_that_goes_backwards_is_shown() {
    let mut lines = sound();
    lines.swap(2, 6);
    let (_, result, _) = show(&text_of(&lines)[..]).unwrap();
    assert_eq!(result.summary.duration_s, 5.0);
}

/// A long file, made while it is read.
struct Repeat<'a> {
    head: &'a [u8],
    line: &'a [u8],
    /// Bytes of the line that were read.
    at: usize,
    times: usize,
}

impl Read for Repeat<'_> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        if !self.head.is_empty() {
            return self.head.read(out);
        }
        if self.times == 0 {
            return Ok(0);
        }
        let n = (&self.line[self.at..]).read(out)?;
        self.at += n;
        if self.at == self.line.len() {
            (self.at, self.times) = (0, self.times - 1);
        }
        Ok(n)
    }
}

#[test]
fn many_lines_of_the_largest_numbers_overflow_nothing() {
    let mut lines = sound();
    let mut largest = lines.remove(6);
    enlarge(&mut largest, 0, &|n| *n = json!(u64::MAX));
    let smallest = lines.remove(1);
    largest["at_ms"] = json!(1_000);
    largest["span_ms"] = json!(1_u64 << 40);
    let pair = text_of(&[smallest, largest]);
    let head = text_of(&lines[..1]);
    let file = Repeat { head: &head, line: &pair, at: 0, times: 5_000 };
    let (content, result) =
        RunContent::read(BufReader::with_capacity(1 << 16, file), true).unwrap();
    assert!(content.warnings()[0].contains("no run reaches"), "{:?}", content.warnings());
    let _ = (result.text(), content.export(&result).github());
}

/// Calls `with` for each number of a line but the first `skip`, in the order of their names.
fn enlarge(value: &mut Value, skip: usize, with: &dyn Fn(&mut Value)) -> usize {
    match value {
        Value::Array(values) => values.iter_mut().fold(skip, |n, value| enlarge(value, n, with)),
        Value::Object(fields) => fields.values_mut().fold(skip, |n, value| enlarge(value, n, with)),
        Value::Number(_) if skip == 0 => {
            with(value);
            0
        }
        Value::Number(_) => skip - 1,
        _ => skip,
    }
}

fn number() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!(u64::MAX)),
        Just(json!(i64::MAX)),
        Just(json!(i64::MIN)),
        Just(json!(1_u64 << 52)),
        Just(json!(u32::MAX)),
        Just(json!(0)),
        Just(json!(-1)),
        Just(json!(1e308)),
        Just(json!(0.5)),
        any::<u64>().prop_map(|n| json!(n)),
        (0..10_000_u64).prop_map(|n| json!(n)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn numbers_of_any_size_are_shown(
        changes in prop::collection::vec((1..8_usize, 0..200_usize, number()), 1..12),
    ) {
        let mut lines = sound();
        for (line, skip, number) in changes {
            let is_done = std::cell::Cell::new(false);
            enlarge(&mut lines[line], skip, &|value| {
                if !is_done.replace(true) {
                    *value = number.clone();
                }
            });
        }
        prop_assert!(show(&text_of(&lines)[..]).is_some());
    }

    #[test]
    fn all_numbers_of_a_line_may_be_of_any_size(line in 0..8_usize, number in number()) {
        let mut lines = sound();
        enlarge(&mut lines[line], 0, &|value| *value = number.clone());
        let _ = show(&text_of(&lines)[..]);
    }

    #[test]
    fn bytes_that_flipped_break_nothing(
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..40),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = text_of(&sound());
        for (at, byte) in flips {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes.truncate(cut.index(bytes.len()).max(bytes.len() / 4));
        let _ = show(&bytes[..]);
    }

    #[test]
    fn hostile_names_are_shown(name in "\\PC*|[\u{0}-\u{ff}]{0,20}") {
        let mut lines = sound();
        lines[0]["target"] = json!(name);
        for line in &mut lines[1..7] {
            line["load"]["errors"][&name] = json!(3);
            line["load"]["phase"] = json!(name);
            line["load"]["classes"] = json!({ name.clone(): {"users_started": 1} });
        }
        let (.., texts) = show(&text_of(&lines)[..]).unwrap();
        let is_forbidden = |c: char| c.is_control() && !"\n\t".contains(c) && c < '\u{7f}';
        prop_assert!(!texts[2].chars().chain(texts[3].chars()).any(is_forbidden));
    }
}
