//! `throng import-log`: makes a run file of the results of another load generator.

use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValuesParser;
use throng_base::input_file::{self, LOG_BYTES_MAX};
use throng_import::{LOG_IMPORTERS, LogImport, import_log};

use super::import::check_output;
use crate::output_place::{check_folder, unwritable};
use crate::{Exit, Failure, output};

/// Convert the log of another load generator into a run file, to report and compare it
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ImportLog {
    /// The log of the other tool: tsung.log, the JSON of k6 or Artillery, or data of MZBench
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Write the run file to this file [default: standard output]
    #[arg(short, long, value_name = "RUN.jsonl")]
    output: Option<PathBuf>,
    /// Tool whose log it is [default: recognised by its content]
    #[arg(long, value_name = "TOOL", ignore_case = true)]
    #[arg(value_parser = PossibleValuesParser::new(tools()))]
    tool: Option<String>,
    /// Overwrite the output if it exists
    #[arg(long, requires = "output")]
    force: bool,
}

impl ImportLog {
    pub(crate) fn run(&self) -> Result<Exit, Failure> {
        if let Some(path) = &self.output {
            check_folder(path)?;
            check_output(path, &self.file, self.force)?;
        }
        let name = self.file.display().to_string();
        let text = self.text()?;
        let imported = import_log(&text, &name, self.tool.as_deref());
        let LogImport { run_file, fidelity } = imported.map_err(Failure::mistakes)?;
        match &self.output {
            None => output::say_json_lines(&String::from_utf8_lossy(&run_file)),
            Some(path) => {
                std::fs::write(path, run_file).map_err(|error| unwritable(path, error))?;
            }
        }
        let mut report = output::for_terminal(fidelity.to_string());
        if let Some(path) = &self.output {
            report += &format!("\nrun: {0}; show it with: throng report {0}", path.display());
        }
        output::say_beside(self.output.is_none(), report);
        Ok(Exit::Met)
    }

    fn text(&self) -> Result<String, Failure> {
        let name = self.file.display();
        let fail = |why: String| Failure::new(format!("cannot read {name}: {why}"));
        let bytes = input_file::read(&self.file, LOG_BYTES_MAX);
        let bytes = bytes.map_err(|error| fail(error.to_string()))?;
        if bytes.starts_with(&GZIP) {
            return Err(fail(format!("it is compressed; unpack it first: gunzip {name}")));
        }
        String::from_utf8(bytes).map_err(|error| {
            let valid = error.utf8_error().valid_up_to();
            let before = &error.as_bytes()[..valid];
            let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
            fail(format!("line {line} is no UTF-8; expected a log of text"))
        })
    }
}

/// Returns the tools whose logs are read, each once.
fn tools() -> Vec<&'static str> {
    let mut tools: Vec<_> = LOG_IMPORTERS.iter().map(|importer| importer.tool).collect();
    tools.dedup();
    tools
}

/// The first bytes of a file of gzip.
const GZIP: [u8; 2] = [0x1f, 0x8b];

const EXAMPLES: &str = "\
Examples:
  throng import-log tsung.log -o tsung.jsonl        make a run file
  throng report tsung.jsonl                         show it
  throng import-log k6.json -o k6.jsonl             points of k6 run --out json=k6.json
  throng import-log report.json -o artillery.jsonl  artillery run --output report.json
  throng compare tsung.jsonl run.jsonl              compare it with a run of throng

The report says what became of each kind of line. What a log does not say, as percentiles in
tsung.log, is absent in the run file. A scenario of another tool is imported by `throng import`.";
