//! The commands to the recorder's thread.

use throng_measure::RunEventKind;

/// A command to the recorder's thread.
#[derive(Debug)]
pub(super) enum RecorderCommand {
    /// Ramps the generator down. The text names the cause: `SIGINT`.
    Stop(String),
    /// Writes the event into the next interval.
    AddEvent(Box<RunEventKind>),
}
