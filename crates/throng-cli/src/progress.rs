//! How a run stands: a bar on a terminal, a line an interval anywhere else.

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use throng_base::units::show_duration;
use throng_report::Interval;
use throng_report::render::{broadcast_progress, count, micros, paused, progress_line, rate};

use crate::output;

/// Where progress goes.
#[derive(Clone)]
pub(crate) struct Progress {
    how: Display,
    begun: Instant,
    length: Duration,
}

#[derive(Clone)]
enum Display {
    /// A bar on standard error, when both outputs are terminals.
    Bar(ProgressBar),
    /// Lines on standard output, or on standard error when the other one is for JSON.
    Lines { on_stderr: bool },
}

impl Progress {
    /// For a run of `length`. When `json_on_stdout`, nothing but JSON is written there.
    pub(crate) fn new(length: Duration, json_on_stdout: bool) -> Self {
        Self::titled(String::new(), length, json_on_stdout)
    }

    /// The same, with a title before the bar.
    pub(crate) fn titled(title: String, length: Duration, json_on_stdout: bool) -> Self {
        let bar = io::stderr().is_terminal() && (json_on_stdout || io::stdout().is_terminal());
        let how = match bar {
            true => Display::Bar(new_bar(title, length)),
            false => Display::Lines { on_stderr: json_on_stdout },
        };
        Self { how, begun: Instant::now(), length }
    }

    /// Whether a line on a terminal shows it, and not one line after the other.
    pub(crate) fn is_live(&self) -> bool {
        matches!(self.how, Display::Bar(_))
    }

    /// What the recorder calls with each interval and the one before it.
    pub(crate) fn callback(&self) -> impl FnMut(&Interval, Option<&Interval>) + Send + 'static {
        let this = Arc::new(self.clone());
        move |interval, previous| {
            if interval.span_ms > 0 {
                this.show(interval, previous);
            }
        }
    }

    /// Moves the bar.
    pub(crate) fn tick(&self) {
        if let Display::Bar(bar) = &self.how {
            bar.set_position(self.begun.elapsed().min(self.length).as_millis() as u64);
        }
    }

    /// A sentence beside the progress.
    pub(crate) fn note(&self, text: &str) {
        match &self.how {
            Display::Bar(bar) => bar.println(text),
            Display::Lines { on_stderr: true } => output::print_error(text),
            Display::Lines { on_stderr: false } => output::say(text),
        }
    }

    /// Takes the bar away.
    pub(crate) fn finish(&self) {
        if let Display::Bar(bar) = &self.how {
            bar.finish_and_clear();
        }
    }

    /// Shows an interval.
    pub(crate) fn show(&self, interval: &Interval, previous: Option<&Interval>) {
        match &self.how {
            Display::Bar(bar) => {
                // A title leaves no room for the phase on a terminal of 80 columns.
                let message = message(interval, previous, bar.prefix().is_empty());
                bar.set_message(message);
                for event in &interval.events {
                    bar.println(event.to_string());
                }
            }
            Display::Lines { .. } => self.note(&progress_line(interval, previous)),
        }
    }
}

fn new_bar(title: String, length: Duration) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(
        Some(length.as_millis().max(1) as u64),
        ProgressDrawTarget::stderr_with_hz(10),
    );
    let (prefix, width) = if title.is_empty() { ("", 12) } else { ("{prefix} ", 6) };
    let color = if output::no_color() { "" } else { ".cyan/dim" };
    let bar_style = format!("{{bar:{width}{color}}}");
    let length = show_duration(round(length));
    let template = format!("{prefix}{bar_style} {{elapsed}} of {length} {{wide_msg}}");
    let style = ProgressStyle::with_template(&template).expect("a template that is tested");
    bar.set_style(style.progress_chars("━╸─"));
    bar.set_prefix(title);
    bar.set_message("starting");
    bar
}

fn round(length: Duration) -> Duration {
    if length.as_secs() > 0 { Duration::from_secs(length.as_secs()) } else { length }
}

/// `12k connected, 998/s, p99 1.20 ms, 3 errors, ramp to 100k`: on a narrow terminal the end is cut off, so what matters
/// least comes last.
fn message(interval: &Interval, previous: Option<&Interval>, with_phase: bool) -> String {
    let Some(load) = &interval.load else { return String::new() };
    let nothing = Default::default();
    let before = previous.and_then(|interval| interval.load.as_ref()).unwrap_or(&nothing);
    let grown = load.counters.since(&before.counters);
    // Messages where there are any, else connects.
    let (done, latency) = match grown.messages_answered {
        0 => (grown.connects_ok, load.latencies().connect),
        answered => (answered, load.latencies().message),
    };
    let per_second = rate(done as f64 * 1000.0 / interval.span_ms.max(1) as f64);
    let p99 = match latency.is_empty() {
        true => String::new(),
        false => format!(", p99 {}", micros(latency.percentile(99.0))),
    };
    let errors = load.errors.total() + load.counters.connects_failed;
    let joined = match load.counters.joins_started {
        0 => String::new(),
        _ => format!(", {} joined", count(load.counters.joined as f64)),
    };
    let paused = paused(load).map_or_else(String::new, |text| format!("{text}, "));
    let broadcast = broadcast_progress(load).map_or_else(String::new, |text| format!(", {text}"));
    let phase = match with_phase {
        true => format!(", {}", without_times(&load.phase)),
        false => String::new(),
    };
    format!(
        "{paused}{} connected{joined}, {per_second}{p99}, {} errors{broadcast}{phase}",
        count(load.counters.connected as f64),
        count(errors as f64),
    )
}

/// A phase without how long it lasts, which the bar shows: `ramp to 100k over 15m` is `ramp to 100k`.
fn without_times(phase: &str) -> &str {
    let end = [" over ", " for "].iter().find_map(|word| phase.find(word));
    &phase[..end.unwrap_or(phase.len())]
}

#[cfg(test)]
mod tests {
    use throng_report::{LoadCounters, LoadInterval};

    use super::*;

    #[test]
    fn the_bar_can_be_made() {
        new_bar(String::new(), Duration::from_secs(60));
        new_bar("2/4 dispatch".to_owned(), Duration::ZERO);
    }

    #[test]
    fn the_message_has_connections_rate_latency_and_errors() {
        let counters = LoadCounters {
            connected: 12_000,
            connects_ok: 998,
            connects_failed: 3,
            ..Default::default()
        };
        let mut load =
            LoadInterval { phase: "ramp to 100k over 15m".into(), counters, ..Default::default() };
        load.connect.record_us(1_200);
        let interval = Interval { span_ms: 1000, load: Some(load), ..Default::default() };
        assert_eq!(
            message(&interval, None, true),
            "12k connected, 998/s, p99 1.20 ms, 3 errors, ramp to 100k"
        );
        let short = "12k connected, 998/s, p99 1.20 ms, 3 errors";
        assert_eq!(message(&interval, None, false), short);
    }
}
