//! Renewed certificates and ticket keys for a server that runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use throng_server::{AnyServer, TlsReloadError};

use super::tls::{TlsFlags, failure};
use crate::certificates::{self, CertificateFacts};
use crate::interrupt::{self, By, Interrupt};
use crate::{Failure, output};

/// A server with TLS whose files can be read again.
#[derive(Clone)]
pub(crate) struct TlsReload {
    server: Arc<dyn AnyServer>,
    flags: TlsFlags,
    json: bool,
    /// SIGHUP has arrived.
    hangup: Arc<AtomicBool>,
    /// The server was started at a terminal. When that closes, SIGHUP arrives, too.
    has_terminal: bool,
}

impl TlsReload {
    /// Watches for SIGHUP, if the flags name a file that can be read again. Otherwise the signal
    /// ends the process, as always.
    pub(super) fn new(
        server: &Arc<dyn AnyServer>,
        flags: &TlsFlags,
        json: bool,
    ) -> Result<Option<Self>, Failure> {
        if !flags.has_files() {
            return Ok(None);
        }
        Ok(Some(Self {
            server: Arc::clone(server),
            flags: flags.clone(),
            json,
            hangup: interrupt::hangup()?,
            has_terminal: output::has_terminal(),
        }))
    }

    /// Does what a SIGHUP asks for, if one has arrived: reads the files, or ends the server whose
    /// terminal has closed.
    pub(super) fn look_for_signal(&self, interrupt: &Interrupt) {
        if self.hangup.swap(false, Ordering::Relaxed) {
            match self.has_terminal && !output::has_terminal() {
                true => interrupt.request(By::Terminal),
                false => _ = self.reload("SIGHUP"),
            }
        }
    }

    /// Reads the files again, and says how that went. Returns the certificates of new handshakes.
    ///
    /// # Errors
    /// Why the server goes on with the old ones.
    pub(crate) fn reload(&self, by: &str) -> Result<Value, String> {
        let reloaded = self.read().map_err(|error| {
            let event = json!({"event": "reload_failed", "by": by, "error": error});
            let text = format!("{by}: not reloaded: {error}");
            output::say_either(self.json, &event, text.replace('\n', "\n  "));
            error
        })?;
        let event = json!({"event": "reloaded", "by": by, "certificates": reloaded});
        let shown = certificates::show(&reloaded);
        output::say_either(self.json, &event, format!("{by}: reloaded {shown}"));
        for warning in reloaded.iter().filter_map(CertificateFacts::warning) {
            output::say_beside(self.json, warning);
        }
        Ok(json!({"certificates": reloaded}))
    }

    fn read(&self) -> Result<Vec<CertificateFacts>, String> {
        let old = self.server.tls().ok_or_else(|| TlsReloadError::NoTls.to_string())?;
        let unchanged = |error: Failure| format!("{error}\nThe server goes on with what it has.");
        let new = self.flags.read_again(old).map_err(unchanged)?;
        let certificates = CertificateFacts::of(&new.pairs);
        self.server.reload_tls(new).map_err(|error| match error {
            TlsReloadError::Config(error) => unchanged(failure(&error)),
            error => error.to_string(),
        })?;
        Ok(certificates)
    }
}
