//! Runs every lab once, at a size that takes seconds, with real server and generator processes.

use std::process::Command;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use serde_json::Value;
use throng_driver::netns;
use throng_lab::{LabOptions, LabProgress, LabReport, run};
use throng_measure::Grade;
use throng_run::test_bed::TestBedProgress;

/// Runs a lab with few users, and checks the properties of every report.
fn small(name: &str, users: u64, seconds: u64) -> LabReport {
    small_with(
        name,
        LabOptions { users: Some(users), seconds: Some(seconds), ..Default::default() },
    )
}

fn small_with(name: &str, options: LabOptions) -> LabReport {
    let options =
        LabOptions { program: Some(crate::common::throng()), only_throng: true, ..options };
    let mut intervals = 0;
    let mut count = |event: LabProgress<'_>| {
        intervals += u64::from(matches!(event, LabProgress::Run(TestBedProgress::Interval { .. })))
    };
    let report = run(name, &options, &mut count).unwrap_or_else(|error| panic!("{error}"));
    assert!(intervals >= 2, "{intervals} intervals were shown");
    assert!(!report.interrupted && !report.verdict.is_empty());
    // A busy machine can make the generator late; the report then says so with its reasons.
    assert!(report.grade == Grade::Valid || !report.notes.is_empty(), "{report}");
    for table in &report.tables {
        assert!(!table.rows.is_empty(), "{}", table.title);
        assert!(table.rows.iter().all(|row| row.len() == table.head.len()), "{}", table.title);
    }
    println!("{report}");
    report
}

fn number(row: &Value, field: &str) -> f64 {
    row[field].as_f64().unwrap_or_else(|| panic!("no {field} in {row}"))
}

#[test]
fn stressgrid_100k_tries_each_way_to_accept() {
    let report = small("stressgrid-100k", 200, 3);
    let rows = report.rows.as_array().unwrap();
    let accepts: Vec<_> = rows.iter().map(|row| row["accept"].as_str().unwrap()).collect();
    assert_eq!(accepts, ["dispatch", "shared", "reuseport"]);
    for row in rows {
        // 200 users of a second each make 222 connections per second, and up to twice as many after
        // a busy machine has made all of them wait.
        assert!((50.0..=450.0).contains(&number(row, "rate_most")), "{row}");
        // Overflows count for the whole network namespace, so other programs may cause some.
        assert_eq!(number(row, "failed"), 0.0, "{row}");
        assert!(number(row, "connect_p90_us") > 0.0 && number(row, "server_cpu_us") > 0.0, "{row}");
    }
}

#[test]
fn fast_connect_reaches_the_end_of_a_light_load() {
    let report = small("fast-connect", 1000, 4);
    let row = &report.rows[0];
    assert_eq!(number(row, "failed"), 0.0, "{row}");
    // The rate grows to 500/s. A busy machine may be late and then catch up, or end early: then the
    // rate is smaller, or there is none, if the end came before the first answer.
    let is_light = row["end"] == "none";
    let rate =
        if is_light { number(row, "rate_most") } else { row["rate_most"].as_f64().unwrap_or(0.0) };
    let least = if is_light { 100.0 } else { 0.0 };
    assert!((least..=1000.0).contains(&rate), "{row}");
    let says = report.verdict[0].contains("the load ended before the server's limit");
    assert_eq!(says, is_light, "{report}");
}

#[test]
fn fast_receive_answers_every_message() {
    let report = small("fast-receive", 100, 3);
    let row = &report.rows[0];
    assert_eq!(number(row, "failed"), 0.0, "{row}");
    assert_eq!(number(row, "connected_most"), 100.0, "{row}");
    // 100 connections with up to 10 messages per second each; late ones catch up.
    assert!((100.0..=2500.0).contains(&number(row, "rate_most")), "{row}");
}

#[test]
fn connscale_holds_every_connection_and_both_counts_agree() {
    let report = small("connscale", 500, 4);
    let row = &report.rows[0];
    assert_eq!(number(row, "connected_most"), 500.0, "{row}");
    assert_eq!(number(row, "server_open_most"), 500.0, "{row}");
    assert_eq!(row["errors"], serde_json::json!({}), "{row}");
    assert_eq!(number(&row["reconciled"], "half_open_most"), 0.0, "{row}");
    assert!(number(&row["reconciled"], "seconds") >= 1.0, "{row}");
}

/// Asserts that every broadcast was delivered once and in order, however busy the machine.
fn assert_delivered_once_and_in_order(probes: &Value) {
    let sum = |field: &str| {
        probes.as_array().unwrap().iter().map(|probe| number(probe, field)).sum::<f64>()
    };
    assert!(sum("delivered") > 0.0, "{probes}");
    for fault in ["missing", "duplicates", "out_of_order"] {
        assert_eq!(sum(fault), 0.0, "{fault}: {probes}");
    }
}

#[test]
fn haskell_chat_has_three_sizes_and_delivers_every_message_to_all_users() {
    let report = small("haskell-chat", 250, 3);
    let row = &report.rows[0];
    assert_eq!(number(row, "connected_most"), 250.0, "{row}");
    let sizes = row["plateaus"].as_array().unwrap();
    let sizes: Vec<_> = sizes.iter().map(|size| number(size, "users")).collect();
    assert_eq!(sizes, [50.0, 128.0, 250.0]);
    assert_delivered_once_and_in_order(&row["probes"]);
}

