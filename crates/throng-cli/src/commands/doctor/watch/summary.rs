//! What a watch has seen so far, and what it comes to.

use throng_doctor::{History, diagnose, trouble_counters};
use throng_report::runfile::RunHeader;
use throng_report::watch::{CounterDelta, WatchEnd, WatchLine};
use throng_report::{Finding, Interval, Summary};

/// The looks of a watch, in the form of a run without a load. Of a long watch, fewer: it may last for days.
#[derive(Debug, Default)]
pub(super) struct WatchSummary {
    intervals: Vec<Interval>,
    /// Looks in all.
    looks: u64,
    /// Of how many looks one is kept.
    keep_each: u64,
    last: Option<Interval>,
    /// When a throng server last said anything, in milliseconds.
    spoke_ms: Option<u64>,
}

impl WatchSummary {
    pub(super) fn add(&mut self, line: WatchLine) {
        let interval = as_interval(line);
        if interval.server.is_some() {
            self.spoke_ms = Some(interval.at_ms);
        }
        self.keep_each = self.keep_each.max(1);
        if self.looks.is_multiple_of(self.keep_each) {
            self.intervals.push(interval.clone());
        }
        self.looks += 1;
        self.last = Some(interval);
        if self.intervals.len() >= KEPT_MAX {
            // Counters count from a start, so what is left out costs its resolution and nothing else.
            let mut n = 0;
            self.intervals.retain(|_| {
                n += 1;
                n % 2 == 1
            });
            self.keep_each *= 2;
        }
    }

    /// The last look.
    pub(super) fn last(&self) -> Option<&Interval> {
        self.last.as_ref()
    }

    fn seconds(&self) -> f64 {
        let first = self.intervals.first().map_or(0, |interval| interval.at_ms);
        self.last.as_ref().map_or(0, |last| last.at_ms - first) as f64 / 1000.0
    }

    /// What could not be seen at last.
    pub(super) fn unseen(&self) -> &[String] {
        self.last.as_ref().and_then(|last| last.unseen.as_deref()).unwrap_or_default()
    }

    /// What it came to.
    pub(super) fn end(&self) -> WatchEnd {
        let (moved, findings) = (trouble_counters(&self.whole()), self.findings());
        // What the kernel says of a server's end tells more than its silence.
        let silence = self.silence().filter(|_| findings.is_empty());
        let verdict = silence.unwrap_or_else(|| verdict(&moved, &findings));
        WatchEnd { verdict, looks: self.looks, seconds: self.seconds(), moved, findings }
    }

    /// Why nothing good can be said of the server: it is not there, or has stopped to say anything.
    fn silence(&self) -> Option<String> {
        let last = self.last.as_ref()?;
        let is_silent = |spoke_ms: &u64| last.at_ms.saturating_sub(*spoke_ms) >= SILENT_MS;
        let spoke = self.spoke_ms.filter(is_silent);
        if let Some(spoke_ms) = spoke {
            return Some(format!(
                "The server has not answered on its control socket since {:.1} s: it has ended, hangs, or was stopped.",
                spoke_ms as f64 / 1000.0
            ));
        }
        let has_listener = last.server_kernel.get("listener.count").is_none_or(|n| *n > 0);
        (!has_listener)
            .then(|| "Nobody listens there: start the server, or correct --port.".to_owned())
    }

    /// What the same rules find that look at a run, as far as they need no load.
    fn findings(&self) -> Vec<Finding> {
        let mut history = History::new(RunHeader { target_is_here: false, ..RunHeader::default() });
        self.whole().iter().for_each(|interval| history.add(interval));
        let mut found = diagnose(&history, &Summary::default(), &[]).findings;
        found.retain(|finding| WITHOUT_LOAD.contains(&finding.id.as_str()));
        found
    }

    /// What is kept, up to the last look.
    fn whole(&self) -> Vec<Interval> {
        let mut whole = self.intervals.clone();
        if let Some(last) = &self.last
            && whole.last().is_none_or(|kept| kept.at_ms < last.at_ms)
        {
            whole.push(last.clone());
        }
        for n in 1..whole.len() {
            whole[n].span_ms = whole[n].at_ms - whole[n - 1].at_ms;
        }
        whole
    }
}

/// What the server's own host says, in a sentence: it knows nothing of what its users wanted.
fn verdict(moved: &[CounterDelta], found: &[Finding]) -> String {
    match (found.first(), moved.len()) {
        (Some(first), _) => format!("{}; do: {}.", first.first_sentence(), first.remedy),
        (None, 0) => "Nothing was seen on this host that stops a server.".to_owned(),
        (None, 1) => format!("One counter of trouble moved, {}.", moved[0].counter),
        (None, n) => format!("{n} counters of trouble moved, {} and others.", moved[0].counter),
    }
}

