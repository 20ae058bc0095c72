//! The progress of a run or a lab: a live view on a terminal, and a few lines elsewhere.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use throng_control::ControlTarget;
use throng_measure::Interval;
use throng_measure::runfile::RunHeader;
use throng_report::render::progress_line;
use throng_run::RunContent;
use throng_view::terminal::{Screen, TerminalModel, TerminalView, screen};

use crate::interrupt::Interrupt;
use crate::output;

/// The display of progress.
#[derive(Clone)]
pub(crate) struct Progress(Arc<Display>);

enum Display {
    View(TerminalView),
    /// Lines on standard output, or on standard error if standard output is for JSON.
    Lines {
        on_stderr: bool,
        rule: Mutex<LineRule>,
    },
}

impl Progress {
    /// Returns the progress of a run in lines, for intervals of this length. With
    /// `json_on_stdout`, it writes nothing to standard output.
    pub(crate) fn lines_of_run(interval: Duration, json_on_stdout: bool) -> Self {
        Self::lines(LineRule::new(interval * INTERVALS_PER_LINE, true), json_on_stdout)
    }

    /// Returns the progress of a lab in lines, without those for phases: its rows are short.
    pub(crate) fn lines_of_lab(json_on_stdout: bool) -> Self {
        Self::lines(LineRule::new(LINE_EVERY, false), json_on_stdout)
    }

    fn lines(rule: LineRule, json_on_stdout: bool) -> Self {
        let rule = Mutex::new(rule);
        Self(Arc::new(Display::Lines { on_stderr: json_on_stdout, rule }))
    }

    /// Returns a live view of `model`, if there is a terminal for it. A first Ctrl-C calls
    /// `first`.
    pub(crate) fn view(
        model: TerminalModel,
        interrupt: &Interrupt,
        first: impl Fn() + Send + 'static,
    ) -> Option<Self> {
        if !Screen::is_possible() {
            return None;
        }
        let view = TerminalView::open(model, interrupt.on_key(screen::restore, first)).ok()?;
        interrupt.restore_before_exit(screen::restore);
        Some(Self(Arc::new(Display::View(view))))
    }

    /// Reports whether this is a live view, which covers what else is printed.
    pub(crate) fn is_view(&self) -> bool {
        matches!(*self.0, Display::View(_))
    }

    /// Prints a sentence beside the progress.
    pub(crate) fn note(&self, text: &str) {
        match &*self.0 {
            Display::View(view) => view.note(text),
            Display::Lines { on_stderr, .. } => output::say_beside(*on_stderr, text),
        }
    }

    /// Shows a sentence that was printed already, if a view covers it.
    pub(crate) fn keep(&self, text: Option<&str>) {
        if let (Display::View(view), Some(text)) = (&*self.0, text) {
            view.note(text);
        }
    }

    /// Shows that a row of a lab begins.
    pub(crate) fn begin_row(&self, name: &str, number: usize, of: usize, seconds: u64) {
        match &*self.0 {
            Display::View(view) => view.begin_row(name, number, of, seconds),
            Display::Lines { rule, .. } => {
                rule.lock().unwrap_or_else(PoisonError::into_inner).begin();
                self.note(&format!("{number}/{of} {name}, about {seconds} s"));
            }
        }
    }

    /// Shows that the load of a lab's row begins.
    pub(crate) fn begin_load(&self, header: &RunHeader) {
        if let Display::View(view) = &*self.0 {
            view.begin_load(RunContent::of_header(header.clone()));
        }
    }

    /// Steers `target` with the keys of the view.
    pub(crate) fn steer(&self, target: Arc<dyn ControlTarget>) {
        if let Display::View(view) = &*self.0 {
            view.steer(target);
        }
    }

    /// Shows an interval.
    pub(crate) fn show(&self, interval: &Interval, previous: Option<&Interval>) {
        match &*self.0 {
            Display::View(view) => view.show(interval),
            Display::Lines { rule, .. } => {
                let mut rule = rule.lock().unwrap_or_else(PoisonError::into_inner);
                if rule.should_print(interval, previous) {
                    self.note(&progress_line(interval, previous));
                }
            }
        }
    }

    /// Gives the terminal back, and prints the events and notes that its view has shown.
    pub(crate) fn finish(&self) {
        if let Display::View(view) = &*self.0 {
            view.close().iter().for_each(output::say);
        }
    }
}

/// The rule which intervals get a line: those with events, those in which a phase of a run begins
/// or in which the server stops answering and answers again, and one now and then.
struct LineRule {
    every_ms: u64,
    /// Whether a phase that begins gets a line.
    has_phases: bool,
    /// The end of the last interval with a line, in milliseconds.
    printed_ms: u64,
    /// The phase of the last interval.
    phase: Option<String>,
    /// The answers of the last interval, and of the one before.
    answers: u64,
    answers_before: u64,
    /// Whether the server has stopped answering.
    is_silent: bool,
}

impl LineRule {
    fn new(every: Duration, has_phases: bool) -> Self {
        let every_ms = u64::try_from(every.as_millis()).unwrap_or(u64::MAX);
        Self {
            every_ms,
            has_phases,
            printed_ms: 0,
            phase: None,
            answers: 0,
            answers_before: 0,
            is_silent: false,
        }
    }

    /// Begins another run.
    fn begin(&mut self) {
        *self = Self::new(Duration::from_millis(self.every_ms), self.has_phases);
    }

