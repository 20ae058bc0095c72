//! Handshakes began faster than they completed: those of the run itself, or of a flood from
//! elsewhere.

use throng_measure::{Endpoint, Finding, Metric, Severity, Side};
use throng_report::render::count;

use super::{Rule, accept_queue_overflow, listen_backlog, retransmission};
use crate::counted::counted;
use crate::run_view::{Growth, RunView};

pub(super) const RULE: Rule =
    Rule::new("syn_queue_overflow", find).explains(&["retransmits", "half_open"]);

/// The kernel's answers to SYNs that found the queue full.
#[derive(Debug, Default)]
struct SynHandling {
    /// SYNs that it dropped.
    dropped: u64,
    /// SYNs that it answered with a cookie, without an entry in the queue.
    cookies: u64,
    growths: Vec<Growth>,
}

fn find(run: &RunView<'_>) -> Option<Finding> {
    let refused = refused(run);
    let total = refused.dropped + refused.cookies;
    let symptom = retransmission::by_connects(run);
    if total == 0 || is_anothers(run, &refused, symptom.is_some()) {
        return None;
    }
    let connects = run.load_growth("load.connects_started", |load| load.connects_started);
    let connects = connects.map_or(0, |growth| growth.by());
    let flood = total > SYNS_PER_CONNECT * connects + UNFELT_MIN;
    let text = if flood { of_a_flood(total, connects) } else { of_the_run(run, &refused) };
    let severity = symptom.as_ref().map_or(Severity::Noted, |symptom| symptom.severity);
    let syn_recv =
        run.peak(Endpoint::Server, Metric::LISTENER_SYN_RECV).filter(|peak| peak.value > 0);
    let finding = Finding::new(RULE.id, Side::Server, text)
        .with_severity(severity)
        .with_evidence(refused.growths.iter().map(Growth::evidence))
        .with_evidence(symptom)
        .with_evidence(syn_recv)
        .remedied_by(remedy(run, flood));
    Some(finding)
}

/// Returns the SYNs that found the queue full. Cookies count only if the full queue was their
/// reason: a kernel may be configured to answer every SYN with one.
fn refused(run: &RunView<'_>) -> SynHandling {
    let mut refused = SynHandling::default();
    let full = run.growth(Endpoint::Server, Metric::TCPEXT_TCP_REQ_Q_FULL_DROP);
    let cookies = run.growth(Endpoint::Server, Metric::TCPEXT_TCP_REQ_Q_FULL_DO_COOKIES);
    refused.dropped += full.as_ref().map_or(0, Growth::by);
    refused.cookies += cookies.as_ref().map_or(0, Growth::by);
    refused.growths.extend(full);
    refused.growths.extend(cookies);
    // Without cookies the kernel reserves the last quarter of tcp_max_syn_backlog for known peers.
    // Drops for that reason appear only in the total of all drops.
    if run.facts(Endpoint::Server).tcp_syncookies == Some(0)
        && let Some(drops) = run.growth(Endpoint::Server, Metric::TCPEXT_LISTEN_DROPS)
    {
        let overflows = run.growth(Endpoint::Server, Metric::TCPEXT_LISTEN_OVERFLOWS);
        let others = overflows.map_or(0, |growth| growth.by()) + refused.dropped;
        if drops.by() > others {
            refused.dropped += drops.by() - others;
            refused.growths.push(drops);
        }
    }
    refused
}

/// Reports whether the SYNs were sent to another listener: the kernel's counters cover all of the
/// network namespace. The server's own listeners count what they dropped, but not the cookies; a
/// queue that was full shows those. Without a symptom, one of the two must show the full queue.
fn is_anothers(run: &RunView<'_>, refused: &SynHandling, is_felt: bool) -> bool {
    let own_drops = accept_queue_overflow::own_drops(run);
    let most = run.peak(Endpoint::Server, Metric::LISTENER_SYN_RECV).map(|peak| peak.value);
    // Half-open connections are counted seldom: between two counts there may be twice as many.
    let was_full = most.map(|most| room(run).is_some_and(|room| 2 * most >= room));
    let total = refused.dropped + refused.cookies;
    match own_drops {
        Some(0) if refused.cookies == 0 => true,
        Some(drops) if drops > 0 && refused.dropped > 0 => !is_felt && total < UNFELT_MIN,
        _ if is_felt => was_full == Some(false) && own_drops == Some(0),
        _ => was_full != Some(true) || total < UNFELT_MIN,
    }
}

