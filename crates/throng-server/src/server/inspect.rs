//! The look into all cores of a running server.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::mpsc::channel;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use throng_driver::CoreId;
use throng_measure::{BusyConnection, CoreInspection, ServerInspection, TopicInspection};
use throng_pubsub::TopicCounts;

use super::{RunningServer, answers_until, lock};
use crate::Handler;
use crate::core_message::{CoreMessage, TopicReport};
use crate::inspection::{CoreLook, INSPECTION_ROWS_MAX, SPAN, WALK_MAX};
use crate::shared_topics::RunningNode;

/// The looks into a server: one at a time, which all callers share that ask meanwhile.
pub(super) struct Inspector {
    state: Mutex<InspectorState>,
    look_ended: Condvar,
}

struct InspectorState {
    /// The rows of the look in progress.
    running: Option<usize>,
    /// Looks that have ended.
    ended: u64,
    last: Option<ServerInspection>,
    /// The time of the first request that a core has not answered.
    unanswered: Vec<Option<Instant>>,
}

/// The look in progress. Its end wakes the callers that wait for it.
struct LookInProgress<'a>(&'a Inspector);

impl Drop for LookInProgress<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.0.state);
        state.running = None;
        state.ended += 1;
        self.0.look_ended.notify_all();
    }
}

impl Inspector {
    pub(super) fn new(cores: usize) -> Self {
        let unanswered = vec![None; cores];
        let state = InspectorState { running: None, ended: 0, last: None, unanswered };
        Self { state: Mutex::new(state), look_ended: Condvar::new() }
    }

    /// Begins a look. While another one is in progress, waits for that and returns it.
    fn begin(&self, rows: usize) -> Result<LookInProgress<'_>, Box<ServerInspection>> {
        let mut state = lock(&self.state);
        while let Some(running) = state.running {
            let awaited = state.ended;
            let is_running = |state: &mut InspectorState| state.ended == awaited;
            let ended = self.look_ended.wait_while(state, is_running);
            state = ended.unwrap_or_else(PoisonError::into_inner);
            if let Some(last) = state.last.as_ref().filter(|_| running >= rows) {
                let mut shared = last.clone();
                shared.truncate(rows);
                return Err(Box::new(shared));
            }
        }
        state.running = Some(rows);
        state.last = None;
        Ok(LookInProgress(self))
    }

    /// Notes which cores have answered. Returns how long each of the others has been silent.
    fn note_answers(&self, asked_at: Instant, answered: &[bool]) -> Vec<Option<Duration>> {
        let mut state = lock(&self.state);
        let note = |(since, has_answered): (&mut Option<Instant>, &bool)| {
            if *has_answered {
                *since = None;
                return None;
            }
            Some(since.get_or_insert(asked_at).elapsed())
        };
        state.unanswered.iter_mut().zip(answered).map(note).collect()
    }
}

impl<H: Handler> RunningServer<H> {
    /// Looks into the cores for half a second. Returns at most `rows` of the largest topics, of the
    /// slowest and of the busiest connections, and never more than 100. Callers that ask at the
    /// same time share one look. While it lasts, the cores count the activity of their connections;
    /// without a look they keep no such counts. A core that does not answer in time is reported as
    /// silent.
    pub fn inspect(&self, rows: usize) -> ServerInspection {
        let rows = rows.min(INSPECTION_ROWS_MAX);
        let look = match self.inspector.begin(rows) {
            Ok(look) => look,
            Err(shared) => return *shared,
        };
        let asked_at = Instant::now();
        let looks = self.look_into_cores(rows);
        let answered: Vec<bool> = looks.iter().map(Option::is_some).collect();
        let silent = self.inspector.note_answers(asked_at, &answered);
        let inspection = self.merge_looks(rows, looks, &silent);
        lock(&self.inspector.state).last = Some(inspection.clone());
        drop(look);
        inspection
    }

    /// Asks all cores for a look. Returns the answer of each; `None` if there was none in time.
    fn look_into_cores(&self, rows: usize) -> Vec<Option<CoreLook>> {
        let mut looks: Vec<_> = (0..self.size.cores).map(|_| None).collect();
        let (reply, answers) = channel();
        if lock(&self.cores).is_some() {
            self.mailboxes.send_to_all(|_| CoreMessage::inspect(rows, reply.clone()));
        }
        drop(reply);
        for look in answers_until(&answers, self.size.cores, SPAN + WALK_MAX + LATE_MAX) {
            let core = look.core.core as usize;
            looks[core] = Some(look);
        }
        looks
    }

