//! A process behind a control socket, as a target of requests in this process.

use std::path::PathBuf;

use serde_json::Value;

use crate::{ControlClient, ControlRequest, ControlTarget, Verb};

/// A process that answers at a control socket. Each request is a connection of its own.
#[derive(Clone, Debug)]
pub struct RemoteTarget {
    /// The path of the socket.
    pub path: PathBuf,
}

impl ControlTarget for RemoteTarget {
    fn verbs(&self) -> &[Verb] {
        &Verb::ALL
    }

    fn answer(&self, request: &ControlRequest) -> Result<Value, String> {
        let reply = ControlClient::connect(&self.path).and_then(|mut it| it.request(request));
        reply.map(|reply| reply.data).map_err(|error| error.to_string())
    }
}
