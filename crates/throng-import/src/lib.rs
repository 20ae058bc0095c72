//! Scenarios and runs from the files of other load generators.
//!
//! [`import`] recognises the tool of a file, reads it, and writes a scenario in YAML with the
//! comments of the source. The [`FidelityReport`] beside it says of each construct how exactly it
//! was translated. Every tool has one module; [`IMPORTERS`] is the table of them.
//!
//! [`import_log`] does the same for what other tools have measured: it reads a log and writes a run
//! file. [`LOG_IMPORTERS`] is the table of these.
//!
//! An importer reads text and nothing else: it opens no file, and it fetches nothing.

#[macro_use]
mod table;

mod artillery;
mod call;
mod command_line;
mod comments;
mod connscale;
mod cursor;
mod data_file;
mod draft;
mod erlang;
mod expansion;
mod expected;
mod fidelity;
mod fields;
mod headers;
mod import;
mod importer;
mod javascript;
mod json;
mod json_pointer;
mod k6;
mod lexer;
mod logs;
mod mzbench;
mod names;
mod options;
mod pace;
mod phase;
mod rate;
mod request;
mod row;
mod source;
mod step;
mod step_names;
mod stressgrid;
mod tcpkali;
mod text;
mod tls;
mod tls_options;
mod tools;
mod translator;
mod trial;
mod tsung;
mod url;
mod weights;
mod yaml;

pub use fidelity::{Fidelity, FidelityEntry, FidelityReport};
pub use import::{Import, import};
pub use importer::Importer;
pub use logs::{LOG_IMPORTERS, LogImport, LogImporter, import_log, is_log};
pub use options::ImportOptions;
pub use tools::{IMPORTERS, recognise};
