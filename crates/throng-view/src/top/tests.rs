//! The view on terminals of several sizes, as snapshots.

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use throng_measure::{
    BusyConnection, CoreInspection, NodeInspection, SlowConnection, TopicInspection,
};

use super::*;

fn core(number: u64) -> CoreInspection {
    CoreInspection {
        core: number,
        span_us: 500_000,
        connections: 25_000 + number,
        places_seen: 30_000,
        places: 30_000,
        accepted: 400,
        closed: 3,
        messages_received: 1_200,
        messages_sent: 80,
        fanned_out: 612_000,
        bytes_received: 96_000,
        bytes_sent: 52_000_000,
        turns: 4_100,
        busy_us: 310_000,
        turn_us_most: 4_300,
        mailbox: 2,
        mailbox_most: 17,
        pending_bytes: 3 << 20,
        slow_connections: 2,
        topics: 12,
        memberships: 50_002,
        ..CoreInspection::default()
    }
}

fn topic(name: &str, members: u64, publications: u64) -> TopicInspection {
    TopicInspection { topic: name.to_owned(), members, publications, publications_waiting: 3 }
}

fn slow(number: u64, pending_bytes: u64) -> SlowConnection {
    SlowConnection {
        core: number % 2,
        connection: format!("{}v1", 17 * number),
        peer: Some(format!("127.0.0.{number}:40{number:03}")),
        pending_bytes,
        unacknowledged_bytes: Some(2_619_010),
        blocked_us: 95_000_000,
        stalled_us: number * 2_400_000,
    }
}

fn busy(number: u64) -> BusyConnection {
    BusyConnection {
        core: number % 2,
        connection: format!("{}v3", 5 * number),
        peer: Some(format!("127.0.0.1:5{number:04}")),
        span_us: 500_000,
        messages_received: 900 / number,
        bytes_received: 64_000 / number,
        sends: 200 * number,
        bytes_sent: 40_000 / number,
        work_bytes: 1_200_000 / number,
    }
}

fn look() -> ServerInspection {
    ServerInspection {
        listen: "127.0.0.1:4000".to_owned(),
        handler: "channels".to_owned(),
        accept: "reuseport".to_owned(),
        connections_max: 1_048_576,
        node: None,
        cores: vec![core(0), core(1)],
        topics: vec![
            topic("rooms:lobby", 50_000, 9_310),
            topic("rooms:a topic with a name that is longer than most columns", 312, 40),
            topic("\u{1b}]0;owned\u{7}\u{1b}[2Jfriendly\u{202e}cipot", 4, 1),
        ],
        topics_are_largest: true,
        slow: (1..=8).map(|n| slow(n, (9 - n) << 18)).collect(),
        busy: (1..=12).map(busy).collect(),
        busy_missed_bytes_max: 0,
    }
}

fn shown(view: &TopView, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| view.draw(frame)).unwrap();
    terminal.backend().to_string()
}

fn view() -> TopView {
    let mut view = TopView::default();
    let mut before = look();
    before.topics[0].publications = 9_000;
    before.topics.pop();
    let began = Instant::now();
    view.add(before, began);
    view.add(look(), began + Duration::from_secs(1));
    view
}

#[test]
fn a_look_fits_terminals_of_all_sizes() {
    for (width, height) in [(80, 24), (120, 40), (200, 60), (40, 12)] {
        insta::assert_snapshot!(format!("{width}x{height}"), shown(&view(), width, height));
    }
}

#[test]
fn no_size_is_too_small() {
    for width in 1..60 {
        for height in 1..20 {
            let _ = shown(&view(), width, height);
        }
    }
}

#[test]
fn a_look_is_plain_text_too() {
    insta::assert_snapshot!("plain", view().text());
}

#[test]
fn a_silent_core_and_an_incomplete_look_say_so() {
    let mut look = look();
    look.cores[1] = CoreInspection {
        core: 1,
        silent_ms: Some(3_200),
        connections: 25_000,
        ..CoreInspection::default()
    };
    (look.topics_are_largest, look.busy_missed_bytes_max) = (false, 40_960);
    look.slow.clear();
    let mut view = TopView::default();
    view.add(look, Instant::now());
    insta::assert_snapshot!("silent", shown(&view, 100, 30));
}

