//! The view of a made-up run, at sizes of every kind.

use std::time::Duration;

use proptest::prelude::*;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use throng_base::units::show_duration;
use throng_measure::runfile::{RunHeader, ScenarioSource};
use throng_measure::{
    ErrorKind, Interval, LEAVING, LoadCounters, LoadInterval, MachineInterval, Operation,
    ProcessUse, RunEvent, RunEventKind, ServerSnapshot,
};
use throng_report::Threshold;
use throng_run::RunContent;

use super::controls::KEYS;
use super::key::TerminalKey as Key;
use super::style::TerminalStyle;
use super::{TerminalModel, draw};

/// Returns what a terminal of this size shows.
fn shown(model: &TerminalModel, width: u16, height: u16, look: TerminalStyle) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    let drawn = terminal.draw(|frame| {
        draw(frame, model);
        look.apply(frame.buffer_mut());
    });
    let buffer = drawn.unwrap().buffer.clone();
    let lines = buffer.content.chunks(usize::from(width).max(1));
    let line = |cells: &[ratatui::buffer::Cell]| {
        let text: String = cells.iter().map(|cell| cell.symbol()).collect();
        text.trim_end().to_owned() + "\n"
    };
    lines.map(line).collect()
}

fn header() -> RunHeader {
    RunHeader {
        scenario: ScenarioSource { path: "chat.yaml".to_owned(), source: String::new() },
        target: "ws://127.0.0.1:4000/socket".to_owned(),
        users_planned: 10_000,
        planned_ms: Some(120_000),
        ..RunHeader::default()
    }
}

/// Returns the interval of a second in which users arrive for a minute and then talk.
fn interval(second: u64) -> Interval {
    let users = (second * 10_000 / 60).min(10_000);
    let messages = (0..=second).map(|second| (second * 10_000 / 60).min(10_000) / 5).sum();
    let counters = LoadCounters {
        users_intended: users,
        users_started: users,
        users_active: users,
        connects_started: users,
        connects_ok: users - 12.min(users),
        connected: users - 12.min(users),
        connects_failed: 12.min(users),
        messages_sent: messages,
        messages_expected: messages,
        messages_answered: messages,
        turns_intended: messages + messages / 200,
        turns_started: messages,
        ..Default::default()
    };
    let phase = if second < 60 { "ramp to 10k over 1m" } else { "hold for 1m" };
    let process = ProcessUse { cpu_user_us: second * 310_000, ..Default::default() };
    let mut load = LoadInterval { phase: phase.into(), counters, process, ..Default::default() };
    load.connect_failed.add("ECONNREFUSED", 12.min(users));
    load.errors.add(ErrorKind::ExpectTimeout, second / 20);
    for n in 1..=100u32 {
        load.times[Operation::Message].record_us(400 + second * 10 + u64::from(n) * u64::from(n));
        load.times[Operation::Connect].record_us(150 + u64::from(n) * 3);
        load.lag.record_us(40);
    }
    if second.is_multiple_of(30) {
        load.times[Operation::Message].record_us(150_000);
    }
    let process = ProcessUse { cpu_user_us: second * 520_000, ..Default::default() };
    let server = Some(ServerSnapshot { process, ..Default::default() });
    let at_ms = second * 1_000;
    let mut events = Vec::new();
    if second == 20 {
        let kind = RunEventKind::Steered { command: "start 100".into() };
        events.push(RunEvent::new(19_400, kind));
    }
    Interval { at_ms, span_ms: 1_000, load: Some(load), server, events, ..Default::default() }
}

/// Returns the model of the first seconds of the run.
fn model(seconds: u64) -> TerminalModel {
    let thresholds: Vec<Threshold> = vec!["errors < 10".parse().unwrap()];
    let mut model = TerminalModel::of_run(RunContent::new(header(), thresholds));
    (1..=seconds).for_each(|second| model.add(&interval(second)));
    model.judge();
    model
}

