//! Prometheus' older text format, for readers that do not ask for OpenMetrics, such as `promtool
//! check metrics` and `curl`.

/// Converts an exposition from OpenMetrics. There a family of counters has the name without
/// `_total`, and that of an info without `_info`; the older format knows names of samples only.
pub(super) fn plain_text(open_metrics: &str) -> String {
    let mut text = String::with_capacity(open_metrics.len());
    let mut help = None;
    for line in open_metrics.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            help = rest.split_once(' ');
        } else if let Some((name, metric_type)) =
            line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' '))
        {
            let (suffix, metric_type) = match metric_type {
                "counter" => ("_total", "counter"),
                "info" => ("_info", "gauge"),
                other => ("", other),
            };
            if let Some((_, help)) = help.take() {
                text += &format!("# HELP {name}{suffix} {help}\n");
            }
            text += &format!("# TYPE {name}{suffix} {metric_type}\n");
        } else if !line.starts_with("# ") {
            text += line;
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_get_the_names_of_their_samples() {
        let open_metrics = "# HELP a_seconds Time.\n# TYPE a_seconds counter\n\
                            # UNIT a_seconds seconds\na_seconds_total{b=\"# c\"} 1\n\
                            # HELP d What.\n# TYPE d info\nd_info{e=\"f\"} 1\n\
                            # HELP g Now.\n# TYPE g gauge\ng 2\n# EOF\n";
        let expected = "# HELP a_seconds_total Time.\n# TYPE a_seconds_total counter\n\
                        a_seconds_total{b=\"# c\"} 1\n\
                        # HELP d_info What.\n# TYPE d_info gauge\nd_info{e=\"f\"} 1\n\
                        # HELP g Now.\n# TYPE g gauge\ng 2\n";
        assert_eq!(plain_text(open_metrics), expected);
    }
}
