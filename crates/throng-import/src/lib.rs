//! Scenarios from the files of other load generators.
//!
//! [`import`] recognises the tool of a file, reads it, and writes a scenario in YAML with the
//! comments of the source. The [`FidelityReport`] beside it says of each construct how exactly it
//! was translated. Every tool has one module; [`IMPORTERS`] is the table of them.
//!
//! An importer reads text and nothing else: it opens no file, and it fetches nothing.

mod artillery;
mod command_line;
mod comments;
mod connscale;
mod draft;
mod erlang;
mod fidelity;
mod import;
mod importer;
mod json_place;
mod k6;
mod mzbench;
mod names;
mod options;
mod own_headers;
mod source;
mod step_names;
mod stressgrid;
mod tcpkali;
mod text;
mod tools;
mod translator;
mod trial;
mod tsung;
mod url;
mod yaml;

pub use fidelity::{Fidelity, FidelityEntry, FidelityReport};
pub use import::{Import, import};
pub use importer::Importer;
pub use options::ImportOptions;
pub use tools::{IMPORTERS, recognise};