fn lab() -> TerminalModel {
    let mut model = TerminalModel::of_lab("stressgrid-100k");
    for (number, name) in ["capacity", "dispatch", "shared"].into_iter().enumerate() {
        model.begin_row(name, number + 1, 5, 30);
        model.begin_load(RunContent::of_header(header()));
        (1..=20).for_each(|second| model.add(&interval(second)));
    }
    model.judge();
    model
}

#[test]
fn a_run_at_the_sizes_of_terminals() {
    let model = model(75);
    for (width, height) in [(80, 24), (120, 40), (200, 60), (40, 12), (60, 16)] {
        insta::assert_snapshot!(
            format!("run_{width}x{height}"),
            shown(&model, width, height, TerminalStyle::FULL)
        );
    }
}

#[test]
fn a_run_without_colors_and_unicode_is_ascii() {
    let plain = TerminalStyle { colors: false, unicode: false };
    let text = shown(&model(75), 120, 40, plain);
    assert!(text.is_ascii(), "{text}");
    insta::assert_snapshot!("run_120x40_ascii", text);
}

#[test]
fn a_lab_shows_its_rows() {
    insta::assert_snapshot!("lab_100x30", shown(&lab(), 100, 30, TerminalStyle::FULL));
}

#[test]
fn boxes_are_above_the_view() {
    let mut model = model(5);
    model.press(Key::Char('?'));
    insta::assert_snapshot!("help_80x24", shown(&model, 80, 24, TerminalStyle::FULL));
    model.press(Key::Escape);
    model.press(Key::Char('s'));
    assert!(shown(&model, 80, 24, TerminalStyle::FULL).contains("Ramp down and report now?"));
}

#[test]
fn the_help_is_whole_in_the_smallest_terminal() {
    let mut model = model(5);
    model.press(Key::Char('?'));
    let text = shown(&model, 40, 12, TerminalStyle::FULL);
    for (key, does) in KEYS {
        assert!(text.contains(&format!("{key:<7}{does}")), "{key}: {text}");
    }
}

#[test]
fn a_verdict_that_has_no_room_ends_with_an_ellipsis() {
    let verdict = |width, height| {
        let text = shown(&model(75), width, height, TerminalStyle::FULL);
        let lines: Vec<_> = text.lines().map(str::trim).collect();
        lines[lines.len() - 2].to_owned()
    };
    assert_eq!(verdict(40, 12), "valid so far  Missed: errors 15, …");
    assert_eq!(verdict(62, 16), "valid so far  Missed: errors 15, required < 10; no cause …");
    let whole = "valid so far  Missed: errors 15, required < 10; no cause was found for its 15…";
    assert_eq!(verdict(80, 16), whole);
}

#[test]
fn a_run_before_its_first_interval_and_one_that_ends_are_shown() {
    let text = shown(&model(0), 80, 24, TerminalStyle::FULL);
    assert!(text.contains("starting") && text.contains("2m left"), "{text}");
    let mut ending = model(75);
    let mut last = interval(76);
    let load = last.load.as_mut().unwrap();
    (load.phase, load.counters.connected) = (LEAVING.to_owned(), 3);
    ending.add(&last);
    let text = shown(&ending, 80, 24, TerminalStyle::FULL);
    assert!(text.contains(LEAVING) && !text.contains(" left"), "{text}");
}

#[test]
fn a_paused_load_says_so() {
    let mut model = model(5);
    let mut paused = interval(6);
    paused.load.as_mut().unwrap().paused = true;
    model.add(&paused);
    assert!(shown(&model, 80, 24, TerminalStyle::FULL).contains("paused, r resumes"));
}

#[test]
fn hostile_text_stays_text() {
    let mut model = model(1);
    model.note("\x1b[2J\x1b]0;title\x07 red");
    let text = shown(&model, 120, 40, TerminalStyle::FULL);
    assert!(!text.contains('\x1b') && text.contains(" red"), "{text}");
}

#[test]
fn the_operation_and_the_first_chart_can_be_chosen() {
    let mut model = model(5);
    for operation in ["message", "connect", "message"] {
        let text = shown(&model, 120, 40, TerminalStyle::FULL);
        assert!(text.contains(&format!("{operation} latency")), "{text}");
        model.press(Key::Char('o'));
    }
    assert!(shown(&model, 40, 14, TerminalStyle::FULL).contains("connected 821"));
    model.press(Key::Tab);
    assert!(shown(&model, 40, 14, TerminalStyle::FULL).contains("per second "));
}

