//! A part of the server that accepts nothing, or answers nothing, while the rest serves.

use throng_measure::{Finding, Side};
use throng_report::render::{count, percent};

use super::RULE;
use super::place::queue_evidence;
use super::step::{STEPS_MIN, Step, has_classes};
use crate::counted::counted;
use crate::run_view::{Growth, RunView};

/// Returns the finding for listening sockets that nothing accepts from, while others of the same
/// port have no queue.
pub(super) fn stuck_listeners(steps: &[Step], gave_up: &Growth) -> Option<Finding> {
    let begin = steps.iter().position(Step::has_stuck_listener)?;
    let stuck = &steps[begin..];
    let is_stuck = stuck.iter().all(Step::has_stuck_listener);
    if stuck.len() < STEPS_MIN || !is_stuck || !stuck.is_sorted_by_key(|step| step.queue) {
        return None;
    }
    let last = stuck.last()?;
    let (behind, listeners, queue) = (last.behind?, last.listeners?, last.queue?);
    let text = format!(
        "{} of the server's {listeners} listening sockets {} nothing: {} in {} accept queue, which \
         only grows, while the other {} at once. It waited from {} s on.",
        behind,
        if behind == 1 { "accepts" } else { "accept" },
        counted(queue, "connection waits", "connections wait"),
        if behind == 1 { "its" } else { "their" },
        if listeners - behind == 1 { "socket accepts" } else { "sockets accept" },
        count(stuck[0].at_ms as f64 / 1000.0),
    );
    let evidence = queue_evidence(stuck);
    let finding = Finding::new(RULE.id, Side::Server, text).with_evidence([gave_up.evidence()]);
    Some(finding.with_confidence(0.95).with_evidence(evidence).remedied_by(
        "find the worker that owns such a socket and why it does not call accept(): `ss -ltnp` \
         shows its process and its queue (Recv-Q), /proc/PID/task/*/wchan where its threads wait; \
         then start it again",
    ))
}

/// Returns the finding for a server that serves each connection well or not at all, whatever their
/// number: each finds by chance a worker that answers, or one that does not. On a connection that
/// asks again and again, an answer that is lost by chance is seldom the first.
pub(super) fn stuck_workers(
    run: &RunView<'_>,
    steps: &[Step],
    gave_up: &Growth,
) -> Option<Finding> {
    let counters = &run.counted()?.counters;
    let (unserved, connects) = (gave_up.by(), counters.tcp_connects());
    let answered = counters.requests_answered();
    let served = connects.saturating_sub(unserved);
    let asks_again = answered >= served.saturating_mul(ANSWERS_EACH_MIN);
    let answers = steps.iter().filter(|step| step.at_ms >= gave_up.began_ms);
    let goes_on = answers.clone().count() > 0 && answers.clone().all(|step| step.answers > 0);
    let waits = steps.iter().any(|step| step.queue > Some(0) && step.gave_up > 0);
    let is_some = unserved * STUCK_ONE_IN >= connects && unserved * 2 <= connects;
    let is_chance = !asks_again || !goes_on || waits || !is_some || has_classes(run);
    if is_chance || answers_take_as_long(run) {
        return None;
    }
    let of = counted(connects, "connection", "connections");
    let text = format!(
        "The server never answers on {} of {of} ({}), and gives every answer on the others: one \
         of several workers or threads accepts connections, and answers none. A user that comes \
         again may find another.",
        count(unserved as f64),
        percent(unserved as f64 / connects as f64),
    );
    let finding = Finding::new(RULE.id, Side::Server, text).with_evidence([gave_up.evidence()]);
    Some(finding.with_confidence(0.75).remedied_by(
        "find the worker that owns such a connection (`ss -tnp` while it waits), and where its \
         threads wait (/proc/PID/task/*/wchan, a stack dump); end it, so that its supervisor \
         starts another",
    ))
}

/// Reports whether users waited hardly longer before they gave up than for the slowest answers:
/// those that they did not wait for were only slower still.
fn answers_take_as_long(run: &RunView<'_>) -> bool {
    let message = &run.summary.message;
    let http = run.summary.http.as_ref();
    let kinds = [(message.latency_us, message.unanswered_us)].into_iter();
    let kinds = kinds.chain(http.map(|http| (http.latency_us, http.unanswered_us)));
    let slow = kinds.filter(|(answered, given_up)| answered.p99 * FAST_TIMES >= given_up.p50);
    slow.filter(|(_, given_up)| given_up.count > 0).count() > 0
}

/// How many times as long as the slowest answers users waited before they gave up.
const FAST_TIMES: u64 = 2;

/// The fewest answers on each served connection that tell a stuck worker from answers that are lost
/// by chance, and the part of the connections, one in so many, that it takes at least.
const ANSWERS_EACH_MIN: u64 = 6;
const STUCK_ONE_IN: u64 = 40;
