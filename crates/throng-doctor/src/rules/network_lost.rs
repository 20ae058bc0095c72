//! From some moment on, packets between generator and server are lost.
//!
//! To users a network that goes away and a server that stands still look the same. The kernels tell
//! them apart: that of a stopped process still acknowledges data, so its peer's retransmission
//! timer never expires (RFC 6298). A timer that expires again and again says that no packet, or no
//! acknowledgement, has arrived.

use throng_measure::{Endpoint, ErrorKind, Evidence, Finding, Metric, Side};
use throng_report::render::count;

use super::{Rule, accept_queue_overflow};
use crate::counted::counted;
use crate::gaps::gaps;
use crate::history::Sample;
use crate::impact::GAP_MS;
use crate::kernels::is_shared;
use crate::run_view::RunView;

pub(super) const RULE: Rule = Rule::new("network_lost", find).explains(&[
    "answers_incomplete",
    "messages_unfinished",
    "answers_missing",
    "deliveries_missing",
    "half_open",
    "handshakes_refused",
    "latency_grows",
    "rate_limited",
    "retransmits",
    "server_at_capacity",
    "server_closes_early",
    "server_lost",
    "server_slow",
    "server_stalled",
    "slow_instance",
    "syn_queue_overflow",
    "turns_missed",
]);

fn find(run: &RunView<'_>) -> Option<Finding> {
    let silence = Silence::longest(run)?;
    // Data that a client sends to a half-open connection is not acknowledged either.
    let is_queue = silence.grown(run, Endpoint::Server, Metric::TCPEXT_LISTEN_DROPS) > Some(0)
        || accept_queue_overflow::overflows(run).is_some();
    let least = TIMEOUTS_MIN.max(silence.connected / CONNECTED_ONE_IN);
    // All addresses of this machine have a route.
    let unsent = silence.grown(run, Endpoint::Client, Metric::IP_OUT_NO_ROUTES);
    let unsent = unsent.filter(|unsent| *unsent >= least && !is_shared(run));
    let again = silence.data_timeouts(run, Endpoint::Client)?;
    if unsent.is_none() && (is_queue || again < least) {
        return None;
    }
    let lost = Lost::of(run, &silence, again, unsent);
    // Where TCP goes on to connect and the server's queues cannot be read, it may be one of these.
    if lost == Lost::Large && !run.has_facts(Endpoint::Server) {
        return None;
    }
    let when = silence.when();
    let times = counted(again, "time", "times");
    let text = match &lost {
        Lost::Unknown => format!(
            "The network between generator and server was gone {when}: no answer arrived, and the \
             kernel sent data again {times} in vain. A stopped process is not the cause: its \
             kernel would have acknowledged that data."
        ),
        Lost::Unseen => format!(
            "The network between generator and server was gone {when}: no answer arrived, and the \
             kernel sent data again {times} in vain. A stopped process is not the cause: its \
             kernel would have acknowledged that data. Only a server whose whole machine stands \
             still looks the same."
        ),
        Lost::Forth => format!(
            "The network between generator and server was gone {when}: the generator's kernel sent \
             data again {times}, and the server's kernel received nothing."
        ),
        Lost::Back { received } => format!(
            "Packets from the server to the generator were lost {when}: the server's kernel \
             received {} segments, and none of its answers arrived. The generator's kernel sent \
             data again {times}.",
            count(*received as f64)
        ),
        Lost::NoRoute { unsent } => format!(
            "The route to the server was gone {when}: the generator's kernel could not send {}.",
            counted(*unsent, "packet", "packets")
        ),
        Lost::Large => format!(
            "Large packets between generator and server were lost {when}: TCP still connected, \
             with small packets, but data was sent again {times} in vain."
        ),
    };
    let seen = run.has_facts(Endpoint::Server);
    let finding = Finding::new(RULE.id, Side::Network, text)
        .with_confidence(if seen { 0.95 } else { 0.7 })
        .with_evidence([silence.evidence(run, &lost)?]);
    Some(finding.remedied_by(lost.remedy()))
}