/// A look as a line of the run file would hold it: all of it is of the server's side.
fn as_interval(line: WatchLine) -> Interval {
    Interval {
        at_ms: line.at_ms,
        span_ms: line.span_ms,
        server: line.server,
        server_kernel: line.kernel,
        server_machine: line.machine,
        unseen: Some(line.unseen),
        ..Interval::default()
    }
}

/// What the server's own counters show. The other rules hold them against what the users of a run did, and would take users that
/// nobody counted for none.
const WITHOUT_LOAD: &[&str] = &[
    "accept_queue_overflow",
    "backlog_clamped",
    "connections_max_reached",
    "conntrack_full",
    "fds_exhausted",
    "memory_runs_out",
];

/// Looks that are kept; half of them are left out when there are so many.
const KEPT_MAX: usize = 2_048;

/// A server that answers a look late is busy and no more.
const SILENT_MS: u64 = 3_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn look(at_ms: u64, overflows: i64) -> WatchLine {
        let kernel = [("TcpExt.ListenOverflows".to_owned(), overflows)].into();
        WatchLine { at_ms, span_ms: 1000, kernel, ..WatchLine::default() }
    }

    #[test]
    fn a_watch_of_days_keeps_a_bounded_part_and_loses_no_count() {
        let mut seen = WatchSummary::default();
        for n in 0..20_000 {
            seen.add(look(n * 1000, n as i64));
        }
        assert!(seen.intervals.len() < KEPT_MAX);
        assert_eq!(seen.looks, 20_000);
        assert_eq!(seen.seconds(), 19_999.0);
        assert_eq!(seen.end().moved[0].by, 19_999);
        let whole = seen.whole();
        assert!(whole.windows(2).all(|pair| pair[1].span_ms == pair[1].at_ms - pair[0].at_ms));
    }

    #[test]
    fn rules_that_look_at_a_load_are_not_asked_where_there_is_none() {
        for id in WITHOUT_LOAD {
            assert!(throng_doctor::rules::RULES.iter().any(|rule| rule.id == *id), "{id}");
        }
        let mut seen = WatchSummary::default();
        for n in 0..10 {
            let mut look = look(n * 1000, 40 * n as i64);
            // As many SYNs as a flood: they are those of a load that is not here to be counted.
            look.kernel.insert("TcpExt.TCPReqQFullDoCookies".to_owned(), 900 * n as i64);
            look.kernel.insert("listener.syn_recv".to_owned(), 200);
            seen.add(look);
        }
        let found: Vec<_> = seen.findings().into_iter().map(|finding| finding.id).collect();
        assert_eq!(found, ["accept_queue_overflow"]);
    }

    #[test]
    fn a_server_that_is_silent_or_not_there_is_no_good_news() {
        let verdict = |spoke_until_ms: u64, listeners: i64, oom_kills: i64| {
            let mut seen = WatchSummary::default();
            for n in 0..10 {
                let mut look = look(n * 1000, 7);
                look.server = (n * 1000 <= spoke_until_ms).then(Default::default);
                look.kernel.insert("listener.count".to_owned(), listeners);
                look.kernel.insert("process.server.fds_max".to_owned(), 1_024);
                look.kernel.insert("cgroup.memory.oom_kills".to_owned(), oom_kills * n as i64);
                seen.add(look);
            }
            seen.end().verdict
        };
        assert_eq!(verdict(9_000, 1, 0), "Nothing was seen on this host that stops a server.");
        assert_eq!(verdict(8_000, 1, 0), verdict(9_000, 1, 0), "it was late once");
        assert!(
            verdict(4_000, 1, 0)
                .starts_with("The server has not answered on its control socket since 4.0 s")
        );
        assert!(verdict(9_000, 0, 0).starts_with("Nobody listens there"));
        assert!(verdict(4_000, 1, 1).starts_with("The kernel killed"), "why tells more than that");
    }

    #[test]
    fn a_server_that_is_killed_for_its_memory_needs_no_load_to_be_told() {
        let watched = |process: Option<&str>| {
            let mut seen = WatchSummary::default();
            for n in 0..10 {
                let mut look = look(n * 1000, 7);
                look.kernel.insert("cgroup.memory.oom_kills".to_owned(), i64::from(n > 5));
                look.kernel.extend(process.map(|name| (name.to_owned(), 1_024)));
                seen.add(look);
            }
            seen.findings().into_iter().map(|finding| finding.text).collect::<Vec<_>>()
        };
        assert_eq!(
            watched(Some("process.server.fds_max")),
            [
                "The kernel killed a process because the memory of the server's control group was full."
            ]
        );
        assert_eq!(watched(None), [""; 0], "it is the group of whoever watches");
    }

    #[test]
    fn a_quiet_host_gives_no_finding() {
        let mut seen = WatchSummary::default();
        (0..10).for_each(|n| seen.add(look(n * 1000, 7)));
        let end = seen.end();
        assert_eq!((end.moved, end.findings), (vec![], vec![]));
    }
}
