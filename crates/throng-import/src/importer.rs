//! What an importer is: a row of the table in [`tools`](crate::tools).

use crate::draft::Draft;
use crate::source::Source;
use crate::translator::Translator;

/// The importer of one tool.
#[derive(Debug)]
pub struct Importer {
    /// Name of the tool: `tsung`.
    pub tool: &'static str,
    /// What of the tool it reads, for the help: `scenarios in XML`.
    pub reads: &'static str,
    /// Program whose command line is a file of this tool, if there is one.
    pub(crate) program: Option<Program>,
    /// Reports whether a file is one of this tool. It looks at the text, because names of files
    /// say little.
    pub(crate) recognises: fn(&Source<'_>) -> bool,
    /// Reads the file. `None` if it has mistakes, which it has reported.
    pub(crate) read: fn(&mut Translator<'_>) -> Option<Draft>,
}

/// A program whose command line is a file of a tool.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Program {
    pub(crate) name: &'static str,
    /// What to do with a call that stands behind other commands in a script.
    pub(crate) advice: &'static str,
}