/// What the network loses.
#[derive(Debug, PartialEq, Eq)]
enum Lost {
    /// Packets, in an unknown direction: both ends use one kernel.
    Unknown,
    /// Packets, in an unknown direction: the server's kernel was not read.
    Unseen,
    /// What the generator sends, and perhaps the rest.
    Forth,
    /// What the server sends.
    Back { received: u64 },
    /// All, as this machine has no way to the server.
    NoRoute { unsent: u64 },
    /// Packets that are too large for a part of the way.
    Large,
}

impl Lost {
    fn of(run: &RunView<'_>, silence: &Silence<'_>, again: u64, unsent: Option<u64>) -> Self {
        if let Some(unsent) = unsent {
            return Self::NoRoute { unsent };
        }
        if silence.inside_connects() > 0 {
            return Self::Large;
        }
        if is_shared(run) {
            return Self::Unknown;
        }
        match silence.grown(run, Endpoint::Server, Metric::TCP_IN_SEGS) {
            None => Self::Unseen,
            // What is sent again arrives.
            Some(received) if received * 2 >= again => Self::Back { received },
            Some(_) => Self::Forth,
        }
    }

    fn remedy(&self) -> &'static str {
        match self {
            Self::Large => {
                "compare the MTU of each link on the way (ip link, ping -M do -s 1472 ADDRESS), \
                 let ICMP messages pass (fragmentation needed), or set net.ipv4.tcp_mtu_probing=1"
            }
            Self::NoRoute { .. } => {
                "look for the route and its link while it lasts: ip route get ADDRESS, ip -s link, \
                 and what changes routes (a VPN, a container's network, DHCP)"
            }
            _ => {
                "look at the path while it lasts: ip -s link, ip route get ADDRESS and nft list \
                 ruleset on both machines, and the devices between them"
            }
        }
    }
}

/// A time in which users waited and no answer arrived.
struct Silence<'a> {
    from_ms: u64,
    to_ms: u64,
    /// True if it lasted to the end of the run.
    is_open: bool,
    /// The last sample before it.
    before: &'a Sample,
    /// The first sample in it.
    first: &'a Sample,
    /// The last sample in it, or the one in which it ended.
    last: &'a Sample,
    /// Connections when it began.
    connected: u64,
}

impl<'a> Silence<'a> {
    /// Returns the longest one that lasted for some seconds.
    fn longest(run: &RunView<'a>) -> Option<Self> {
        let gaps = gaps(run, GAP_MS);
        let known = gaps.iter().map(|gap| (gap.gap.from_ms, gap.gap.to_ms, gap.is_open));
        let all = known.chain(until_the_end(run));
        let (from_ms, to_ms, is_open) = all.max_by_key(|(from_ms, to_ms, _)| to_ms - from_ms)?;
        let samples = run.samples();
        let first_at = samples.iter().position(|sample| sample.interval.at_ms > from_ms)?;
        let before = &samples[first_at.checked_sub(1)?];
        let last = samples.iter().find(|sample| sample.interval.at_ms >= to_ms);
        let connected = before.load()?.counters.connected;
        let (first, last) = (&samples[first_at], last.or(samples.last())?);
        Some(Self { from_ms, to_ms, is_open, before, first, last, connected })
    }

    fn when(&self) -> String {
        let seconds = |ms: u64| format!("{:.1}", ms as f64 / 1000.0);
        match self.is_open {
            true => format!("from {} s to the end", seconds(self.from_ms)),
            false => format!("from {} to {} s", seconds(self.from_ms), seconds(self.to_ms)),
        }
    }

