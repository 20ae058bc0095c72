//! The answers of a running server on its control socket.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use throng_control::{ControlRequest, ControlTarget, Verb};
use throng_server::{AnyServer, INSPECTION_ROWS_MAX};

use crate::commands::serve::TlsReload;
use crate::interrupt::{By, Interrupt};

/// A running server, as its control socket steers it.
pub(crate) struct ServerControl {
    pub(crate) server: Arc<dyn AnyServer>,
    pub(crate) interrupt: Interrupt,
    /// What can be read again; `None` if the server has no files.
    pub(crate) reload: Option<TlsReload>,
    pub(crate) drain_timeout: Duration,
}

impl ControlTarget for ServerControl {
    fn verbs(&self) -> &[Verb] {
        use Verb::{Count, Drain, Inspect, Pause, Reload, Resume, Shutdown, Snapshot};
        &[Snapshot, Inspect, Count, Pause, Resume, Reload, Drain, Shutdown]
    }

    fn answer(&self, request: &ControlRequest) -> Result<Value, String> {
        match request.verb {
            Verb::Snapshot => {
                return serde_json::to_value(self.server.snapshot()).map_err(|e| e.to_string());
            }
            Verb::Inspect => return self.inspect(request.n),
            Verb::Pause => self.server.suspend(),
            Verb::Resume => self.server.resume().map_err(|error| error.to_string())?,
            Verb::Reload => {
                let reload = self.reload.as_ref().ok_or(NO_FILES)?;
                return reload.reload("throng ctl reload");
            }
            Verb::Drain => {
                let drained = self.server.drain(self.drain_timeout);
                return Ok(json!({"drained": drained, "open": self.server.open()}));
            }
            Verb::Shutdown => self.interrupt.request(By::Control),
            _ => {}
        }
        Ok(json!({"open": self.server.open()}))
    }
}

impl ServerControl {
    fn inspect(&self, rows: Option<u64>) -> Result<Value, String> {
        let rows = rows.map_or(INSPECTION_ROWS, |rows| usize::try_from(rows).unwrap_or(usize::MAX));
        if rows > INSPECTION_ROWS_MAX {
            return Err(format!(
                "`inspect` returns at most {INSPECTION_ROWS_MAX} rows, not {rows}"
            ));
        }
        serde_json::to_value(self.server.inspect(rows)).map_err(|error| error.to_string())
    }
}

/// Why nothing can be reloaded.
const NO_FILES: &str =
    "this server has no certificate to reload: it was started without --tls-cert";

/// The rows of a look, unless the request says another number.
const INSPECTION_ROWS: usize = 10;
