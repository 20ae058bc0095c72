//! `client` of `tls`: the certificate that a user shows to a server that asks for one.

use std::collections::HashSet;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use throng_base::Prng;
use throng_base::input_file::{self, CREDENTIALS_BYTES_MAX};
use throng_tls::{CertifiedPair, ClientKey, PemFile, TlsConfigError};

use super::data::{self, DataTable};
use super::inputs::ScenarioInputs;
use super::load::ScenarioLoad;
use super::node::Node;
use super::reader::Reader;
use super::template::Template;
use super::variable::{Variable, VariableScope};

/// Files with the certificate and the key of each user.
#[derive(Clone, Debug)]
pub(crate) struct ClientFiles {
    cert: Template,
    key: Template,
    folder: PathBuf,
    tables: Vec<DataTable>,
    inputs: ScenarioInputs,
    /// Place in the scenario.
    span: Range<usize>,
}

/// Paths of a certificate and of its key.
pub(crate) type ClientPaths = (PathBuf, PathBuf);

impl ClientFiles {
    /// Reports whether all users show the same certificate.
    pub(crate) fn is_one(&self) -> bool {
        [&self.cert, &self.key].iter().all(|file| file.as_literal().is_some())
    }

    /// Returns the paths of the files of this user.
    pub(crate) fn paths(&self, user: u64) -> ClientPaths {
        let path = |template: &Template| {
            let mut text = Vec::new();
            let scope = VariableScope::new(user, Prng::derive(0, user));
            template.render(&mut VariableScope { tables: &self.tables, ..scope }, &mut text);
            self.folder.join(&*String::from_utf8_lossy(&text))
        };
        (path(&self.cert), path(&self.key))
    }

    /// Reads the files of a user.
    ///
    /// # Errors
    /// One of them cannot be read, or is wrong.
    pub(crate) fn read(&self, (cert, key): &ClientPaths) -> Result<ClientKey, TlsConfigError> {
        let pair = CertifiedPair { chain: self.pem(cert)?, key: self.pem(key)? };
        ClientKey::new(&pair)
    }

    fn pem(&self, path: &Path) -> Result<PemFile, TlsConfigError> {
        let name = path.display().to_string();
        let opened = match self.inputs.open(path) {
            // Few of them travel to another machine: the others it has by itself.
            Err(error) if error.kind() == io::ErrorKind::NotFound => ScenarioInputs::Own.open(path),
            opened => opened,
        };
        match opened.and_then(|file| input_file::read_all(file, CREDENTIALS_BYTES_MAX)) {
            Ok(text) => Ok(PemFile::new(name, text)),
            Err(error) => {
                Err(TlsConfigError::Unreadable { file: name, problem: error.to_string() })
            }
        }
    }

    /// Returns the row that decides the files of a user: `row 3 of users.csv: `.
    fn row_of(&self, user: u64) -> String {
        let mut tables = [&self.cert, &self.key].into_iter().flat_map(Template::variables);
        let table = tables.find_map(|variable| match variable {
            Variable::Cell { table, .. } => self.tables.get(usize::from(*table)),
            _ => None,
        });
        table.map_or(String::new(), |table| {
            format!("row {} of {}: ", table.row_of(user) + 1, table.path())
        })
    }

    /// Returns the number of users whose files are checked before a run.
    fn checked(&self, users: u64) -> u64 {
        let has_rows = [&self.cert, &self.key]
            .iter()
            .any(|file| file.uses(|part| matches!(part, Variable::Cell { .. })));
        if has_rows { users.min(CHECKED_MAX) } else { users.min(1) }
    }
}

/// Reads `client`. Paths are relative to `folder`.
pub(super) fn read(reader: &mut Reader<'_>, node: &Node, folder: &Path) -> Option<ClientFiles> {
    let fields = reader.fields(node, "`client`", &["cert", "key"])?;
    let cert = reader.require(&fields, "cert", "`client`", "cert: user.pem")?;
    let key = fields.get("key").unwrap_or(cert);
    let span = cert.span.clone();
    let (cert, key) = (read_path(reader, cert, "`cert`"), read_path(reader, key, "`key`"));
    let (tables, inputs) = (reader.names.tables.clone(), reader.inputs.clone());
    Some(ClientFiles { cert: cert?, key: key?, folder: folder.to_owned(), tables, inputs, span })
}

fn read_path(reader: &mut Reader<'_>, node: &Node, what: &str) -> Option<Template> {
    let text = reader.text(node, what, "the path of a PEM file such as user.pem")?;
    let path = reader.template(node, text)?;
    let varies = path.uses(|part| {
        !matches!(
            part,
            Variable::Cell { .. }
                | Variable::UserId
                | Variable::Text(_)
                | Variable::Number(_)
                | Variable::Arithmetic(_)
                | Variable::Raw(_)
        )
    });
    if varies {
        let label = "a column such as ${row.cert}, or ${user.id}: it stays the same";
        reader.error(node.span.clone(), format!("{what} may differ for one user"), label);
        return None;
    }
    Some(path)
}

/// Reads the files of the first users, and reports those that are wrong.
pub(super) fn check(reader: &mut Reader<'_>, files: &ClientFiles, load: &ScenarioLoad) {
    let mut seen = HashSet::new();
    let mut wrong = 0;
    for user in 0..files.checked(data::most_users_of(load)) {
        let paths = files.paths(user);
        if !seen.insert(paths.clone()) {
            continue;
        }
        match files.read(&paths) {
            Ok(_) => {
                reader.files.push(paths.0.clone());
                if paths.0 != paths.1 {
                    reader.files.push(paths.1);
                }
            }
            Err(error) => {
                let row = files.row_of(user);
                let title = format!("cannot use the certificate of a user: {row}{error}");
                let label = "PEM files of a certificate and of its key";
                reader.error(files.span.clone(), title, label);
                wrong += 1;
            }
        }
        if wrong == WRONG_MAX {
            break;
        }
    }
}

/// Most users whose files are checked before a run, and travel to other machines.
const CHECKED_MAX: u64 = 1_000;

/// Most files that are reported as wrong.
const WRONG_MAX: usize = 3;
