//! The server's kernel counters, where the server is in another network namespace of this machine.

use std::net::SocketAddr;
use std::sync::mpsc::{self, Receiver, Sender};

use throng_base::time::Instant;
use throng_driver::{Clock, netns};
use throng_machine::{KernelSample, ProcRoot, Reason, Sampler, SamplerOptions, Unknown};
use throng_measure::Endpoint;

use super::watched_process::watched_process;
use crate::header::process_scope;

/// A sampler on a thread of its own. Only this thread moves into the server's namespace.
#[derive(Debug)]
pub(super) struct ServerKernel {
    requests: Sender<SamplerRequest>,
    samples: Receiver<KernelSample>,
}

/// A request to the sampler's thread.
#[derive(Debug)]
enum SamplerRequest {
    Sample,
    Step,
    Between(Instant, Instant),
}

impl ServerKernel {
    /// Watches the namespace of the process `pid`, its listeners on the ports of `targets` there,
    /// and the process.
    pub(super) fn new(pid: u32, targets: Vec<SocketAddr>) -> Self {
        let (requests, pending) = mpsc::channel::<SamplerRequest>();
        let (reply, samples) = mpsc::channel();
        let run = move || {
            let processes = vec![watched_process(Endpoint::Server, pid)];
            let refused = netns::enter(pid).err().map(|errno| {
                Unknown::new(
                    format!("proc/{pid}/ns/net"),
                    Reason::from(std::io::Error::from(errno)),
                )
            });
            let scope = process_scope(&ProcRoot::default(), pid, &targets);
            let mut sampler =
                Sampler::new(SamplerOptions { scope, processes, ..SamplerOptions::default() });
            while let Ok(request) = pending.recv() {
                match request {
                    SamplerRequest::Sample => {}
                    SamplerRequest::Step => {
                        sampler.step(Clock.now());
                        continue;
                    }
                    SamplerRequest::Between(from, to) => {
                        sampler.request_gap_cpu(from, to);
                        continue;
                    }
                }
                let mut sample = sampler.sample(Clock.now());
                if let Some(unknown) = &refused {
                    // The thread is still in the generator's namespace, whose counters are not the
                    // server's. Those of the process and of the machine are right in any case.
                    sample.counters.retain(NAMESPACE_INDEPENDENT);
                    sample.unknown.push(unknown.clone());
                }
                if reply.send(sample).is_err() {
                    return;
                }
            }
        };
        // The thread ends when the request channel closes.
        let thread = std::thread::Builder::new().name("server-kernel".into()).spawn(run);
        thread.expect("a thread for the server's kernel");
        Self { requests, samples }
    }

    /// Requests a sample; the caller must then call [`ServerKernel::receive_sample`].
    pub(super) fn request_sample(&mut self) {
        let _ = self.requests.send(SamplerRequest::Sample);
    }

    /// Measures what the process used between `from` and `to`; the next sample contains it.
    pub(super) fn measure_between(&self, from: Instant, to: Instant) {
        let _ = self.requests.send(SamplerRequest::Between(from, to));
    }

    /// Follows the process between two samples.
    pub(super) fn step(&self) {
        let _ = self.requests.send(SamplerRequest::Step);
    }

    /// Waits for the requested sample: some hundred microseconds.
    pub(super) fn receive_sample(&mut self) -> KernelSample {
        self.samples.recv().unwrap_or_default()
    }
}

/// The first parts of the names of metrics that are the same in every network namespace.
const NAMESPACE_INDEPENDENT: &[&str] = &["process.", "memory.", "files.", "pressure.", "cgroup."];
