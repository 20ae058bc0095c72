//! The diagnosis of a load.

use serde::Serialize;
use throng_measure::{Diagnosis, Severity};

/// The diagnosis of one load.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RowDiagnosis {
    /// The name of the load's row.
    pub row: String,
    /// The diagnosis.
    #[serde(flatten)]
    pub diagnosis: Diagnosis,
}

impl RowDiagnosis {
    /// Returns the severity of the first finding; none without findings.
    pub fn severity(&self) -> Option<Severity> {
        self.diagnosis.findings.first().map(|finding| finding.severity)
    }
}