    fn merge_looks(
        &self,
        rows: usize,
        looks: Vec<Option<CoreLook>>,
        silent: &[Option<Duration>],
    ) -> ServerInspection {
        let (topics, topics_are_largest) = self.largest_topics(rows, &looks);
        let mut inspection = ServerInspection {
            listen: self.addr.to_string(),
            handler: H::NAME.to_owned(),
            accept: self.accept.name().to_owned(),
            connections_max: self.size.connections_max as u64,
            node: self.node.as_ref().map(RunningNode::inspect),
            topics,
            topics_are_largest,
            ..ServerInspection::default()
        };
        for (core, look) in looks.into_iter().enumerate() {
            let Some(look) = look else {
                inspection.cores.push(self.silent_core(core, silent[core]));
                continue;
            };
            inspection.cores.push(look.core);
            inspection.slow.extend(look.slow);
            inspection.busy.extend(look.busy);
            let missed = &mut inspection.busy_missed_bytes_max;
            *missed = look.busy_missed_bytes_max.max(*missed);
        }
        inspection.slow.sort_by_key(|it| Reverse((it.pending_bytes, it.stalled_us)));
        inspection.busy.sort_by_key(|it| Reverse(rate(it)));
        inspection.truncate(rows);
        inspection
    }

    /// Returns what is known of a core that has not answered.
    fn silent_core(&self, core: CoreId, silent: Option<Duration>) -> CoreInspection {
        CoreInspection {
            core: core as u64,
            silent_ms: Some(silent.unwrap_or_default().as_millis() as u64),
            connections: lock(&self.last_reports)[core].server.open,
            ..CoreInspection::default()
        }
    }

    /// Counts the topics that are large on some core, on all cores. Returns the largest, and
    /// whether no other topic can be larger.
    fn largest_topics(
        &self,
        rows: usize,
        looks: &[Option<CoreLook>],
    ) -> (Vec<TopicInspection>, bool) {
        let looks: Vec<&CoreLook> = looks.iter().flatten().collect();
        let names: BTreeSet<&Arc<str>> = looks.iter().flat_map(|look| &look.topics).collect();
        let names: Arc<[Arc<str>]> = names.into_iter().cloned().collect();
        let cores: Vec<CoreId> = looks.iter().map(|look| look.core.core as usize).collect();
        let reports = if names.is_empty() { Vec::new() } else { self.count_topics(&names, &cores) };
        let counts_of = |at: usize| reports.iter().filter_map(move |(_, counts)| counts.get(at));
        let mut topics: Vec<TopicInspection> = names
            .iter()
            .enumerate()
            .map(|(at, name)| sum(name, counts_of(at)))
            .filter(|topic| topic.members > 0)
            .collect();
        topics.sort_by(|a, b| b.members.cmp(&a.members).then_with(|| a.topic.cmp(&b.topic)));
        topics.truncate(rows);
        // What a topic can have at most that no core has reported.
        let omitted = looks.iter().map(|look| look.omitted_members);
        let omitted = omitted.fold(0, u64::saturating_add);
        let least = topics.get(rows.saturating_sub(1)).map_or(0, |topic| topic.members);
        let is_counted = names.is_empty() || reports.len() == cores.len();
        (topics, is_counted && cores.len() == self.size.cores && omitted <= least)
    }

    fn count_topics(&self, names: &Arc<[Arc<str>]>, cores: &[CoreId]) -> Vec<TopicReport> {
        let (reply, answers) = channel();
        for core in cores {
            let message = CoreMessage::count_topics(Arc::clone(names), reply.clone());
            self.mailboxes.send_control(*core, message);
        }
        drop(reply);
        answers_until(&answers, cores.len(), LATE_MAX)
    }
}

/// Returns the work of a connection in a second: the spans of two cores differ a little.
fn rate(busy: &BusyConnection) -> u128 {
    u128::from(busy.work_bytes) * 1_000_000 / u128::from(busy.span_us.max(1))
}

/// Adds up the counts of a topic on each core.
fn sum<'a>(name: &str, counts: impl Iterator<Item = &'a TopicCounts>) -> TopicInspection {
    let bytes = name.len().min(TOPIC_BYTES_MAX);
    let end = (0..=bytes).rev().find(|end| name.is_char_boundary(*end)).unwrap_or(0);
    let mut topic = TopicInspection { topic: name[..end].to_owned(), ..Default::default() };
    for TopicCounts { members, publications, waiting } in counts {
        topic.members += u64::from(*members);
        topic.publications = topic.publications.max(u64::from(*publications));
        topic.publications_waiting = topic.publications_waiting.max(u64::from(*waiting));
    }
    topic
}

/// The time that an answer may be late.
const LATE_MAX: Duration = Duration::from_millis(300);
/// The most bytes of a topic's name in an answer: clients choose names, and a reply has a limit.
const TOPIC_BYTES_MAX: usize = 256;
