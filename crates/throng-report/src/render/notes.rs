//! Notes about the numbers of a report, one sentence each.

use throng_base::units::{brief_rate, plural};
use throng_measure::validity::is_owned;
use throng_measure::{CueWaits, LatencySummary, Operation};

use super::operations::{OperationRow, operations, shown, timed_in_requests};
use super::{count, micros, percent};
use crate::summary::{
    CueSummary, DeflateSummary, LimitSummary, MessageSummary, RulesSummary, StepSummary, Summary,
};

/// Returns the notes about the report's latencies and costs.
pub(super) fn notes(summary: &Summary) -> Vec<String> {
    let m = &summary.machine;
    let mut notes = Vec::from_iter(imported_note(summary));
    notes.extend(unanswered_note(summary));
    notes.extend(clocks_note(summary));
    notes.extend(connects_note(summary));
    notes.extend(deflate_note(summary));
    notes.extend(unrequested_note(summary));
    notes.extend(rules_note(summary));
    notes.extend(lateness_note(summary));
    notes.extend(retries_note(summary));
    notes.extend(cues_note(summary));
    let cues = summary.cues.iter().flat_map(|cues| &cues.each);
    notes.extend(cues.filter_map(CueWaits::describe_left));
    notes.extend(summary.limits.iter().filter_map(limit_note));
    if m.cpu_busy_share.is_some() {
        let (whose, on) = match summary.machines.is_empty() {
            true => ("Whole machine", "on it"),
            false => ("Their machines", "on them"),
        };
        notes.push(if others_used_more(summary) {
            format!(
                "{whose}: everything that ran {on}. More than half of that was not this \
                 run's, so it is not divided by the run's connects and {}s.",
                summary.unit_of_work()
            )
        } else {
            format!("{whose}: everything that ran {on}, other programs too.")
        });
    }
    if let Some(share) = summary.generator.ceiling_share {
        let used = match share * 100.0 {
            percent if percent < 1.0 => "less than 1 %".to_owned(),
            percent => format!("{percent:.0} %"),
        };
        notes.push(format!("The run used {used} of this generator's capacity."));
    }
    notes.extend(tls_notes(summary));
    if let Some(stolen) = m.cpu_stolen_share.filter(|share| *share >= 0.01) {
        notes.push(format!("{} of the CPU was stolen by the hypervisor.", percent(stolen)));
    }
    notes
}

/// Says of which latencies an imported run lacks percentiles, or has only some.
pub(crate) fn imported_note(summary: &Summary) -> Option<String> {
    let names = |has_percentiles: bool| {
        let stats = summary.latency_stats.iter();
        let these = stats.filter(move |(_, stats)| stats.has_percentiles() == has_percentiles);
        these.map(|(name, _)| name.strip_prefix("step.").unwrap_or(name)).collect::<Vec<_>>()
    };
    let list = |names: Vec<&str>, end: &str| {
        let more = names.len().saturating_sub(NAMES_SHOWN);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let shown = &names[..names.len().min(NAMES_SHOWN)];
        (!names.is_empty()).then(|| format!("{}{more}: {end}.", shown.join(", ")))
    };
    let without = list(names(false), "no percentiles are known; compare means and maxima");
    let with = list(names(true), "no other percentiles are known");
    let sentences: Vec<_> = without.into_iter().chain(with).collect();
    (!sentences.is_empty()).then(|| sentences.join(" "))
}

/// Names in a sentence.
const NAMES_SHOWN: usize = 8;

/// Explains the rows of unanswered waits, if there are any.
pub(super) fn unanswered_note(summary: &Summary) -> Option<String> {
    let is_of_step = |step: &StepSummary| shown(&step.latency_us) != shown(&step.judged_us);
    let is_shown = operations(summary).iter().any(OperationRow::is_larger_judged)
        || summary.steps.iter().any(is_of_step);
    is_shown.then(|| {
        "With unanswered: what got no answer counts, too, as long as it waited. Thresholds judge \
         this row."
            .to_owned()
    })
}

