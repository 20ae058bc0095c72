//! The live page of a lab: one run after the other.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use throng_control::{ControlTarget, RemoteTarget};
use throng_lab::{LabProgress, RunContent};

use super::control::LabControl;
use crate::dashboard::LivePage;

/// A live page that shows the present run of a lab.
pub(super) struct LabPage {
    page: LivePage,
    /// Ends the lab early.
    stop: Arc<AtomicBool>,
    /// The row: `2/4 dispatch`.
    title: String,
    control: Option<Arc<dyn ControlTarget>>,
}

impl LabPage {
    pub(super) fn new(page: LivePage, stop: Arc<AtomicBool>) -> Self {
        Self { page, stop, title: String::new(), control: None }
    }

    /// Shows an event of the lab.
    pub(super) fn show(&mut self, event: &LabProgress<'_>) {
        match event {
            LabProgress::Note(_) => {}
            LabProgress::Row { name, number, of, .. } => {
                self.title = format!("{number}/{of} {name}");
            }
            LabProgress::RunBegin { header, control } => {
                self.page.begin(&self.title, || RunContent::of_header((*header).clone()));
                let generator = Some(RemoteTarget { path: control.to_path_buf() });
                let control = LabControl { generator, stop: Arc::clone(&self.stop) };
                let control: Arc<dyn ControlTarget> = Arc::new(control);
                self.page.steer(&control);
                self.control = Some(control);
            }
            LabProgress::Interval { interval, .. } => self.page.interval(interval),
            LabProgress::RunEnd { end, lines_torn } => {
                self.page.end_read(*end, *lines_torn);
                self.control = None;
            }
        }
    }

    /// Waits until open pages have everything, but not for long.
    pub(super) fn close(self) {
        self.page.close();
    }
}