/// Returns the text of a finding about the run's own connects.
fn of_the_run(run: &RunView<'_>, refused: &SynHandling) -> String {
    let room = room(run).map_or(String::new(), |n| format!(", which holds {},", count(n as f64)));
    let syns = |n: u64| counted(n, "SYN was", "SYNs were");
    let became = match (refused.dropped, refused.cookies) {
        (dropped, 0) => format!("{} dropped", syns(dropped)),
        (0, cookies) => format!("{} answered with cookies", syns(cookies)),
        (dropped, cookies) => {
            format!("{} dropped and {} answered with cookies", syns(dropped), count(cookies as f64))
        }
    };
    format!(
        "The server's SYN queue{room} was full: {became}. Handshakes began faster than they \
         completed: the path between client and server is slow or loses packets. A client whose \
         SYN is dropped tries again a second later."
    )
}

/// Returns the capacity of the SYN queue: the backlog, and without cookies at most three quarters
/// of the limit for all listeners.
fn room(run: &RunView<'_>) -> Option<i64> {
    let backlog = run.facts(Endpoint::Server).backlog;
    let cookies = run.facts(Endpoint::Server).tcp_syncookies;
    let all = run.facts(Endpoint::Server).tcp_max_syn_backlog;
    let known = all.filter(|_| cookies == Some(0)).map(|all| all - all / 4);
    [backlog, known].into_iter().flatten().min()
}

/// Returns the text of a finding about SYNs that the run did not send.
fn of_a_flood(total: u64, connects: u64) -> String {
    format!(
        "The server is flooded with SYNs that are not the run's: {} found its SYN queue full, and \
         the run made {}. The run's connects share the queue with them.",
        count(total as f64),
        counted(connects, "connect", "connects")
    )
}

/// Returns what to do, by whether cookies are off.
fn remedy(run: &RunView<'_>, flood: bool) -> String {
    let cookies = run.facts(Endpoint::Server).tcp_syncookies;
    let listen = listen_backlog::raise(run, WANTED);
    match (flood, cookies) {
        (true, Some(0)) => {
            "sysctl -w net.ipv4.tcp_syncookies=1 on the server, and find their senders (ss -tn \
             state syn-recv)"
                .to_owned()
        }
        (true, _) => {
            "find their senders (ss -tn state syn-recv), and drop the SYNs before they reach the \
             listener"
                .to_owned()
        }
        (false, Some(0)) => format!(
            "sysctl -w net.ipv4.tcp_syncookies=1 net.core.somaxconn={WANTED} \
             net.ipv4.tcp_max_syn_backlog={WANTED}, and {listen}"
        ),
        (false, _) => format!(
            "{listen}; and sysctl -w net.core.somaxconn={WANTED} \
             net.ipv4.tcp_max_syn_backlog={WANTED}"
        ),
    }
}

/// The longest queue that is usual.
const WANTED: i64 = 65_535;

/// The most SYNs that the run itself sends for a connect: the kernel retransmits an unanswered SYN
/// after 1 and 3 seconds, and after 5 the connect is given up.
const SYNS_PER_CONNECT: u64 = 3;

/// The fewest that count without a symptom: fewer are a stray port scan or the tail of another
/// test.
const UNFELT_MIN: u64 = 100;

#[cfg(test)]
mod tests {
    use super::super::fixture::Run;
    use super::*;
    use throng_measure::Operation;

    /// Adds connects that needed a second SYN.
    fn late(run: Run) -> Run {
        run.loaded(|load, second| {
            load.times[Operation::Connect].record_n(1_040_000, u32::from(second == 4))
        })
    }