#[test]
fn phoenix_2m_joins_all_users_to_the_lobby() {
    let report = small("phoenix-2m", 300, 4);
    let row = &report.rows[0];
    assert_eq!(number(row, "joined_most"), 300.0, "{row}");
    assert_eq!(number(row, "heartbeats_missed"), 0.0, "{row}");
    let growth = row["growth"].as_array().unwrap();
    let probes: Vec<_> = growth.iter().map(|moment| moment["broadcast"].clone()).collect();
    assert_delivered_once_and_in_order(&probes.into());
}

#[test]
fn one_room_receives_more_and_more() {
    let report = small("one-room", 60, 5);
    let row = &report.rows[0];
    assert_eq!((number(row, "joined_most"), number(row, "rooms")), (60.0, 1.0), "{row}");
    assert_delivered_once_and_in_order(&row["probes"]);
}

#[test]
fn many_rooms_receive_their_own_messages() {
    let report = small("many-rooms", 1_100, 4);
    let row = &report.rows[0];
    assert_eq!((number(row, "joined_most"), number(row, "rooms")), (1_100.0, 2.0), "{row}");
    assert_delivered_once_and_in_order(&row["probes"]);
}

#[test]
fn in_a_simulated_chat_as_many_leave_as_arrive() {
    let report = small("simulated-chat", 100, 6);
    let row = &report.rows[0];
    assert!(number(row, "finished") >= 50.0, "{row}");
    // There is no window if the machine was too busy for two seconds of it.
    assert!(row["steady"].is_null() || number(&row["steady"], "heard_per_second") > 0.0, "{row}");
    assert_delivered_once_and_in_order(&row["probes"]);
}

#[test]
fn after_a_reconnect_storm_all_users_are_back() {
    let report = small("reconnect-storm", 300, 60);
    let row = &report.rows[0];
    assert!(number(row, "down_ms") > 0.0 && number(row, "all_back_ms") > 0.0, "{row}");
    assert!(number(row, "connects_begun") >= 300.0, "{row}");
    assert!(number(row, "joined_least") < 300.0, "{row}");
}

/// Moves this thread into a network namespace of its own with a small TCP hash table. Returns false
/// where that is impossible.
fn enter_a_small_namespace() -> bool {
    let entries = "/proc/sys/net/ipv4/tcp_child_ehash_entries";
    let made = netns::unshare().is_ok()
        && std::fs::write(entries, "1024").is_ok()
        && netns::unshare().is_ok();
    made && Command::new("ip").args(["link", "set", "lo", "up"]).status().is_ok_and(|s| s.success())
}

#[test]
fn users_that_would_crowd_the_tcp_hash_get_a_namespace_with_a_larger_one() {
    let crowded = std::thread::spawn(|| {
        let run = |no_namespace| {
            let (users, seconds) = (Some(2_500), Some(2));
            small_with(
                "connscale",
                LabOptions { users, seconds, no_namespace, ..Default::default() },
            )
        };
        enter_a_small_namespace().then(|| [run(false), run(true)])
    });
    let Some([moved, stayed]) = crowded.join().unwrap() else {
        return println!("skipped: network namespaces need root, ip and Linux 6.1");
    };
    let setup = &moved.setup;
    assert!(setup.contains("has 8.19k buckets") && setup.contains("1.02k"), "{setup}");
    let setup = &stayed.setup;
    assert!(setup.contains("5k sockets share the 1.02k buckets"), "{setup}");
    for report in [moved, stayed] {
        assert_eq!(number(&report.rows[0], "connected_most"), 2_500.0, "{report}");
    }
}

#[test]
fn users_come_at_the_rate_that_was_asked_for() {
    let options =
        LabOptions { users: Some(300), seconds: Some(3), rate: Some(100), ..LabOptions::default() };
    let report = small_with("phoenix-2m", options);
    let row = &report.rows[0];
    assert_eq!((number(row, "arrivals_per_second"), number(row, "joined_most")), (100.0, 300.0));
    // However busy the machine, the last of 300 users does not arrive earlier.
    assert!(number(row, "all_joined_ms") >= 2_900.0, "{row}");
}

#[test]
fn a_lab_that_is_stopped_reports_what_it_has() {
    let options = LabOptions {
        users: Some(100),
        seconds: Some(300),
        program: Some(crate::common::throng()),
        ..LabOptions::default()
    };
    let began = Instant::now();
    let stop = options.stop.clone();
    let report = run("connscale", &options, &mut |event| {
        if let LabProgress::Run(TestBedProgress::Interval { interval, .. }) = event
            && interval.at_ms >= 2000
        {
            stop.store(true, Ordering::Relaxed);
        }
    });
    let report = report.unwrap_or_else(|error| panic!("{error}"));
    assert!(report.interrupted && report.to_string().contains("ended early"), "{report}");
    assert!(began.elapsed() < Duration::from_secs(150), "it took {:?}", began.elapsed());
}

#[test]
fn a_size_that_does_not_fit_is_refused_with_the_command() {
    let options = LabOptions {
        users: Some(1_000_000_000),
        program: Some(crate::common::throng()),
        ..LabOptions::default()
    };
    let error = run("connscale", &options, &mut |_| {}).unwrap_err().to_string();
    assert!(
        error.contains("1G connections with client and server here do not fit")
            && error.contains("--users"),
        "{error}"
    );
}
