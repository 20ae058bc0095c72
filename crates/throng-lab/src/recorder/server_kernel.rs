//! The server's kernel counters, where it is in another network namespace of this machine.

use std::sync::mpsc::{self, Receiver, Sender};

use throng_base::time::Instant;
use throng_doctor::{KernelSample, Reason, Sampler, SamplerOptions, Unknown};
use throng_driver::{Clock, netns};

use super::kernel::watched;

/// A sampler on a thread of its own, which has moved into the server's namespace; nobody else moves.
#[derive(Debug)]
pub(super) struct ServerKernel {
    requests: Sender<SamplerRequest>,
    samples: Receiver<KernelSample>,
}

/// What the thread is asked for.
#[derive(Debug)]
enum SamplerRequest {
    Sample,
    Step,
    Between(Instant, Instant),
}

impl ServerKernel {
    /// Looks at the namespace of the process `pid`, at the listeners on `ports` there, and at the process.
    pub(super) fn new(pid: u32, ports: Vec<u16>) -> Self {
        let (questions, asked) = mpsc::channel::<SamplerRequest>();
        let (answer, answers) = mpsc::channel();
        let run = move || {
            let processes = vec![watched("server", pid)];
            let refused = netns::enter(pid).err().map(|errno| {
                Unknown::new(
                    format!("proc/{pid}/ns/net"),
                    Reason::from(std::io::Error::from(errno)),
                )
            });
            let mut sampler =
                Sampler::new(SamplerOptions { ports, processes, ..SamplerOptions::default() });
            while let Ok(question) = asked.recv() {
                match question {
                    SamplerRequest::Sample => {}
                    SamplerRequest::Step => {
                        sampler.step(Clock.now());
                        continue;
                    }
                    SamplerRequest::Between(from, to) => {
                        sampler.ask_between(from, to);
                        continue;
                    }
                }
                let mut sample = sampler.sample(Clock.now());
                if let Some(why) = &refused {
                    // The thread has stayed where the generator is, whose counters are not the server's. What is
                    // of the process and of the machine is true all the same.
                    sample.counters.retain(|name, _| is_namespace_independent(name));
                    sample.unknown.push(why.clone());
                }
                if answer.send(sample).is_err() {
                    return;
                }
            }
        };
        // It ends with the channel.
        let thread = std::thread::Builder::new().name("server-kernel".into()).spawn(run);
        thread.expect("a thread for the server's kernel");
        Self { requests: questions, samples: answers }
    }

    /// Begins to look; [`ServerKernel::answer`] has to follow.
    pub(super) fn request_sample(&mut self) {
        let _ = self.requests.send(SamplerRequest::Sample);
    }

    /// Asks what the process used between two moments; the next look says it.
    pub(super) fn measure_between(&self, from: Instant, to: Instant) {
        let _ = self.requests.send(SamplerRequest::Between(from, to));
    }

    /// Follows the process between two looks.
    pub(super) fn step(&self) {
        let _ = self.requests.send(SamplerRequest::Step);
    }

    /// What was seen. It takes as long as looking does, some hundred microseconds.
    pub(super) fn receive_sample(&mut self) -> KernelSample {
        self.samples.recv().unwrap_or_default()
    }
}

fn is_namespace_independent(name: &str) -> bool {
    ["process.", "memory.", "files.", "pressure.", "cgroup."]
        .iter()
        .any(|part| name.starts_with(part))
}