    fn run_with_cookies() -> Run {
        Run::quiet().with(Metric::SYSCTL_NET_IPV4_TCP_SYNCOOKIES, 1).growing(
            Metric::TCPEXT_TCP_REQ_Q_FULL_DO_COOKIES,
            0,
            2_000,
            2,
        )
    }

    /// Adds a SYN queue that holds 128 and had `most` entries.
    fn full(run: Run, most: i64) -> Run {
        run.with(Metric::LISTENER_BACKLOG, 128).with(Metric::LISTENER_SYN_RECV, most)
    }

    #[test]
    fn a_queue_that_is_full_of_the_runs_own_connects_is_reported() {
        let run = late(Run::quiet().with(Metric::LISTENER_BACKLOG, 64).growing(
            Metric::TCPEXT_TCP_REQ_Q_FULL_DROP,
            3,
            50,
            2,
        ));
        let found = run.speaks(&RULE);
        assert_eq!(found.severity, Severity::Slowed);
        assert_eq!(
            found.first_sentence(),
            "The server's SYN queue, which holds 64, was full: 400 SYNs were dropped"
        );
    }

    #[test]
    fn more_syns_than_the_run_can_have_sent_are_a_flood() {
        let run = run_with_cookies();
        run.is_silent(&RULE);
        assert_eq!(late(run).speaks(&RULE).severity, Severity::Slowed);
        let run = full(run_with_cookies(), 128);
        let found = run.speaks(&RULE);
        assert!(found.text.contains("not the run's: 16k"), "{found}");
        assert_eq!(found.severity, Severity::Noted, "cookies let all connects succeed");
    }

    #[test]
    fn the_syns_of_another_listener_are_not_this_servers() {
        full(run_with_cookies(), 3).is_silent(&RULE);
        let none = |run: Run| run.with(Metric::LISTENER_DROPS, 7);
        late(none(full(run_with_cookies(), 3))).is_silent(&RULE);
        let dropped =
            || late(Run::quiet().growing(Metric::TCPEXT_TCP_REQ_Q_FULL_DROP, 0, 2_000, 2));
        none(dropped()).is_silent(&RULE);
        dropped().growing(Metric::LISTENER_DROPS, 0, 2_000, 2).speaks(&RULE);
    }

    #[test]
    fn drops_for_the_last_quarter_of_the_queue_are_counted_without_cookies_only() {
        let with_cookies = |on| {
            late(Run::quiet())
                .with(Metric::SYSCTL_NET_IPV4_TCP_SYNCOOKIES, on)
                .growing(Metric::TCPEXT_LISTEN_DROPS, 0, 60, 2)
                .growing(Metric::TCPEXT_LISTEN_OVERFLOWS, 0, 20, 2)
        };
        let without = with_cookies(0)
            .with(Metric::LISTENER_BACKLOG, 4_096)
            .with(Metric::SYSCTL_NET_IPV4_TCP_MAX_SYN_BACKLOG, 128);
        let text = without.speaks(&RULE).text;
        assert!(text.contains("which holds 96, was full: 320 SYNs were dropped"), "{text}");
        with_cookies(1).is_silent(&RULE);
    }

    #[test]
    fn an_accept_queue_that_overflows_is_another_queue() {
        let run = late(Run::quiet())
            .with(Metric::SYSCTL_NET_IPV4_TCP_SYNCOOKIES, 0)
            .growing(Metric::TCPEXT_LISTEN_DROPS, 0, 60, 2)
            .growing(Metric::TCPEXT_LISTEN_OVERFLOWS, 0, 60, 2);
        run.is_silent(&RULE);
    }

    #[test]
    fn cookies_for_every_syn_and_a_stray_scan_are_no_full_queue() {
        late(Run::quiet().growing(Metric::TCPEXT_SYNCOOKIES_SENT, 0, 200, 0)).is_silent(&RULE);
        Run::quiet().growing(Metric::TCPEXT_TCP_REQ_Q_FULL_DROP, 0, 5, 2).is_silent(&RULE);
    }
}
