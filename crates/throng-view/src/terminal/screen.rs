//! The terminal that a view owns: its alternate screen, its keys, and its return to what it was.
//!
//! crossterm's own reader of keys installs a handler of SIGWINCH that writes to a pipe. A signal
//! may arrive on a core's thread, in whose private fd table the pipe's number belongs to a
//! connection. So [`Screen`] reads keys from standard input itself, and asks for the size at each
//! draw.

use std::collections::VecDeque;
use std::io::{self, BufWriter, IsTerminal, Stdout, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Once};
use std::time::{Duration, Instant};
use std::{env, panic, thread};

use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::terminal::{
    BeginSynchronizedUpdate, EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen,
    disable_raw_mode, enable_raw_mode,
};
use ratatui::crossterm::{execute, queue};
use ratatui::{Frame, Terminal};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use signal_hook::consts::{SIGCONT, SIGTSTP};
use signal_hook::{flag, low_level};

use super::key::{self, TerminalKey as Key};
use super::style::TerminalStyle;

/// The alternate screen of this process's terminal. There is one at a time. Dropping it gives the
/// terminal back, and so does a panic.
#[derive(Debug)]
pub struct Screen {
    terminal: Terminal<CrosstermBackend<BufWriter<Stdout>>>,
    look: TerminalStyle,
    keys: VecDeque<Key>,
    /// Set after the process was stopped: meanwhile a shell used the terminal.
    is_continued: Arc<AtomicBool>,
    has_keys: bool,
}

impl Screen {
    /// Reports whether a view can be shown: standard input and standard output are a terminal that
    /// can position its cursor, and this process is in its foreground.
    pub fn is_possible() -> bool {
        let is_terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
        let is_dumb = env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
        is_terminal && !is_dumb && is_in_foreground()
    }

    /// Takes the terminal.
    ///
    /// # Errors
    /// The terminal cannot be set up.
    pub fn open() -> io::Result<Self> {
        restore_on_panic();
        let is_continued = Arc::default();
        // The handler only stores a flag: it is safe on every thread.
        flag::register(SIGCONT, Arc::clone(&is_continued))?;
        let out = BufWriter::with_capacity(FRAME_BYTES, io::stdout());
        let terminal = Terminal::new(CrosstermBackend::new(out))?;
        let look = TerminalStyle::of_environment();
        enter()?;
        Ok(Self { terminal, look, keys: VecDeque::new(), is_continued, has_keys: true })
    }

    /// Draws a frame, in the look that the environment asks for. In the background it draws
    /// nothing.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        if self.is_continued.swap(false, Ordering::Relaxed) {
            IS_OPEN.store(false, Ordering::SeqCst);
        }
        if !IS_OPEN.load(Ordering::Relaxed) {
            if !is_in_foreground() {
                return Ok(());
            }
            enter()?;
            // `Terminal::clear` would ask for the cursor, and crossterm's reader would answer.
            let size = self.terminal.size()?;
            self.terminal.resize(size.into())?;
        }
        queue!(self.terminal.backend_mut(), BeginSynchronizedUpdate)?;
        let look = self.look;
        self.terminal.draw(|frame| {
            draw(frame);
            look.apply(frame.buffer_mut());
        })?;
        execute!(self.terminal.backend_mut(), EndSynchronizedUpdate)
    }

    /// Waits for a key, for `timeout` at most.
    pub fn key(&mut self, timeout: Duration) -> Option<Key> {
        if self.keys.is_empty() {
            self.read_keys(timeout);
        }
        self.keys.pop_front()
    }

    fn read_keys(&mut self, timeout: Duration) {
        let is_stopped = self.is_continued.load(Ordering::Relaxed);
        if !self.has_keys || is_stopped || !IS_OPEN.load(Ordering::Relaxed) {
            return thread::sleep(timeout);
        }
        let began = Instant::now();
        let stdin = io::stdin();
        let wait = Timespec {
            tv_sec: timeout.as_secs() as i64,
            tv_nsec: i64::from(timeout.subsec_nanos()),
        };
        let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
        let mut bytes = [0; 256];
        let read = match poll(&mut fds, Some(&wait)) {
            Ok(0) | Err(Errno::INTR) => return,
            Ok(_) => rustix::io::read(&stdin, &mut bytes),
            Err(error) => Err(error),
        };
        match read {
            Ok(0) => self.has_keys = false,
            Ok(n) => self.keys.extend(key::keys(&bytes[..n])),
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(_) => self.has_keys = false,
        }
        if !self.has_keys {
            thread::sleep(timeout.saturating_sub(began.elapsed()));
        }
    }

    /// Gives the terminal back and stops the process, as Ctrl-Z does elsewhere. Returns when the
    /// shell continues it.
    pub fn suspend(&mut self) {
        restore();
        if low_level::raise(SIGTSTP).is_ok() {
            self.is_continued.store(true, Ordering::Relaxed);
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

/// Gives the terminal back if a view has it. For a caller that ends the process at once.
pub fn restore() {
    if IS_OPEN.swap(false, Ordering::SeqCst) {
        let _ = execute!(io::stdout(), EndSynchronizedUpdate, LeaveAlternateScreen, Show);
        let _ = disable_raw_mode();
    }
}

/// Returns the columns of the terminal that standard output is, if it is one.
pub fn output_width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

fn enter() -> io::Result<()> {
    enable_raw_mode()?;
    IS_OPEN.store(true, Ordering::SeqCst);
    let mut out = io::stdout();
    execute!(out, EnterAlternateScreen, Hide)?;
    out.flush()
}

/// Gives the terminal back before a panic's message, so that it can be read. If the panic was that
/// of another thread, the next draw takes the terminal again.
fn restore_on_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            restore();
            before(info);
        }));
    });
}

/// Reports whether a shell has not started this process in the background, where a change of the
/// terminal's modes would stop it.
fn is_in_foreground() -> bool {
    let group = rustix::termios::tcgetpgrp(io::stdin());
    group.is_ok_and(|group| group == rustix::process::getpgrp())
}

/// Whether a view has the terminal.
static IS_OPEN: AtomicBool = AtomicBool::new(false);

/// The buffer of a frame, so that a terminal gets it in few writes.
const FRAME_BYTES: usize = 64 << 10;