/// Explains the rows of the generator's own clock, if there are any, or that there is no other
/// clock.
fn clocks_note(summary: &Summary) -> Option<String> {
    let operations = summary.operations().map(|(_, of)| (of.latency_us, of.seen_us));
    let steps = summary.steps.iter().map(|step| (step.latency_us, step.seen_us));
    let differs = operations.chain(steps).any(|(arrived, seen)| differ(&arrived, &seen));
    let by_own = summary.generator.by_kernels_clock.filter(|share| *share < ALL_BY_KERNEL);
    match by_own {
        Some(share) if differs || share == 0.0 => Some(format!(
            "The kernel timed the arrival of {} of the answers. For the others an upper bound \
             counts: the arrival of later bytes that were read with them, or the moment at which \
             the generator read them.",
            percent(share)
        )),
        _ => differs.then(|| {
            "Latencies end when the answer arrived, by the kernel's clock. As seen: when the busy \
             generator read it."
                .to_owned()
        }),
    }
}

/// The share of arrivals timed by the kernel from which the note leaves out the others.
const ALL_BY_KERNEL: f64 = 0.99;

/// Says how many connects have no row, because they are part of HTTP requests.
fn connects_note(summary: &Summary) -> Option<String> {
    let others = timed_in_requests(summary);
    (others > 0).then(|| {
        format!(
            "{} more {} made for HTTP requests, and {} part of their times.",
            count(others as f64),
            plural(others, "connect was", "connects were"),
            plural(others, "is", "are")
        )
    })
}

/// Says which upgrades agreed to compression, and whose contexts are kept: server and generator
/// need memory for each.
/// Says how many handshakes of TLS were resumed, what a run did not check, and what its capacity
/// does not include.
fn tls_notes(summary: &Summary) -> impl Iterator<Item = String> {
    let tls = summary.operation(Operation::Tls);
    let resumed = tls.map(|tls| {
        let share = percent(summary.connect.tls_resumed as f64 / tls.ok.max(1) as f64);
        let asked = summary.run.tls_resume.map(percent).map_or(String::new(), |asked| {
            format!("; {asked} were to offer one, if there was one")
        });
        format!("TLS: {share} of the handshakes resumed an earlier session{asked}.")
    });
    let has_plain_ceiling = summary.generator.ceiling_share.is_some()
        && !summary.generator.ceiling_over_tls
        && tls.is_some();
    let ceiling = "That capacity was measured without TLS, which costs this generator more: its \
                   maximum over TLS is lower.";
    let unverified = "No certificate was verified (`verify: none`).";
    let notes = [(has_plain_ceiling, ceiling), (summary.run.tls_unverified, unverified)];
    let others = notes.into_iter().filter(|(applies, _)| *applies);
    resumed.into_iter().chain(others.map(|(_, note)| note.to_owned()))
}

fn deflate_note(summary: &Summary) -> Option<String> {
    let DeflateSummary { offered, agreed, server_contexts, client_contexts } = summary.deflate?;
    let contexts = |number: u64| match number {
        0 => "without context takeover".to_owned(),
        all if all == agreed => "with context takeover".to_owned(),
        some => format!("with context takeover on {}", count(some as f64)),
    };
    let of = format!("{} of {}", count(agreed as f64), count(offered as f64));
    let what = plural(offered, "upgrade", "upgrades");
    Some(match agreed {
        0 => format!("Compression: none of {} {what} agreed to it.", count(offered as f64)),
        _ => format!(
            "Compression: {of} {what} agreed to it; the server's messages {}, the users' {}.",
            contexts(server_contexts),
            contexts(client_contexts)
        ),
    })
}

/// Describes the messages that answered nothing, if some step waited for messages.
fn unrequested_note(summary: &Summary) -> Option<String> {
    let MessageSummary { answered, unasked, doubtful, .. } = summary.message;
    (answered > 0 && unasked > 0).then(|| {
        let of_others = match doubtful {
            0 => "None was taken for an answer.".to_owned(),
            n => format!("{} of the answers may be such messages.", count(n as f64)),
        };
        let messages = plural(unasked, "message", "messages");
        let unasked = count(unasked as f64);
        format!("{unasked} other {messages} arrived (broadcasts, presence). {of_others}")
    })
}

