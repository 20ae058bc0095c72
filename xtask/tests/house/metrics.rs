//! Metrics are named in one table.

use std::fs;

use throng_measure::{Metric, ProcessMetric};

#[test]
fn no_metric_is_named_outside_the_table() {
    let of_programs = ProcessMetric::all().flat_map(|metric| [metric.server, metric.client]);
    let names: Vec<_> =
        Metric::all().chain(of_programs).map(|metric| format!("\"{metric}\"")).collect();
    let mut found = Vec::new();
    for file in crate::sources() {
        if file.ends_with("throng-measure/src/metric.rs") {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap();
        let named = names.iter().filter(|name| text.contains(name.as_str()));
        found.extend(named.map(|name| format!("{}: {name}", file.display())));
    }
    assert!(found.is_empty(), "use the constants of throng_measure::Metric:\n{}", found.join("\n"));
}
