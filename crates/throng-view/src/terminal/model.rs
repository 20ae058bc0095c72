//! What a view of a run shows: the content of the run so far, its course, and its last events.

use std::collections::VecDeque;
use std::time::Duration;

use throng_measure::{Grade, Interval, LoadInterval, Operation};
use throng_run::{RunContent, RunResult};

use super::rows::{Row, Rows};

/// What a view of a run or of a lab shows.
#[derive(Debug)]
pub struct TerminalModel {
    /// The scenario, or the lab.
    pub(crate) title: String,
    /// The length of the load, if it is known.
    pub(crate) planned_ms: Option<u64>,
    /// The row of a lab.
    pub(crate) row: Option<LabRow>,
    /// The rows of the lab that are over.
    pub(crate) rows_over: Vec<RowOver>,
    /// The present run. A lab has none between two rows.
    content: Option<RunContent>,
    pub(crate) result: Option<RunResult>,
    pub(crate) course: Rows,
    previous: Option<Interval>,
    /// The time since the run began, in milliseconds.
    pub(crate) now_ms: u64,
    pub(crate) events: VecDeque<String>,
    /// The operation that the user chose to see.
    operation: Option<Operation>,
    /// The number of the first chart, where there is no room for all.
    pub(crate) chart_first: usize,
    pub(crate) dialog: Option<Dialog>,
}

/// A row of a lab that runs.
#[derive(Clone, Debug)]
pub(crate) struct LabRow {
    pub(crate) name: String,
    pub(crate) number: usize,
    pub(crate) of: usize,
}

/// A row of a lab that is over.
#[derive(Clone, Debug)]
pub(crate) struct RowOver {
    pub(crate) name: String,
    pub(crate) grade: Option<Grade>,
}

/// A box above the view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialog {
    Help,
    ConfirmStop,
}

impl TerminalModel {
    /// Returns the model of a run.
    pub fn of_run(content: RunContent) -> Self {
        let mut model = Self::empty(content.header().scenario.path.clone());
        model.planned_ms = content.header().planned_ms;
        model.content = Some(content);
        model
    }

    /// Returns the model of the lab `name`, before its first row.
    pub fn of_lab(name: &str) -> Self {
        Self::empty(format!("lab {name}"))
    }

    fn empty(title: String) -> Self {
        Self {
            title,
            planned_ms: None,
            row: None,
            rows_over: Vec::new(),
            content: None,
            result: None,
            course: Rows::new(),
            previous: None,
            now_ms: 0,
            events: VecDeque::new(),
            operation: None,
            chart_first: 0,
            dialog: None,
        }
    }

    /// Begins a row of a lab, which should take `seconds`.
    pub fn begin_row(&mut self, name: &str, number: usize, of: usize, seconds: u64) {
        if let Some(row) = self.row.take() {
            self.judge();
            let grade = self.result.as_ref().map(|result| result.summary.validity.grade);
            // If a row runs again, its last run counts.
            self.rows_over.retain(|over| over.name != row.name);
            self.rows_over.push(RowOver { name: row.name, grade });
        }
        self.row = Some(LabRow { name: name.to_owned(), number, of });
        self.planned_ms = Some(seconds.saturating_mul(1_000));
        self.clear(None);
    }

    /// Begins the load of a lab's row.
    pub fn begin_load(&mut self, content: RunContent) {
        self.clear(Some(content));
    }

    fn clear(&mut self, content: Option<RunContent>) {
        self.content = content;
        (self.result, self.previous, self.now_ms) = (None, None, 0);
        self.course = Rows::new();
    }

    /// Adds the next interval.
    pub fn add(&mut self, interval: &Interval) {
        if let Some(content) = &mut self.content {
            content.add(interval);
        }
        if let Some(row) = Row::of(interval, self.previous.as_ref()) {
            self.course.add(row);
        }
        for event in &interval.events {
            self.note(&event.to_string());
        }
        // What a pause delays ends later.
        if interval.load.as_ref().is_some_and(|load| load.paused) {
            self.planned_ms = self.planned_ms.map(|ms| ms.saturating_add(interval.span_ms));
        }
        self.now_ms = interval.at_ms;
        self.previous = Some(interval.clone());
    }

    /// Adds a sentence to the events.
    pub fn note(&mut self, text: &str) {
        for line in text.lines() {
            if self.events.len() >= EVENTS_MAX {
                self.events.pop_front();
            }
            self.events.push_back(line.to_owned());
        }
    }

    /// Sets the time since the run began.
    pub fn set_now(&mut self, now: Duration) {
        self.now_ms = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
    }

    /// Judges the run so far. A caller does it every few seconds: it takes some milliseconds.
    pub fn judge(&mut self) {
        if self.previous.is_some() {
            self.result = self.content.as_ref().map(RunContent::so_far);
        }
    }

    /// Returns the address that is loaded.
    pub(crate) fn target(&self) -> &str {
        self.content.as_ref().map_or("", |content| &content.header().target)
    }

    /// Returns the users that the scenario plans, or those that it has.
    pub(crate) fn users(&self) -> u64 {
        let planned = self.content.as_ref().map_or(0, |content| content.header().users_planned);
        match planned {
            0 => self.load().map_or(0, |load| load.counters.users_active),
            planned => planned,
        }
    }

    /// Returns the generator's part of the last interval.
    pub(crate) fn load(&self) -> Option<&LoadInterval> {
        self.previous.as_ref()?.load.as_ref()
    }

    /// Returns the last row.
    pub(crate) fn last(&self) -> Option<&Row> {
        self.course.all().last()
    }

    /// Returns the operations of this load, the most important first.
    fn operations(&self) -> impl Iterator<Item = Operation> {
        let has = |operation: &Operation| match self.load() {
            // Every load connects.
            Some(load) => *operation == Operation::Connect || load.has_begun(*operation),
            None => *operation == Operation::Connect,
        };
        Operation::BY_WEIGHT.into_iter().filter(has)
    }

    /// Returns the operation whose rate and latency are shown.
    pub(crate) fn operation(&self) -> Operation {
        let chosen = self.operation.filter(|chosen| self.operations().any(|one| one == *chosen));
        chosen.or_else(|| self.operations().next()).unwrap_or(Operation::Connect)
    }

    /// Shows the next operation.
    pub(crate) fn next_operation(&mut self) {
        let shown = self.operation();
        let after = self.operations().skip_while(|one| *one != shown).nth(1);
        let next = after.or_else(|| self.operations().next());
        self.operation = next;
    }
}

/// The most events that a view keeps; no terminal shows more.
const EVENTS_MAX: usize = 100;
