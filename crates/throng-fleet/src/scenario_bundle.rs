//! A scenario that travels to other machines.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use throng_base::input_file::{self, DATA_BYTES_MAX};
use throng_load::scenario::{
    CarriedFile, CarriedInputs, Diagnostics, LoadPeak, Scenario, ScenarioInputs,
};

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
        let read = |path: &PathBuf| {
            Ok((path.clone(), CarriedFile::from(input_file::read(path, DATA_BYTES_MAX)?)))
        };
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
