//! A running server of any handler, and its answers on the control socket.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use throng_control::{ControlRequest, ControlTarget, Verb};
use throng_report::{RunEvent, ServerSnapshot};
use throng_server::{Handler, Server, StartError};

use crate::interrupt::{By, Interrupt};

/// The operations of a server, whatever its handler.
pub(crate) trait AnyServer: Send + Sync {
    /// Returns the listening address.
    fn addr(&self) -> SocketAddr;
    /// Returns the counters.
    fn snapshot(&self) -> ServerSnapshot;
    /// Returns the events since the last call.
    fn events(&self) -> Vec<RunEvent>;
    /// Returns the number of open connections.
    fn open(&self) -> u64;
    /// Stops accepting.
    fn suspend(&self);
    /// Resumes accepting.
    fn resume(&self) -> Result<(), StartError>;
    /// Stops accepting and waits until all connections have ended; true if none had to be closed.
    fn drain(&self, timeout: Duration) -> bool;
    /// Ends the cores.
    fn stop(&self) -> bool;
}

impl<H: Handler> AnyServer for Server<H>
where
    Self: Send + Sync,
{
    fn addr(&self) -> SocketAddr {
        self.addr()
    }

    fn snapshot(&self) -> ServerSnapshot {
        self.snapshot()
    }

    fn events(&self) -> Vec<RunEvent> {
        self.events()
    }

    fn open(&self) -> u64 {
        self.open()
    }

    fn suspend(&self) {
        self.suspend();
    }

    fn resume(&self) -> Result<(), StartError> {
        self.resume()
    }

    fn drain(&self, timeout: Duration) -> bool {
        self.drain(timeout)
    }

    fn stop(&self) -> bool {
        self.stop()
    }
}

/// A server behind a control socket.
pub(crate) struct ServerControl {
    pub(crate) server: Arc<dyn AnyServer>,
    pub(crate) interrupt: Interrupt,
    pub(crate) drain_timeout: Duration,
}

impl ControlTarget for ServerControl {
    fn verbs(&self) -> &[Verb] {
        &[Verb::Snapshot, Verb::Count, Verb::Pause, Verb::Resume, Verb::Drain, Verb::Shutdown]
    }

    fn answer(&self, request: &ControlRequest) -> Result<Value, String> {
        match request.verb {
            Verb::Snapshot => {
                return serde_json::to_value(self.server.snapshot()).map_err(|e| e.to_string());
            }
            Verb::Pause => self.server.suspend(),
            Verb::Resume => self.server.resume().map_err(|error| error.to_string())?,
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
