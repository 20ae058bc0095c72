//! The live view of a run or a lab: a thread that owns the screen, draws the model and reads keys.

use std::collections::VecDeque;
use std::io;
use std::sync::mpsc::TryRecvError;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use throng_control::ControlTarget;
use throng_measure::Interval;
use throng_run::RunContent;

use super::controls::ViewCommand;
use super::draw::draw;
use super::model::TerminalModel;
use super::queue::{ViewInput, ViewReceiver, ViewSender, view_queue};
use super::screen::Screen;
use super::steering::Steering;

/// A live view. Closing it gives the terminal back, and so does dropping it.
///
/// Those that feed it never wait for its thread. When a terminal takes nothing for a while, the
/// view leaves out intervals: their latencies and events are then missing in its charts and in its
/// verdict so far, but in no rate, because counters are totals. The run file has all of them.
#[derive(Debug)]
pub struct TerminalView {
    /// Absent when the view has ended.
    input: Mutex<Option<ViewSender>>,
    kept: Mutex<KeptLines>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// The events and notes that are printed when the view is over.
#[derive(Debug, Default)]
struct KeptLines {
    lines: VecDeque<String>,
    left_out: u64,
}

impl TerminalView {
    /// Takes the terminal and shows `model`. Calls `interrupt` at each Ctrl-C.
    ///
    /// # Errors
    /// The terminal cannot be set up, or the thread not be started.
    pub fn open(model: TerminalModel, interrupt: impl Fn() + Send + 'static) -> io::Result<Self> {
        let (input, received) = view_queue();
        let mut screen = Screen::open()?;
        let steering = Steering::start()?;
        let view = ViewLoop { model, received, steering, clock: RunClock::start() };
        let run = move || {
            // If the terminal is gone, the run goes on without it.
            let _ = view.run(&mut screen, &interrupt);
        };
        let thread = thread::Builder::new().name("view".into()).spawn(run)?;
        let (input, thread) = (Mutex::new(Some(input)), Mutex::new(Some(thread)));
        Ok(Self { input, kept: Mutex::default(), thread })
    }

    /// Shows an interval.
    pub fn show(&self, interval: &Interval) {
        for event in &interval.events {
            self.keep(&event.to_string());
        }
        self.send(ViewInput::Interval(Box::new(interval.clone())));
    }

    /// Shows a sentence, and keeps it for later.
    pub fn note(&self, text: &str) {
        self.keep(text);
        self.send(ViewInput::Note(text.to_owned()));
    }

    /// Shows that a row of a lab begins.
    pub fn begin_row(&self, name: &str, number: usize, of: usize, seconds: u64) {
        self.send(ViewInput::Row { name: name.to_owned(), number, of, seconds });
    }

    /// Shows the load of a lab's row.
    pub fn begin_load(&self, content: RunContent) {
        self.send(ViewInput::Load(Box::new(content)));
    }

    /// Steers `target` with the keys from now on.
    pub fn steer(&self, target: Arc<dyn ControlTarget>) {
        self.send(ViewInput::Control(target));
    }

    /// Gives the terminal back, and returns the events and notes.
    pub fn close(&self) -> Vec<String> {
        self.end();
        let mut kept = lock(&self.kept);
        let mut lines: Vec<_> = kept.lines.drain(..).collect();
        if kept.left_out > 0 {
            lines.insert(0, format!("{} earlier events are in the run file", kept.left_out));
        }
        lines
    }

    fn end(&self) {
        *lock(&self.input) = None;
        if let Some(thread) = lock(&self.thread).take() {
            let _ = thread.join();
        }
    }

    fn send(&self, input: ViewInput) {
        if let Some(sender) = &*lock(&self.input) {
            sender.send(input);
        }
    }

    fn keep(&self, text: &str) {
        let mut kept = lock(&self.kept);
        if kept.lines.len() >= LINES_MAX {
            kept.lines.pop_front();
            kept.left_out += 1;
        }
        kept.lines.push_back(text.to_owned());
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for TerminalView {
    fn drop(&mut self) {
        self.end();
    }
}

/// The state of the view's thread.
struct ViewLoop {
    model: TerminalModel,
    received: ViewReceiver,
    steering: Steering,
    clock: RunClock,
}

impl ViewLoop {
    /// Draws and reads keys until the view is closed.
    fn run(mut self, screen: &mut Screen, interrupt: &impl Fn()) -> io::Result<()> {
        while self.receive() {
            self.clock.judge(&mut self.model);
            while let Some(reason) = self.steering.refusal() {
                self.model.note(&reason);
            }
            self.model.set_now(self.clock.now());
            screen.draw(|frame| draw(frame, &self.model))?;
            let next_draw = Instant::now() + DRAW_EVERY;
            while let Some(key) = screen.key(next_draw.saturating_duration_since(Instant::now())) {
                match self.model.press(key) {
                    Some(ViewCommand::Control(request)) => {
                        if let Some(reason) = self.steering.send(request) {
                            self.model.note(&reason);
                        }
                    }
                    Some(ViewCommand::Interrupt) => interrupt(),
                    Some(ViewCommand::Suspend) => screen.suspend(),
                    None => {}
                }
                screen.draw(|frame| draw(frame, &self.model))?;
            }
        }
        Ok(())
    }

    /// Takes everything that has arrived. Returns false when the view is closed.
    fn receive(&mut self) -> bool {
        loop {
            match self.received.try_recv() {
                Ok(ViewInput::Interval(interval)) => {
                    self.model.add(&interval);
                    self.clock.set(interval.at_ms);
                }
                Ok(ViewInput::Note(text)) => self.model.note(&text),
                Ok(ViewInput::Row { name, number, of, seconds }) => {
                    self.model.begin_row(&name, number, of, seconds);
                    self.clock = RunClock::start();
                }
                Ok(ViewInput::Load(content)) => {
                    self.model.begin_load(*content);
                    self.clock = RunClock::start();
                }
                Ok(ViewInput::Control(target)) => self.steering.target = Some(target),
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => return false,
            }
        }
    }
}

/// The time of the run between two intervals, and the moments at which the run is judged.
struct RunClock {
    /// The time of the run at `since`, in milliseconds.
    at_ms: u64,
    since: Instant,
    next_verdict: Instant,
}

impl RunClock {
    fn start() -> Self {
        let now = Instant::now();
        Self { at_ms: 0, since: now, next_verdict: now + VERDICT_EVERY }
    }

    /// Sets the time to the end of an interval.
    fn set(&mut self, at_ms: u64) {
        (self.at_ms, self.since) = (at_ms, Instant::now());
    }

    fn now(&self) -> Duration {
        Duration::from_millis(self.at_ms) + self.since.elapsed()
    }

    /// Judges the run if it is time for it: every few seconds, and more seldom if it takes long.
    fn judge(&mut self, model: &mut TerminalModel) {
        let began = Instant::now();
        if began >= self.next_verdict {
            model.judge();
            self.next_verdict = began + VERDICT_EVERY.max(began.elapsed() * VERDICT_COST_PART);
        }
    }
}

/// The time between two frames.
const DRAW_EVERY: Duration = Duration::from_millis(200);
/// The time between two verdicts, …
const VERDICT_EVERY: Duration = Duration::from_secs(3);
/// … which is also at least this multiple of what one takes.
const VERDICT_COST_PART: u32 = 50;
/// The most events that are printed when the view is over.
const LINES_MAX: usize = 1_000;
