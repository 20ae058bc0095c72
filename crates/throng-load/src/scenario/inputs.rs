//! What a scenario is read from beside its own text: files, and variables of the environment.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use throng_base::input_file;

/// Files and variables that came with a scenario.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CarriedInputs {
    /// The contents of its files, by their paths.
    pub files: BTreeMap<PathBuf, CarriedFile>,
    /// Values of environment variables, by their names.
    pub environment: BTreeMap<String, String>,
}

/// The content of a file. In JSON it is base64.
#[derive(Clone, PartialEq, Eq)]
pub struct CarriedFile(Arc<[u8]>);

/// The place that files and variables are read from.
#[derive(Clone, Debug, Default)]
pub enum ScenarioInputs {
    /// This machine and this process.
    #[default]
    Own,
    /// What came with the scenario.
    Carried(Arc<CarriedInputs>),
}

impl ScenarioInputs {
    /// Opens a file.
    pub(crate) fn open(&self, path: &Path) -> io::Result<Box<dyn Read>> {
        match self {
            Self::Own => Ok(Box::new(input_file::open(path)?)),
            Self::Carried(carried) => {
                let file = carried.files.get(path).ok_or(io::ErrorKind::NotFound)?;
                Ok(Box::new(io::Cursor::new(file.clone())))
            }
        }
    }

    /// Returns the value of an environment variable.
    pub(crate) fn variable(&self, name: &str) -> Option<String> {
        match self {
            Self::Own => std::env::var(name).ok(),
            Self::Carried(carried) => carried.environment.get(name).cloned(),
        }
    }
}

impl From<Vec<u8>> for CarriedFile {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes.into())
    }
}

impl AsRef<[u8]> for CarriedFile {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl std::fmt::Debug for CarriedFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

impl Serialize for CarriedFile {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for CarriedFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes = STANDARD.decode(text).map_err(serde::de::Error::custom)?;
        Ok(Self(bytes.into()))
    }
}
