//! The progress line: one line for each interval, also for piped output.

use throng_measure::{Histogram, Interval, IntervalWork, LoadInterval, Operation, ProbeReport};

use super::{count, micros, rate};

/// Returns the line of `interval`. Rates count from `previous`, or from the beginning. No newline
/// at the end.
///
/// ```text
///    12.0 s  ramp to 100k  connected 12k  connects 998/s of 1k/s  p99 1.20 ms  messages 2k/s  …
///    13.0 s  arrivals 1k/s  connected 13k  joined 12k  joins 1k/s  p99 3.40 ms  errors 0
/// ```
///
/// `connected` is as of the end of the interval. It is left out if fewer than half of the
/// connections that the interval established were open at its end, because they live shorter than
/// an interval. While all users leave, there is no rate and no latency, because it would not be the
/// target's.
pub fn progress_line(interval: &Interval, previous: Option<&Interval>) -> String {
    let mut line = format!("{:>8.1} s", interval.at_ms as f64 / 1000.0);
    if let Some(load) = &interval.load {
        let work = IntervalWork::of(interval, previous);
        let now = &load.counters;
        let before = previous.and_then(|interval| interval.load.as_ref());
        let grown = before.map_or_else(|| now.clone(), |before| now.since(&before.counters));
        let per_second = |n: u64| work.per_second(n).map_or_else(|| "-".to_owned(), rate);
        let leaving = load.is_leaving();
        if let Some(paused) = paused(load) {
            line += &format!("  {paused}");
        }
        line += &format!("  {}", load.phase);
        if leaving || now.connected * 2 >= grown.connects_ok {
            line += &format!("  connected {}", count(now.connected as f64));
        }
        if !leaving {
            let (done, due) = (work.done[Operation::Connect], work.connects_due);
            line += &format!("  connects {} of {}", per_second(done), per_second(due));
            line += &p99(load.latency(Operation::Connect));
        }
        if now.joins_started > 0 {
            line += &format!("  joined {}", count(now.joined as f64));
        }
        let is_part = |of: &Operation| !matches!(of, Operation::Connect | Operation::Message);
        for operation in Operation::counted().filter(|of| !leaving && is_part(of)) {
            if operation.counts(&grown).is_some_and(|counts| counts.started > 0) {
                let is_http = operation == Operation::Http;
                let name = if is_http { operation.name() } else { operation.plural() };
                line += &format!("  {name} {}", per_second(work.done[operation]));
                line += &p99(load.latency(operation));
            }
        }
        if let Some(broadcast) = broadcast_progress(load) {
            line += &format!("  {broadcast}");
        }
        if !leaving && (now.messages_sent > 0 || now.messages_answered > 0) {
            line += &format!("  messages {}", per_second(work.done[Operation::Message]));
            if work.turns_due > 0 {
                line += &format!("  turns due {}", per_second(work.turns_due));
            }
            line += &p99(load.latency(Operation::Message));
        }
        line += &format!("  errors {}", count((load.errors.total() + now.connects_failed) as f64));
    } else if let Some(server) = &interval.server {
        line += &format!("  open {}", count(server.counters.open as f64));
    }
    for event in &interval.events {
        line += &format!("  [{}]", event.kind);
    }
    line
}

/// Returns a note that the load is paused, with the command to resume it: `paused; throng ctl
/// resume --pid 4711`.
pub fn paused(load: &LoadInterval) -> Option<String> {
    let pid = load.process.pid;
    load.paused.then(|| match pid {
        0 => "paused; throng ctl resume".to_owned(),
        pid => format!("paused; throng ctl resume --pid {pid}"),
    })
}

/// Returns the progress of the latest probe of the interval: `broadcast 4: 9.8k of 10k by 54.1 ms`.
pub fn broadcast_progress(load: &LoadInterval) -> Option<String> {
    let probe = load.probes.iter().rfind(|probe| probe.counters.sent > 0)?;
    let ProbeReport { number, counters, last_us, .. } = probe;
    let [delivered, expected] =
        [counters.delivered, counters.expected - counters.left].map(|n| count(n as f64));
    let by = last_us.map_or_else(String::new, |us| format!(" by {}", micros(us)));
    let missing = match counters.missing {
        0 => String::new(),
        missing => format!(", {} missing", count(missing as f64)),
    };
    Some(format!("broadcast {number}: {delivered} of {expected}{by}{missing}"))
}