    /// Returns the growth of a counter from the first sample in it to the last: the interval before
    /// also has what arrived before it. Where that is one sample, from the one before.
    fn grown(&self, run: &RunView<'_>, end: Endpoint, metric: Metric) -> Option<u64> {
        let is_short = self.first.interval.at_ms == self.last.interval.at_ms;
        let from = run.value(end, if is_short { self.before } else { self.first }, metric)?;
        let to = run.value(end, self.last, metric)?;
        u64::try_from(to.saturating_sub(from)).ok()
    }

    /// Returns the connections that TCP established between the first sample in it and the last.
    /// Those of a silence that ended are not known apart from those that followed it.
    fn inside_connects(&self) -> u64 {
        let is_short = self.first.interval.at_ms == self.last.interval.at_ms;
        if is_short || !self.is_open {
            return 0;
        }
        let connects =
            |sample: &Sample| sample.load().map_or(0, |load| load.counters.tcp_connects());
        connects(self.last).saturating_sub(connects(self.first))
    }

    /// Returns how often a timer of data expired: all timers less those of handshakes.
    fn data_timeouts(&self, run: &RunView<'_>, end: Endpoint) -> Option<u64> {
        let all = self.grown(run, end, Metric::TCPEXT_TCP_TIMEOUTS)?;
        let syns = self.grown(run, end, Metric::TCPEXT_TCP_SYN_RETRANS).unwrap_or(0);
        Some(all.saturating_sub(syns))
    }

    fn evidence(&self, run: &RunView<'_>, lost: &Lost) -> Option<Evidence> {
        let metric = match lost {
            Lost::NoRoute { .. } => Metric::IP_OUT_NO_ROUTES,
            _ => Metric::TCPEXT_TCP_TIMEOUTS,
        };
        let value = |sample| run.value(Endpoint::Client, sample, metric);
        Some(Evidence {
            counter: metric.to_string(),
            from: value(self.before)? as f64,
            to: value(self.last)? as f64,
            at_ms: self.from_ms,
        })
    }
}

/// Returns the time from the last answer to the end, if users waited for an answer meanwhile, in
/// vain.
fn until_the_end(run: &RunView<'_>) -> Option<(u64, u64, bool)> {
    let done = |sample: &Sample| {
        sample.load().map_or(0, |load| load.counters.requests_answered() + load.counters.joins_ok)
    };
    let last = run.samples().last()?;
    let silent = run.samples().iter().find(|sample| done(sample) == done(last))?;
    let (from_ms, to_ms) = (silent.interval.at_ms, last.interval.at_ms);
    let given_up = |sample: &Sample| {
        let of = |kind| sample.load().map_or(0, |load| load.errors.get(kind));
        ErrorKind::unanswered().map(of).sum::<u64>()
    };
    let waited = given_up(last) > given_up(silent) || run.summary.overdue().is_some();
    (done(last) > 0 && waited && to_ms >= from_ms + GAP_MS).then_some((from_ms, to_ms, true))
}

/// The fewest expired timers that count: a lost packet or two make some.
const TIMEOUTS_MIN: u64 = 5;

/// The share of the connections, one in so many, whose timers must expire at least once.
const CONNECTED_ONE_IN: u64 = 10;

#[cfg(test)]
mod tests {
    use super::super::fixture::Run;
    use super::super::server_stalled;
    use super::*;

    /// Adds a kernel of the server, which receives so many segments a second after the fourth.
    fn apart(run: Run, received: i64) -> Run {
        run.changed(move |interval, second| {
            let second = second as i64;
            let more = received * (second - 4).max(0);
            interval.server_kernel.set(Metric::TCP_IN_SEGS, 1_000 * second.min(4) + more);
            interval.server_kernel.set(Metric::TCPEXT_LISTEN_DROPS, 0);
        })
    }

    fn timing_out(run: Run, each: i64) -> Run {
        run.growing(Metric::TCPEXT_TCP_TIMEOUTS, 7, each, 4)
    }

