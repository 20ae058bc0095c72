//! JSON: the summary with what follows from it.

use serde_json::{Value, json as to_json};
use throng_measure::Diagnosis;

use super::run_export::RunExport;
use crate::{Judgement, Summary};

impl RunExport<'_> {
    /// Returns what `throng run --json` writes.
    pub fn json(&self) -> Value {
        json(self.summary, self.judgements, self.diagnosis)
    }
}

/// Returns the summary as JSON, with the judgements of the thresholds and the diagnosis.
pub fn json(summary: &Summary, judgements: &[Judgement], diagnosis: &Diagnosis) -> Value {
    let mut value = serde_json::to_value(summary).expect("plain data becomes JSON");
    if let Value::Object(fields) = &mut value {
        fields.insert("thresholds".to_owned(), to_json!(judgements));
        fields.insert("diagnosis".to_owned(), to_json!(diagnosis));
    }
    value
}
