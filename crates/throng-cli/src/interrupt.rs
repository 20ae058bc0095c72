//! Requests to end the process: [signals], the end of the parent, and `throng ctl shutdown`.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::flag;
use throng_driver::signals::{self, SignalFlag};

use crate::{Failure, orphan};

/// The request to end the process, and its source.
#[derive(Clone, Debug)]
pub(crate) struct Interrupt {
    by: Arc<AtomicUsize>,
    flags: Vec<SignalFlag>,
}

/// The source of a request to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    /// Ctrl-C.
    Sigint = SIGINT as isize,
    /// `kill`.
    Sigterm = SIGTERM as isize,
    /// The parent process ended, or closed this process's standard input.
    Parent = 1_000,
    /// `throng ctl shutdown`.
    Control,
    /// The terminal of a server that reloads at SIGHUP was closed.
    Terminal,
    /// A key of the terminal's view.
    Key,
    /// A button of the page.
    Page,
}

impl Interrupt {
    /// Installs handlers of both signals, and watches for the end of standard input if
    /// `exit_with_parent`.
    ///
    /// # Errors
    /// The operating system refuses.
    pub(crate) fn install(exit_with_parent: bool) -> Result<Self, Failure> {
        let refused = |error| Failure::new(format!("cannot handle signals: {error}"));
        let by = Arc::new(AtomicUsize::new(NO_REQUEST));
        let flags = signals::install(&by).map_err(refused)?.to_vec();
        // With a handler, a run file that reaches `ulimit -f` is a write error, as a full disk is.
        flag::register(SIGXFSZ, Arc::default()).map_err(refused)?;
        let interrupt = Self { by, flags };
        if exit_with_parent {
            orphan::watch(interrupt.clone());
        }
        Ok(interrupt)
    }

    /// Also sets `flag` at the first signal.
    ///
    /// # Errors
    /// The operating system refuses the handler.
    pub(crate) fn also_set(&self, flag: &Arc<AtomicBool>) -> Result<(), Failure> {
        for signal in [SIGINT, SIGTERM] {
            flag::register(signal, Arc::clone(flag))
                .map_err(|error| Failure::new(format!("cannot handle signals: {error}")))?;
        }
        Ok(())
    }

    /// Calls `restore` before a second signal of the same kind ends the process.
    pub(crate) fn restore_before_exit(&self, restore: fn()) {
        let flags = self.flags.clone();
        let mut arrived = vec![0; flags.len()];
        let watch = move || {
            loop {
                for (flag, arrived) in flags.iter().zip(&mut arrived) {
                    *arrived += usize::from(flag.take());
                    if *arrived > 1 {
                        restore();
                        flag.exit();
                    }
                }
                thread::sleep(LOOK_EVERY);
            }
        };
        // Without this thread, the signal ends the process and leaves the terminal as it is.
        let _ = thread::Builder::new().name("signals".to_owned()).spawn(watch);
    }

    /// Returns what to do at a Ctrl-C that a view reads as a key, which then is no signal: the
    /// first one calls `first`, and the second one ends the process, as the signal does.
    pub(crate) fn on_key(
        &self,
        restore: fn(),
        first: impl Fn() + Send + 'static,
    ) -> impl Fn() + Send + 'static {
        let sigint = self.flags.first().cloned();
        let pressed = AtomicUsize::new(0);
        move || match (pressed.fetch_add(1, Ordering::Relaxed), &sigint) {
            (0, _) | (_, None) => first(),
            (_, Some(sigint)) => {
                restore();
                sigint.exit();
            }
        }
    }

    /// Returns the source of the first request to end, if there was one.
    pub(crate) fn requested(&self) -> Option<By> {
        let by = self.by.load(Ordering::Relaxed);
        let all =
            [By::Sigint, By::Sigterm, By::Parent, By::Control, By::Terminal, By::Key, By::Page];
        all.into_iter().find(|it| *it as usize == by)
    }

    /// Requests the end from within the process.
    pub(crate) fn request(&self, by: By) {
        let _ =
            self.by.compare_exchange(NO_REQUEST, by as usize, Ordering::Relaxed, Ordering::Relaxed);
    }
}

impl fmt::Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sigint => "Ctrl-C",
            Self::Sigterm => "SIGTERM",
            Self::Parent => "the end of the parent process",
            Self::Control => "throng ctl shutdown",
            Self::Terminal => "the end of the terminal",
            Self::Key => "the key q",
            Self::Page => "the button of the page",
        })
    }
}

/// Makes SIGHUP set the flag that this returns, instead of ending the process.
///
/// # Errors
/// The operating system refuses.
pub(crate) fn hangup() -> Result<Arc<AtomicBool>, Failure> {
    let hangup = Arc::default();
    flag::register(SIGHUP, Arc::clone(&hangup))
        .map_err(|error| Failure::new(format!("cannot handle SIGHUP: {error}")))?;
    Ok(hangup)
}

/// The interval at which the main thread checks for a request to end.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(50);

const NO_REQUEST: usize = 0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_request_from_within_is_named() {
        let interrupt = Interrupt { by: Arc::default(), flags: Vec::new() };
        assert_eq!(interrupt.requested(), None);
        interrupt.request(By::Parent);
        interrupt.request(By::Control);
        assert_eq!(interrupt.requested(), Some(By::Parent));
        for by in [By::Control, By::Terminal, By::Key, By::Page] {
            let interrupt = Interrupt { by: Arc::default(), flags: Vec::new() };
            interrupt.request(by);
            assert_eq!(interrupt.requested(), Some(by));
        }
    }
}
