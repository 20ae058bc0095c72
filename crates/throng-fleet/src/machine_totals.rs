//! The totals of one machine in a line of the run file: a process that takes the run over goes on
//! from them.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use throng_load::generator::CoreStats;

/// What a machine has counted up to its last report.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct MachineTotals {
    /// The end of the report, in microseconds since the run began.
    pub(crate) at_us: u64,
    /// CPU time of its generator in user mode, in microseconds.
    pub(crate) cpu_user_us: u64,
    /// The sum of its cores. Its moment is that of a clock which ends with the process.
    pub(crate) stats: CoreStats,
}

impl MachineTotals {
    /// Returns them as a part of a line. What is zero or empty is left out: that is most of it.
    pub(crate) fn to_line(&self) -> Option<Value> {
        let mut value = serde_json::to_value(self).ok()?;
        leave_out(&mut value, &NOTHING);
        Some(value)
    }

    /// Returns what [`Self::to_line`] has written; `None` if another version has.
    pub(crate) fn of_line(value: &Value) -> Option<Self> {
        Self::deserialize(value).ok()
    }
}

/// The totals of a machine that has counted nothing.
static NOTHING: LazyLock<Value> =
    LazyLock::new(|| serde_json::to_value(MachineTotals::default()).expect("totals are JSON"));

/// Removes the fields that are as in the default value, and the zeros in the entries of lists.
fn leave_out(value: &mut Value, default: &Value) {
    match value {
        Value::Object(fields) => fields.retain(|name, field| {
            let default = default.get(name).unwrap_or(&Value::Null);
            let is_known = !default.is_null();
            let is_left = if is_known { field != default } else { !is_zero(field) };
            if is_left {
                leave_out(field, default);
            }
            is_left
        }),
        // The entries keep their places. Those that are lists themselves are pairs.
        Value::Array(entries) => {
            let entries = entries.iter_mut().filter(|entry| entry.is_object());
            entries.for_each(|entry| leave_out(entry, &Value::Null));
        }
        _ => {}
    }
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(is_set) => !is_set,
        Value::Number(number) => number.as_u64() == Some(0),
        Value::String(text) => text.is_empty(),
        Value::Array(entries) => entries.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use throng_load::generator::{AddressTally, LimitTally};
    use throng_measure::{Operation, StepInterval};

    use super::*;

    #[test]
    fn totals_come_out_of_a_line_as_they_went_in() {
        let mut stats = CoreStats::new(0, 2);
        stats.phase = 1;
        stats.counters.connects_ok = 7;
        stats.core.turns = 9;
        stats.classes[1].connects_ok = 7;
        stats.judged_classes = vec![Default::default(); 2];
        stats.judged_classes[1][Operation::Http].counts.ok = 7;
        stats.errors[2] = 1;
        stats.close_codes = vec![(None, 2), (Some(1000), 3)];
        stats.statuses =
            serde_json::from_str(r#"[{"status": 200, "answers": 4, "unexpected": 0}]"#).unwrap();
        stats.steps = vec![StepInterval::default(), StepInterval { ok: 4, ..Default::default() }];
        stats.addresses = vec![AddressTally::default(), AddressTally { ok: 7, failed: vec![] }];
        stats.limits = vec![LimitTally::default(), LimitTally { steps: 1, held: 0, held_us: 0 }];
        let totals = MachineTotals { at_us: 1_000_000, cpu_user_us: 5, stats };
        let line = totals.to_line().unwrap();
        let read = MachineTotals::of_line(&line).unwrap();
        assert_eq!(format!("{read:?}"), format!("{totals:?}"));
        let text = line.to_string();
        assert!(text.len() < 600, "zeros and histograms are left out: {text}");
    }

    #[test]
    fn totals_of_nothing_are_nothing() {
        let empty = MachineTotals::default();
        assert_eq!(empty.to_line(), Some(serde_json::json!({})));
        assert!(MachineTotals::of_line(&serde_json::json!([{"core_id": 1}])).is_none());
    }
}
