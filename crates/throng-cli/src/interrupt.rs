//! Ctrl-C and SIGTERM: the first asks the process to end in order, the second ends it at once.
//!
//! The handlers store to atomics and do nothing else. In particular they write to no pipe: a signal may
//! arrive on a core's thread, whose own fd table gives the pipe's number to somebody's connection.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use signal_hook::consts::{SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::flag;

use crate::{Failure, orphan};

/// Tells whether somebody asked the process to end.
#[derive(Clone, Debug)]
pub(crate) struct Interrupt {
    by: Arc<AtomicUsize>,
}

/// Who asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    /// Ctrl-C.
    Sigint,
    /// `kill`.
    Sigterm,
    /// The process that started this one has ended, or has closed our standard input.
    Parent,
    /// `throng ctl shutdown`.
    Control,
}

impl Interrupt {
    /// Takes both signals over, and standard input's end if `exit_with_parent`.
    ///
    /// # Errors
    /// The operating system refuses.
    pub(crate) fn install(exit_with_parent: bool) -> Result<Self, Failure> {
        let refused = |error| Failure::new(format!("cannot handle signals: {error}"));
        let by = Arc::new(AtomicUsize::new(NOBODY));
        for (signal, value) in [(SIGINT, By::Sigint), (SIGTERM, By::Sigterm)] {
            let again = Arc::new(AtomicBool::new(false));
            // In this order: the first signal finds `again` unset and sets it, the second one ends us.
            flag::register_conditional_shutdown(
                signal,
                EXIT_OF_SHELLS + signal,
                Arc::clone(&again),
            )
            .map_err(refused)?;
            flag::register(signal, again).map_err(refused)?;
            flag::register_usize(signal, Arc::clone(&by), value as usize + 1).map_err(refused)?;
        }
        // With a handler, a run file that reaches `ulimit -f` is an error of the write, as a full disk is.
        flag::register(SIGXFSZ, Arc::default()).map_err(refused)?;
        let interrupt = Self { by };
        if exit_with_parent {
            orphan::watch(interrupt.clone());
        }
        Ok(interrupt)
    }

    /// Sets `flag` as well, at the first signal.
    ///
    /// # Errors
    /// The operating system refuses.
    pub(crate) fn also_set(&self, flag: &Arc<AtomicBool>) -> Result<(), Failure> {
        for signal in [SIGINT, SIGTERM] {
            flag::register(signal, Arc::clone(flag))
                .map_err(|error| Failure::new(format!("cannot handle signals: {error}")))?;
        }
        Ok(())
    }

    /// Who asked, once somebody has.
    pub(crate) fn asked(&self) -> Option<By> {
        let by = self.by.load(Ordering::Relaxed);
        [By::Sigint, By::Sigterm, By::Parent, By::Control]
            .into_iter()
            .find(|it| *it as usize + 1 == by)
    }

    /// Asks from within the process.
    pub(crate) fn ask(&self, by: By) {
        let _ =
            self.by.compare_exchange(NOBODY, by as usize + 1, Ordering::Relaxed, Ordering::Relaxed);
    }
}

impl fmt::Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sigint => "Ctrl-C",
            Self::Sigterm => "SIGTERM",
            Self::Parent => "the end of the parent process",
            Self::Control => "throng ctl shutdown",
        })
    }
}

/// How often the main thread looks.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(50);

const NOBODY: usize = 0;

/// What shells report for a process that a signal ended, less the signal's number.
const EXIT_OF_SHELLS: i32 = 128;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_who_asks_from_within_is_named() {
        let interrupt = Interrupt { by: Arc::default() };
        assert_eq!(interrupt.asked(), None);
        interrupt.ask(By::Parent);
        interrupt.ask(By::Control);
        assert_eq!(interrupt.asked(), Some(By::Parent));
    }
}
