//! The way from the recorder to the dashboard.

use std::io;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Weak};
use std::thread;

use throng_control::ControlTarget;
use throng_measure::Interval;
use throng_measure::runfile::RunEnd;
use throng_run::{RunContent, RunResult};

use super::store::DashboardStore;

/// Takes what is measured to the dashboard. No call waits for a reader.
#[derive(Clone, Debug)]
pub struct DashboardFeed {
    updates: Sender<Update>,
}

/// A change of what the dashboard shows.
enum Update {
    Begin { title: String, content: Box<RunContent> },
    Steer(Weak<dyn ControlTarget>),
    Interval(Box<Interval>),
    End(Box<RunResult>),
    EndRead { end: Option<RunEnd>, lines_torn: u64 },
    Over,
}

impl DashboardFeed {
    /// Begins a run. `title` stands before its scenario: `2/4 dispatch`.
    pub fn begin(&self, title: &str, content: RunContent) {
        let content = Box::new(content.with_page());
        self.send(Update::Begin { title: title.to_owned(), content });
    }

    /// Lets readers steer the run through `target`, for as long as that exists.
    pub fn steer(&self, target: &Arc<dyn ControlTarget>) {
        self.send(Update::Steer(Arc::downgrade(target)));
    }

    /// Adds the next interval of the run.
    pub fn interval(&self, interval: &Interval) {
        self.send(Update::Interval(Box::new(interval.clone())));
    }

    /// Ends the run.
    pub fn end(&self, result: &RunResult) {
        self.send(Update::End(Box::new(result.clone())));
    }

    /// Ends a run whose run file was read to its end. `end` is its last line.
    pub fn end_read(&self, end: Option<&RunEnd>, lines_torn: u64) {
        self.send(Update::EndRead { end: end.cloned(), lines_torn });
    }

    /// Tells readers that no further run begins.
    pub(super) fn over(&self) {
        self.send(Update::Over);
    }

    /// Sends to the dashboard's thread, which is there as long as there are feeds.
    fn send(&self, update: Update) {
        let _ = self.updates.send(update);
    }
}

/// Starts the thread that applies updates.
pub(super) fn start(shared: Arc<DashboardStore>) -> io::Result<DashboardFeed> {
    let (updates, received) = mpsc::channel();
    let run = move || apply(&shared, &received);
    thread::Builder::new().name("dashboard".into()).spawn(run)?;
    Ok(DashboardFeed { updates })
}

fn apply(shared: &DashboardStore, updates: &Receiver<Update>) {
    for update in updates {
        match update {
            Update::Begin { title, content } => shared.begin(title, *content),
            Update::Steer(target) => shared.steer(target),
            Update::Interval(interval) => shared.add(&interval),
            Update::End(result) => shared.end(|_| *result),
            Update::EndRead { end, lines_torn } => {
                shared.end(|content| content.finish_read(end.as_ref(), lines_torn));
            }
            Update::Over => shared.set_over(),
        }
    }
}