    /// Reports whether the interval gets a line.
    fn should_print(&mut self, interval: &Interval, previous: Option<&Interval>) -> bool {
        let phase = interval.load.as_ref().map(|load| load.phase.clone());
        let is_new_phase = self.phase.is_some() && phase.is_some() && phase != self.phase;
        self.phase = phase.or_else(|| self.phase.take());
        let is_due = interval.at_ms >= self.printed_ms.saturating_add(self.every_ms);
        let is_silence_news = self.silence_changes(interval, previous);
        let is_news_of_run = (is_new_phase || is_silence_news) && self.has_phases;
        let has_news = is_news_of_run || !interval.events.is_empty();
        let should_print =
            interval.span_ms > 0 && (has_news || is_due && !is_still_leaving(interval, previous));
        if should_print {
            self.printed_ms = interval.at_ms;
        }
        should_print
    }

    /// Reports whether the answers stop with this interval, or come again.
    fn silence_changes(&mut self, interval: &Interval, previous: Option<&Interval>) -> bool {
        let Some(load) = interval.load.as_ref().filter(|load| !load.is_leaving()) else {
            return false;
        };
        let total = load.counters.requests_answered();
        let before = previous.and_then(|interval| interval.load.as_ref());
        let answers = total - before.map_or(0, |load| load.counters.requests_answered()).min(total);
        let before = std::mem::replace(&mut self.answers, answers);
        let before = std::mem::replace(&mut self.answers_before, before).max(before);
        let begins = load.counters.requests_waiting() > 0 && before >= ANSWERS_BEFORE_SILENCE;
        let is_silent = answers == 0 && (self.is_silent || begins);
        std::mem::replace(&mut self.is_silent, is_silent) != is_silent
    }
}

/// Reports whether the users were leaving before, and nothing has happened since.
fn is_still_leaving(interval: &Interval, previous: Option<&Interval>) -> bool {
    let shown = |interval: &Interval| {
        let load = interval.load.as_ref().filter(|load| load.is_leaving())?;
        Some((load.counters.connected, load.errors.total() + load.counters.connects_failed))
    };
    let now = shown(interval);
    now.is_some() && now == previous.and_then(shown)
}

/// The answers of an interval after which one without any is a silence, and no accident of few
/// users.
const ANSWERS_BEFORE_SILENCE: u64 = 20;
/// The time between two lines of a lab.
const LINE_EVERY: Duration = Duration::from_secs(10);
/// The intervals of a run for which there is one line.
const INTERVALS_PER_LINE: u32 = 10;

#[cfg(test)]
mod tests {
    use throng_measure::{LEAVING, LoadCounters, LoadInterval, RunEvent, RunEventKind};

    use super::*;

    fn at(at_ms: u64, phase: &str) -> Interval {
        let load = LoadInterval { phase: phase.into(), ..Default::default() };
        Interval { at_ms, span_ms: 250, load: Some(load), ..Interval::default() }
    }

    #[test]
    fn a_line_comes_every_ten_seconds_and_where_something_happened() {
        let mut rule = LineRule::new(LINE_EVERY, true);
        let mut printed = Vec::new();
        let mut see = |interval: &Interval| {
            if rule.should_print(interval, None) {
                printed.push(interval.at_ms);
            }
        };
        (0..=90).for_each(|quarter| see(&at(250 * quarter, "ramp to 2k")));
        let kind = RunEventKind::Steered { command: "stop 5".into() };
        see(&Interval { events: vec![RunEvent::new(1, kind)], ..at(23_000, "ramp to 2k") });
        see(&at(23_250, "ramp to 2k"));
        see(&at(24_000, "hold for 1m"));
        see(&at(24_250, "hold for 1m"));
        see(&at(34_000, "hold for 1m"));
        see(&Interval { span_ms: 0, ..at(60_000, "hold for 1m") });
        assert_eq!(printed, [10_000, 20_000, 23_000, 24_000, 34_000]);
    }

    #[test]
    fn another_run_begins_from_zero() {
        let mut rule = LineRule::new(LINE_EVERY, true);
        assert!(rule.should_print(&at(30_000, "hold for 1m"), None));
        rule.begin();
        assert!(!rule.should_print(&at(9_000, "ramp to 2k"), None));
        assert!(rule.should_print(&at(10_000, "ramp to 2k"), None));
    }

    #[test]
    fn a_phase_of_a_lab_has_no_line() {
        let mut rule = LineRule::new(LINE_EVERY, false);
        for (at_ms, phase) in [(1_000, "ramp to 2k"), (2_000, "hold for 1m")] {
            assert!(!rule.should_print(&at(at_ms, phase), None), "{phase}");
        }
    }

    #[test]
    fn a_server_that_stops_answering_has_a_line_and_another_when_it_answers_again() {
        let mut rule = LineRule::new(LINE_EVERY, true);
        let mut printed = Vec::new();
        let mut previous: Option<Interval> = None;
        let mut answered = 0;
        // The server stops early in the fifth second.
        for (second, answers) in (1..).zip([0, 5, 0, 20, 2, 0, 0, 1, 0, 0, 30, 0]) {
            answered += answers;
            let mut interval = at(second * 1000, "hold for 1m");
            let counters = &mut interval.load.as_mut().unwrap().counters;
            counters.messages_answered = answered;
            // In the last interval no user waits: a request has failed.
            counters.messages_failed = u64::from(second == 12);
            counters.messages_expected = answered + 1;
            if rule.should_print(&interval, previous.as_ref()) {
                printed.push(second);
            }
            previous = Some(interval);
        }
        assert_eq!(printed, [6, 8], "5 answers are too few for a silence after them");
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
}
