//! What an importer of a log is: a row of the table [`LOG_IMPORTERS`](super::LOG_IMPORTERS).

use crate::source::Source;
use crate::translator::Translator;

/// The importer of one kind of log.
#[derive(Debug)]
pub struct LogImporter {
    /// Name of the tool: `tsung`.
    pub tool: &'static str,
    /// What it reads, for the help: `tsung.log of tsung`.
    pub reads: &'static str,
    /// Reports whether a text is such a log.
    pub(crate) recognises: fn(&Source<'_>) -> bool,
    /// Reads the log and returns the run file. `None` if it has mistakes, which it has reported.
    pub(crate) read: fn(&mut Translator<'_>) -> Option<Vec<u8>>,
}
