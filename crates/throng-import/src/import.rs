//! The import of one file: from text to a scenario and a report.

use throng_load::scenario::{Diagnostic, Diagnostics};

use crate::FidelityReport;
use crate::call::place_of_call;
use crate::logs::log_instead;
use crate::options::ImportOptions;
use crate::source::Source;
use crate::tools::{IMPORTERS, recognise};
use crate::translator::Translator;
use crate::trial::{StepTrial, refusal};

/// An imported file.
#[derive(Clone, Debug)]
pub struct Import {
    /// The scenario, in YAML.
    pub scenario: String,
    /// How exactly the scenario does what the source says.
    pub fidelity: FidelityReport,
    /// The data files that the scenario reads. Their paths count from its folder.
    pub data_files: Vec<String>,
}

/// Imports the file `name` with this text. The paths of data files in the scenario count from the
/// folder of `name`, as they do in the source.
///
/// # Errors
/// No importer recognises the file, the file has mistakes, or throng refuses the scenario. Data
/// files are not looked at.
pub fn import(text: &str, name: &str, options: &ImportOptions) -> Result<Import, Diagnostics> {
    let source = Source { name, text };
    if let Some(mistake) = log_instead(&source) {
        return Err(Diagnostics::new(name, text, vec![mistake]));
    }
    let Some(importer) = recognise(text, name) else {
        return Err(Diagnostics::new(name, text, vec![not_recognised(&source)]));
    };
    let mut translator = Translator::new(source, options);
    let draft = (importer.read)(&mut translator);
    let Translator { mut mistakes, mut entries, expansion, trials, .. } = translator;
    let of_steps = || trials.iter().filter_map(StepTrial::mistake);
    if let Some(mistake) = expansion.mistake() {
        // The others follow from it.
        mistakes = vec![mistake];
    }
    let Some(draft) = draft.filter(|_| mistakes.is_empty()) else {
        if expansion.mistake().is_none() {
            mistakes.extend(of_steps());
        }
        return Err(Diagnostics::new(name, text, mistakes));
    };
    let scenario = draft.write();
    if let Some(refusal) = refusal(&draft, &scenario) {
        mistakes.extend(of_steps());
        if mistakes.is_empty() {
            // The place is one in the scenario.
            mistakes.push(Diagnostic { span: 0..0, ..refusal });
        }
        return Err(Diagnostics::new(name, text, mistakes));
    }
    entries.sort_by_key(|entry| entry.line);
    let fidelity = FidelityReport { tool: importer.tool, entries };
    let scenario = draft.head(&source, &fidelity) + &scenario;
    let data_files = draft.data.into_iter().map(|(_, file)| file.path).collect();
    Ok(Import { scenario, fidelity, data_files })
}

fn not_recognised(source: &Source<'_>) -> Diagnostic {
    let tools: Vec<_> = IMPORTERS.iter().map(|importer| importer.tool).collect();
    let title = "no importer recognises this file";
    let mut programs = IMPORTERS.iter().filter_map(|importer| importer.program);
    let call =
        programs.find_map(|program| Some((place_of_call(source.text, program.name)?, program)));
    if let Some((span, program)) = call {
        return Diagnostic::new(span, title, program.advice);
    }
    let first_line = source.text.lines().next().unwrap_or_default();
    let label = format!("expected a file of one of these tools: {}", tools.join(", "));
    Diagnostic::new(0..first_line.len(), title, label)
}
