//! SIGINT and SIGTERM: the first one asks the process to end, and a second one of the same kind
//! ends it at once.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// Makes SIGINT and SIGTERM store their number in `latest`.
///
/// The handlers store to atomics and write to no pipe: a signal may arrive on a core's thread, in
/// whose private fd table the pipe's number belongs to a connection.
///
/// Returns the flag of each, which its first one sets. While it is set, the next one ends the
/// process. A caller that must do something before the end resets it, and ends the process itself.
///
/// # Errors
/// The operating system refuses.
pub fn install(latest: &Arc<AtomicUsize>) -> io::Result<[SignalFlag; 2]> {
    let flags = [SIGINT, SIGTERM].map(|signal| SignalFlag { signal, is_set: Arc::default() });
    for SignalFlag { signal, is_set: again } in flags.clone() {
        // In this order: the first signal finds `again` unset and sets it.
        flag::register_conditional_shutdown(signal, EXIT_OF_SHELLS + signal, Arc::clone(&again))?;
        flag::register(signal, again)?;
        flag::register_usize(signal, Arc::clone(latest), signal as usize)?;
    }
    Ok(flags)
}

/// A flag that a signal sets.
#[derive(Clone, Debug)]
pub struct SignalFlag {
    signal: i32,
    is_set: Arc<AtomicBool>,
}

impl SignalFlag {
    /// Resets the flag. Returns true if the signal has arrived since.
    pub fn take(&self) -> bool {
        self.is_set.swap(false, Ordering::Relaxed)
    }

    /// Ends the process at once, as the signal does.
    pub fn exit(&self) -> ! {
        std::process::exit(EXIT_OF_SHELLS + self.signal)
    }
}

/// The exit code that shells report for a process that a signal ended, less the signal's number.
const EXIT_OF_SHELLS: i32 = 128;
