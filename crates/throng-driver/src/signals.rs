//! SIGINT and SIGTERM: the first one asks the process to end, and a second one of the same kind
//! ends it at once.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// Makes SIGINT and SIGTERM store their number in `latest`.
///
/// The handlers store to atomics and write to no pipe: a signal may arrive on a core's thread, in
/// whose private fd table the pipe's number belongs to a connection.
///
/// # Errors
/// The operating system refuses.
pub fn install(latest: &Arc<AtomicUsize>) -> io::Result<()> {
    for signal in [SIGINT, SIGTERM] {
        let again = Arc::new(AtomicBool::new(false));
        // In this order: the first signal finds `again` unset and sets it.
        flag::register_conditional_shutdown(signal, EXIT_OF_SHELLS + signal, Arc::clone(&again))?;
        flag::register(signal, again)?;
        flag::register_usize(signal, Arc::clone(latest), signal as usize)?;
    }
    Ok(())
}

/// The exit code that shells report for a process that a signal ended, less the signal's number.
const EXIT_OF_SHELLS: i32 = 128;