fn p99(histogram: &Histogram) -> String {
    if histogram.is_empty() {
        String::new()
    } else {
        format!("  p99 {}", micros(histogram.percentile(99.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_measure::{LEAVING, LoadCounters, RunEvent, RunEventKind};

    fn interval(at_ms: u64, counters: LoadCounters) -> Interval {
        let load = LoadInterval { phase: "ramp to 2k".into(), counters, ..Default::default() };
        Interval { at_ms, span_ms: 1000, load: Some(load), ..Default::default() }
    }

    #[test]
    fn a_line_shows_rates_of_its_interval_beside_what_was_intended() {
        let before = interval(
            1000,
            LoadCounters {
                users_intended: 500,
                users_started: 500,
                connects_started: 500,
                connects_ok: 500,
                ..Default::default()
            },
        );
        let mut now = interval(
            2000,
            LoadCounters {
                users_intended: 1500,
                users_started: 1400,
                connects_started: 1400,
                connects_ok: 1390,
                connects_failed: 2,
                connected: 1390,
                ..Default::default()
            },
        );
        now.load.as_mut().unwrap().times[Operation::Connect].record_us(1200);
        assert_eq!(
            progress_line(&now, Some(&before)),
            "     2.0 s  ramp to 2k  connected 1.39k  connects 890/s of 1k/s  p99 1.20 ms  errors 2"
        );
    }

    #[test]
    fn messages_and_events_are_shown_when_there_are_any() {
        let counters = LoadCounters {
            messages_sent: 10,
            messages_answered: 9,
            turns_intended: 11,
            ..Default::default()
        };
        let mut now = interval(1000, counters);
        now.events.push(RunEvent::new(900, RunEventKind::Steered { command: "stop 5".into() }));
        let line = progress_line(&now, None);
        assert!(
            line.contains("messages 9/s  turns due 11/s  errors 0  [steered: stop 5]"),
            "{line}"
        );
    }

    #[test]
    fn a_paused_load_says_so_and_how_it_goes_on() {
        let mut now = interval(9000, LoadCounters { connected: 4, ..Default::default() });
        let load = now.load.as_mut().unwrap();
        (load.paused, load.process.pid) = (true, 4711);
        let line = progress_line(&now, None);
        let says = "     9.0 s  paused; throng ctl resume --pid 4711  ramp to 2k  connected 4";
        assert!(line.starts_with(says), "{line}");
    }

    #[test]
    fn joins_pushes_and_the_latest_broadcast_are_shown() {
        let counters = LoadCounters {
            connected: 10,
            joined: 9,
            joins_started: 10,
            joins_ok: 9,
            pushes_sent: 3,
            pushes_ok: 2,
            ..Default::default()
        };
        let mut now = interval(1000, counters);
        let load = now.load.as_mut().unwrap();
        load.times[Operation::Join].record_us(900);
        let probes = throng_measure::ProbeCounters {
            sent: 1,
            expected: 9,
            delivered: 6,
            left: 1,
            missing: 1,
            ..Default::default()
        };
        load.probes.push(ProbeReport {
            number: 4,
            counters: probes,
            last_us: Some(5200),
            ..Default::default()
        });
        load.probes.push(ProbeReport { number: 5, ..Default::default() });
        let line = progress_line(&now, None);
        let shown = "connected 10  connects 0/s of 0/s  joined 9  joins 9/s  p99 900 µs  \
                     pushes 2/s  broadcast 4: 6 of 8 by 5.20 ms, 1 missing  errors 0";
        assert!(line.ends_with(shown), "{line}");
    }

    #[test]
    fn a_catching_up_generator_is_not_shown_as_more_load_than_was_due() {
        let at = |intended, started| LoadCounters {
            users_intended: intended,
            users_started: started,
            connects_started: started,
            connects_ok: started,
            connected: started,
            ..Default::default()
        };
        let line = progress_line(&interval(2000, at(200, 200)), Some(&interval(1000, at(100, 40))));
        assert!(line.contains("connects 160/s of 100/s"), "{line}");
    }

    #[test]
    fn connections_that_live_shorter_than_they_are_counted_are_not_shown_as_none() {
        let counters = LoadCounters {
            connects_started: 90,
            connects_ok: 90,
            connected: 1,
            ..Default::default()
        };
        let line = progress_line(&interval(1000, counters), None);
        assert_eq!(line, "     1.0 s  ramp to 2k  connects 90/s of 90/s  errors 0");
    }

    #[test]
    fn when_all_users_leave_no_rate_is_shown() {
        let mut now = interval(
            9000,
            LoadCounters { connects_ok: 90, connected: 4, messages_sent: 8, ..Default::default() },
        );
        now.load.as_mut().unwrap().phase = LEAVING.to_owned();
        assert_eq!(
            progress_line(&now, None),
            "     9.0 s  everybody leaves  connected 4  errors 0"
        );
    }
}
