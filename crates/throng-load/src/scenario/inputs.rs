//! What a scenario is read from beside its own text: files, and variables of the environment.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::load::LoadPeak;
use super::{Diagnostics, Scenario};

/// A scenario with all that it is read from, so that another machine reads the same.
///
/// It contains the values of the environment that the scenario uses, which may be secrets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScenarioBundle {
    /// Name of the scenario: its path.
    pub name: String,
    /// Its text.
    pub source: String,
    /// The peak that its load gets in place of its own.
    pub peak: Option<LoadPeak>,
    /// Its files and its environment.
    pub inputs: CarriedInputs,
}

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
pub(crate) enum ScenarioInputs {
    /// This machine and this process.
    #[default]
    Own,
    /// What came with the scenario.
    Carried(Arc<CarriedInputs>),
}

impl ScenarioBundle {
    /// Packs a scenario that was parsed from `source` with the peak `peak`.
    ///
    /// # Errors
    /// One of its files cannot be read any more.
    pub fn pack(
        scenario: &Scenario,
        source: &str,
        name: &str,
        peak: Option<LoadPeak>,
    ) -> io::Result<Self> {
        let read = |path: &PathBuf| Ok((path.clone(), CarriedFile(std::fs::read(path)?.into())));
        let inputs = CarriedInputs {
            files: scenario.files.iter().map(read).collect::<io::Result<_>>()?,
            environment: scenario.environment.clone(),
        };
        Ok(Self { name: name.to_owned(), source: source.to_owned(), peak, inputs })
    }

    /// Parses the scenario.
    pub fn parse(&self) -> Result<Scenario, Diagnostics> {
        let inputs = ScenarioInputs::Carried(Arc::new(self.inputs.clone()));
        Scenario::parse_from(&self.source, &self.name, self.peak, inputs)
    }
}

impl ScenarioInputs {
    /// Opens a file.
    pub(crate) fn open(&self, path: &Path) -> io::Result<Box<dyn Read>> {
        match self {
            Self::Own => {
                let file = File::open(path)?;
                if file.metadata().is_ok_and(|metadata| metadata.is_dir()) {
                    return Err(io::ErrorKind::IsADirectory.into());
                }
                Ok(Box::new(file))
            }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_machine_reads_the_same_scenario_from_a_bundle() {
        let folder = std::env::temp_dir().join(format!("throng-bundle-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let files = [("users.csv", "name\nada\nbob\n"), ("times.txt", "0\n0.5\n2\n")];
        files.iter().for_each(|(name, text)| std::fs::write(folder.join(name), text).unwrap());
        let name = folder.join("scenario.yaml").display().to_string();
        let source = "target: tcp://127.0.0.1:5555\n\
            data: users.csv\n\
            load: [{arrivals: {file: times.txt}}]\n\
            user: [connect, send: \"${row.name} ${env.PATH}\", close]\n";
        let here = Scenario::parse(source, &name).unwrap();
        let bundle = ScenarioBundle::pack(&here, source, &name, None).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(Scenario::parse(source, &name).is_err(), "the files are gone");
        let json = serde_json::to_string(&bundle).unwrap();
        let there = serde_json::from_str::<ScenarioBundle>(&json).unwrap().parse().unwrap();
        assert_eq!(format!("{there:?}"), format!("{here:?}"));
        let mut other = bundle;
        other.inputs.environment.insert("PATH".into(), "elsewhere".into());
        assert!(other.parse().unwrap().secrets.contains(&"elsewhere".to_owned()));
    }
}
