//! The stream of one reader.

use std::convert::Infallible;
use std::sync::Arc;

use axum::response::sse::Event;
use futures_util::Stream;
use futures_util::stream::unfold;
use throng_report::page::PageCursor;
use tokio::sync::watch;

use super::store::DashboardStore;

/// The place of a reader in what the dashboard shows. It is all that is stored for a reader: each
/// event is made when the reader's connection has room for it.
pub(super) struct ReaderPlace {
    shared: Arc<DashboardStore>,
    changes: watch::Receiver<u64>,
    run: u64,
    /// None if the reader's place cannot be read: then it must fetch the data anew.
    cursor: Option<PageCursor>,
    /// The number of the last summary.
    summary: u64,
    has_end: bool,
    has_over: bool,
    /// True after an event that no other may follow.
    is_closed: bool,
}

impl ReaderPlace {
    /// Returns the place of a reader that has the data of `run` up to `cursor`, and a summary with
    /// this number. `None` means that there are too many readers.
    pub(super) fn enter(
        shared: Arc<DashboardStore>,
        run: u64,
        cursor: Option<PageCursor>,
        summary: u64,
    ) -> Option<Self> {
        shared.enter().then(|| {
            let (has_end, has_over, is_closed) = (false, false, false);
            let changes = shared.changes();
            Self { shared, changes, run, cursor, summary, has_end, has_over, is_closed }
        })
    }

    /// Returns the events from here on.
    pub(super) fn events(self) -> impl Stream<Item = Result<Event, Infallible>> + Send {
        unfold(self, async |mut place| {
            loop {
                if place.is_closed {
                    return None;
                }
                if let Some(event) = place.next() {
                    return Some((Ok(event), place));
                }
                // After the end, the stream stays open until the reader closes it: that says that
                // the reader has the end.
                place.changes.changed().await.ok()?;
            }
        })
    }

    /// Returns the next event; none if the reader has everything.
    fn next(&mut self) -> Option<Event> {
        let state = self.shared.lock();
        let event = |name: &str, data: &str| Some(Event::default().event(name).data(data));
        let number = state.run.as_ref().map_or(0, |run| run.number);
        if number != self.run {
            self.is_closed = true;
            return event("run", &number.to_string());
        }
        if let Some(run) = &state.run {
            if self.cursor != Some(run.page().cursor()) {
                let part = self.cursor.and_then(|cursor| run.page().since(cursor));
                let json = part.as_ref().map(throng_report::page::json);
                self.cursor = part.map(|part| part.cursor);
                self.is_closed = json.is_none();
                return match json {
                    Some(json) => event("rows", &json),
                    None => event("run", &number.to_string()),
                };
            }
            if let Some(summary) = run.summary().filter(|summary| summary.number > self.summary) {
                self.summary = summary.number;
                return event("summary", &summary.json);
            }
            if run.is_over() && !self.has_end {
                self.has_end = true;
                return event("end", "{}");
            }
        }
        if state.is_over && !self.has_over {
            self.has_over = true;
            return event("over", "{}");
        }
        None
    }
}

impl Drop for ReaderPlace {
    fn drop(&mut self) {
        self.shared.leave();
    }
}