fn any_interval() -> impl Strategy<Value = Interval> {
    let numbers = prop::collection::vec(0u64..1 << 50, 8);
    (0u64..1 << 48, 0u64..1 << 48, numbers, any::<bool>(), ".{0,40}").prop_map(
        |(at_ms, span_ms, n, has_load, text)| {
            let counters = LoadCounters {
                users_intended: n[0],
                users_started: n[1],
                users_active: n[2],
                connected: n[3],
                connects_ok: n[4],
                messages_answered: n[5],
                turns_intended: n[6] >> 1,
                ..Default::default()
            };
            let mut load = LoadInterval { phase: text.clone(), counters, ..Default::default() };
            load.times[Operation::Message].record_us(n[7]);
            load.errors.add(&text, n[0] >> 8);
            let kind = RunEventKind::Steered { command: text };
            let events = vec![RunEvent::new(at_ms, kind)];
            let load = has_load.then_some(load);
            Interval { at_ms, span_ms, load, events, ..Default::default() }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_size_shows_any_interval(
        intervals in prop::collection::vec(any_interval(), 0..6),
        width in 0u16..130,
        height in 0u16..50,
        keys in "[?so\t]{0,3}",
        is_full in any::<bool>(),
    ) {
        let mut model = TerminalModel::of_run(RunContent::of_header(header()));
        intervals.iter().for_each(|interval| model.add(interval));
        model.judge();
        for key in keys.chars() {
            model.press(if key == '\t' { Key::Tab } else { Key::Char(key) });
        }
        let look = TerminalStyle { colors: is_full, unicode: is_full };
        let _ = shown(&model, width, height, look);
    }
}

#[test]
fn a_pause_delays_the_end() {
    let mut model = model(60);
    let first_line = |model: &TerminalModel| {
        shown(model, 80, 24, TerminalStyle::FULL).lines().next().unwrap_or_default().to_owned()
    };
    let of = |seconds| format!(" of {}", show_duration(Duration::from_secs(seconds)));
    assert!(first_line(&model).ends_with(&of(120)), "{}", first_line(&model));
    for second in 61..=90 {
        let mut paused = interval(second);
        paused.load.as_mut().unwrap().paused = true;
        model.add(&paused);
    }
    assert!(first_line(&model).ends_with(&of(150)), "{}", first_line(&model));
}

#[test]
fn machines_of_a_fleet_are_listed_and_the_lost_one_first() {
    let mut model = model(20);
    let machine = |name: &str, lag_us_p99, lost| MachineInterval {
        name: name.to_owned(),
        users_active: 4_000,
        lag_us_p99: Some(lag_us_p99),
        lost,
        ..MachineInterval::default()
    };
    let mut last = interval(21);
    let machines = vec![machine("quick", 80, false), machine("slow", 90_000, false)];
    last.load.as_mut().unwrap().machines = machines;
    model.add(&last);
    let lines = |model: &TerminalModel, height| -> Vec<String> {
        let text = shown(model, 100, height, TerminalStyle::FULL);
        let list = text.lines().skip_while(|line| !line.trim_start().starts_with("machines"));
        list.take(4).map(|line| line.trim().to_owned()).collect()
    };
    let shown = lines(&model, 40);
    assert!(shown[1].starts_with("slow ") && shown[1].contains("90.0 ms"), "{shown:?}");
    assert!(shown[2].starts_with("quick ") && shown[2].contains("80 µs"), "{shown:?}");
    last.load.as_mut().unwrap().machines.push(machine("gone", 0, true));
    last.at_ms += 1_000;
    model.add(&last);
    let shown = lines(&model, 24);
    assert!(shown[1].starts_with("gone") && shown[1].ends_with("lost"), "{shown:?}");
    assert!(lines(&model, 20).is_empty(), "there is no room");
}
