//! The table of importers.

use crate::connscale::CONNSCALE;
use crate::importer::Importer;
use crate::mzbench::MZBENCH;
use crate::source::Source;
use crate::stressgrid::STRESSGRID;
use crate::tcpkali::TCPKALI;
use crate::tsung::TSUNG;

/// All importers. The first one that recognises a file reads it.
pub const IMPORTERS: &[Importer] = &[CONNSCALE, TCPKALI, TSUNG, MZBENCH, STRESSGRID];

/// Returns the importer that recognises the file `name` with this text.
pub fn recognise(text: &str, name: &str) -> Option<&'static Importer> {
    IMPORTERS.iter().find(|importer| (importer.recognises)(&Source { name, text }))
}
