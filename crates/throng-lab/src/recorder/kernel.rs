//! The machine itself: CPU time and the kernel's counters.

use throng_doctor::{Sampler, SamplerOptions, Watched};
use throng_driver::{Clock, netns};

use super::{KernelProbe, KernelSample};

/// This machine, by way of the doctor's [`Sampler`].
///
/// The counters are those of the server's network namespace as soon as the server is known, where this
/// process may enter it: that is where accept queues overflow and SYNs are dropped. The recorder's
/// thread moves there alone; the generator stays where it is.
#[derive(Debug)]
pub struct LiveKernel {
    ports: Vec<u16>,
    sampler: Sampler,
}

impl LiveKernel {
    /// Reads the machine and the listeners on `ports`; no ports means all listeners.
    pub fn new(ports: Vec<u16>) -> Self {
        let sampler = Sampler::new(options(&ports, None));
        Self { ports, sampler }
    }
}

impl KernelProbe for LiveKernel {
    fn sample(&mut self) -> KernelSample {
        let sample = self.sampler.sample(Clock.now());
        KernelSample { machine: sample.machine, counters: sample.counters, ..Default::default() }
    }

    fn server_is(&mut self, pid: u32) {
        // Where it is refused, the counters of this namespace are what there is.
        let _ = netns::enter(pid);
        self.sampler = Sampler::new(options(&self.ports, Some(pid)));
    }
}

fn options(ports: &[u16], server: Option<u32>) -> SamplerOptions {
    let watched = |label: &str, pid| Watched { label: label.to_owned(), pid };
    let server = server.map(|pid| watched("server", pid));
    let processes = server.into_iter().chain([watched("client", std::process::id())]).collect();
    SamplerOptions { ports: ports.to_vec(), processes, ..SamplerOptions::default() }
}
