//! `throng top`: a look into a running server.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use throng_control::{ControlClient, ControlError, ControlRequest, Verb};
use throng_measure::ServerInspection;
use throng_view::terminal::screen::Screen;
use throng_view::top::{TopAction, TopView};

use crate::control_path::control_path;
use crate::interrupt::Interrupt;
use crate::{Exit, Failure, output, quantity};

/// Watch a running server: its cores, largest topics, slowest and busiest connections
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Top {
    /// Process id of the server; not needed if only one runs
    #[arg(long, value_name = "N")]
    pid: Option<u32>,
    /// Path of the server's control socket
    #[arg(long, value_name = "PATH", conflicts_with = "pid")]
    control: Option<PathBuf>,
    /// Time from one look to the next; a look itself takes half a second
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = quantity::interval)]
    interval: Duration,
    /// Rows of each list, at most 100; a terminal shows as many of them as fit
    #[arg(long, value_name = "N", default_value = "10",
        value_parser = clap::value_parser!(u64).range(1..=100))]
    rows: u64,
    /// Print one look and end, as without a terminal
    #[arg(long)]
    once: bool,
    /// Print one look as JSON and end
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Keys: q quits, space freezes the display, s changes the order, ? explains the columns

Examples:
  throng top
  throng top --pid 4242 --interval 5s
  throng top --once --rows 3
  throng top --json | jq '.slow[0]'";

impl Top {
    pub(crate) fn run(&self) -> Result<Exit, Failure> {
        let path = control_path(self.control.as_deref(), self.pid, Verb::Inspect)?;
        let look = LookRequest { path, rows: self.rows };
        if self.json {
            output::say_json(&look.take()?);
        } else if self.once || !Screen::is_possible() {
            let mut view = TopView::default();
            view.add(look.take()?, Instant::now());
            output::say(view.text());
        } else {
            self.show(look)?;
        }
        Ok(Exit::Met)
    }

    /// Shows looks until the user quits or the server ends.
    fn show(&self, look: LookRequest) -> Result<(), Failure> {
        let interrupt = Interrupt::install(false)?;
        let is_frozen = Arc::new(AtomicBool::new(false));
        let looks = look.repeat(self.interval, Arc::clone(&is_frozen));
        let mut screen = Screen::open().map_err(|e| Failure::new(e.to_string()))?;
        let mut view = TopView::default();
        while interrupt.requested().is_none() {
            screen.draw(|frame| view.draw(frame)).map_err(|e| Failure::new(e.to_string()))?;
            if let Some(key) = screen.key(KEYS_EVERY) {
                match view.press(key) {
                    TopAction::Continue => {}
                    TopAction::Quit => return Ok(()),
                    TopAction::Suspend => screen.suspend(),
                }
                is_frozen.store(view.is_frozen(), Relaxed);
            }
            match looks.try_recv() {
                Ok(Ok((look, at))) => view.add(look, at),
                // A server that is too busy may answer later.
                Ok(Err(error @ ControlError::TimedOut(..))) => view.fail(error.to_string()),
                Ok(Err(error)) => return Err(error.into()),
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => return Ok(()),
            }
        }
        Ok(())
    }
}

/// The request for a look.
struct LookRequest {
    path: PathBuf,
    rows: u64,
}

/// A look and the time at which it arrived, or the reason why there is none.
type LookResult = Result<(ServerInspection, Instant), ControlError>;

impl LookRequest {
    /// Asks the server for a look.
    fn take(&self) -> Result<ServerInspection, ControlError> {
        // A new connection each time: a server closes one that is idle for a minute.
        let mut client = ControlClient::connect(&self.path)?;
        let reply = client.request(&ControlRequest::with_n(Verb::Inspect, self.rows))?;
        serde_json::from_value(reply.data)
            .map_err(|error| ControlError::Malformed(self.path.clone(), error.to_string()))
    }

    /// Asks for a look each `interval` on a thread of its own, except while the view is frozen.
    fn repeat(self, interval: Duration, is_frozen: Arc<AtomicBool>) -> Receiver<LookResult> {
        let (sender, looks) = channel();
        thread::spawn(move || self.send_looks(interval, &is_frozen, &sender));
        looks
    }

    fn send_looks(&self, interval: Duration, is_frozen: &AtomicBool, looks: &Sender<LookResult>) {
        loop {
            let began = Instant::now();
            if !is_frozen.load(Relaxed) {
                let taken = self.take().map(|look| (look, Instant::now()));
                if looks.send(taken).is_err() {
                    return;
                }
            }
            thread::sleep(interval.saturating_sub(began.elapsed()).max(KEYS_EVERY));
        }
    }
}

/// The longest time until the view reacts to a look.
const KEYS_EVERY: Duration = Duration::from_millis(100);