#[test]
fn a_node_says_with_which_it_shares_topics() {
    let mut look = look();
    look.node = Some(NodeInspection {
        name: "one".to_owned(),
        others: vec!["three".to_owned(), "two".to_owned()],
        published: 12_000,
        received: 31,
        ..NodeInspection::default()
    });
    let shown_of = |look: &ServerInspection| {
        let mut view = TopView::default();
        view.add(look.clone(), Instant::now());
        let second = shown(&view, 120, 30).lines().nth(1).unwrap().trim().to_owned();
        assert_eq!(second.trim_matches('"').trim(), view.text().lines().nth(1).unwrap());
        view.text().lines().nth(1).unwrap().to_owned()
    };
    assert_eq!(
        shown_of(&look),
        "node one: shares topics with three, two; 12k publications to the bus, 31 from others, 0 \
         dropped, 0 lost"
    );
    let node = look.node.as_mut().unwrap();
    (node.is_bus_away, node.others, node.dropped) = (true, Vec::new(), 5);
    let shown = shown_of(&look);
    assert!(shown.starts_with("node one: THE BUS IS AWAY; no other node is there"), "{shown}");
}

#[test]
fn hostile_names_reach_no_terminal() {
    let view = view();
    for text in [view.text(), shown(&view, 200, 60)] {
        let is_safe = |c: char| c == '\n' || !(c.is_control() || c == '\u{202e}');
        assert!(text.chars().all(is_safe), "{text}");
        assert!(text.contains(r"\u{1b}]0;owned\u{7}"), "{text}");
    }
}

#[test]
fn keys_freeze_sort_explain_and_quit() {
    let mut view = view();
    assert_eq!(view.press(Key::Char(' ')), TopAction::Continue);
    view.add(ServerInspection::default(), Instant::now());
    let frozen = shown(&view, 100, 30);
    assert!(frozen.contains("FROZEN") && frozen.contains("rooms:lobby"), "{frozen}");
    view.press(Key::Char('p'));
    assert!(!view.is_frozen());
    let first_slow = |view: &TopView| {
        let text = view.text();
        let mut lines = text.lines().skip_while(|line| !line.starts_with("SLOW"));
        lines.nth(2).unwrap().to_owned()
    };
    assert!(first_slow(&view).starts_with("127.0.0.1:"), "{}", view.text());
    view.press(Key::Char('s'));
    assert!(first_slow(&view).starts_with("127.0.0.8:"), "{}", view.text());
    view.press(Key::Char('?'));
    insta::assert_snapshot!("help", shown(&view, 100, 24));
    view.press(Key::Escape);
    view.fail("the process at /tmp/x.sock did not answer within 5s");
    assert!(shown(&view, 100, 24).contains("did not answer"));
    assert_eq!(view.press(Key::Char('q')), TopAction::Quit);
    assert_eq!(view.press(Key::Control('c')), TopAction::Quit);
}

#[test]
fn rates_after_a_freeze_are_those_since_the_look_that_is_shown() {
    let began = Instant::now();
    let at = |seconds, publications| {
        let mut look = look();
        look.topics[0].publications = publications;
        (look, began + Duration::from_secs(seconds))
    };
    let mut view = TopView::default();
    let add = |view: &mut TopView, (look, now)| view.add(look, now);
    add(&mut view, at(0, 1_000));
    view.press(Key::Char(' '));
    // This one was on its way.
    add(&mut view, at(1, 1_100));
    view.press(Key::Char(' '));
    add(&mut view, at(10, 2_000));
    assert_eq!(view.publications_per_s.get("rooms:lobby"), Some(&100.0));
}

#[test]
fn a_count_that_begins_again_is_growth() {
    let mut before = look();
    before.topics[0].publications = u64::from(u32::MAX) - 4;
    let mut now = look();
    now.topics[0].publications = 5;
    let grown = growth(&before, &now, Duration::from_secs(2));
    assert_eq!(grown.get("rooms:lobby"), Some(&5.0));
}
