//! The queue to the view's thread, for which no sender ever waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};

use throng_control::ControlTarget;
use throng_measure::Interval;
use throng_run::RunContent;

/// What a view shows next.
pub(super) enum ViewInput {
    Interval(Box<Interval>),
    Note(String),
    Row { name: String, number: usize, of: usize, seconds: u64 },
    Load(Box<RunContent>),
    Control(Arc<dyn ControlTarget>),
}

impl ViewInput {
    /// Reports whether a view that lags may miss it. Intervals and notes come again and again;
    /// without a row, a load or a control the view would show and steer another run.
    fn may_be_left_out(&self) -> bool {
        matches!(self, Self::Interval(_) | Self::Note(_))
    }
}

/// The end of the queue at which others put in.
#[derive(Debug)]
pub(super) struct ViewSender {
    inputs: Sender<ViewInput>,
    /// Intervals and notes that the view has not taken.
    waiting: Arc<AtomicUsize>,
}

/// The end of the queue from which the view takes.
#[derive(Debug)]
pub(super) struct ViewReceiver {
    inputs: Receiver<ViewInput>,
    waiting: Arc<AtomicUsize>,
}

/// Returns both ends of a queue.
pub(super) fn view_queue() -> (ViewSender, ViewReceiver) {
    let (sender, inputs) = mpsc::channel();
    let waiting = Arc::<AtomicUsize>::default();
    let receiver = ViewReceiver { inputs, waiting: Arc::clone(&waiting) };
    (ViewSender { inputs: sender, waiting }, receiver)
}

impl ViewSender {
    /// Puts in an input; leaves out an interval or a note if too many wait.
    pub(super) fn send(&self, input: ViewInput) {
        let is_counted = input.may_be_left_out();
        if is_counted && self.waiting.load(Ordering::Relaxed) >= WAITING_MAX {
            return;
        }
        if is_counted {
            self.waiting.fetch_add(1, Ordering::Relaxed);
        }
        // A view that has ended takes nothing more.
        let _ = self.inputs.send(input);
    }
}

impl ViewReceiver {
    /// Takes the next input.
    ///
    /// # Errors
    /// Nothing waits, or the sender is gone.
    pub(super) fn try_recv(&self) -> Result<ViewInput, TryRecvError> {
        let input = self.inputs.try_recv()?;
        if input.may_be_left_out() {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
        }
        Ok(input)
    }
}

/// The most intervals and notes that wait for the view's thread.
const WAITING_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn row(number: usize) -> ViewInput {
        ViewInput::Row { name: "shared".to_owned(), number, of: 5, seconds: 30 }
    }

    #[test]
    fn a_view_that_lags_misses_intervals_and_no_row() {
        let (sender, receiver) = view_queue();
        for number in 0..3 {
            (0..WAITING_MAX).for_each(|_| sender.send(ViewInput::Interval(Box::default())));
            sender.send(row(number));
        }
        let taken: Vec<_> = std::iter::from_fn(|| receiver.try_recv().ok()).collect();
        let rows = taken.iter().filter_map(|input| match input {
            ViewInput::Row { number, .. } => Some(*number),
            _ => None,
        });
        assert_eq!(rows.collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(taken.len(), WAITING_MAX + 3, "no more than {WAITING_MAX} intervals wait");
        sender.send(ViewInput::Note("again".to_owned()));
        assert!(receiver.try_recv().is_ok(), "there is room again");
        drop(sender);
        assert!(matches!(receiver.try_recv(), Err(TryRecvError::Disconnected)));
    }
}
