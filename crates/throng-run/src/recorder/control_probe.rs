//! A throng server that answers on its control socket.

use std::fmt;
use std::path::PathBuf;

use throng_control::{ControlClient, ControlRequest, ProcessRole, Verb};
use throng_measure::ServerSnapshot;

use super::probes::ServerProbe;

/// A throng server that answers on its control socket.
pub struct ControlProbe {
    path: PathBuf,
    client: Option<ControlClient>,
    find: Option<FindSocket>,
}

/// Finds the control socket of the server that replaced one that is gone.
type FindSocket = Box<dyn Fn() -> Option<PathBuf> + Send>;

impl ControlProbe {
    /// Returns a probe of the server whose control socket is at `path`. The socket need not exist
    /// yet.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), client: None, find: None }
    }

    /// Adds `find`, which the probe calls for another socket once its own is gone: a restarted
    /// server has another one.
    #[must_use]
    pub fn or_find(self, find: impl Fn() -> Option<PathBuf> + Send + 'static) -> Self {
        Self { find: Some(Box::new(find)), ..self }
    }

    fn connect(&mut self) -> Result<ControlClient, String> {
        let error = match ControlClient::connect(&self.path) {
            Ok(client) => return Ok(client),
            Err(error) => error.to_string(),
        };
        let found = self.find.as_ref().and_then(|find| find()).filter(|found| *found != self.path);
        self.path = found.ok_or(error)?;
        ControlClient::connect(&self.path).map_err(|error| error.to_string())
    }
}

impl fmt::Debug for ControlProbe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ControlProbe").field("path", &self.path).finish_non_exhaustive()
    }
}

impl ServerProbe for ControlProbe {
    fn snapshot(&mut self) -> Result<ServerSnapshot, String> {
        let mut client = match self.client.take() {
            Some(client) => client,
            None => self.connect()?,
        };
        let reply = client
            .request(&ControlRequest::new(Verb::Snapshot))
            .map_err(|error| error.to_string())?;
        if reply.role != ProcessRole::Server {
            return Err(format!("{} belongs to a generator, not to a server", self.path.display()));
        }
        let snapshot = serde_json::from_value(reply.data).map_err(|error| error.to_string())?;
        // The connection is of no use after an error, so the probe keeps it only now.
        self.client = Some(client);
        Ok(snapshot)
    }
}
