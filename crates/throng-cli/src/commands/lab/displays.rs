//! What shows a lab while it goes on: one run after the other.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use throng_control::{ControlTarget, RemoteTarget};
use throng_lab::LabProgress;
use throng_run::RunContent;
use throng_run::test_bed::TestBedProgress;

use super::control::LabControl;
use crate::dashboard::LivePage;
use crate::metrics::RunEndpoint;
use crate::progress::Progress;

/// The displays of a lab: a view or lines, the live page, and metrics.
pub(super) struct LabDisplays {
    lab: String,
    progress: Progress,
    page: LivePage,
    metrics: Option<RunEndpoint>,
    /// Ends the lab early.
    stop: Arc<AtomicBool>,
    /// The row: `2/4 dispatch`.
    title: String,
    /// The target of the buttons, as long as the present run goes on.
    control: Option<Arc<dyn ControlTarget>>,
}

impl LabDisplays {
    /// Returns the displays of `lab`, which `stop` ends early.
    pub(super) fn new(
        lab: &str,
        progress: Progress,
        page: LivePage,
        metrics: Option<RunEndpoint>,
        stop: &Arc<AtomicBool>,
    ) -> Self {
        progress.keep(page.link().as_deref());
        if let Some(served) = &metrics {
            progress.note(&served.note());
        }
        let (lab, stop) = (lab.to_owned(), Arc::clone(stop));
        Self { lab, progress, page, metrics, stop, title: String::new(), control: None }
    }

    /// Shows an event of the lab.
    pub(super) fn show(&mut self, event: &LabProgress<'_>) {
        match event {
            LabProgress::Note(note) => self.progress.note(note),
            LabProgress::Row { name, number, of, seconds } => {
                self.title = format!("{number}/{of} {name}");
                if let Some(served) = &self.metrics {
                    // Each row of the lab is a run of its own.
                    served.metrics.begin("throng serve", &format!("{} {name}", self.lab));
                }
                self.progress.begin_row(name, *number, *of, *seconds);
                self.progress.steer(self.control_of(None));
            }
            LabProgress::Run(TestBedProgress::Begin { header, control }) => {
                self.page.begin(&self.title, || RunContent::of_header((*header).clone()));
                self.progress.begin_load(header);
                let generator = RemoteTarget { path: control.to_path_buf() };
                let control = self.control_of(Some(generator));
                self.page.steer(&control);
                self.progress.steer(Arc::clone(&control));
                self.control = Some(control);
            }
            LabProgress::Run(TestBedProgress::Interval { interval, previous, .. }) => {
                if let Some(served) = &self.metrics {
                    served.metrics.add(interval);
                }
                self.page.interval(interval);
                self.progress.show(interval, *previous);
            }
            LabProgress::Run(TestBedProgress::End { end, lines_torn }) => {
                self.page.end_read(*end, *lines_torn);
                self.control = None;
                self.progress.steer(self.control_of(None));
            }
        }
    }

    /// Gives the terminal back.
    pub(super) fn finish(&self) {
        self.progress.finish();
    }

    /// Waits until open pages have everything, but not for long.
    pub(super) fn close(self) {
        self.page.close();
    }

    fn control_of(&self, generator: Option<RemoteTarget>) -> Arc<dyn ControlTarget> {
        Arc::new(LabControl { generator, stop: Arc::clone(&self.stop) })
    }
}
