//! `throng schema`: prints the JSON Schema of scenarios, for editors.

use clap::Args;
use throng_load::scenario::Scenario;

use crate::{Exit, Failure, output};

/// Print the JSON Schema of scenarios, for editors that complete and check them
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Schema {}

const EXAMPLES: &str = "\
Examples:
  throng schema > throng.schema.json
  # then, as the first line of a scenario, for editors with a YAML language server:
  # yaml-language-server: $schema=throng.schema.json";

impl Schema {
    #[expect(clippy::unused_self, reason = "each command runs itself")]
    pub(crate) fn run(&self) -> Result<Exit, Failure> {
        output::say(Scenario::SCHEMA);
        Ok(Exit::Met)
    }
}