/// Says what rules of `on_message` took and sent: no row counts these messages.
fn rules_note(summary: &Summary) -> Option<String> {
    let RulesSummary { matched, sent, blocked } = summary.on_message.as_ref()?;
    let left_out = match blocked {
        0 => String::new(),
        n => format!(" {} were not sent: the server did not read.", count(*n as f64)),
    };
    Some(format!(
        "Rules of `on_message` took {} {} and sent {}. The rows above have none of them.{left_out}",
        count(*matched as f64),
        plural(*matched, "message", "messages"),
        count(*sent as f64),
    ))
}

/// Names the first latency whose slowest value was the generator's own.
fn lateness_note(summary: &Summary) -> Option<String> {
    let lag_us = summary.generator.lag_us.max;
    let is_own = |us: LatencySummary| us.count > 0 && is_owned(us.max, lag_us);
    let mut waited_for = summary.operations().filter(|(what, _)| *what != Operation::Broadcast);
    let (what, _) = waited_for.find(|(_, of)| is_own(of.latency_us))?;
    let at_s = summary.generator.lag_most_at_s?;
    Some(format!(
        "The slowest {what} may be the generator's own: it was late by {} at {at_s:.0} s.",
        micros(lag_us)
    ))
}

/// Says how long users waited for one another.
fn cues_note(summary: &Summary) -> Option<String> {
    let CueSummary { waits, waiting, mean_us, .. } = summary.cues.as_ref()?;
    let mean = mean_us
        .map_or_else(String::new, |us| format!(", {} on average", micros(us.round() as u64)));
    let left = match waiting {
        0 => String::new(),
        n => format!(" {} of these waits had not ended with the run.", count(*n as f64)),
    };
    Some(format!(
        "Users waited {} {} for other users{mean}. Latencies count from the end of such a \
         wait.{left}",
        count(*waits as f64),
        plural(*waits, "time", "times")
    ))
}

/// Says that requests were sent a second time.
pub(crate) fn retries_note(summary: &Summary) -> Option<String> {
    let http = summary.http.as_ref().filter(|http| http.retried > 0)?;
    Some(format!(
        "{} of {} HTTP requests {} sent a second time, because the server had closed {} connection \
         without an answer.",
        count(http.retried as f64),
        count(http.started as f64),
        plural(http.retried, "was", "were"),
        plural(http.retried, "its", "their")
    ))
}

/// Says how far one of the scenario's own limits was felt: it is not to be taken for the server's.
fn limit_note(limit: &LimitSummary) -> Option<String> {
    let (share, mean_us) = limit.held_share.zip(limit.held_mean_us)?;
    let what = match limit.name.rsplit('.').next() {
        Some("connect") => "connects",
        Some("request") => "HTTP requests",
        _ => "messages",
    };
    Some(format!(
        "The scenario's own limit of {} (`{}`) held back {} of the {what}, {} on average. It is no \
         limit of the server. Latencies count from each step's turn.",
        brief_rate(limit.per_second),
        limit.name,
        percent(share),
        micros(mean_us.round() as u64)
    ))
}

/// Reports whether generator and server together used less than half of the busy CPU time. Then the
/// machine's use is no cost of the run's connects and messages.
pub(super) fn others_used_more(summary: &Summary) -> bool {
    let machine = &summary.machine;
    let server = summary.server_costs().and_then(|server| server.cpu_cores_used);
    let ends = summary.generator.cpu_cores_used.unwrap_or(0.0) + server.unwrap_or(0.0);
    machine.cpu_busy_share.is_some_and(|share| ends < share * machine.cpus as f64 / 2.0)
}

