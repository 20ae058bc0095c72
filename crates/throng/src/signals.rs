//! SIGINT and SIGTERM: the first one asks the process to end, the second one ends it at once.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// Set by the first signal. The handlers store to atomics and write to no pipe: a signal may arrive
/// on a core's thread, whose own fd table may give the pipe's number to a connection.
#[derive(Debug)]
pub(crate) struct Signals(Arc<AtomicBool>);

impl Signals {
    /// Takes over both signals.
    ///
    /// # Errors
    /// The operating system refuses.
    pub(crate) fn install() -> io::Result<Self> {
        let came = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // In this order: the first signal finds the flag unset and sets it.
            flag::register_conditional_shutdown(signal, EXIT_OF_SHELLS + signal, came.clone())?;
            flag::register(signal, came.clone())?;
        }
        Ok(Self(came))
    }

    /// Blocks until a signal came.
    pub(crate) fn wait(&self) {
        while !self.0.load(Ordering::Relaxed) {
            thread::sleep(LOOK_EVERY);
        }
    }
}

const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The exit code that shells report for a process that a signal ended, less the signal's number.
const EXIT_OF_SHELLS: i32 = 128;
