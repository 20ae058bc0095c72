//! The table of importers.

use crate::artillery::ARTILLERY;
use crate::connscale::CONNSCALE;
use crate::importer::Importer;
use crate::k6::K6;
use crate::mzbench::MZBENCH;
use crate::source::Source;
use crate::stressgrid::STRESSGRID;
use crate::tcpkali::TCPKALI;
use crate::tsung::TSUNG;

/// All importers. The first one that recognises a file reads it; Stressgrid is last, because its
/// scripts are known by the calls in them alone.
pub const IMPORTERS: &[Importer] = &[ARTILLERY, CONNSCALE, K6, MZBENCH, TCPKALI, TSUNG, STRESSGRID];

/// Returns the importer that recognises the file `name` with this text.
pub fn recognise(text: &str, name: &str) -> Option<&'static Importer> {
    IMPORTERS.iter().find(|importer| (importer.recognises)(&Source { name, text }))
}