/// Reports whether the generator read answers so much later than they arrived that both are shown:
/// by a tenth and by half a millisecond, at one of the percentiles.
pub(super) fn differ(arrived: &LatencySummary, seen: &LatencySummary) -> bool {
    let shown = |l: &LatencySummary| [l.p50, l.p90, l.p95, l.p99, l.p999];
    let differs = |(arrived, seen): (u64, u64)| {
        let later = seen.saturating_sub(arrived);
        later > CLOCKS_DIFFER_US && later > arrived / 10
    };
    arrived.count > 0 && shown(arrived).into_iter().zip(shown(seen)).any(differs)
}

/// The delay between an answer's arrival and its reading above which both are shown, in
/// microseconds.
const CLOCKS_DIFFER_US: u64 = 500;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::OperationSummary;

    #[test]
    fn a_run_over_tls_says_what_was_resumed_and_what_was_not_checked() {
        let mut summary = Summary::default();
        let notes = |summary: &Summary| tls_notes(summary).collect::<Vec<_>>().join(" ");
        summary.generator.ceiling_share = Some(0.3);
        assert_eq!(notes(&summary), "", "plain connections");
        let tls = OperationSummary { ok: 200, ..OperationSummary::default() };
        summary.plain[Operation::Tls] = Some(tls);
        summary.connect.tls_resumed = 150;
        summary.run.tls_unverified = true;
        let shown = notes(&summary);
        for part in ["75.0 % of the handshakes resumed", "measured without TLS", "verify: none"] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        summary.run.tls_resume = Some(0.8);
        assert!(notes(&summary).contains("session; 80.0 % were to offer one"), "{summary:?}");
        summary.generator.ceiling_over_tls = true;
        assert!(!notes(&summary).contains("measured without TLS"));
        summary.generator.ceiling_over_tls = false;
        summary.generator.ceiling_share = None;
        assert!(!notes(&summary).contains("measured without TLS"));
    }

    #[test]
    fn the_contexts_that_were_agreed_are_named() {
        let note = |deflate| deflate_note(&Summary { deflate, ..Summary::default() });
        let of = |agreed, server_contexts, client_contexts| {
            let offered = 2_000;
            Some(DeflateSummary { offered, agreed, server_contexts, client_contexts })
        };
        for (deflate, expected) in [
            (None, None),
            (of(0, 0, 0), Some("Compression: none of 2k upgrades agreed to it.")),
            (
                of(2_000, 2_000, 0),
                Some(
                    "Compression: 2k of 2k upgrades agreed to it; the server's messages with \
                     context takeover, the users' without context takeover.",
                ),
            ),
            (
                of(1_500, 500, 1_500),
                Some(
                    "Compression: 1.5k of 2k upgrades agreed to it; the server's messages with \
                     context takeover on 500, the users' with context takeover.",
                ),
            ),
        ] {
            assert_eq!(note(deflate).as_deref(), expected);
        }
    }

    #[test]
    fn waits_for_other_users_are_named_with_their_mean() {
        let cues =
            CueSummary { waits: 1_200, waiting: 3, mean_us: Some(2_500_000.0), each: Vec::new() };
        let summary = Summary { cues: Some(cues), ..Summary::default() };
        assert_eq!(
            cues_note(&summary).as_deref(),
            Some(
                "Users waited 1.2k times for other users, 2.50 s on average. Latencies count from \
                 the end of such a wait. 3 of these waits had not ended \
                 with the run."
            )
        );
        assert_eq!(cues_note(&Summary::default()), None);
    }

    #[test]
    fn a_limit_is_named_only_if_it_was_felt() {
        let limit = LimitSummary {
            name: "all.send".into(),
            per_second: 5_000.0,
            steps: 1_000,
            held: 310,
            held_share: Some(0.31),
            held_mean_us: Some(1_200.0),
        };
        assert_eq!(
            limit_note(&limit).as_deref(),
            Some(
                "The scenario's own limit of 5k/s (`all.send`) held back 31.0 % of the messages, \
                 1.20 ms on average. It is no limit of the server. Latencies count from each \
                 step's turn."
            )
        );
        let unfelt = LimitSummary { held: 0, held_share: Some(0.0), held_mean_us: None, ..limit };
        assert_eq!(limit_note(&unfelt), None);
    }
}
