//! The probes of one run.

use std::fmt;
use std::net::SocketAddr;

use super::kernel::LiveKernel;
use super::probes::{GeneratorProbe, KernelProbe, ServerProbe};

/// The probes of one run.
pub struct RunProbes {
    /// The generator.
    pub generator: Box<dyn GeneratorProbe>,
    /// The server, where there is one that answers.
    pub server: Option<Box<dyn ServerProbe>>,
    /// Creates the probe of the machine, on the recorder's thread.
    pub kernel: Box<dyn FnOnce() -> Box<dyn KernelProbe> + Send>,
}

impl RunProbes {
    /// Returns probes of `generator` and of this machine with the listeners of every port, and no
    /// server.
    pub fn new(generator: impl GeneratorProbe + 'static) -> Self {
        let kernel = Box::new(|| Box::new(LiveKernel::new(Vec::new())) as Box<dyn KernelProbe>);
        Self { generator: Box::new(generator), server: None, kernel }
    }

    /// Adds a server.
    #[must_use]
    pub fn with_server(self, server: impl ServerProbe + 'static) -> Self {
        Self { server: Some(Box::new(server)), ..self }
    }

    /// Restricts the listeners to those that connections to `targets` reach.
    #[must_use]
    pub fn with_targets(self, targets: Vec<SocketAddr>) -> Self {
        let kernel = Box::new(|| Box::new(LiveKernel::new(targets)) as Box<dyn KernelProbe>);
        Self { kernel, ..self }
    }
}

impl fmt::Debug for RunProbes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunProbes").field("server", &self.server.is_some()).finish_non_exhaustive()
    }
}
