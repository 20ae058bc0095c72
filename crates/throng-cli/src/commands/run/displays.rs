//! What shows a run while it goes on.

use std::sync::Arc;

use throng_control::ControlTarget;
use throng_measure::Interval;
use throng_run::RunContent;

use super::plan::RunPlan;
use crate::dashboard::LivePage;
use crate::metrics::RunEndpoint;
use crate::progress::Progress;

/// The displays of a run: a view or lines, the live page, and metrics.
pub(super) struct RunDisplays {
    pub(super) progress: Progress,
    pub(super) page: LivePage,
    pub(super) metrics: Option<RunEndpoint>,
}

impl RunDisplays {
    /// Begins the run of a scenario.
    pub(super) fn begin(&self, scenario: &str, plan: &RunPlan) {
        self.page
            .begin("", || RunContent::new(plan.header.clone(), plan.scenario.thresholds.clone()));
        self.progress.keep(self.page.link().as_deref());
        if let Some(served) = &self.metrics {
            served.metrics.begin(&plan.target.to_string(), scenario);
            self.progress.note(&served.note());
        }
    }

    /// Returns the recorder's callback, which shows each interval.
    pub(super) fn callback(&self) -> impl FnMut(&Interval, Option<&Interval>) + Send + 'static {
        let metrics = self.metrics.as_ref().map(|served| Arc::clone(&served.metrics));
        let (feed, progress) = (self.page.feed().cloned(), self.progress.clone());
        move |interval, previous| {
            metrics.iter().for_each(|metrics| metrics.add(interval));
            feed.iter().for_each(|feed| feed.interval(interval));
            progress.show(interval, previous);
        }
    }

    /// Lets the keys of the view and the buttons of the page steer the run.
    pub(super) fn steer(&self, keys: Arc<dyn ControlTarget>, buttons: &Arc<dyn ControlTarget>) {
        self.page.steer(buttons);
        self.progress.steer(keys);
    }
}
