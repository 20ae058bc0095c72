//! The run that the dashboard shows.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use throng_control::{ControlTarget, Verb};
use throng_measure::Interval;
use throng_report::page::{self, PageBuilder};
use throng_run::{RunContent, RunResult};

/// A run while it goes on, and after its end.
pub(super) struct LiveRun {
    /// The number of the run, from 1.
    pub(super) number: u64,
    title: String,
    content: RunContent,
    control: Option<Weak<dyn ControlTarget>>,
    /// The summary of the whole run; none while it goes on.
    last: Option<Value>,
    latest: Option<SummaryUpdate>,
    next_summary: Instant,
}

/// A summary, as readers get it.
#[derive(Clone)]
pub(super) struct SummaryUpdate {
    /// The number of the summary, from 1.
    pub(super) number: u64,
    /// The event's data.
    pub(super) json: Arc<str>,
}

impl LiveRun {
    pub(super) fn new(number: u64, title: String, content: RunContent) -> Self {
        let next_summary = Instant::now();
        Self { number, title, content, control: None, last: None, latest: None, next_summary }
    }

    pub(super) fn steer(&mut self, target: Weak<dyn ControlTarget>) {
        self.control = Some(target);
    }

    /// Adds an interval. Makes a summary now and then if there are readers.
    pub(super) fn add(&mut self, interval: &Interval, has_readers: bool) {
        self.content.add(interval);
        let began = Instant::now();
        // The first interval has no length: nothing follows from it.
        if has_readers && interval.span_ms > 0 && began >= self.next_summary {
            self.update_summary(self.content.so_far().json());
            let now = Instant::now();
            self.next_summary = now + SUMMARY_EVERY.max((now - began) * SUMMARY_SHARE);
        }
    }

    /// Ends the run with what `result` makes of it.
    pub(super) fn end(&mut self, result: impl FnOnce(&RunContent) -> RunResult) {
        let summary = result(&self.content).json();
        self.last = Some(summary.clone());
        self.update_summary(summary);
    }

    fn update_summary(&mut self, summary: Value) {
        let data = json!({"summary": summary, "curves": self.page().curves()});
        let number = self.latest.as_ref().map_or(0, |update| update.number) + 1;
        self.latest = Some(SummaryUpdate { number, json: page::json(&data).into() });
    }

    pub(super) fn is_over(&self) -> bool {
        self.last.is_some()
    }

    /// Returns the latest summary.
    pub(super) fn summary(&self) -> Option<&SummaryUpdate> {
        self.latest.as_ref()
    }

    /// Returns what the page draws.
    pub(super) fn page(&self) -> &PageBuilder {
        self.content.page().expect("the feed asks for a page")
    }

    /// Returns the target of a reader's requests; none when the run cannot be steered.
    pub(super) fn control(&self) -> Option<Arc<dyn ControlTarget>> {
        self.control.as_ref().filter(|_| !self.is_over())?.upgrade()
    }

    /// Returns everything so far as JSON.
    pub(super) fn json(&self) -> String {
        let so_far = || self.content.so_far().json();
        let summary = self.last.clone().unwrap_or_else(so_far);
        let verbs = self.control().map(|target| steering_verbs(&*target)).unwrap_or_default();
        let page = self.page().page(self.content.header(), &summary, self.content.warnings());
        let data = RunData {
            run: self.number,
            title: &self.title,
            verbs,
            ended: self.is_over(),
            cursor: self.page().cursor().to_string(),
            summary: self.latest.as_ref().map_or(0, |update| update.number),
            page,
        };
        page::json(&data)
    }
}

/// The answer to `GET /run`.
#[derive(serde::Serialize)]
struct RunData<'a> {
    run: u64,
    title: &'a str,
    verbs: Vec<Verb>,
    ended: bool,
    /// The place for `GET /rows`.
    cursor: String,
    /// The number of the last summary that readers got; this one is newer.
    summary: u64,
    page: throng_report::page::Page<'a>,
}

/// Returns the verbs of `target` that the dashboard offers.
pub(super) fn steering_verbs(target: &dyn ControlTarget) -> Vec<Verb> {
    let offered = [Verb::Pause, Verb::Resume, Verb::Start, Verb::Stop, Verb::Shutdown];
    offered.into_iter().filter(|verb| target.verbs().contains(verb)).collect()
}

/// The time between two summaries.
const SUMMARY_EVERY: Duration = Duration::from_secs(2);
/// The time between two summaries is at least so many times what one takes.
const SUMMARY_SHARE: u32 = 50;
