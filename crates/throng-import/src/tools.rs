//! The table of importers.

use crate::artillery::ARTILLERY;
use crate::connscale::CONNSCALE;
use crate::importer::Importer;
use crate::k6::K6;
use crate::source::Source;
use crate::tcpkali::TCPKALI;

/// All importers. The first one that recognises a file reads it.
pub const IMPORTERS: &[Importer] = &[ARTILLERY, CONNSCALE, K6, TCPKALI];

/// Returns the importer that recognises the file `name` with this text.
pub fn recognise(text: &str, name: &str) -> Option<&'static Importer> {
    IMPORTERS.iter().find(|importer| (importer.recognises)(&Source { name, text }))
}
