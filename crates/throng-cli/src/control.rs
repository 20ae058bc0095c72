//! A running server whose handler is not in its type, and what it answers on its control socket.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use throng_control::{ControlRequest, ControlTarget, Verb};
use throng_report::{RunEvent, ServerSnapshot};
use throng_server::{Handler, Server, StartError};

use crate::interrupt::{By, Interrupt};

/// What all servers can do, whatever their handler.
pub(crate) trait AnyServer: Send + Sync {
    /// Where it listens.
    fn addr(&self) -> SocketAddr;
    /// What was counted.
    fn snapshot(&self) -> ServerSnapshot;
    /// What has happened since the last call.
    fn events(&self) -> Vec<RunEvent>;
    /// Connections that are open.
    fn open(&self) -> u64;
    /// Stops accepting.
    fn suspend(&self);
    /// Accepts again.
    fn resume(&self) -> Result<(), StartError>;
    /// Stops accepting and waits for the end of all connections; true when none had to be closed.
    fn drain(&self, timeout: Duration) -> bool;
    /// Ends its cores.
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

/// A server that can be asked.
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
