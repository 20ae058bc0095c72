//! Names by Prometheus' conventions, made from the names of the run file.
//!
//! A name says what it counts and then its base unit: `cpu_us` becomes `cpu_seconds`, and
//! `bytes_sent` becomes `sent_bytes`. Counters end in `_total`, which the encoder adds. `most`
//! becomes `max`, and a last word `count`, which is reserved for histograms, becomes `current`.

use prometheus_client::registry::Unit;
use throng_measure::metric::MetricUnit;

/// The name of a family of metrics, its unit, and the divisor that turns the recorded unit
/// into this one.
#[derive(Clone, Debug)]
pub(super) struct FamilyName {
    /// The name without unit and `_total`.
    pub(super) base: String,
    pub(super) unit: Option<Unit>,
    pub(super) divisor: f64,
}

impl FamilyName {
    /// Returns a name that is one by the conventions already.
    pub(super) fn plain(base: impl Into<String>) -> Self {
        Self { base: base.into(), unit: None, divisor: 1.0 }
    }

    /// Returns the name with a unit, for values in that unit.
    pub(super) fn with_unit(base: impl Into<String>, unit: Unit) -> Self {
        Self { unit: Some(unit), ..Self::plain(base) }
    }

    /// Returns the name of a field of a table of counters, such as `bytes_sent`. The field's name
    /// contains its unit.
    pub(super) fn of_field(prefix: &str, field: &str) -> Self {
        Self::of(prefix, field, None)
    }

    /// Returns the name of a metric of a machine or program, such as `TcpExt.ListenOverflows`.
    pub(super) fn of_metric(prefix: &str, metric: &str, unit: MetricUnit) -> Self {
        let word = match unit {
            MetricUnit::Number => None,
            MetricUnit::Bytes => Some("bytes"),
            MetricUnit::Pages => Some("pages"),
            MetricUnit::Us => Some("us"),
            MetricUnit::Ms => Some("ms"),
            MetricUnit::Permille => Some("permille"),
            MetricUnit::Millicpus => Some("millicpus"),
        };
        Self::of(prefix, metric, word)
    }

    fn of(prefix: &str, recorded: &str, unit_word: Option<&str>) -> Self {
        let snake = snake_case(recorded);
        let mut words: Vec<&str> = snake.split('_').collect();
        let found = words.iter().position(|word| match unit_word {
            Some(unit) => *word == unit,
            None => base_unit(word).is_some(),
        });
        let unit_word = found.map(|at| words.remove(at)).or(unit_word);
        let (unit, divisor) = unit_word
            .and_then(base_unit)
            .map_or((None, 1.0), |(unit, divisor)| (Some(unit), divisor));
        for word in &mut words {
            *word = if *word == "most" { "max" } else { word };
        }
        if let Some(last) = words.last_mut().filter(|word| **word == "count") {
            *last = "current";
        }
        Self { base: format!("{prefix}_{}", words.join("_")), unit, divisor }
    }
}

/// Returns the base unit of a word, and how many of the word's unit it has.
fn base_unit(word: &str) -> Option<(Unit, f64)> {
    let other = |name: &str| Unit::Other(name.to_owned());
    Some(match word {
        "bytes" => (Unit::Bytes, 1.0),
        // The size of a page is that of a machine which may be another one.
        "pages" => (other("pages"), 1.0),
        "us" => (Unit::Seconds, 1e6),
        "ms" => (Unit::Seconds, 1e3),
        "permille" => (other("ratio"), 1e3),
        "millicpus" => (other("cpus"), 1e3),
        _ => return None,
    })
}

/// Converts `TcpExt.TCPReqQFullDrop` to `tcp_ext_tcp_req_q_full_drop`.
fn snake_case(name: &str) -> String {
    let chars: Vec<char> = name.chars().collect();
    let mut snake = String::new();
    for (i, &c) in chars.iter().enumerate() {
        let is_lower = |at: Option<usize>| {
            at.and_then(|at| chars.get(at)).is_some_and(char::is_ascii_lowercase)
        };
        let is_after_lower = is_lower(i.checked_sub(1));
        let begins_word = c.is_ascii_uppercase() && (is_after_lower || is_lower(Some(i + 1)));
        if begins_word && !snake.is_empty() && !snake.ends_with('_') {
            snake.push('_');
        }
        snake.push(if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' });
    }
    snake
}

#[cfg(test)]
mod tests {
    use throng_measure::{Metric, ProcessMetric};

    use super::*;

    #[test]
    fn words_become_words_of_prometheus() {
        let check = |metric: Metric, expected: &str, divisor: f64| {
            let recorded = metric.name().trim_start_matches("process.client.");
            let name = FamilyName::of_metric("x", recorded, metric.unit());
            let unit = name.unit.as_ref().map_or(String::new(), |u| format!("_{}", u.as_str()));
            let found = (format!("{}{unit}", name.base), name.divisor);
            assert_eq!(found, (expected.to_owned(), divisor));
        };
        check(Metric::TCP_IN_ERRS, "x_tcp_in_errs", 1.0);
        check(Metric::TCPEXT_TCP_REQ_Q_FULL_DROP, "x_tcp_ext_tcp_req_q_full_drop", 1.0);
        check(
            Metric::TCPEXT_TCP_MEMORY_PRESSURES_CHRONO,
            "x_tcp_ext_tcp_memory_pressures_chrono_seconds",
            1e3,
        );
        check(Metric::PRESSURE_CPU_SOME_US, "x_pressure_cpu_some_seconds", 1e6);
        check(Metric::CONNTRACK_COUNT, "x_conntrack_current", 1.0);
        check(ProcessMetric::BUSY_MS_MOST.client, "x_busy_max_seconds", 1e3);
        check(ProcessMetric::BUSIEST_THREAD_PERMILLE.client, "x_busiest_thread_ratio", 1e3);
        check(ProcessMetric::CPUS_ALLOWED.client, "x_cpus_allowed", 1.0);
    }

    #[test]
    fn a_field_says_its_unit_itself() {
        let check = |field, base, unit, divisor| {
            let name = FamilyName::of_field("x", field);
            let found = (name.base.as_str(), name.unit.as_ref().map(Unit::as_str), name.divisor);
            assert_eq!(found, (base, Some(unit), divisor));
        };
        check("bytes_sent", "x_sent", "bytes", 1.0);
        check("turn_us_most", "x_turn_max", "seconds", 1e6);
    }
}
