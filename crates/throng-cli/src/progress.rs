//! The progress of a run: a bar on a terminal, one line per interval elsewhere.

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use throng_base::units::show_duration;
use throng_report::Interval;
use throng_report::render::{broadcast_progress, count, micros, paused, progress_line, rate};

use crate::output;

/// The display of a run's progress.
#[derive(Clone)]
pub(crate) struct Progress {
    display: Display,
    begun: Instant,
    length: Duration,
}

#[derive(Clone)]
enum Display {
    /// A bar on standard error, if both outputs are terminals.
    Bar(ProgressBar),
    /// Lines on standard output, or on standard error if standard output is for JSON.
    Lines { on_stderr: bool },
}

impl Progress {
    /// Returns the progress of a run of `length`. With `json_on_stdout`, it writes nothing to
    /// standard output.
    pub(crate) fn new(length: Duration, json_on_stdout: bool) -> Self {
        Self::titled(String::new(), length, json_on_stdout)
    }

    /// Returns the progress of a run of `length`, with a title before the bar.
    pub(crate) fn titled(title: String, length: Duration, json_on_stdout: bool) -> Self {
        let bar = io::stderr().is_terminal() && (json_on_stdout || io::stdout().is_terminal());
        let display = if bar {
            Display::Bar(new_bar(title, length))
        } else {
            Display::Lines { on_stderr: json_on_stdout }
        };
        Self { display, begun: Instant::now(), length }
    }

    /// Reports whether the progress is one line that is updated, and not a sequence of lines.
    pub(crate) fn is_live(&self) -> bool {
        matches!(self.display, Display::Bar(_))
    }

    /// Returns the recorder's callback, which takes each interval and the previous one.
    pub(crate) fn callback(&self) -> impl FnMut(&Interval, Option<&Interval>) + Send + 'static {
        let this = Arc::new(self.clone());
        move |interval, previous| {
            if interval.span_ms > 0 {
                this.show(interval, previous);
            }
        }
    }

    /// Updates the bar.
    pub(crate) fn tick(&self) {
        if let Display::Bar(bar) = &self.display {
            bar.set_position(self.begun.elapsed().min(self.length).as_millis() as u64);
        }
    }

    /// Prints a sentence beside the progress.
    pub(crate) fn note(&self, text: &str) {
        match &self.display {
            Display::Bar(bar) => bar.println(text),
            Display::Lines { on_stderr } => output::say_beside(*on_stderr, text),
        }
    }

    /// Removes the bar.
    pub(crate) fn finish(&self) {
        if let Display::Bar(bar) = &self.display {
            bar.finish_and_clear();
        }
    }

    /// Shows an interval.
    pub(crate) fn show(&self, interval: &Interval, previous: Option<&Interval>) {
        match &self.display {
            Display::Bar(bar) => {
                // A title leaves no room for the phase on a terminal of 80 columns.
                let message = message(interval, previous, bar.prefix().is_empty());
                bar.set_message(message);
                for event in &interval.events {
                    bar.println(event.to_string());
                }
            }
            Display::Lines { .. } if is_still_leaving(interval, previous) => {}
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

/// Returns the bar's message: `12k connected, 998/s, p99 1.20 ms, 3 errors, ramp to 100k`. A narrow
/// terminal cuts off its end, so the least important part comes last.
fn message(interval: &Interval, previous: Option<&Interval>, with_phase: bool) -> String {
    let Some(load) = &interval.load else { return String::new() };
    let nothing = Default::default();
    let before = previous.and_then(|interval| interval.load.as_ref()).unwrap_or(&nothing);
    let grown = load.counters.since(&before.counters);
    // Messages if there are any, else connects.
    let (done, latency) = match grown.messages_answered {
        0 => (grown.connects_ok, load.latencies().connect),
        answered => (answered, load.latencies().message),
    };
    let per_second = rate(done as f64 * 1000.0 / interval.span_ms.max(1) as f64);
    let p99 = if latency.is_empty() {
        String::new()
    } else {
        format!(", p99 {}", micros(latency.percentile(99.0)))
    };
    let errors = load.errors.total() + load.counters.connects_failed;
    let joined = match load.counters.joins_started {
        0 => String::new(),
        _ => format!(", {} joined", count(load.counters.joined as f64)),
    };
    let paused = paused(load).map_or_else(String::new, |text| format!("{text}, "));
    let broadcast = broadcast_progress(load).map_or_else(String::new, |text| format!(", {text}"));
    let phase =
        if with_phase { format!(", {}", without_times(&load.phase)) } else { String::new() };
    format!(
        "{paused}{} connected{joined}, {per_second}{p99}, {} errors{broadcast}{phase}",
        count(load.counters.connected as f64),
        count(errors as f64),
    )
}

/// Reports whether the users were leaving before, and nothing has happened since.
fn is_still_leaving(interval: &Interval, previous: Option<&Interval>) -> bool {
    let shown = |interval: &Interval| {
        let load = interval.load.as_ref().filter(|load| load.is_leaving())?;
        Some((load.counters.connected, load.errors.total() + load.counters.connects_failed))
    };
    let now = shown(interval);
    now.is_some() && interval.events.is_empty() && now == previous.and_then(shown)
}

/// Returns a phase without its length, which the bar shows: `ramp to 100k over 15m` becomes `ramp
/// to 100k`.
fn without_times(phase: &str) -> &str {
    let end = [" over ", " for "].iter().find_map(|word| phase.find(word));
    &phase[..end.unwrap_or(phase.len())]
}

#[cfg(test)]
mod tests {
    use throng_report::{LEAVING, LoadCounters, LoadInterval};

    use super::*;

    #[test]
    fn the_bar_can_be_made() {
        new_bar(String::new(), Duration::from_secs(60));
        new_bar("2/4 dispatch".to_owned(), Duration::ZERO);
    }

    #[test]
    fn users_that_leave_have_a_line_when_something_changes() {
        let leaving = |connected| {
            let counters = LoadCounters { connected, ..Default::default() };
            let load = LoadInterval { phase: LEAVING.into(), counters, ..Default::default() };
            Interval { load: Some(load), ..Default::default() }
        };
        assert!(!is_still_leaving(&leaving(4), None));
        assert!(!is_still_leaving(&leaving(0), Some(&leaving(4))));
        assert!(is_still_leaving(&leaving(0), Some(&leaving(0))));
        assert!(!is_still_leaving(&Interval::default(), Some(&Interval::default())));
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
