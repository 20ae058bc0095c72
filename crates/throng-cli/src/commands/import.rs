//! `throng import`: translates a file of another load generator into a scenario.

use std::path::{Path, PathBuf};

use clap::Args;
use throng_base::input_file::{self, SCENARIO_BYTES_MAX};
use throng_import::{Import, ImportOptions, import};
use throng_load::scenario::Target;

use crate::output_place::{self, unwritable};
use crate::{Exit, Failure, output};

/// Translate a file of another load generator into a scenario
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ImportFile {
    /// The file of the other tool
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Write the scenario to this file [default: standard output]
    #[arg(short, long, value_name = "SCENARIO.yaml")]
    output: Option<PathBuf>,
    /// Target of the scenario, in place of the one that the file names
    #[arg(long, value_name = "URL")]
    target: Option<Target>,
    /// Overwrite the output if it exists
    #[arg(long, requires = "output")]
    force: bool,
}

impl ImportFile {
    pub(crate) fn run(&self) -> Result<Exit, Failure> {
        if let Some(path) = &self.output {
            output_place::check(path)?;
            check_output(path, &self.file, self.force)?;
        }
        let name = self.file.display().to_string();
        let text = input_file::read_text(&self.file, SCENARIO_BYTES_MAX)
            .map_err(|error| Failure::new(format!("cannot read {name}: {error}")))?;
        let options = ImportOptions { target: self.target.clone() };
        let imported = import(&text, &name, &options).map_err(Failure::mistakes)?;
        let Import { scenario, fidelity, data_files } = &imported;
        match &self.output {
            None => output::say_document(scenario),
            Some(path) => {
                std::fs::write(path, scenario).map_err(|error| unwritable(path, error))?;
            }
        }
        let mut report = output::for_terminal(fidelity.to_string());
        if !data_files.is_empty() {
            let files = output::for_terminal(data_files.join(", "));
            report += &format!(
                "\ndata files: {files}; none was opened, and their paths count from the folder of \
                 the scenario"
            );
        }
        output::say_beside(self.output.is_none(), report);
        Ok(Exit::Met)
    }
}

/// Refuses an output that would destroy a file: `input`, or another one without `force`.
pub(super) fn check_output(path: &Path, input: &Path, force: bool) -> Result<(), Failure> {
    if output_place::is_one_file(path, input) {
        return Err(unwritable(path, "it is the file to import"));
    }
    if path.exists() && !force {
        return Err(unwritable(path, "it exists; --force overwrites it"));
    }
    Ok(())
}

const EXAMPLES: &str = "\
Examples:
  throng import tsung.xml                              show the scenario
  throng import tsung.xml -o scenario.yaml             write it
  throng import plan.json --target ws://127.0.0.1:4000 load another target
  throng run tsung.xml                                 import it and run it

The report says how exactly each construct of the file was translated. What a tool has measured is
imported by `throng import-log`.";