    /// A run whose users ask nothing after 4 s, and have errors of this kind later.
    fn to_the_end(kind: ErrorKind) -> Run {
        timing_out(Run::quiet(), 400).loaded(move |load, second| {
            load.counters.messages_sent = 1_000 * second.min(4);
            load.counters.messages_answered = 1_000 * second.min(4);
            load.errors.add(kind, 10 * second.saturating_sub(5));
        })
    }

    #[test]
    fn data_that_no_kernel_acknowledges_is_lost_on_the_way() {
        let run = timing_out(Run::silent(4_500), 400);
        let found = run.speaks(&RULE);
        assert_eq!(
            found.first_sentence(),
            "The network between generator and server was gone from 4.0 to 8.5 s: no answer \
             arrived, and the kernel sent data again 1.6k times in vain"
        );
        assert_eq!(found.side, Side::Network);
        run.is_silent(&server_stalled::RULE);
        run.check_all(&["network_lost"]);
    }

    #[test]
    fn the_servers_kernel_tells_the_direction() {
        let says = |run: Run, begin: &str| {
            let text = run.speaks(&RULE).text;
            assert!(text.contains(begin), "{text}");
        };
        let run = || timing_out(Run::silent(4_500), 400);
        says(apart(run(), 3), "and the server's kernel received nothing");
        says(
            apart(run(), 450),
            "Packets from the server to the generator were lost from 4.0 to 8.5 s: the server's \
             kernel received 1.8k segments",
        );
        let mut unseen = run();
        unseen.header.target_is_here = false;
        says(unseen, "Only a server whose whole machine stands still looks the same");
        // What is not sent needs no timer.
        let unsent = Run::silent(4_500).with(Metric::TCPEXT_TCP_TIMEOUTS, 0);
        let no_route = apart(unsent, 0).growing(Metric::IP_OUT_NO_ROUTES, 3, 200, 4);
        says(no_route, "The route to the server was gone from 4.0 to 8.5 s: the generator's");
    }

    #[test]
    fn connects_that_succeed_meanwhile_show_that_small_packets_pass() {
        let run = to_the_end(ErrorKind::ExpectTimeout).loaded(|load, second| {
            load.counters.connects_ok += 10 * second.saturating_sub(5);
        });
        let found = run.speaks(&RULE);
        assert!(found.text.starts_with("Large packets between generator and server"), "{found}");
        assert!(found.remedy.contains("MTU"), "{found}");
        // TCP had connected before, and only the answers to the upgrades arrive late.
        let upgrades = to_the_end(ErrorKind::ExpectTimeout).loaded(|load, second| {
            load.counters.upgrades_started = 1_000 * second.min(4);
            load.counters.connects_ok = 100 * second;
        });
        let found = upgrades.speaks(&RULE);
        assert!(found.text.starts_with("The network between generator and server was"), "{found}");
    }

    #[test]
    fn an_error_that_is_no_wait_does_not_show_that_an_answer_was_due() {
        to_the_end(ErrorKind::ExpectTimeout).speaks(&RULE);
        for kind in [ErrorKind::ExpectMismatch, ErrorKind::ResetByPeer, ErrorKind::CueTimeout] {
            to_the_end(kind).is_silent(&RULE);
        }
    }

    #[test]
    fn a_stopped_server_acknowledges_and_a_full_accept_queue_is_another_cause() {
        Run::silent(4_500).is_silent(&RULE);
        timing_out(Run::silent(4_500), 1).is_silent(&RULE);
        timing_out(Run::silent(4_500), 400)
            .growing(Metric::TCPEXT_LISTEN_DROPS, 0, 30, 4)
            .is_silent(&RULE);
        // Handshakes that wait for a listener are no lost data.
        timing_out(Run::silent(4_500), 400)
            .growing(Metric::TCPEXT_TCP_SYN_RETRANS, 0, 400, 4)
            .is_silent(&RULE);
        timing_out(Run::quiet(), 400).is_silent(&RULE);
    }
}
